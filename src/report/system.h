/*
 * What isn't the user's code: the C and C++ libraries, the loader, allocators by their names; and whatever
 * lies in the system's folders for libraries. Pure.
 */
#ifndef HEAPTOP_REPORT_SYSTEM_H
#define HEAPTOP_REPORT_SYSTEM_H

#include <stdbool.h>

/* By a module's name alone. */
bool system_library(const char *module);
/* By its path: "/usr/lib/…", "/lib64/…", "/nix/store/…". */
bool system_path(const char *path);

#endif
