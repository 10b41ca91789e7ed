/*
 * Annotated source and --fail-if over made-up programs: sums by line against a count by hand over every stack, and
 * conditions against what the report's sites say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/failif.h"
#include "report/lines.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define FUNCTIONS 40
#define STACKS 500
#define DEPTH 12

static const char *const files[] = { "src/a.c", "src/b.c", "/usr/include/c.h", NULL };

struct program {
	struct heap *heap;
	struct names *names;
	struct view *view;
	struct report *report;
	uint64_t random;
};

static uint32_t below(struct program *p, uint32_t n)
{
	p->random = p->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(p->random >> 33) % n;
}

static uint64_t address(uint32_t i)
{
	return frame_addr(1, 0x100 * (i + 1));
}

static struct program *program_create(bool ended)
{
	struct program *p = xcalloc(1, sizeof(*p));
	struct view_info info = { .command = "prog", .state = ended ? VIEW_EXITED : VIEW_RUNNING };

	p->heap = heap_create(NULL);
	p->names = names_create(NULL);
	p->random = 7;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char inner[32], outer[32];
		snprintf(inner, sizeof(inner), "inline_%u", i % 5);
		snprintf(outer, sizeof(outer), i % 9 ? "function_%u" : "strdup", i);
		/* lines are shared: 20 of each file */
		struct name_func funcs[2] = {
			{ .function = inner, .linkage = inner, .file = files[2], .line = 1 + i % 7, .inlined = true },
			{ .function = outer, .linkage = outer, .file = files[i % 4], .line = files[i % 4] ? 1 + i / 2 : 0 },
		};
		bool inlined = i % 3 == 0;
		const struct name *name = names_put(p->names, 1, 0x100 * (i + 1), false, "prog", funcs + !inlined, 1 + inlined);
		if (inlined)	/* as those have it that are read from debug information */
			((struct name *)name)->dir = "/build";
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		uint64_t addrs[DEPTH];
		uint32_t n = 1 + below(p, DEPTH);
		for (uint32_t k = 0; k < n; k++)
			addrs[k] = address(below(p, FUNCTIONS));	/* recursion, too */
		heap_alloc_whole(p->heap, 16 * (i + 1), 1 + below(p, 5000), 1, 0, 0, addrs, n, 0);
	}
	for (uint32_t i = 0; i < STACKS; i += 3)
		heap_free(p->heap, 16 * (i + 1), 0, 0, false);
	p->view = heap_publish(p->heap, &info, 0);
	p->report = report_create(p->names, true);
	report_set_view(p->report, p->view);
	return p;
}

static void program_destroy(struct program *p)
{
	report_destroy(p->report);
	view_unref(p->view);
	names_destroy(p->names);
	heap_destroy(p->heap);
	free(p);
}

/* The same by looking at every frame of every stack. */
static void expect_lines(struct program *p, const char *file, struct report_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t total = 0, blocks = 0, self = 0;
		assert_true(!i || lines[i].line > lines[i - 1].line);
		for (size_t t = 0; t < p->view->ntraces; t++) {
			size_t nframes, site;
			if (!report_trace_passes(p->report, t))
				continue;
			const struct report_frame *f = report_stack(p->report, t, &nframes, &site);
			bool through = false;
			for (size_t k = 0; k < nframes; k++)
				through |= f[k].file && !strcmp(f[k].file, file) && f[k].line == lines[i].line;
			const struct trace_stats *s = &view_trace(p->view, t)->s;
			total += through ? s->live_bytes : 0;
			blocks += through ? s->alloc_q10 : 0;
			if (nframes && f[site].file && !strcmp(f[site].file, file) && f[site].line == lines[i].line)
				self += s->live_bytes;
		}
		assert_int_equal(lines[i].total.live_bytes, total);
		assert_int_equal(lines[i].total.alloc_q10, blocks);
		assert_int_equal(lines[i].self.live_bytes, self);
	}
}

static void check_files(struct program *p)
{
	uint64_t self = 0, without = 0;
	size_t n;

	for (size_t i = 0; files[i]; i++) {
		CLEANUP_FREE char *copy = xstrdup(files[i]);	/* by its text, not by its address */
		struct report_line *lines = report_lines(p->report, copy, &n);
		assert_true(n > 5);
		expect_lines(p, files[i], lines, n);
		for (size_t k = 0; k < n; k++)
			self += lines[k].self.live_bytes;
		free(lines);
	}
	/* what is at no line is at no known file */
	for (size_t t = 0; t < p->view->ntraces; t++) {
		size_t nframes, site;
		if (!report_trace_passes(p->report, t))
			continue;
		const struct report_frame *f = report_stack(p->report, t, &nframes, &site);
		if (!nframes || !f[site].file)
			without += view_trace(p->view, t)->s.live_bytes;
	}
	assert_true(without > 0);
	assert_int_equal(self + without, report_total(p->report).live_bytes);
}

static void test_lines(void **state)
{
	(void)state;
	struct program *p = program_create(false);
	size_t n;

	check_files(p);
	assert_null(report_set_filter(p->report, "function_1"));
	check_files(p);
	assert_string_equal(report_source_dir(p->report, files[2]), "/build");
	assert_null(report_source_dir(p->report, "src/other.c"));
	assert_null(report_lines(p->report, "src/other.c", &n));
	assert_int_equal(n, 0);
	program_destroy(p);
}

/* ---- --fail-if ---- */

static enum failif_verdict judge(struct program *p, const char *text, char **ret_said)
{
	struct failif *f;

	assert_null(failif_parse(text, &f));
	enum failif_verdict v = failif_judge(f, p->report, ret_said);
	failif_destroy(f);
	return v;
}

static void expect(struct program *p, const char *fmt, uint64_t amount, enum failif_verdict wanted)
{
	char text[128];
	CLEANUP_FREE char *said = NULL;

	snprintf(text, sizeof(text), fmt, (unsigned long long)amount);
	enum failif_verdict got = judge(p, text, &said);
	if (got != wanted)
		fail_msg("%s: %d (%s)", text, got, said);
	assert_non_null(strstr(said, text));
}

static void test_conditions(void **state)
{
	(void)state;
	struct program *p = program_create(true);
	const struct trace_stats *s = &p->view->totals.s;

	expect(p, "live>%llu", s->live_bytes, FAILIF_FINE);
	expect(p, "live>=%llu", s->live_bytes, FAILIF_TRUE);
	expect(p, "live > %llu", s->live_bytes - 1, FAILIF_TRUE);
	expect(p, "live<%llu", s->live_bytes, FAILIF_FINE);
	expect(p, "live<=%llu", s->live_bytes, FAILIF_TRUE);
	expect(p, "leaked>%llu", s->live_bytes - 1, FAILIF_TRUE);
	expect(p, "peak>%llu", s->peak_bytes - 1, FAILIF_TRUE);
	expect(p, "peak>%llu", s->peak_bytes, FAILIF_FINE);
	expect(p, "blocks>%llu", q10_round(s->live_q10) - 1, FAILIF_TRUE);
	expect(p, "blocks>%llu", q10_round(s->live_q10), FAILIF_FINE);
	expect(p, "growth>%llu", 0, FAILIF_UNKNOWN);	/* one view is no time */

	uint64_t sum = 0;
	size_t n;
	const struct report_site *sites = report_sites(p->report, REPORT_LIVE_BYTES, false, &n);
	for (size_t i = 0; i < n; i++)
		if (strstr(sites[i].function, "inline_1") || strstr(sites[i].function, "function_2"))
			sum += sites[i].s.live_bytes;
	assert_true(sum > 0);
	expect(p, "live(site~inline_1|function_2)>%llu", sum - 1, FAILIF_TRUE);
	expect(p, "live(site~inline_1|function_2)>%llu", sum, FAILIF_FINE);
	expect(p, "site~inline_1", 0, FAILIF_TRUE);
	expect(p, "site~Inline_1", 0, FAILIF_FINE);
	/* an operator and a parenthesis in the pattern */
	expect(p, "live(site~f(unctio)n_[^>]<?)>%llu", 1, FAILIF_TRUE);
	program_destroy(p);
}

static void test_running(void **state)
{
	(void)state;
	struct program *p = program_create(false);
	struct view_point points[8];

	expect(p, "leaked>%llu", 0, FAILIF_UNKNOWN);
	/* 1000 bytes at once, then 100 a second */
	for (int i = 0; i < 8; i++)
		points[i] = (struct view_point){ .time = (float)i, .live_bytes = i ? 1000 + 100 * (uint64_t)i : 0 };
	struct view_point *was = p->view->points;
	size_t nwas = p->view->npoints;
	p->view->points = points;
	p->view->npoints = 8;
	expect(p, "growth>%llu", 99, FAILIF_TRUE);
	expect(p, "growth>%llu", 100, FAILIF_FINE);
	p->view->points = was;
	p->view->npoints = nwas;
	program_destroy(p);
}

static void test_malformed(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"", "live", "live>", "live>x", ">1", "size>1", "live=1", "live>1M2", "blocks>1K", "blocks>-1", "live()>1",
		"live(site~)>1", "live(site~()>1", "live(function~x)>1", "growth(site~x)>1", "site~", "live(site~x>1",
		"leaked(site~[)>0", "peak >> 1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct failif *f = NULL;
		struct err *err = failif_parse(texts[i], &f);
		if (!err)
			fail_msg("'%s' was taken", texts[i]);
		assert_null(strchr(err->text, '\n'));
		err_free(err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
