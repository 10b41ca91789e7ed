/*
 * A child process with many mappings of many files, for tests and benchmarks of what reads
 * /proc/PID/maps. The files are as small as an ELF file can be, in a temporary folder of their own.
 */
#ifndef HEAPTOP_TESTS_MANYMAPS_H
#define HEAPTOP_TESTS_MANYMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct manymaps {
	char dir[64];
	size_t nfiles;
	pid_t pid;
	int ask, told;	/* pipes to it and from it */
};

/*
 * Make `nfiles` files, of which the first `nelf` are ELF files with one executable page, and start a
 * child that maps each of them three times: an ELF file's page executable, read-only and writable,
 * others not executable. False: can't be done here (folder mounted noexec, too few mappings allowed).
 */
bool manymaps_start(struct manymaps *m, size_t nelf, size_t nfiles);
/* Make the child do one thing: 'd' map one more page of data, 'x' the ELF file "more" as code, 'l'
 * a file with an odd name, 'e' become another program ("sleep"). True once it is done. */
bool manymaps_do(struct manymaps *m, char what);
/* Ends it and removes the files. */
void manymaps_end(struct manymaps *m);

#endif
