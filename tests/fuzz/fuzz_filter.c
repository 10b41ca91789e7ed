/*
 * A filter's pattern, and names it is matched with. The pattern is the first line of the input, the
 * others are names of functions. Sites that don't pass and those that do make up all of them.
 */
#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "report/wrappers.h"
#include "symbol/names.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/whole.h"

#define FUNCTIONS 8u

/* A heap of blocks from so many call sites, named by the lines. */
static struct view *make_view(struct names *names, char *lines)
{
	struct heap *heap = heap_create(NULL);
	uint64_t at = 0x1000;

	for (unsigned i = 0; i < FUNCTIONS && lines; i++, at += 16) {
		char *end = strchr(lines, '\n');
		if (end)
			*end++ = '\0';
		const struct name_func f = { .function = lines, .linkage = lines };
		const uint64_t addr = frame_addr(1, at);
		names_put(names, 1, at, false, "some.so", &f, 1);
		heap_alloc_whole(heap, at, 100, 1, 1, 0, &addr, 1, 0);
		lines = end;
	}
	struct view *ret = heap_publish(heap, &(struct view_info){ .command = (char *)"" }, 2);
	heap_destroy(heap);
	return ret;
}

static uint64_t live_with(struct report *r, struct view *view, const char *pattern)
{
	uint64_t ret = 0;
	size_t n;
	struct err *err = report_set_filter(r, pattern);

	if (err)
		FUZZ_ASSERT(*err->text && fuzz_is_clean(err->text));
	err_free(err);
	if (err)
		return ~0ull;
	report_set_view(r, view);
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);
	for (size_t i = 0; i < n; i++)
		ret += sites[i].s.live_bytes;
	return ret;
}

static void run_filter(const uint8_t *data, size_t len)
{
	CLEANUP_FREE char *text = fuzz_string(data, len);
	char *lines = strchr(text, '\n');

	if (lines)
		*lines++ = '\0';
	struct names *names = names_create(NULL);
	struct view *view = make_view(names, lines);
	struct report *r = report_create(names, true);
	CLEANUP_FREE char *other = *text == '!' ? xstrdup(text + 1) : xasprintf("!%s", text);
	uint64_t passing = live_with(r, view, text);
	/* "!!x" leaves out what matches "!x", and no pattern says just that */
	if (passing != ~0ull && *text && strcmp(text, "!") && *other && strncmp(text, "!!", 2)) {
		uint64_t others = live_with(r, view, other);
		FUZZ_ASSERT(others == ~0ull || passing + others == view->totals.s.live_bytes);
	}
	struct wrappers *wrappers = wrappers_create();
	struct err *err = wrappers_add(wrappers, text);
	wrappers_match(wrappers, lines ? lines : "");
	err_free(err);
	wrappers_destroy(wrappers);
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
}

const struct fuzz_target fuzz_filter = { "filter", 256, run_filter };
