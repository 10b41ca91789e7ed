/*
 * PAGEMAP_SCAN and pagemap entries; see pagemap.h. Constants and structures are declared here, since
 * <linux/fs.h> of the systems heaptop is built on is often older than the kernel it then runs on.
 */
#include "target/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/* struct page_region, struct pm_scan_arg and PAGE_IS_* of include/uapi/linux/fs.h. */
struct region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size;		/* of this structure */
	uint64_t flags;
	uint64_t start, end;
	uint64_t walk_end;	/* how far the kernel came */
	uint64_t vec, vec_len;
	uint64_t max_pages;
	uint64_t category_inverted, category_mask;
	uint64_t category_anyof_mask;	/* only pages with one of these, */
	uint64_t return_mask;		/* and told of them are these */
};

#define SCAN _IOWR('f', 16, struct scan)
#define IS_FILE (1u << 2)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
#define IS_ZERO (1u << 5)
#define IS_HUGE (1u << 6)

/* Of a pagemap entry; Documentation/admin-guide/mm/pagemap.rst. */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_FILE (1ull << 61)
#define ENTRY_EXCLUSIVE (1ull << 56)	/* mapped here and nowhere else */
#define ENTRY_FRAME ((1ull << 55) - 1)	/* 0 without CAP_SYS_ADMIN */

#define BUF_BYTES (32u << 10)
#define SCAN_BYTES (64ull << 20)	/* of addresses a call: 16,384 pages, 100 to 200 us of page tables */

/*
 * The frame that an anonymous page of ours gets by being read. One that it has for itself is a page like any
 * other: some kernels give such at once.
 */
static uint64_t find_zero_frame(uint64_t page)
{
	volatile char *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t entry = 0;

	if (at == MAP_FAILED)
		return 0;
	(void)at[0];
	CLEANUP_CLOSE int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)at / page * sizeof(entry))) != sizeof(entry))
		entry = 0;
	munmap((void *)at, page);
	return (entry & (ENTRY_PRESENT | ENTRY_EXCLUSIVE)) == ENTRY_PRESENT ? entry & ENTRY_FRAME : 0;
}

int pagemap_open(struct pagemap *map, pid_t pid, pid_t tid, enum pagemap_way way)
{
	char path[64];

	*map = (struct pagemap){ .page = (uint64_t)sysconf(_SC_PAGESIZE) };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/pagemap", (int)pid, (int)tid);
	map->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (map->fd < 0)
		return errno == ENOENT ? ESRCH : errno;
	map->buf = xmalloc(BUF_BYTES);
	/* a question about nothing: does the kernel have it at all? */
	struct scan probe = { .size = sizeof(probe), .category_anyof_mask = IS_PRESENT, .return_mask = IS_PRESENT };
	map->scan = way == PAGEMAP_BEST && ioctl(map->fd, SCAN, &probe) >= 0;
	if (!map->scan)
		map->zero_frame = find_zero_frame(map->page);
	return 0;
}

void pagemap_close(struct pagemap *map)
{
	if (map->fd >= 0)
		close(map->fd);
	free(map->buf);
	*map = (struct pagemap){ .fd = -1 };
}

/* The flags of a page in its run; 0: of no interest. */
static unsigned flags_of_region(uint64_t categories)
{
	if (categories & IS_SWAPPED)
		return PAGE_SWAPPED | (categories & IS_FILE ? PAGE_FILE : 0);
	if (!(categories & IS_PRESENT) || categories & IS_ZERO)
		return 0;
	return PAGE_RESIDENT | (categories & IS_FILE ? PAGE_FILE : 0) | (categories & IS_HUGE ? PAGE_HUGE : 0);
}

static unsigned flags_of_entry(const struct pagemap *map, uint64_t entry)
{
	unsigned file = entry & ENTRY_FILE ? PAGE_FILE : 0;

	if (entry & ENTRY_PRESENT)
		return map->zero_frame && (entry & ENTRY_FRAME) == map->zero_frame ? 0 : PAGE_RESIDENT | file;
	return entry & ENTRY_SWAPPED ? PAGE_SWAPPED | file : 0;
}

/* Append, or let the last run grow. False: no room. */
static bool put(struct page_run *runs, size_t max, size_t *n, const struct page_run *run)
{
	if (*n && runs[*n - 1].end == run->start && runs[*n - 1].flags == run->flags) {
		runs[*n - 1].end = run->end;
		return true;
	}
	if (*n == max)
		return false;
	runs[(*n)++] = *run;
	return true;
}

/* One call, one stretch: sets *next to where it ended. */
static int scan_some(struct pagemap *map, uint64_t *next, uint64_t end, struct page_run *runs, size_t max,
		     size_t *n)
{
	struct region *regions = map->buf;
	size_t room = BUF_BYTES / sizeof(*regions);

	if (room > max - *n)
		room = max - *n;
	struct scan scan = {
		.size = sizeof(scan),
		.start = *next,
		.end = end - *next > SCAN_BYTES ? *next + SCAN_BYTES : end,
		.vec = (uintptr_t)regions,
		.vec_len = room,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_FILE | IS_PRESENT | IS_SWAPPED | IS_ZERO | IS_HUGE,
	};
	int got = ioctl(map->fd, SCAN, &scan);
	/* not addresses of a process, or one that has gone: there is nothing */
	if (got < 0 && (errno == EFAULT || errno == ESRCH)) {
		*next = end;
		return 0;
	}
	if (got < 0)
		return errno == EINTR ? 0 : errno;
	for (int i = 0; i < got; i++) {
		struct page_run run = { regions[i].start, regions[i].end, flags_of_region(regions[i].categories) };
		if (run.flags)
			put(runs, max, n, &run);
	}
	*next = scan.walk_end > *next ? scan.walk_end : end;
	return 0;
}

static int read_some(struct pagemap *map, uint64_t *next, uint64_t end, struct page_run *runs, size_t max,
		     size_t *n)
{
	const uint64_t *entries = map->buf;
	uint64_t pages = (end - *next) / map->page, first = *next / map->page;

	if (pages > BUF_BYTES / sizeof(*entries))
		pages = BUF_BYTES / sizeof(*entries);
	ssize_t got = pread(map->fd, map->buf, pages * sizeof(*entries), (off_t)(first * sizeof(*entries)));
	if (got < 0 && errno == EINTR)
		return 0;
	if (got < 0 && errno != EINVAL && errno != EIO)
		return errno;
	if (got < (ssize_t)sizeof(*entries)) {
		*next = end;
		return 0;
	}
	for (size_t i = 0; i < (size_t)got / sizeof(*entries); i++, *next += map->page) {
		struct page_run run = { *next, *next + map->page, flags_of_entry(map, entries[i]) };
		if (run.flags && !put(runs, max, n, &run))
			return 0;
	}
	return 0;
}

int pagemap_runs(struct pagemap *map, uint64_t start, uint64_t end, struct page_run *ret, size_t max,
		 size_t *ret_n, uint64_t *ret_next)
{
	uint64_t next = start & ~(map->page - 1), last = INT64_MAX & ~(map->page - 1);
	/* the upper half of addresses is the kernel's */
	uint64_t stop = end > last ? last : (end + map->page - 1) & ~(map->page - 1);
	int errnum = 0;

	*ret_n = 0;
	while (next < stop && *ret_n < max && !errnum)
		errnum = map->scan ? scan_some(map, &next, stop, ret, max, ret_n)
				   : read_some(map, &next, stop, ret, max, ret_n);
	*ret_next = next < stop ? next : end;
	return errnum;
}

uint64_t pagemap_bytes(struct pagemap *map, uint64_t start, uint64_t end, unsigned all, unsigned none)
{
	struct page_run runs[64];
	uint64_t sum = 0;
	size_t n;

	while (start < end) {
		if (pagemap_runs(map, start, end, runs, ARRAY_SIZE(runs), &n, &start))
			break;
		for (size_t i = 0; i < n; i++)
			if ((runs[i].flags & all) == all && !(runs[i].flags & none))
				sum += runs[i].end - runs[i].start;
	}
	return sum;
}
