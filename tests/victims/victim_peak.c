/*
 * victim_peak FOLDER: holds BLOCKS blocks of SIZE bytes, until there is a file FOLDER/go; then one of them, until there is
 * FOLDER/end. Waits without allocating. Built with -fno-builtin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 64
#define SIZE 65536

static void wait_for(const char *folder, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	while (access(path, F_OK))
		usleep(10000);
}

int main(int argc, char **argv)
{
	void *blocks[BLOCKS];

	if (argc != 2)
		return 2;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(SIZE);
		memset(blocks[i], 1, SIZE);
	}
	wait_for(argv[1], "go");
	for (int i = 1; i < BLOCKS; i++)
		free(blocks[i]);
	wait_for(argv[1], "end");
	free(blocks[0]);
	return 0;
}
