/*
 * A program that executes itself again and again, without a rest:
 *
 *	victim_again STOP [N]
 *
 * until the file STOP is there: then it prints how often and leaves with 7.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char next[24];
	int n = argc > 2 ? atoi(argv[2]) : 0;

	free(malloc(100));
	if (argc < 2)
		return 2;
	if (access(argv[1], F_OK) == 0) {
		printf("executed %d times\n", n);
		return 7;
	}
	snprintf(next, sizeof(next), "%d", n + 1);
	execl(argv[0], argv[0], argv[1], next, (char *)NULL);
	perror(argv[0]);
	return 1;
}
