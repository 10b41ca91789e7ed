/*
 * A program that starts, stops and replaces itself on command, beside a thread that allocates and takes
 * note of the longest time it was held up.
 *
 * Prints "ready", then answers each line of its standard input:
 *	gap		"gap MS": longest pause of the other thread since the last such line
 *	vfork MS	"begun", then after MS in a child that shares our memory and has stopped this thread
 *			"vforked 7"
 *	forks N		N children, one after the other, that allocate and leave with 7: "forked N"
 *	stop		raises SIGTSTP; "continued" once it goes on
 *	exec		executes itself: "ready" again
 *	quit		ends with 0, as the end of input does
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic double longest;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void *tick(void *unused)
{
	(void)unused;
	for (double last = now_ms();;) {
		free(malloc(100));
		nap(1);
		double now = now_ms();
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	return NULL;
}

static void say(const char *word, long number)
{
	printf("%s %ld\n", word, number);
	fflush(stdout);
}

static int exit_code(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void do_vfork(long ms)
{
	say("begun", ms);
	pid_t pid = vfork();
	if (pid == 0) {
		nap(ms);
		_exit(7);
	}
	say("vforked", exit_code(pid));
}

static void do_forks(long n)
{
	long good = 0;

	for (long i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (int k = 0; k < 100; k++)
				free(malloc((size_t)k));
			_exit(7);
		}
		good += exit_code(pid) == 7;
	}
	say("forked", good);
}

int main(int argc, char **argv)
{
	char line[64];
	pthread_t th;

	(void)argc;
	if (pthread_create(&th, NULL, tick, NULL))
		return 98;
	say("ready", (long)getpid());
	/* one byte at a time: what follows "exec" is the next program's */
	for (size_t n = 0; read(0, &line[n], 1) == 1 && n + 1 < sizeof(line);) {
		if (line[n++] != '\n')
			continue;
		line[n - 1] = '\0';
		n = 0;
		if (strcmp(line, "gap") == 0) {
			say("gap", (long)longest);
			longest = 0;
		} else if (strncmp(line, "vfork ", 6) == 0) {
			do_vfork(atol(line + 6));
		} else if (strncmp(line, "forks ", 6) == 0) {
			do_forks(atol(line + 6));
		} else if (strcmp(line, "stop") == 0) {
			raise(SIGTSTP);
			say("continued", 0);
		} else if (strcmp(line, "exec") == 0) {
			execv("/proc/self/exe", argv);
			return 97;
		} else if (strcmp(line, "quit") == 0) {
			return 0;
		}
	}
	return 0;
}
