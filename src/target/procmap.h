/*
 * One mapping by its address, from the kernel directly: ioctl PROCMAP_QUERY on /proc/PID/maps (Linux
 * 6.11 and later), about a microsecond whatever the number of mappings. Any thread.
 */
#ifndef HEAPTOP_TARGET_PROCMAP_H
#define HEAPTOP_TARGET_PROCMAP_H

#include <stdbool.h>
#include <stdint.h>

struct mapping;

#define PROCMAP_PATH 4096	/* the kernel gives no more (PATH_MAX) */

/*
 * The mapping that holds addr. `fd` is open on /proc/PID/maps, `path` has PROCMAP_PATH bytes and gets
 * the path, which ret->path points to. 0, or an errno: ENOENT no mapping there; ESRCH the address
 * space that fd was opened for is gone; ENOTTY the kernel has no such call. [vsyscall], which only
 * the text of maps lists, is ENOENT.
 */
int procmap_query(int fd, uint64_t addr, char *path, struct mapping *ret);

#endif
