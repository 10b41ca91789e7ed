/*
 * Reports: sites, wrapper rules, filter, merged trees, stacks, ids across names that come in late, short
 * names. The names table is a fake in this file, so that the test says when a name is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "report/short.h"
#include "report/wrappers.h"
#include "symbol/names.h"
#include "unwind/unwind.h"
#include "tests/lib/whole.h"

/* ---- the fake ---- */

#define MAX_NAMES 64

struct names {
	struct name names[MAX_NAMES];
	struct name_func funcs[MAX_NAMES][4];
	uint64_t addrs[MAX_NAMES];
	size_t n, known;	/* the first `known` are told */
	uint64_t generation;
};

static const struct name *fake_get(struct names *names, uint32_t module, uint64_t vaddr)
{
	for (size_t i = 0; i < names->known; i++)
		if (names->addrs[i] == frame_addr(module, vaddr))
			return &names->names[i];
	return NULL;
}

const struct name *names_get(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	(void)exact;
	return fake_get(names, module, vaddr);
}

const struct name *names_wait(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	(void)exact;
	return fake_get(names, module, vaddr);
}

uint64_t names_generation(const struct names *names)
{
	return names->generation;
}

const struct module *module_get(const struct modules *mods, uint32_t id)
{
	static const struct module fake = { .id = 3, .name = "liblate.so" };
	(void)mods;
	return id == 3 ? &fake : NULL;
}

/* `text`: functions innermost first, separated by '|'; "file:line" behind '@'. */
static void name_add(struct names *names, uint64_t addr, const char *module, char *text)
{
	size_t k = names->n++;
	uint32_t n = 0;

	assert_true(k < MAX_NAMES);
	for (char *part, *rest = text; (part = strsep(&rest, "|")); n++) {
		struct name_func *func = &names->funcs[k][n];
		char *file = strchr(part, '@');
		if (file) {
			*file++ = '\0';
			char *colon = strchr(file, ':');
			*colon = '\0';
			func->file = file;
			func->line = (uint32_t)atoi(colon + 1);
		}
		func->function = func->linkage = part;
		func->inlined = rest != NULL;
	}
	names->addrs[k] = addr;
	names->names[k] = (struct name){
		.module = frame_module(addr), .module_name = module, .nfuncs = n,
		.funcs = names->funcs[k],
	};
	names->known = names->n;
	names->generation++;
}

/* ---- a program ---- */

#define MAIN frame_addr(1, 0x100)
#define MAIN2 frame_addr(1, 0x140)	/* another call in main */
#define PARSE frame_addr(1, 0x200)	/* with an inlined function */
#define LOAD frame_addr(1, 0x300)
#define NEW frame_addr(2, 0x10)
#define STRDUP frame_addr(2, 0x20)

static const char texts[][80] = {
	"main(int, char**)@main.cpp:10", "main(int, char**)@main.cpp:20",
	"Vec<int>::push(int)@vec.h:5|parse(char const*)@parse.cpp:77",
	"load()@load.cpp:7", "operator new(unsigned long)", "strdup",
};

static void fill_names(struct names *names)
{
	static char copy[6][80];
	const uint64_t addrs[] = { MAIN, MAIN2, PARSE, LOAD, NEW, STRDUP };

	memcpy(copy, texts, sizeof(copy));
	memset(names, 0, sizeof(*names));
	for (size_t i = 0; i < 6; i++)
		name_add(names, addrs[i], i < 4 ? "prog" : "libc.so.6", copy[i]);
}

static uint64_t next_addr = 16;

static void alloc(struct heap *heap, uint64_t size, int why, size_t n, const uint64_t *addrs)
{
	heap_alloc_whole(heap, next_addr, size, 1, 0, 0, addrs, n, why);
	next_addr += 16;
}
#define ALLOC(heap, size, why, ...) do { \
	const uint64_t a_[] = { __VA_ARGS__ }; \
	alloc(heap, size, why, ARRAY_SIZE(a_), a_); \
} while (0)

static struct view *program(struct heap **ret_heap)
{
	struct heap *heap = heap_create(NULL);
	struct view_info info = { .command = "prog" };

	ALLOC(heap, 100, 0, NEW, PARSE, MAIN);
	ALLOC(heap, 50, 0, NEW, PARSE, MAIN2);
	ALLOC(heap, 30, 0, STRDUP, LOAD, MAIN);
	ALLOC(heap, 7, 0, STRDUP);			/* nothing but a wrapper */
	ALLOC(heap, 5, UNWIND_END_CUT, STRDUP, LOAD);	/* incomplete */
	struct view *view = heap_publish(heap, &info, 0);
	if (ret_heap)
		*ret_heap = heap;
	else
		heap_destroy(heap);
	return view;
}

static const struct report_site *site_of(struct report *r, const char *function)
{
	size_t n;
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(sites[i].function, function))
			return &sites[i];
	return NULL;
}

static void test_sites(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct view *view = program(NULL);
	struct report *r = report_create(&names, false);
	report_set_view(r, view);
	size_t n;
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 3);
	assert_string_equal(sites[0].function, "Vec<int>::push(int)");
	assert_int_equal(sites[0].s.live_bytes, 150);
	assert_string_equal(sites[0].file, "vec.h");
	assert_int_equal(sites[0].line, 5);
	assert_string_equal(sites[0].module, "prog");
	assert_true(sites[0].se == 0);
	assert_string_equal(sites[1].function, "load()");
	assert_int_equal(sites[1].s.live_bytes, 35);
	/* all wrappers: the innermost of them */
	assert_string_equal(sites[2].function, "strdup");
	assert_int_equal(sites[2].s.live_bytes, 7);
	sites = report_sites(r, REPORT_LIVE_BYTES, true, &n);
	assert_string_equal(sites[0].function, "strdup");
	assert_int_equal(report_total(r).live_bytes, 192);
	assert_false(report_stale(r));

	size_t trace = report_site_trace(r, site_of(r, "load()")->id);
	assert_int_equal(view_trace(view, trace)->s.live_bytes, 30);
	size_t site;
	const struct report_frame *frames = report_stack(r, trace, &n, &site);
	assert_int_equal(n, 3);
	assert_int_equal(site, 1);
	assert_string_equal(frames[0].function, "strdup");
	assert_string_equal(frames[2].file, "main.cpp");
	trace = report_site_trace(r, site_of(r, "Vec<int>::push(int)")->id);
	frames = report_stack(r, trace, &n, &site);
	assert_int_equal(n, 4);
	assert_true(frames[1].inlined);
	assert_false(frames[2].inlined);
	assert_int_equal(site, 1);
	assert_int_equal(report_site_trace(r, 12345), SIZE_MAX);
	report_stack(r, 1000, &n, &site);
	assert_int_equal(n, 0);

	struct wrappers *wrappers = wrappers_create();
	assert_null(wrappers_add(wrappers, "^Vec<"));
	report_set_wrappers(r, wrappers);
	assert_non_null(site_of(r, "parse(char const*)"));
	/* and back: of two that match the last counts */
	assert_null(wrappers_add(wrappers, "!^Vec<int"));
	report_set_wrappers(r, wrappers);
	assert_null(site_of(r, "parse(char const*)"));
	report_set_wrappers(r, NULL);
	assert_null(site_of(r, "parse(char const*)"));
	report_destroy(r);
	wrappers_destroy(wrappers);
	view_unref(view);
}

static const struct report_cell *child(struct report_tree *t, const struct report_cell *cell,
				       const char *function)
{
	size_t n;
	const struct report_cell *const *children =
		report_tree_children(t, cell, REPORT_LIVE_BYTES, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(children[i]->function, function))
			return children[i];
	return NULL;
}

/* total = self + children's totals, all the way (inverted: too, ends count as self). */
static void check_sums(struct report_tree *t, const struct report_cell *cell)
{
	size_t n;
	const struct report_cell *const *children =
		report_tree_children(t, cell, REPORT_LIVE_BYTES, &n);
	uint64_t sum = cell->self.live_bytes;

	assert_int_equal(cell->has_children, n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(report_tree_parent(t, children[i]), cell);
		assert_int_equal(children[i]->depth, cell->depth + 1);
		sum += children[i]->total.live_bytes;
		if (i)
			assert_true(children[i - 1]->total.live_bytes
				    >= children[i]->total.live_bytes);
		check_sums(t, children[i]);
	}
	assert_int_equal(sum, cell->total.live_bytes);
}

static void test_tree_down(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct view *view = program(NULL);
	struct report *r = report_create(&names, true);
	report_set_view(r, view);
	struct report_tree *t = report_tree(r, false);
	const struct report_cell *root = report_tree_root(t);
	assert_string_equal(root->function, "all");
	assert_int_equal(root->total.live_bytes, 192);
	check_sums(t, root);
	/* two return addresses in main: one cell, no line */
	const struct report_cell *c = child(t, root, "main(int, char**)");
	assert_int_equal(c->total.live_bytes, 180);
	assert_string_equal(c->file, "main.cpp");
	assert_int_equal(c->line, 0);
	c = child(t, c, "parse(char const*)");
	assert_int_equal(c->total.live_bytes, 150);
	assert_false(c->inlined);
	c = child(t, c, "Vec<int>::push(int)");
	assert_true(c->inlined);
	assert_int_equal(c->self.live_bytes, 0);
	c = child(t, c, "operator new(unsigned long)");
	assert_int_equal(c->self.live_bytes, 150);
	assert_int_equal(c->total.live_bytes, 150);
	assert_false(c->has_children);
	c = child(t, root, report_pseudo_text(1 + UNWIND_END_CUT));
	assert_true(c->pseudo);
	assert_int_equal(child(t, c, "load()")->total.live_bytes, 5);
	assert_int_equal(child(t, child(t, root, "main(int, char**)"), "load()")->func_key,
			 child(t, c, "load()")->func_key);
	assert_true(child(t, child(t, root, "main(int, char**)"), "load()")->key
		    != child(t, c, "load()")->key);
	view_unref(view);

	/* an allocation in the inlined function itself belongs to it alone */
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	ALLOC(heap, 11, 0, PARSE, MAIN);
	view = heap_publish(heap, &info, 0);
	report_set_view(r, view);
	t = report_tree(r, false);
	check_sums(t, report_tree_root(t));
	c = child(t, child(t, report_tree_root(t), "main(int, char**)"), "parse(char const*)");
	assert_int_equal(c->self.live_bytes, 0);
	assert_int_equal(child(t, c, "Vec<int>::push(int)")->self.live_bytes, 11);
	report_destroy(r);
	view_unref(view);
	heap_destroy(heap);
}

static void test_tree_inverted(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct view *view = program(NULL);
	struct report *r = report_create(&names, true);
	report_set_view(r, view);
	struct report_tree *t = report_tree(r, true);
	const struct report_cell *root = report_tree_root(t);
	check_sums(t, root);
	size_t n;
	report_tree_children(t, root, REPORT_LIVE_BYTES, &n);
	assert_int_equal(n, 3);		/* the three sites */
	const struct report_cell *c = child(t, root, "Vec<int>::push(int)");
	c = child(t, child(t, c, "parse(char const*)"), "main(int, char**)");
	assert_int_equal(c->total.live_bytes, 150);
	assert_int_equal(c->self.live_bytes, 150);
	assert_int_equal(child(t, root, "strdup")->self.live_bytes, 7);
	report_destroy(r);
	view_unref(view);
}

static void test_filter(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct view *view = program(NULL);
	struct report *r = report_create(&names, false);
	assert_null(report_set_filter(r, "PARSE\\.cpp"));
	report_set_view(r, view);
	assert_int_equal(report_total(r).live_bytes, 0);	/* capitals count */
	assert_null(report_set_filter(r, "parse\\.cpp"));
	assert_int_equal(report_total(r).live_bytes, 150);
	check_sums(report_tree(r, false), report_tree_root(report_tree(r, false)));
	check_sums(report_tree(r, true), report_tree_root(report_tree(r, true)));
	assert_null(report_set_filter(r, "!PARSE|main"));
	assert_int_equal(report_total(r).live_bytes, 12);
	assert_null(report_set_filter(r, "vec<INT>"));
	assert_int_equal(report_total(r).live_bytes, 0);
	assert_null(report_set_filter(r, "vec<int>"));
	assert_int_equal(report_total(r).live_bytes, 150);
	struct err *err = report_set_filter(r, "[");
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	assert_int_equal(report_total(r).live_bytes, 150);	/* the old one stays */
	assert_null(report_set_filter(r, "libc\\.so"));
	assert_int_equal(report_total(r).live_bytes, 192);
	size_t passing = 0;
	assert_null(report_set_filter(r, "incomplete"));
	for (size_t i = 0; i < view->ntraces; i++)
		passing += report_trace_passes(r, i);
	assert_int_equal(passing, 1);
	assert_null(report_set_filter(r, ""));
	assert_int_equal(report_total(r).live_bytes, 192);
	report_destroy(r);
	view_unref(view);
	/* the command line checks a pattern with no names and no view */
	r = report_create(NULL, false);
	assert_null(report_set_filter(r, "a|b"));
	size_t n;
	report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 0);
	assert_null(report_tree(r, false));
	report_destroy(r);
	report_destroy(NULL);
}

/* Names that come in later keep the ids of what was shown before. */
static void test_late_names(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	names.known = 0;
	struct heap *heap;
	struct view *view = program(&heap);
	struct report *r = report_create(&names, false);
	report_set_view(r, view);
	size_t n;
	report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 2);		/* NEW and STRDUP, without names */
	const struct report_site *site = site_of(r, "module 2+0x10");
	assert_non_null(site);
	assert_true(site->unknown);
	uint64_t raw = site->id;
	const struct report_cell *root = report_tree_root(report_tree(r, false));
	uint64_t main_key = child(report_tree(r, false), root, "module 1+0x100")->key;
	assert_false(report_stale(r));

	names.known = 2;		/* main, by two addresses */
	names.generation++;
	assert_true(report_stale(r));
	report_set_view(r, view);
	assert_false(report_stale(r));
	root = report_tree_root(report_tree(r, false));
	assert_int_equal(child(report_tree(r, false), root, "main(int, char**)")->key, main_key);
	/* the module's name is known by now */
	assert_non_null(child(report_tree(r, false), child(report_tree(r, false), root,
							   "main(int, char**)"), "prog+0x200"));
	assert_int_equal(site_of(r, "module 2+0x10")->id, raw);

	names.known = names.n;
	names.generation++;
	report_set_view(r, view);
	assert_null(site_of(r, "module 2+0x10"));
	/* what was the site is a wrapper now: no longer a site */
	assert_int_equal(report_site_trace(r, raw), SIZE_MAX);
	assert_int_equal(report_total(r).live_bytes, 192);
	report_destroy(r);

	/* a site that is one: its id stays when the name comes */
	r = report_create(&names, false);
	ALLOC(heap, 1000, 0, frame_addr(3, 0x42), MAIN);
	ALLOC(heap, 2000, 0, frame_addr(3, 0x46), MAIN);
	struct view_info info = { 0 };
	struct view *second = heap_publish(heap, &info, 2000000000ull);
	report_set_modules(r, (const struct modules *)&info);	/* the fake never looks inside */
	report_set_view(r, second);
	uint64_t a = site_of(r, "liblate.so+0x42")->id, b = site_of(r, "liblate.so+0x46")->id;
	assert_true(a != b);
	char text[] = "late@late.c:3", same[] = "late@late.c:4";
	name_add(&names, frame_addr(3, 0x42), "liblate.so", text);
	report_set_view(r, second);
	assert_int_equal(site_of(r, "late")->id, a);
	assert_int_equal(site_of(r, "liblate.so+0x46")->id, b);
	name_add(&names, frame_addr(3, 0x46), "liblate.so", same);
	report_set_view(r, second);
	assert_int_equal(site_of(r, "late")->id, a);
	assert_int_equal(site_of(r, "late")->s.live_bytes, 3000);
	assert_int_equal(site_of(r, "late")->line, 0);
	assert_int_equal(report_site_id(r, b), a);
	assert_int_equal(view_trace(second, report_site_trace(r, b))->s.live_bytes, 2000);
	report_destroy(r);
	view_unref(view);
	view_unref(second);
	heap_destroy(heap);
}

static void test_trend(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct heap *heap = heap_create(NULL);
	struct report *r = report_create(&names, false);
	struct view_info info = { 0 };

	for (uint64_t tick = 2; tick <= 26; tick++) {
		/* two views a second: every other counts */
		ALLOC(heap, 10, 0, LOAD, MAIN);
		struct view *view = heap_publish(heap, &info, tick * 500000000ull);
		report_set_view(r, view);
		view_unref(view);
	}
	const struct report_site *site = site_of(r, "load()");
	assert_int_equal(site->ntrend, REPORT_TREND);
	for (size_t i = 0; i < REPORT_TREND; i++)
		assert_int_equal(site->trend[i], 250 - 20 * (REPORT_TREND - 1 - i));
	report_destroy(r);
	heap_destroy(heap);
}

/* A filter that lets a part of a site through: its trend is that part's, from then on. */
static void test_trend_filtered(void **state)
{
	(void)state;
	struct names names;
	fill_names(&names);
	struct heap *heap = heap_create(NULL);
	struct report *r = report_create(&names, false);
	struct view_info info = { 0 };

	for (uint64_t tick = 1; tick <= 20; tick++) {
		ALLOC(heap, 10, 0, LOAD, MAIN);
		ALLOC(heap, 1000, 0, LOAD, PARSE, MAIN);
		if (tick == 17)
			assert_null(report_set_filter(r, "!parse"));
		struct view *view = heap_publish(heap, &info, tick * 1000000000ull);
		report_set_view(r, view);
		view_unref(view);
	}
	const struct report_site *site = site_of(r, "load()");
	assert_int_equal(site->s.live_bytes, 200);
	assert_int_equal(site->ntrend, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(site->trend[i], 170 + 10 * i);
	assert_true(site->trend_seconds == 3);
	assert_null(report_set_filter(r, NULL));
	site = site_of(r, "load()");
	assert_int_equal(site->ntrend, REPORT_TREND);
	assert_int_equal(site->trend[REPORT_TREND - 1], 20 * 1010);
	report_destroy(r);
	heap_destroy(heap);
}

static void test_values(void **state)
{
	(void)state;
	for (int v = 0; v < REPORT_VALUES; v++) {
		assert_int_equal(report_value_parse(report_value_name((enum report_value)v)), v);
		assert_non_null(report_value_title((enum report_value)v));
	}
	assert_int_equal(report_value_parse("nothing"), -1);
	assert_null(report_value_name(REPORT_VALUES));
	struct trace_stats s = { .live_q10 = 1536 };
	assert_true(report_value_of(&s, REPORT_LIVE_BLOCKS) == 1.5);
	for (uint64_t i = 1; i < FRAME_PSEUDO_MAX; i++)
		if (report_pseudo_parse(report_pseudo_text(i)))
			assert_int_equal(report_pseudo_parse(report_pseudo_text(i)), i);
	assert_int_equal(report_pseudo_parse("main"), 0);
}

static void test_short_names(void **state)
{
	(void)state;
	static const struct { const char *full, *brief; } cases[] = {
		{ "main", "main" },
		{ "main(int, char**)", "main()" },
		{ "operator new(unsigned long)", "operator new()" },
		{ "operator new[](unsigned long)", "operator new[]()" },
		{ "std::vector<int, std::allocator<int> >::push_back(int const&)",
		  "std::vector<…>::push_back()" },
		{ "void ns::f<int, (x > y)>(std::vector<int>)", "ns::f<…>()" },
		{ "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
		  "std::operator<<<…>()" },
		{ "bool operator< <int>(A<int> const&, A<int> const&)", "operator<<…>()" },
		{ "A::operator->() const", "A::operator->()" },
		{ "A::operator()(int) const [clone .isra.0]", "A::operator()()" },
		{ "A::operator bool() const", "A::operator bool()" },
		{ "foo(int)::{lambda(int, B<char>)#1}::operator()(int) const",
		  "foo()::{lambda#1}::operator()()" },
		{ "(anonymous namespace)::f(int)", "(anonymous namespace)::f()" },
		{ "std::__cxx11::basic_string<char>::_M_create(unsigned long&)",
		  "std::basic_string<…>::_M_create()" },
		{ "get[abi:cxx11](int)", "get()" },
		{ "foo.part.0", "foo.part.0" },
		{ "foo [clone .cold]", "foo" },
		{ "libfoo.so+0x1f30", "libfoo.so+0x1f30" },
		{ "[incomplete stack: copy ended first]", "[incomplete stack: copy ended first]" },
		{ "<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<…> as core::ops::Drop>::drop" },
		{ "core::iter::collect::<Vec<u8>>", "core::iter::collect::<…>" },
		{ "decltype (a(b)) g<A>(A)", "g<…>()" },
		{ "runtime/pprof.(*profileBuilder).emitLocation",
		  "runtime/pprof.(*profileBuilder).emitLocation" },
		{ "broken<<<<(((", "broken<…>" },
		{ "f)>>>", "f)>>>" },
		{ "", "" },
	};
	char buf[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		report_short_name(cases[i].full, buf, sizeof(buf), false);
		assert_string_equal(buf, cases[i].brief);
	}
	report_short_name("std::vector<int>::f()", buf, sizeof(buf), true);
	assert_string_equal(buf, "std::vector<...>::f()");
	/* every length: terminated, no character cut in two */
	for (size_t len = 0; len < 40; len++) {
		memset(buf, 'x', sizeof(buf));
		report_short_name("añadir<int>::größe(int)::füllen", buf, len, false);
		assert_true(len == 0 || strlen(buf) < len);
		assert_int_equal(buf[len], 'x');
		for (const char *s = buf; len && *s; s++)
			if (((unsigned char)*s & 0xc0) == 0xc0)
				assert_int_equal((unsigned char)s[1] & 0xc0, 0x80);
	}
}

/* Names of the size real programs have, and hostile ones: linear time. */
static void test_short_huge(void **state)
{
	(void)state;
	static const char *const units[] = { "A<", "(", "{", "operator<", "A<(", "<", "a::b(int)::", " x" };
	char *name = xcalloc(1, 1100000);
	char buf[100];
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
		size_t n = strlen(units[u]);
		for (size_t i = 0; i + n < 1000000; i += n)
			memcpy(name + i, units[u], n + 1);
		report_short_name(name, buf, sizeof(buf), false);
		assert_true(strlen(buf) < sizeof(buf));
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	assert_true(seconds < 5);
	free(name);
}

static void test_wrappers(void **state)
{
	(void)state;
	static const char *const yes[] = {
		"malloc", "operator new(unsigned long)", "operator new[](unsigned long, std::nothrow_t const&)",
		"std::allocator<Foo<int> >::allocate(unsigned long)", "__GI___strdup", "xmalloc",
		"std::__new_allocator<char>::allocate(unsigned long, void const*)",
		"std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)",
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
		"std::__allocated_ptr<std::allocator<X> > std::__allocate_guarded<std::allocator<X> >(std::allocator<X>&)",
		"_PyObject_GC_New", "sqlite3DbMallocRawNN", "ztrymalloc_usable_internal.constprop.0",
		"alloc::raw_vec::RawVec<T,A>::grow_one", "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
		"g_strdup_printf", "ggc_internal_alloc(unsigned long, void (*)(void*), unsigned long, unsigned long)",
	};
	static const char *const no[] = {
		"main", "mallocator_user", "operator delete(void*)", "std::vector<int>::push_back(int&&)",
		"my_operator new", "getline", "sqlite3VdbeExec", "foo::malloc_stats", "",
	};
	struct wrappers *w = wrappers_create();

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!wrappers_match(w, yes[i]))
			fail_msg("no wrapper: %s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (wrappers_match(w, no[i]))
			fail_msg("wrapper: %s", no[i]);
	assert_null(wrappers_add(w, "^get(line|delim)$"));
	assert_true(wrappers_match(w, "getline"));
	/* taken from the table, and one of these given back */
	assert_null(wrappers_add(w, "!^g_"));
	assert_false(wrappers_match(w, "g_strdup"));
	assert_null(wrappers_add(w, "^g_malloc"));
	assert_true(wrappers_match(w, "g_malloc0"));
	assert_false(wrappers_match(w, "g_strdup"));
	assert_true(wrappers_match(NULL, "g_strdup"));
	static const char *const bad[] = { "", "!", "(", "!(" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err *err = wrappers_add(w, bad[i]);
		assert_int_equal(err->code, ERR_BAD_INPUT);
		err_free(err);
	}
	wrappers_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_tree_down),
		cmocka_unit_test(test_tree_inverted),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_late_names),
		cmocka_unit_test(test_trend),
		cmocka_unit_test(test_trend_filtered),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_short_huge),
		cmocka_unit_test(test_wrappers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
