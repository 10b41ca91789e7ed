/*
 * Touches small pages and huge ones, each by two functions, and says how many bytes each of them was the first to touch.
 *
 *	victim_pages small|after|mixed SMALL HUGE [FILE]
 *
 * SMALL pages of 4 KiB, three of four by small_most and one by small_some; HUGE pieces of 2 MiB as huge pages, as far as the
 * system has any: two of three by huge_most, one by huge_some. small: no huge ones. after: these come when all small
 * ones have. mixed: all through them. What is true is printed, to FILE if there is one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SMALL_BYTES 4096ull
#define HUGE_BYTES (2ull << 20)

static uint64_t told[4];

static NOINLINE void small_most(volatile char *at)
{
	*at = 1;
	told[0] += SMALL_BYTES;
}

static NOINLINE void small_some(volatile char *at)
{
	*at = 2;
	told[1] += SMALL_BYTES;
}

/* All of it: where there was no huge page it is as many bytes in small ones. */
static NOINLINE void huge_most(volatile char *at)
{
	for (size_t i = 0; i < HUGE_BYTES; i += SMALL_BYTES)
		at[i] = 3;
	told[2] += HUGE_BYTES;
}

static NOINLINE void huge_some(volatile char *at)
{
	for (size_t i = 0; i < HUGE_BYTES; i += SMALL_BYTES)
		at[i] = 4;
	told[3] += HUGE_BYTES;
}

static char *reserve(size_t bytes, int advice)
{
	char *at = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	madvise(at, bytes + HUGE_BYTES, advice);
	return (char *)(((uintptr_t)at + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
}

static void touch_huge(char *at, size_t i)
{
	(i % 3 == 2 ? huge_some : huge_most)(at + i * HUGE_BYTES);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "mixed";
	size_t nsmall = argc > 2 ? strtoul(argv[2], NULL, 10) : 48000, nhuge = argc > 3 ? strtoul(argv[3], NULL, 10) : 50;
	size_t next = 0;
	char *small = reserve(nsmall * SMALL_BYTES, MADV_NOHUGEPAGE), *huge = reserve(nhuge * HUGE_BYTES, MADV_HUGEPAGE);

	if (!strcmp(how, "small"))
		nhuge = 0;
	for (size_t i = 0; i < nsmall; i++) {
		(i % 4 == 3 ? small_some : small_most)(small + i * SMALL_BYTES);
		if (!strcmp(how, "mixed") && next < nhuge && i * nhuge >= next * nsmall)
			touch_huge(huge, next++);
	}
	while (next < nhuge)
		touch_huge(huge, next++);
	if (argc > 4 && !freopen(argv[4], "w", stdout))
		return 1;
	printf("small_most %llu\nsmall_some %llu\nhuge_most %llu\nhuge_some %llu\n", (unsigned long long)told[0],
	       (unsigned long long)told[1], (unsigned long long)told[2], (unsigned long long)told[3]);
	return 0;
}
