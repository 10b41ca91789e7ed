/*
 * Reading the mappings of a process that is not traced: what a refresh of its modules allocates, and
 * that one mapping looked up by its address is what the text says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "tests/lib/counted.h"
#include "elf/modules.h"
#include "tests/lib/manymaps.h"
#include "target/impl.h"

#define ELF_FILES 200
#define FILES 300

static struct manymaps many;

static int start(void **state)
{
	(void)state;
	if (manymaps_start(&many, ELF_FILES, FILES))
		return 0;
	print_message("no files can be mapped as code here\n");
	manymaps_end(&many);
	return 0;	/* each test skips then */
}

static int end(void **state)
{
	(void)state;
	manymaps_end(&many);
	return 0;
}

static struct target *target_or_skip(void)
{
	if (many.pid <= 0)
		skip();
	return target_new(many.pid);
}

static bool refresh(struct target *t, struct modules *mods, struct counted *ret)
{
	bool changed = false;

	counted_begin();
	struct err *err = target_refresh_modules(t, mods, &changed);
	*ret = counted_end();
	if (err)
		fail_msg("%s", err->text);
	return changed;
}

static void test_refresh(void **state)
{
	(void)state;
	struct target *t = target_or_skip();
	struct modules *mods = modules_create();
	struct counted c;

	assert_true(refresh(t, mods, &c));
	assert_true(c.calls > ELF_FILES);
	size_t n = modules_count(mods), found = 0;
	for (uint32_t i = 1; i <= n; i++) {
		const struct module *mod = module_get(mods, i);
		found += mod->file && !strncmp(mod->path, many.dir, strlen(many.dir));
		assert_false(mod->gone);
	}
	assert_int_equal(found, ELF_FILES);	/* one each, and none of the data files */

	for (int i = 0; i < 3; i++) {
		assert_false(refresh(t, mods, &c));
		assert_int_equal(c.calls, 0);
	}
	/* a mapping of data is none of its business */
	assert_true(manymaps_do(&many, 'd'));
	assert_false(refresh(t, mods, &c));
	assert_int_equal(c.calls, 0);

	/* one more module: its own allocations, not those of the others again */
	assert_true(manymaps_do(&many, 'x'));
	assert_true(refresh(t, mods, &c));
	assert_int_equal(modules_count(mods), n + 1);
	assert_string_equal(module_get(mods, (uint32_t)n + 1)->name, "more");
	assert_true(c.calls > 0 && c.calls < 40);
	assert_false(refresh(t, mods, &c));
	assert_int_equal(c.calls, 0);
	modules_destroy(mods);
	target_delete(t);
}

/* ---- one mapping ---- */

struct list {
	struct mapping *maps;
	size_t n, cap;
};

static bool collect(void *ctx, const struct mapping *m)
{
	struct list *list = ctx;

	if (m->end > INT64_MAX)
		return true;
	VEC_GROW(list->maps, list->n, list->cap);
	list->maps[list->n] = *m;
	list->maps[list->n++].path = xstrdup(m->path);
	return true;
}

static void assert_same(struct target *t, uint64_t addr, const struct mapping *want)
{
	struct mapping m;

	assert_true(target_mapping_at(t, addr, &m));
	assert_int_equal(m.start, want->start);
	assert_int_equal(m.end, want->end);
	assert_int_equal(m.offset, want->offset);
	assert_int_equal(m.dev, want->dev);
	assert_int_equal(m.inode, want->inode);
	assert_int_equal(m.prot, want->prot);
	assert_int_equal(m.shared, want->shared);
	assert_int_equal(m.deleted, want->deleted);
	assert_string_equal(m.path, want->path);
}

static void compare_all(struct target *t)
{
	struct list list = { 0 };
	struct mapping m;
	bool odd = false, stack = false;

	assert_null(target_each_mapping(t, collect, &list));
	assert_true(list.n > 3 * FILES);
	for (size_t i = 0; i < list.n; i++) {
		const struct mapping *want = &list.maps[i];
		odd |= !!strstr(want->path, "/a\nb\\c (deleted) d");
		stack |= !strcmp(want->path, "[stack]");
		assert_same(t, want->start, want);
		assert_same(t, want->end - 1, want);
		if (i + 1 < list.n && want[1].start > want->end)
			assert_false(target_mapping_at(t, want->end, &m));
		free((char *)want->path);
	}
	assert_true(odd && stack);
	assert_false(target_mapping_at(t, 0, &m));
	assert_false(target_mapping_at(t, UINT64_MAX, &m));
	free(list.maps);
}

static void test_mapping_at(void **state)
{
	(void)state;
	struct target *t = target_or_skip();
	uint64_t lo, hi;
	struct mapping m;

	assert_true(manymaps_do(&many, 'l'));
	if (!target_has_query(t))
		print_message("this kernel has no PROCMAP_QUERY: only the text is tested\n");
	compare_all(t);
	t->maps.no_query = true;
	assert_false(target_has_query(t));
	compare_all(t);
	for (int query = 0; query < 2; query++) {
		t->maps.no_query = !query;
		assert_true(target_stack_bounds(t, 0, &lo, &hi));
		assert_true(target_mapping_at(t, lo, &m));
		assert_string_equal(m.path, "[stack]");
		uint64_t main_lo = lo, main_hi = hi;
		assert_true(target_stack_bounds(t, hi - 1, &lo, &hi));
		assert_true(lo == main_lo && hi == main_hi);
		assert_false(target_stack_bounds(t, 4096, &lo, &hi));
		assert_true(lo == 0 && hi == 0);
	}
	target_delete(t);
}

/* A look-up by the text in the middle of reading it. */
static bool nested(void *ctx, const struct mapping *m)
{
	struct target *t = ctx;
	struct mapping same;
	static int times;

	if (m->end > INT64_MAX || times++ > 50)
		return true;
	uint64_t start = m->start, end = m->end;
	char path[64];
	snprintf(path, sizeof(path), "%s", m->path);
	assert_true(target_mapping_at(t, start, &same));
	assert_true(same.end == end && m->start == start);
	assert_int_equal(strncmp(m->path, path, sizeof(path) - 1), 0);
	return true;
}

static void test_nested(void **state)
{
	(void)state;
	struct target *t = target_or_skip();

	t->maps.no_query = true;
	assert_null(target_each_mapping(t, nested, t));
	target_delete(t);
}

/* Last: the child becomes another program, and the descriptor kept belongs to the memory before. */
static void test_exec(void **state)
{
	(void)state;
	struct target *t = target_or_skip();
	struct mapping m;
	uint64_t lo, hi;

	assert_true(target_stack_bounds(t, 0, &lo, &hi));
	assert_true(target_mapping_at(t, lo, &m));
	assert_true(manymaps_do(&many, 'e'));

	char path[64], line[512];
	unsigned long long start, stop;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", many.pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, "/sleep\n") && sscanf(line, "%llx-%llx", &start, &stop) == 2;
	fclose(f);
	if (!found)
		skip();		/* sleep is called otherwise here */
	assert_true(target_mapping_at(t, start, &m));
	assert_int_equal(m.end, stop);
	assert_non_null(strstr(m.path, "/sleep"));
	target_delete(t);
}

static void test_gone(void **state)
{
	(void)state;
	struct target *t = target_or_skip();
	struct mapping m;
	bool changed;
	struct modules *mods = modules_create();

	manymaps_end(&many);
	many.pid = 0;
	assert_false(target_mapping_at(t, 4096, &m));
	struct err *err = target_refresh_modules(t, mods, &changed);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_GONE);
	err_free(err);
	modules_destroy(mods);
	target_delete(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_mapping_at),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests_name("mappings", tests, start, end);
}
