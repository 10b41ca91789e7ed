/*
 * Snapshots: what is written and read back is the same, to the last number; other tools' profiles
 * are understood; damaged and hostile ones are errors. Also folded stacks, text, and how files appear.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/file.h"
#include "export/folded.h"
#include "export/inflate.h"
#include "export/pprof.h"
#include "export/profile.pb-c.h"
#include "export/text.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "symbol/names.h"
#include "unwind/unwind.h"
#include "tests/lib/whole.h"
#include "tests/lib/whole.h"

/* ---- a program with names ---- */

#define MAIN frame_addr(1, 0x1100)
#define PARSE frame_addr(1, 0x1200)
#define LOAD frame_addr(1, 0x1300)
#define STRIPPED frame_addr(2, 0x2345)
#define NEW frame_addr(3, 0x10)
#define JIT frame_addr(0, 0x7f0012345678)

static struct names *program_names(void)
{
	struct names *names = names_create(NULL);
	const struct name_func main_f[] = { { "main", "main", "src/main.cpp", 10, false, false } };
	const struct name_func parse_f[] = {
		{ "Vec<int>::push(int)", "_ZN3VecIiE4pushEi", "src/vec.h", 5, true, false },
		{ "parse(char const*)", "_Z5parsePKc", "src/parse.cpp", 77, false, false },
	};
	const struct name_func load_f[] = { { "load;all", "load;all", NULL, 0, false, false } };
	const struct name_func stripped_f[] = {
		{ "libvendor.so+0x2345", "libvendor.so+0x2345", NULL, 0, false, true },
	};
	const struct name_func new_f[] = {
		{ "operator new(unsigned long)", "_Znwm", NULL, 0, false, false },
	};
	const struct name_func jit_f[] = {
		{ "0x7f0012345678", "0x7f0012345678", NULL, 0, false, true },
	};

	names_put(names, 1, 0x1100, false, "prog", main_f, 1);
	names_put(names, 1, 0x1200, false, "prog", parse_f, 2);
	names_put(names, 1, 0x1300, false, "prog", load_f, 1);
	names_put(names, 2, 0x2345, false, "libvendor.so", stripped_f, 1);
	names_put(names, 3, 0x10, false, "libstdc++.so.6", new_f, 1);
	names_put(names, 0, 0x7f0012345678, false, "", jit_f, 1);
	return names;
}

/* Of its addresses, 0x1000 to 0x22c0, the first page is in memory, the next swapped out. */
static int some_pages(void *ctx, uint64_t start, uint64_t end, struct page_run *ret, size_t max, size_t *ret_n,
		      uint64_t *ret_next)
{
	(void)ctx;
	if (!end)
		return 0;
	assert_true(start >= 0x1000 && end <= 0x2400 && max >= 2);
	ret[0] = (struct page_run){ 0x1000, 0x2000, PAGE_RESIDENT };
	ret[1] = (struct page_run){ 0x2000, 0x3000, PAGE_SWAPPED };
	*ret_n = 2;
	*ret_next = end;
	return 0;
}

static struct view *program_view(uint64_t rate)
{
	struct heap *heap = heap_create(NULL);
	const uint64_t stacks[5][3] = {
		{ NEW, PARSE, MAIN }, { LOAD, MAIN, MAIN }, { STRIPPED, LOAD, MAIN },
		{ JIT, LOAD, MAIN }, { NEW, STRIPPED, MAIN },
	};
	struct view_unhooked unhooked = { "valloc", "libfoo.so", "too short | odd" };
	struct view_info info = {
		.pid = 4242, .command = "./prog --x", .exit_code = 7,
		.attached = true, .exact = rate <= 1, .auto_rate = true, .rate = rate,
		.overhead = 0.0123f, .events = 1000, .dropped = 3, .gap = 2, .stacks = 99,
		.stacks_complete = 98, .ends = { 98, 1 }, .untracked = 5, .rss = 123456789,
		.threads = 6, .pause = 0.0025f, .nhooks = 11, .unhooked = &unhooked, .nunhooked = 1,
		.memory = {
			.anon = 1, .file = 2, .shmem = 3, .swap = 4, .stacks = 5, .data = 6, .agent_anon = 7,
			.agent_shmem = 8, .older = 9, .tracked_anon = 10, .tracked_file = 11, .tracked_var = 0.75,
			.scan_share = 0.002f,
		},
	};
	int errnum;

	for (uint32_t i = 0; i < 1000; i++) {
		uint64_t addr = 0x1000 + i % 300 * 16, time = i * 4000000ull;
		heap_free(heap, 0x1000 + (i * 7) % 300 * 16, time, 0, false);
		heap_alloc_whole(heap, addr, 10 + i % 97, rate, time, 0, stacks[i % 5], 3,
				 i % 50 ? UNWIND_END_ROOT : UNWIND_END_NO_CFI);
	}
	heap_resident_begin(heap);
	while (!heap_resident_step(heap, some_pages, NULL, 1, &errnum))
		;
	view_unref(heap_publish(heap, &info, 3000000000ull));
	struct view *view = heap_publish(heap, &info, 4000000000ull);
	heap_destroy(heap);
	return view;
}

static void to_bytes(struct view *view, struct names *names, const char *filter, bool gzip,
		     char **ret, size_t *ret_len)
{
	FILE *out = open_memstream(ret, ret_len);
	struct report *r = report_create(names, true);

	assert_null(report_set_filter(r, filter));
	report_set_view(r, view);
	assert_null(pprof_write(out, r, names, NULL, gzip));
	report_destroy(r);
	fclose(out);
}

static void assert_stats_equal(const struct trace_stats *a, const struct trace_stats *b)
{
	/* field by field: no padding lies between them, but let the compiler say so */
	_Static_assert(sizeof(*a) == 20 * 8 + 4 * 4, "trace_stats has a new field: write it out too");
	/* which needn't be: in a file nothing goes on anyway */
	assert_int_equal(a->over_bytes, 0);
	assert_memory_equal(a, b, sizeof(*a));
}

static void same_numbers(struct view *a, struct names *an, struct view *b, struct names *bn)
{
	struct report *ra = report_create(an, true), *rb = report_create(bn, true);
	size_t na, nb;

	report_set_view(ra, a);
	report_set_view(rb, b);
	for (int v = 0; v < REPORT_VALUES; v++) {
		const struct report_site *sa = report_sites(ra, (enum report_value)v, false, &na);
		const struct report_site *sb = report_sites(rb, (enum report_value)v, false, &nb);
		assert_int_equal(na, nb);
		for (size_t i = 0; i < na; i++) {
			size_t k = 0;
			while (k < nb && strcmp(sa[i].function, sb[k].function))
				k++;
			assert_true(k < nb);
			assert_stats_equal(&sa[i].s, &sb[k].s);
			assert_string_equal(sa[i].module, sb[k].module);
			assert_int_equal(sa[i].line, sb[k].line);
			assert_int_equal(sa[i].unknown, sb[k].unknown);
			assert_true(!sa[i].file == !sb[k].file);
			if (sa[i].file)
				assert_string_equal(sa[i].file, sb[k].file);
			assert_true(sa[i].se == sb[k].se);
		}
	}
	assert_int_equal(a->ntraces, b->ntraces);
	for (size_t i = 0; i < a->ntraces; i++) {
		size_t fa, fb, site;
		const struct report_frame *stack = report_stack(ra, i, &fa, &site);
		size_t k;
		for (k = 0; k < b->ntraces; k++) {
			const struct report_frame *other = report_stack(rb, k, &fb, &site);
			bool same = fa == fb;
			for (size_t f = 0; same && f < fa; f++)
				same = !strcmp(stack[f].function, other[f].function)
					&& stack[f].line == other[f].line
					&& stack[f].inlined == other[f].inlined
					&& stack[f].pseudo == other[f].pseudo;
			if (same && !memcmp(&view_trace(a, i)->s, &view_trace(b, k)->s, sizeof(struct trace_stats)))
				break;
		}
		assert_true(k < b->ntraces);
	}
	report_destroy(ra);
	report_destroy(rb);
}

static void round_trip(uint64_t rate, bool gzip)
{
	struct names *names = program_names(), *read_names;
	struct view *view = program_view(rate), *back;
	char *bytes;
	size_t len;

	to_bytes(view, names, NULL, gzip, &bytes, &len);
	assert_int_equal(inflate_is_gzip((uint8_t *)bytes, len), gzip);
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	assert_true(view->totals.s.res_bytes && view->totals.s.swap_bytes);
	same_numbers(view, names, back, read_names);
	assert_memory_equal(&view->info.memory, &back->info.memory, sizeof(view->info.memory));
	assert_int_equal(back->info.state, VIEW_SNAPSHOT);
	assert_int_equal(back->info.pid, 4242);
	assert_string_equal(back->info.command, "./prog --x");
	assert_int_equal(back->info.exit_code, 7);
	assert_true(back->info.attached && back->info.auto_rate);
	assert_int_equal(back->info.exact, rate <= 1);
	assert_int_equal(back->info.rate, rate);
	assert_true(back->info.overhead == 0.0123f);
	assert_int_equal(back->info.dropped, 3);
	assert_int_equal(back->info.ends[1], 1);
	assert_int_equal(back->info.rss, 123456789);
	assert_int_equal(back->info.nhooks, 11);
	assert_int_equal(back->info.nunhooked, 1);
	assert_string_equal(back->info.unhooked[0].module, "libfoo.so");
	assert_string_equal(back->info.unhooked[0].reason, "too short | odd");
	assert_int_equal(back->wall_ns, view->wall_ns);
	assert_true(back->time == view->time);
	assert_int_equal(back->npoints, view->npoints);
	for (size_t i = 0; i < view->npoints; i++) {
		assert_true(back->points[i].time == view->points[i].time);
		assert_int_equal(back->points[i].live_bytes, view->points[i].live_bytes);
		assert_int_equal(back->points[i].rss, view->points[i].rss);
		assert_true(back->points[i].alloc_bps == view->points[i].alloc_bps);
	}
	assert_int_equal(back->totals.s.live_bytes, view->totals.s.live_bytes);
	assert_int_equal(back->totals.s.peak_bytes, view->totals.s.peak_bytes);
	assert_int_equal(back->totals.lost_frees, view->totals.lost_frees);
	assert_true(back->totals.peak_time == view->totals.peak_time);
	assert_int_equal(back->totals.tree.last_hits, view->totals.tree.last_hits);

	/* and once more: a snapshot of a snapshot is the same */
	char *again;
	size_t again_len;
	struct view *twice;
	struct names *twice_names;
	to_bytes(back, read_names, NULL, gzip, &again, &again_len);
	assert_null(pprof_read(again, again_len, "x", &twice, &twice_names));
	same_numbers(view, names, twice, twice_names);
	view_unref(twice);
	names_destroy(twice_names);
	free(again);
	free(bytes);
	view_unref(view);
	view_unref(back);
	names_destroy(names);
	names_destroy(read_names);
}

static void test_round_trip_exact(void **state)
{
	(void)state;
	round_trip(1, true);
}

static void test_round_trip_sampled(void **state)
{
	(void)state;
	round_trip(512, true);
	round_trip(512, false);
}

static void test_filtered(void **state)
{
	(void)state;
	struct names *names = program_names(), *read_names;
	struct view *view = program_view(1), *back;
	struct report *r = report_create(names, true);
	char *bytes;
	size_t len;

	assert_null(report_set_filter(r, "parse"));
	report_set_view(r, view);
	to_bytes(view, names, "parse", true, &bytes, &len);
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	assert_true(back->ntraces > 0 && back->ntraces < view->ntraces);
	assert_int_equal(back->totals.s.live_bytes, report_total(r).live_bytes);
	assert_int_equal(back->totals.s.alloc_bytes, report_total(r).alloc_bytes);
	free(bytes);
	report_destroy(r);
	view_unref(view);
	view_unref(back);
	names_destroy(names);
	names_destroy(read_names);
}

/* ---- damage ---- */

/* Read; whatever comes back must at least be usable. Returns whether it was accepted. */
static bool try_read(const void *bytes, size_t len)
{
	struct view *view;
	struct names *names;
	/* a copy of exactly this size: reading past its end is seen */
	uint8_t *copy = xmalloc(len);
	memcpy(copy, bytes, len);
	struct err *err = pprof_read(copy, len, "file", &view, &names);
	free(copy);
	if (err) {
		assert_true(strlen(err->text) > 6 && !strchr(err->text, '\n'));
		err_free(err);
		return false;
	}
	struct report *r = report_create(names, true);
	size_t n, nodes = 0;
	report_set_view(r, view);
	report_sites(r, REPORT_ALLOC_BPS, false, &n);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *t = report_tree(r, inverted);
		const struct report_cell *cell = report_tree_root(t);
		while (cell->has_children && nodes++ < 100)
			cell = report_tree_children(t, cell, REPORT_LIVE_BYTES, &n)[0];
	}
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
	return true;
}

static void test_truncated(void **state)
{
	(void)state;
	struct names *names = program_names();
	struct view *view = program_view(512);
	char *bytes;
	size_t len;

	to_bytes(view, names, NULL, true, &bytes, &len);
	assert_true(try_read(bytes, len));
	for (size_t n = 0; n < len; n++)
		assert_false(try_read(bytes, n));
	free(bytes);
	to_bytes(view, names, NULL, false, &bytes, &len);
	size_t accepted = 0;
	for (size_t n = 0; n < len; n++)
		accepted += try_read(bytes, n);
	/* only where nothing but fields after the string table is missing */
	assert_true(accepted < 20);
	free(bytes);
	view_unref(view);
	names_destroy(names);
}

static void test_corrupt(void **state)
{
	(void)state;
	struct names *names = program_names();
	struct view *view = program_view(512);
	char *bytes;
	size_t len;
	uint64_t seed = 1;

	to_bytes(view, names, NULL, false, &bytes, &len);
	for (size_t bit = 0; bit < len * 8; bit += 3) {
		bytes[bit / 8] ^= (char)(1 << bit % 8);
		try_read(bytes, len);
		bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (int round = 0; round < 2000; round++) {
		char old[8];
		size_t at[8];
		for (int k = 0; k < 8; k++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			at[k] = (size_t)(seed >> 33) % len;
			old[k] = bytes[at[k]];
			bytes[at[k]] = (char)(seed >> 17);
		}
		try_read(bytes, len);
		for (int k = 8; k-- > 0; )
			bytes[at[k]] = old[k];
	}
	assert_true(try_read(bytes, len));
	free(bytes);
	to_bytes(view, names, NULL, true, &bytes, &len);
	for (size_t bit = 0; bit < len * 8; bit += 7) {
		bytes[bit / 8] ^= (char)(1 << bit % 8);
		try_read(bytes, len);
		bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	free(bytes);
	view_unref(view);
	names_destroy(names);
}

static void test_bomb(void **state)
{
	(void)state;
	/* many zeroes, few bytes */
	size_t big = 8u << 20, packed_len = 65536;
	uint8_t *zeroes = xcalloc(1, big), *packed = xmalloc(packed_len), *out;
	z_stream z = { .next_in = zeroes, .avail_in = (uInt)big, .next_out = packed,
		       .avail_out = (uInt)packed_len };
	size_t n;

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	packed_len = z.total_out;
	deflateEnd(&z);
	struct err *err = inflate_gzip(packed, packed_len, big - 1, &out, &n);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	assert_null(inflate_gzip(packed, packed_len, big + 1, &out, &n));
	assert_int_equal(n, big);
	free(out);
	assert_false(try_read(packed, packed_len));
	/* empty messages: 2 bytes each, 100 in memory */
	for (size_t i = 0; i < big; i += 2)
		zeroes[i] = 0x12;
	assert_false(try_read(zeroes, big));
	free(zeroes);
	free(packed);
	assert_false(try_read("", 0));
	assert_false(try_read("hello, world", 12));
}

/* ---- other tools ---- */

struct foreign {
	Pprof__Profile profile;
	Pprof__ValueType types[4], *type_list[4];
	Pprof__Sample samples[3], *sample_list[3];
	int64_t values[3][4];
	uint64_t ids[3][4];
	Pprof__Location locations[3], *location_list[3];
	Pprof__Line lines[3], *line_list[3];
	Pprof__Function functions[3], *function_list[3];
};

static bool read_foreign(struct foreign *f, struct view **ret_view, struct names **ret_names)
{
	size_t len = pprof__profile__get_packed_size(&f->profile);
	uint8_t *bytes = xmalloc(len);

	pprof__profile__pack(&f->profile, bytes);
	struct err *err = pprof_read(bytes, len, "x", ret_view, ret_names);
	free(bytes);
	bool fine = !err;
	err_free(err);
	return fine;
}

/* Three functions a, b, c without addresses; samples c<b<a, b<a, and the first one again. */
static void foreign_init(struct foreign *f, char **strings, size_t nstrings, size_t ntypes)
{
	memset(f, 0, sizeof(*f));
	pprof__profile__init(&f->profile);
	for (size_t i = 0; i < ntypes; i++) {
		pprof__value_type__init(&f->types[i]);
		f->types[i].type = (int64_t)(4 + 2 * i);
		f->types[i].unit = (int64_t)(5 + 2 * i);
		f->type_list[i] = &f->types[i];
	}
	for (size_t i = 0; i < 3; i++) {
		pprof__function__init(&f->functions[i]);
		pprof__location__init(&f->locations[i]);
		pprof__line__init(&f->lines[i]);
		pprof__sample__init(&f->samples[i]);
		f->functions[i].id = 1000 - i;
		f->functions[i].name = (int64_t)i + 1;
		f->lines[i].function_id = 1000 - i;
		f->lines[i].line = -5;
		f->line_list[i] = &f->lines[i];
		f->locations[i].id = 0xffffffffffull + i;
		f->locations[i].line = &f->line_list[i];
		f->locations[i].n_line = 1;
		f->function_list[i] = &f->functions[i];
		f->location_list[i] = &f->locations[i];
		f->sample_list[i] = &f->samples[i];
		f->samples[i].value = f->values[i];
		f->samples[i].n_value = ntypes;
		f->samples[i].location_id = f->ids[i];
		f->samples[i].n_location_id = i == 1 ? 2 : 3;
		for (size_t k = 0; k < f->samples[i].n_location_id; k++)
			f->ids[i][k] = 0xffffffffffull + f->samples[i].n_location_id - 1 - k;
		for (size_t k = 0; k < ntypes; k++)
			f->values[i][k] = (int64_t)(100 * (i + 1) + k);
	}
	f->profile.sample_type = f->type_list;
	f->profile.n_sample_type = ntypes;
	f->profile.sample = f->sample_list;
	f->profile.location = f->location_list;
	f->profile.function = f->function_list;
	f->profile.n_sample = f->profile.n_location = f->profile.n_function = 3;
	f->profile.string_table = strings;
	f->profile.n_string_table = nstrings;
}

static void test_foreign_heap(void **state)
{
	(void)state;
	char *strings[] = { "", "main.a", "main.b", "_Z1cv", "alloc_objects", "count", "alloc_space",
			    "bytes", "inuse_objects", "count", "inuse_space", "bytes" };
	struct foreign f;
	struct view *view;
	struct names *names;

	foreign_init(&f, strings, ARRAY_SIZE(strings), 4);
	assert_true(read_foreign(&f, &view, &names));
	assert_int_equal(view->ntraces, 2);
	assert_int_equal(view->totals.s.live_bytes, 103 + 203 + 303);
	assert_int_equal(view->totals.s.alloc_bytes, 103 + 203 + 303);	/* never less than live */
	assert_int_equal(view->totals.s.live_q10, (102 + 202 + 302) << 10);
	struct report *r = report_create(names, true);
	report_set_view(r, view);
	size_t n;
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 2);
	assert_string_equal(sites[0].function, "c()");
	assert_int_equal(sites[0].s.live_bytes, 406);
	assert_int_equal(sites[0].line, 0);
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
}

static void test_foreign_cpu(void **state)
{
	(void)state;
	char *strings[] = { "", "a", "b", "c", "samples", "count", "cpu", "nanoseconds" };
	struct foreign f;
	struct view *view;
	struct names *names;

	foreign_init(&f, strings, ARRAY_SIZE(strings), 2);
	f.values[0][1] = -7;
	assert_true(read_foreign(&f, &view, &names));
	assert_int_equal(view->totals.s.live_bytes, 201 + 301);
	assert_int_equal(view->totals.s.live_q10, 600 << 10);
	view_unref(view);
	names_destroy(names);
	/* the default type wins */
	f.profile.default_sample_type = 4;
	assert_true(read_foreign(&f, &view, &names));
	assert_int_equal(view->totals.s.live_bytes, 600);
	view_unref(view);
	names_destroy(names);
}

static void test_foreign_broken(void **state)
{
	(void)state;
	char *strings[] = { "", "a", "b", "c", "samples", "count", "space", "bytes" };
	struct foreign f;
	struct view *view;
	struct names *names;

#define BROKEN(change) do { \
	foreign_init(&f, strings, ARRAY_SIZE(strings), 2); \
	change; \
	assert_false(read_foreign(&f, &view, &names)); \
} while (0)
	BROKEN(f.functions[1].name = 8);
	BROKEN(f.functions[1].name = -1);
	BROKEN(f.functions[1].id = f.functions[0].id);
	BROKEN(f.functions[1].id = 0);
	BROKEN(f.lines[0].function_id = 77);
	BROKEN(f.locations[2].id = f.locations[1].id);
	BROKEN(f.locations[0].mapping_id = 5);
	BROKEN(f.ids[0][0] = 1);
	BROKEN(f.samples[0].n_value = 1);
	BROKEN(f.types[0].type = 1000);
	BROKEN(f.profile.n_sample_type = 0);
	BROKEN(f.profile.n_string_table = 0);
	BROKEN(strings[0] = "x"; f.profile.time_nanos = 1);
	strings[0] = "";
	foreign_init(&f, strings, ARRAY_SIZE(strings), 2);
	assert_true(read_foreign(&f, &view, &names));
	view_unref(view);
	names_destroy(names);
}

/* ---- folded and text ---- */

static void test_folded(void **state)
{
	(void)state;
	struct names *names = program_names();
	struct view *view = program_view(512);
	struct report *r = report_create(names, true);

	report_set_view(r, view);
	for (int v = 0; v < REPORT_VALUES; v++) {
		char *text;
		size_t len;
		FILE *out = open_memstream(&text, &len);
		assert_null(folded_write(out, r, (enum report_value)v));
		fclose(out);
		uint64_t sum = 0;
		bool seen = false;
		for (char *line, *rest = text; (line = strsep(&rest, "\n")) && *line; ) {
			char *space = strrchr(line, ' ');
			assert_non_null(space);
			sum += strtoull(space, NULL, 10);
			seen |= !strncmp(line, "main;parse(char const*);Vec<int>::push(int);operator new"
					 "(unsigned long) ", space - line + 1);
			assert_null(strstr(line, "load;"));
		}
		if (v == REPORT_LIVE_BYTES)
			assert_int_equal(sum, view->totals.s.live_bytes);
		if (v == REPORT_PEAK_BYTES)
			assert_int_equal(sum, view->totals.s.peak_bytes);
		if (v == REPORT_ALLOC_BYTES)
			assert_int_equal(sum, view->totals.s.alloc_bytes);
		if (v == REPORT_LIVE_BYTES)
			assert_true(seen);
		free(text);
	}
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_null(text_write(out, r, REPORT_LIVE_BYTES));
	fclose(out);
	assert_non_null(strstr(text, "./prog --x [4242]"));
	assert_non_null(strstr(text, "Vec<...>::push()  src/vec.h:5"));
	assert_non_null(strstr(text, "100.0%  all\n"));
	free(text);
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
}

/* A recursion as deep as a stack can be: no recursion of ours. */
static void test_folded_deep(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	uint64_t *addrs = xcalloc(4000, sizeof(*addrs));
	for (size_t i = 0; i < 4000; i++)
		addrs[i] = LOAD;
	heap_alloc_whole(heap, 16, 5, 1, 0, 0, addrs, 4000, 0);
	struct view *view = heap_publish(heap, &info, 0);
	struct names *names = program_names();
	struct report *r = report_create(names, true);
	report_set_view(r, view);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_null(folded_write(out, r, REPORT_LIVE_BYTES));
	fclose(out);
	assert_int_equal(len, 4000 * 9 + 2);
	free(text);
	free(addrs);
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
	heap_destroy(heap);
}

/* ---- files ---- */

static void test_files(void **state)
{
	(void)state;
	char dir[] = "/tmp/heaptop-test-XXXXXX", path[200], other[200];
	struct names *names = program_names(), *read_names;
	struct view *view = program_view(1), *back;
	struct export_options options = { .value = REPORT_LIVE_BYTES };
	char *written = NULL;
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%%p-%%%%.pb.gz", dir);
	assert_null(export_write(path, view, names, NULL, &options, &written));
	snprintf(path, sizeof(path), "%s/4242-%%.pb.gz", dir);
	assert_string_equal(written, path);
	free(written);
	assert_null(snapshot_read(path, &back, &read_names));
	same_numbers(view, names, back, read_names);
	view_unref(back);
	names_destroy(read_names);
	/* over an old one */
	assert_int_equal(truncate(path, 3), 0);
	struct err *err = snapshot_read(path, &back, &read_names);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);

	/* a link is never followed, whatever it points to */
	snprintf(other, sizeof(other), "%s/link.folded", dir);
	assert_int_equal(symlink(path, other), 0);
	err = export_write(other, view, names, NULL, &options, NULL);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(unlink(other), 0);
	snprintf(other, sizeof(other), "%s/pipe.txt", dir);
	assert_int_equal(mkfifo(other, 0600), 0);
	err = export_write(other, view, names, NULL, &options, NULL);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	assert_int_equal(unlink(other), 0);

	/* a bad filter leaves nothing behind */
	options.filter = "(";
	err = export_write(path, view, names, NULL, &options, NULL);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	options.filter = NULL;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	snprintf(other, sizeof(other), "%s/all.txt", dir);
	assert_null(export_write(other, view, names, NULL, NULL, NULL));
	assert_int_equal(unlink(other), 0);
	err = export_write("x.jsn", view, names, NULL, &options, NULL);
	assert_non_null(strstr(err->text, ".folded"));
	err_free(err);
	err = export_write("/nonexistent/x.txt", view, names, NULL, &options, NULL);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);	/* nothing else is there */
	view_unref(view);
	names_destroy(names);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--write")) {
		/* for a look with other tools, and for the test that asks go */
		struct names *names = program_names();
		struct view *view = program_view(1);
		struct err *err = export_write(argv[2], view, names, NULL, NULL, NULL);
		if (err)
			fprintf(stderr, "%s\n", err->text);
		view_unref(view);
		names_destroy(names);
		return err != NULL;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_exact),
		cmocka_unit_test(test_round_trip_sampled),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_foreign_heap),
		cmocka_unit_test(test_foreign_cpu),
		cmocka_unit_test(test_foreign_broken),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_folded_deep),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
