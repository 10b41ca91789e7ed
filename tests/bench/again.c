/*
 * Preloaded into a program that would be over in seconds: when it exits, it starts again in the same
 * process, with the same arguments, until the time AGAIN_UNTIL (seconds since the epoch). For whoever
 * watches a launched program this is one that executes itself again and again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* The exit code of the last round is the program's own. */
static __attribute__((destructor)) void again(void)
{
	static char text[1 << 16];
	static char *argv[4096];
	const char *until = getenv("AGAIN_UNTIL");
	size_t n = 0, at = 0;

	if (!until || time(NULL) >= atol(until))
		return;
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	while (at < len && n < sizeof(argv) / sizeof(argv[0]) - 1) {
		argv[n++] = text + at;
		while (at < len && text[at])
			at++;
		at++;
	}
	if (n)
		execve("/proc/self/exe", argv, environ);
}
