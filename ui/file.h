/* Writing small files for the user: a new file is created, links are never followed. */
#ifndef HEAPTOP_UI_FILE_H
#define HEAPTOP_UI_FILE_H

struct err;

/* Replaces a regular file of that name; a symlink or anything else there is refused. */
struct err *file_write(const char *path, const char *text);

#endif
