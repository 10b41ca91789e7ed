/*
 * Records the stacks of a program's allocations for bench_tree, in the format of stacks.h. Preloaded into
 * the program, single-threaded ones only; nothing of heaptop is used:
 *
 *	gcc -O2 -shared -fPIC -o record.so record_stacks.c -lunwind
 *	STACKS_FILE=cc1plus.stacks STACKS_MAX=300000 LD_PRELOAD=./record.so cc1plus -quiet big.cc -o /dev/null
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FRAMES 256

static int fd = -1;
static long left = -1;		/* -1: not started */
static __thread int inside;
static char buffer[1 << 16];
static size_t used;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static void flush(void)
{
	ssize_t n = write(fd, buffer, used);

	if (n != (ssize_t)used)
		left = 0;
	used = 0;
}

static void start(void)
{
	const char *path = getenv("STACKS_FILE"), *max = getenv("STACKS_MAX");

	left = max ? atol(max) : 1000000;
	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		left = 0;
	else
		memcpy(buffer, "HTSTACK1", used = 8);
}

static void record(void)
{
	void *frames[MAX_FRAMES];

	if (!left || inside)
		return;
	inside = 1;
	if (left < 0)
		start();
	/* record and the hook itself are the first two */
	int n = left ? unw_backtrace(frames, MAX_FRAMES) - 2 : 0;
	if (n > 0) {
		uint16_t n16 = (uint16_t)n;
		if (used + 2 + 8 * (size_t)n > sizeof(buffer))
			flush();
		memcpy(buffer + used, &n16, 2);
		memcpy(buffer + used + 2, frames + 2, 8 * (size_t)n);
		used += 2 + 8 * (size_t)n;
		left--;
		if (!left)
			flush();
	}
	inside = 0;
}

__attribute__((destructor)) static void finish(void)
{
	if (left > 0)
		flush();
	left = 0;
}

__attribute__((noinline)) void *malloc(size_t size)
{
	record();
	return __libc_malloc(size);
}

__attribute__((noinline)) void *calloc(size_t n, size_t size)
{
	record();
	return __libc_calloc(n, size);
}

__attribute__((noinline)) void *realloc(void *old, size_t size)
{
	record();
	return __libc_realloc(old, size);
}
