/*
 * Lines of /proc/PID/maps, the table of modules made of them, and the search for a gap. A line's path
 * stays within the line, ranges aren't empty, a gap that is found is free and within reach.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "target/maps.h"
#include "tests/fuzz/fuzz.h"

#define LINES 64u

static int open_some(void *ctx, const struct mapping *m)
{
	(void)ctx;
	switch (m->inode & 3) {
	case 0: return -1;
	case 1: return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case 2: return open("/dev/null", O_RDONLY | O_CLOEXEC);
	default: return fuzz_memfd((const uint8_t *)"\177ELF", 4);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void look_up(const struct modules *mods, const struct mapping *maps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t pcs[] = { maps[i].start, maps[i].end - 1, maps[i].end, maps[i].start + maps[i].offset };
		for (unsigned k = 0; k < ARRAY_SIZE(pcs); k++) {
			const struct module *m = modules_find(mods, pcs[k]);
			FUZZ_ASSERT(!m || (m->id && m->id <= modules_count(mods) && fuzz_is_clean(m->path)));
			FUZZ_ASSERT(modules_range_start(mods, pcs[k]) <= pcs[k]);
		}
	}
}

static void find_gap(struct fuzz_in *in, struct mapping *maps, size_t n)
{
	struct gap_query q = {
		.lo = fuzz_number(in), .hi = fuzz_number(in), .reach = 1ull << 31, .page = 4096,
		.bytes = (1 + fuzz_take(in, 1)) * 4096, .min_addr = 65536, .max_addr = 0x7ffffffff000,
		.brk_start = fuzz_number(in), .heap_room = 1u << 25, .stack_room = 1u << 23,
	};

	qsort(maps, n, sizeof(*maps), by_start);
	if (q.lo > q.hi)
		return;
	uint64_t gap = maps_find_gap(maps, n, &q);
	if (!gap)
		return;
	FUZZ_ASSERT(!(gap % q.page) && gap >= q.min_addr && gap + q.bytes <= q.max_addr);
	for (size_t i = 0; i < n; i++)
		FUZZ_ASSERT(gap + q.bytes <= maps[i].start || gap >= maps[i].end);
	FUZZ_ASSERT(gap < q.lo ? q.hi - gap <= q.reach : gap + q.bytes - q.lo <= q.reach);
}

static void run_maps(const uint8_t *data, size_t len)
{
	CLEANUP_FREE char *text = fuzz_string(data, len);
	struct mapping maps[LINES];
	struct modules *mods = modules_create();
	size_t n = 0;

	for (char *line = text, *end = text + len; line < end && n < LINES;) {
		char *stop = memchr(line, '\n', (size_t)(end - line));
		if (stop)
			*stop = '\0';
		else
			stop = end;
		struct mapping *m = &maps[n];
		if (maps_parse_line(line, m)) {
			FUZZ_ASSERT(m->start < m->end);
			FUZZ_ASSERT(m->path >= line && m->path + strlen(m->path) <= stop);
			n++;
		}
		line = stop + 1;
	}
	modules_update(mods, maps, n, open_some, NULL);
	look_up(mods, maps, n);
	/* another look at the same: the half of it, and all of it */
	modules_update(mods, maps, n / 2, open_some, NULL);
	modules_update(mods, maps, n, open_some, NULL);
	look_up(mods, maps, n);
	struct fuzz_in in = { data + len / 2, data + len };
	find_gap(&in, maps, n);
	modules_destroy(mods);
}

const struct fuzz_target fuzz_maps = { "maps", 2048, run_maps };
