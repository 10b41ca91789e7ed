/* Which pages are in memory: this process's own, whose state is known, both ways of asking the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "target/pagemap.h"

#define PAGE 4096u
#define HUGE (2u << 20)

/* Some other pages must be between two mappings, or the kernel makes one of them. */
static char *anon(size_t bytes, int advice)
{
	char *at = mmap(NULL, bytes + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	at = (char *)(((uintptr_t)at + HUGE) & ~(uintptr_t)(HUGE - 1));
	assert_int_equal(mprotect(at, bytes, PROT_READ | PROT_WRITE), 0);
	madvise(at, bytes, advice);
	return at;
}

static struct pagemap open_own(enum pagemap_way way)
{
	struct pagemap map;

	assert_int_equal(pagemap_open(&map, getpid(), getpid(), way), 0);
	return map;
}

/* All runs between, asked for `max` at a time, as "0-3:1 5-6:9"; pages counted from `at`. */
static char *told(struct pagemap *map, const char *at, size_t pages, size_t max)
{
	struct page_run runs[64];
	uint64_t start = (uintptr_t)at, next = start, end = start + pages * PAGE;
	char *text = xstrdup("");
	size_t n;

	while (next < end) {
		assert_int_equal(pagemap_runs(map, next, end, runs, max, &n, &next), 0);
		assert_true(n <= max);
		for (size_t i = 0; i < n; i++) {
			char *longer = xasprintf("%s%s%d-%d:%u", text, *text ? " " : "",
						 (int)((runs[i].start - start) / PAGE),
						 (int)((runs[i].end - start) / PAGE), runs[i].flags & ~PAGE_HUGE);
			free(text);
			text = longer;
		}
	}
	return text;
}

static void check(const char *at, size_t pages, const char *wanted)
{
	for (int way = PAGEMAP_BEST; way <= PAGEMAP_READ; way++) {
		struct pagemap map = open_own(way);
		if (way == PAGEMAP_READ)
			assert_false(map.scan);
		CLEANUP_FREE char *text = told(&map, at, pages, 64);
		assert_string_equal(text, wanted);
		pagemap_close(&map);
	}
}

static void test_touched(void **state)
{
	(void)state;
	char *at = anon(64 * PAGE, MADV_NOHUGEPAGE);

	check(at, 64, "");
	memset(at + 3 * PAGE, 1, 2 * PAGE);
	at[9 * PAGE] = 1;
	check(at, 64, "3-5:1 9-10:1");
	/* an address within a page means the page */
	struct pagemap map = open_own(PAGEMAP_BEST);
	uint64_t page = (uintptr_t)at + 9 * PAGE;
	assert_int_equal(pagemap_bytes(&map, page + 5, page + 6, PAGE_RESIDENT, 0), PAGE);
	assert_int_equal(pagemap_bytes(&map, page + 5, page + 6, PAGE_RESIDENT, PAGE_RESIDENT), 0);
	assert_int_equal(pagemap_bytes(&map, page + 5, page + 6, PAGE_FILE, 0), 0);
	pagemap_close(&map);
	madvise(at + 3 * PAGE, PAGE, MADV_DONTNEED);
	check(at, 64, "4-5:1 9-10:1");
	munmap(at, 64 * PAGE);
}

/*
 * A page that was only read is the kernel's page of zeroes; but not on all kernels, so userfaultfd is asked to
 * place one where that is allowed.
 */
static void place_zero_page(char *at)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_range range = { (uintptr_t)at, PAGE };
	struct uffdio_register reg = { .range = range, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { .range = range };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg) ||
	    ioctl(fd, UFFDIO_ZEROPAGE, &zero))
		print_message("# no userfaultfd: the page is only read\n");
	if (fd >= 0)
		close(fd);
	(void)*(volatile char *)at;
}

/* Is the page one that nobody else has? Then it is no page of zeroes. */
static bool is_exclusive(const char *at)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_int_equal(pread(fd, &entry, 8, (off_t)((uintptr_t)at / PAGE * 8)), 8);
	close(fd);
	return entry >> 56 & 1;
}

static void test_zero_pages(void **state)
{
	(void)state;
	char *at = anon(16 * PAGE, MADV_NOHUGEPAGE);

	at[2 * PAGE] = 1;
	place_zero_page(at + 4 * PAGE);
	if (is_exclusive(at + 4 * PAGE))
		print_message("# a page that was read is like any other here\n");
	for (int way = PAGEMAP_BEST; way <= PAGEMAP_READ; way++) {
		struct pagemap map = open_own(way);
		CLEANUP_FREE char *text = told(&map, at, 16, 64);
		bool can_tell = map.scan || map.zero_frame;
		assert_string_equal(text, can_tell && !is_exclusive(at + 4 * PAGE) ? "2-3:1" : "2-3:1 4-5:1");
		pagemap_close(&map);
	}
	munmap(at, 16 * PAGE);
}

static void test_files(void **state)
{
	(void)state;
	int fd = memfd_create("pages", 0);

	assert_int_equal(ftruncate(fd, 8 * PAGE), 0);
	char *shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	shared[2 * PAGE] = 1;
	check(shared, 8, "2-3:5");
	munmap(shared, 8 * PAGE);
	/* a page of a file that was written to is its own from then on */
	char *own = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	madvise(own, 8 * PAGE, MADV_RANDOM);
	own[4 * PAGE] = 1;
	struct pagemap map = open_own(PAGEMAP_BEST);
	uint64_t start = (uintptr_t)own;
	assert_int_equal(pagemap_bytes(&map, start, start + 8 * PAGE, PAGE_RESIDENT, PAGE_FILE), PAGE);
	pagemap_close(&map);
	munmap(own, 8 * PAGE);
	close(fd);
}

/* Many runs, few at a time: each is told once, and those beyond a stretch too. */
static void test_many(void **state)
{
	(void)state;
	size_t pages = 20000;
	char *at = anon(pages * PAGE, MADV_NOHUGEPAGE);

	for (size_t i = 0; i < pages; i += 2)
		at[i * PAGE] = 1;
	for (int way = PAGEMAP_BEST; way <= PAGEMAP_READ; way++) {
		struct pagemap map = open_own(way);
		CLEANUP_FREE char *few = told(&map, at, 300, 3);
		CLEANUP_FREE char *one = told(&map, at, 300, 1);
		assert_string_equal(few, one);
		assert_memory_equal(few, "0-1:1 2-3:1 4-5:1 ", 18);
		assert_int_equal(pagemap_bytes(&map, (uintptr_t)at, (uintptr_t)at + pages * PAGE, PAGE_RESIDENT, 0),
				 pages / 2 * PAGE);
		pagemap_close(&map);
	}
	munmap(at, pages * PAGE);
}

static void test_huge(void **state)
{
	(void)state;
	size_t pages = 4 * HUGE / PAGE;
	char *at = anon(pages * PAGE, MADV_HUGEPAGE);

	at[HUGE + 5 * PAGE] = 1;
	struct pagemap map = open_own(PAGEMAP_BEST);
	uint64_t start = (uintptr_t)at, end = start + pages * PAGE;
	uint64_t resident = pagemap_bytes(&map, start, end, PAGE_RESIDENT, 0);
	if (resident == PAGE)
		print_message("# no huge pages here: a page was given\n");
	else
		assert_int_equal(resident, HUGE);
	if (map.scan)
		assert_int_equal(pagemap_bytes(&map, start, end, PAGE_HUGE, 0), resident == PAGE ? 0 : HUGE);
	pagemap_close(&map);
	munmap(at, pages * PAGE);
}

static void test_swapped(void **state)
{
	(void)state;
	char *at = anon(16 * PAGE, MADV_NOHUGEPAGE), line[256];
	FILE *swaps = fopen("/proc/swaps", "re");
	int lines = 0;

	while (swaps && fgets(line, sizeof(line), swaps))
		lines++;
	if (swaps)
		fclose(swaps);
	memset(at, 1, 16 * PAGE);
	madvise(at + 4 * PAGE, 2 * PAGE, MADV_PAGEOUT);
	if (lines < 2) {
		print_message("# no swap here: nothing can be swapped out\n");
		check(at, 16, "0-16:1");
	} else {
		check(at, 16, "0-4:1 4-6:2 6-16:1");
	}
	munmap(at, 16 * PAGE);
}

/* Addresses come from the target. */
static void test_nowhere(void **state)
{
	(void)state;
	static const uint64_t starts[] = { 0, 4096, 1ull << 47, 1ull << 62, 1ull << 63, UINT64_MAX - 5000 };

	for (int way = PAGEMAP_BEST; way <= PAGEMAP_READ; way++) {
		struct pagemap map = open_own(way);
		for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
			struct page_run runs[4];
			size_t n = 9;
			uint64_t next = 0;
			assert_int_equal(pagemap_runs(&map, starts[i], starts[i] + 4099, runs, 4, &n, &next), 0);
			assert_int_equal(n, 0);
			assert_int_equal(next, starts[i] + 4099);
			assert_int_equal(pagemap_bytes(&map, starts[i], starts[i] + 4099, PAGE_RESIDENT, 0), 0);
		}
		pagemap_close(&map);
	}
}

/* Another process, before and after its end. */
static void test_gone(void **state)
{
	(void)state;
	char *at = anon(8 * PAGE, MADV_NOHUGEPAGE);
	struct pagemap map;
	int go[2];

	memset(at, 1, 2 * PAGE);
	assert_int_equal(pipe(go), 0);
	pid_t child = fork();
	if (!child) {
		char c;
		close(go[1]);
		_exit(read(go[0], &c, 1) == 1);
	}
	assert_int_equal(pagemap_open(&map, child, child, PAGEMAP_BEST), 0);
	CLEANUP_FREE char *text = told(&map, at, 8, 64);
	assert_string_equal(text, "0-2:1");
	close(go[0]);
	close(go[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	CLEANUP_FREE char *after = told(&map, at, 8, 64);
	assert_string_equal(after, "");
	pagemap_close(&map);
	assert_int_equal(pagemap_open(&map, child, child, PAGEMAP_BEST), ESRCH);
	pagemap_close(&map);
	munmap(at, 8 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_touched),
		cmocka_unit_test(test_zero_pages),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
