/*
 * Asks for much and touches little of it, in another function; and says what is true of it.
 *
 *	victim_rss MIB TOUCHED [thp] [out] [wait FILE]
 *
 * MIB are allocated at once by site_reserve, TOUCHED MiB of them are written to by touch_pages. site_small allocates
 * blocks that share pages, all written to. thp: with huge pages, else without. out: the touched pages are swapped out
 * again, as far as the system does that. wait: it goes on until the file is there.
 * Prints "name value" lines, bytes: by how much its RSS grew when it touched, what was swapped out, its small blocks.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SMALL 20000u
#define SMALL_BYTES 100u

static char *small[SMALL];

static uint64_t status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtoull(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return kb * 1024;
}

/* What is in memory of the mapping that holds `at` (not its first page: advice may have parted that). The counters of status lag behind by some pages a processor. */
static uint64_t resident(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned long long start, end, kb = 0;
	int here = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &start, &end) == 2)
			here = (uintptr_t)at >= start && (uintptr_t)at < end;
		else if (here && !strncmp(line, "Rss:", 4))
			kb = strtoull(line + 4, NULL, 10);
	}
	if (f)
		fclose(f);
	return kb * 1024;
}

static NOINLINE char *site_reserve(size_t bytes)
{
	return malloc(bytes);
}

static NOINLINE void touch_pages(volatile char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		at[i] = 1;
}

static NOINLINE void site_small(void)
{
	for (size_t i = 0; i < SMALL; i++) {
		small[i] = malloc(SMALL_BYTES);
		memset(small[i], 1, SMALL_BYTES);
	}
}

static void wait_for(const char *path)
{
	while (access(path, F_OK))
		usleep(20000);
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1024) << 20;
	size_t touched = (argc > 2 ? strtoul(argv[2], NULL, 10) : 100) << 20;
	const char *file = NULL;
	int thp = 0, out = 0;

	for (int i = 3; i < argc; i++) {
		thp |= !strcmp(argv[i], "thp");
		out |= !strcmp(argv[i], "out");
		if (!strcmp(argv[i], "wait") && i + 1 < argc)
			file = argv[i + 1];
	}
	if (!thp)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	char *at = site_reserve(bytes);
	if (thp)
		madvise((void *)(((uintptr_t)at + 4095) & ~(uintptr_t)4095), bytes - 8192, MADV_HUGEPAGE);
	site_small();
	uint64_t before = resident(at + 8192);
	touch_pages(at, touched);
	printf("grown %llu\n", (unsigned long long)(resident(at + 8192) - before));
	before = status("VmSwap:");
	if (out)
		madvise((void *)(((uintptr_t)at + 4095) & ~(uintptr_t)4095), touched - 8192, MADV_PAGEOUT);
	printf("swapped %llu\n", (unsigned long long)(status("VmSwap:") - before));
	printf("small %llu\n", (unsigned long long)SMALL * SMALL_BYTES);
	fflush(stdout);
	if (file)
		wait_for(file);
	return at[0] + small[0][0] == 0;
}
