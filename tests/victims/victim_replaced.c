/*
 * A program that executes itself on command, without address space randomisation: everything lies where it lay in the
 * program before.
 *
 * Prints "ready", then answers each line of its standard input:
 *	word	"word ADDRESS VALUE", of a word that is 17 at the start of each program
 *	exec	executes itself: "ready" again
 * and ends with 0 at the end of input.
 */
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

static volatile unsigned long word = 17;

int main(int argc, char **argv)
{
	char line[64];

	(void)argc;
	setvbuf(stdin, NULL, _IONBF, 0);
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(argv[0], argv);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "exec\n") == 0)
			execv(argv[0], argv);
		printf("word %p %lu\n", (void *)&word, word);
		fflush(stdout);
	}
	return 0;
}
