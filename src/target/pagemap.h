/*
 * Which pages of a process are in memory, which are swapped out: /proc/PID/pagemap. Nothing is stopped, and
 * nothing of the process's memory is read. Any thread.
 *
 * Two ways: ioctl PAGEMAP_SCAN (Linux 6.7), which answers with ranges of pages alike, and reading 8 bytes a
 * page, which all kernels have. A page that was only ever read in memory nobody has written to is the
 * kernel's page of zeroes: present, but not in the process's RSS. PAGEMAP_SCAN tells it apart (the huge one
 * since Linux 6.17); the other way does where frame numbers may be seen (CAP_SYS_ADMIN), and else takes it for resident.
 */
#ifndef HEAPTOP_TARGET_PAGEMAP_H
#define HEAPTOP_TARGET_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum page_flags {
	PAGE_RESIDENT = 1,	/* in memory, and counted in RSS */
	PAGE_SWAPPED = 2,
	PAGE_FILE = 4,		/* of a file, or of memory shared by mmap: not of the process alone */
	PAGE_HUGE = 8,		/* mapped as a whole by the next larger size (2 MiB); PAGEMAP_SCAN only */
};

/* Pages alike, side by side. */
struct page_run {
	uint64_t start, end;
	unsigned flags;		/* PAGE_RESIDENT or PAGE_SWAPPED, and what else is known */
};

enum pagemap_way {
	PAGEMAP_BEST,
	PAGEMAP_READ,		/* 8 bytes a page, also where the kernel has PAGEMAP_SCAN (tests) */
};

struct pagemap {
	int fd;			/* < 0: not open */
	bool scan;
	uint64_t page;		/* bytes */
	uint64_t zero_frame;	/* entry of the page of zeroes, flags left out; 0: not known */
	void *buf;		/* what the kernel writes to */
};

/*
 * Thread tid of process pid, one that hasn't ended: after an exec it is the old memory that stays open, and
 * there is nothing in it. 0 or an errno (ESRCH gone, EACCES not ours).
 */
int pagemap_open(struct pagemap *map, pid_t pid, pid_t tid, enum pagemap_way way);
void pagemap_close(struct pagemap *map);	/* also if pagemap_open has failed */

/*
 * The runs in [start, end), ascending, at most `max`, with nothing between them that is in memory or swapped. Goes
 * as far as *ret_next, which is `end` or beyond unless max was reached. The addresses may be anything: where
 * none can be there is nothing. The memory's lock is held for reading, for some 100 us at a time.
 * 0 or an errno.
 */
int pagemap_runs(struct pagemap *map, uint64_t start, uint64_t end, struct page_run *ret, size_t max,
		 size_t *ret_n, uint64_t *ret_next);

/* Bytes of pages in [start, end) that have all flags of `all` and none of `none`. */
uint64_t pagemap_bytes(struct pagemap *map, uint64_t start, uint64_t end, unsigned all, unsigned none);

#endif
