/*
 * Files that appear whole or not at all, and never through a link: written beside their place
 * under another name, then renamed. Any thread.
 */
#ifndef HEAPTOP_EXPORT_FILE_H
#define HEAPTOP_EXPORT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;
struct new_file;

/* %p pid, %h host, %t local time as 20240131-235959, %% percent; anything else stays. */
char *file_expand(const char *path, int pid);

/*
 * Begin a file at `path`. Refused: a symbolic link or anything but a regular file there. The
 * stream is written, then exactly one of file_commit and file_abandon called; both close it.
 */
struct err *file_begin(const char *path, struct new_file **ret, FILE **ret_stream);
struct err *file_commit(struct new_file *file);
void file_abandon(struct new_file *file);

/* A whole regular file or pipe, at most `max` bytes; "-" is standard input. */
struct err *file_read_all(const char *path, size_t max, uint8_t **ret, size_t *ret_len);

#endif
