/*
 * Gate 8: the same numbers, to the byte, on all screens and in the snapshot of the same moment: totals, and each
 * site's. A screen says what its first row is by view_ops.selected; a new one is asked like the others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "export/export.h"
#include "symbol/names.h"
#include "tests/lib/fakescreen.h"

static void same(const struct trace_stats *a, const struct trace_stats *b)
{
	assert_int_equal(a->live_bytes, b->live_bytes);
	assert_int_equal(a->live_q10, b->live_q10);
	assert_int_equal(a->alloc_bytes, b->alloc_bytes);
	assert_int_equal(a->alloc_q10, b->alloc_q10);
	assert_int_equal(a->free_bytes, b->free_bytes);
	assert_int_equal(a->peak_bytes, b->peak_bytes);
	assert_int_equal(a->temp_bytes, b->temp_bytes);
	assert_int_equal(a->temp_q10, b->temp_q10);
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->live_samples, b->live_samples);
}

static void add(struct trace_stats *sum, const struct trace_stats *s)
{
	sum->live_bytes += s->live_bytes;
	sum->live_q10 += s->live_q10;
	sum->alloc_bytes += s->alloc_bytes;
	sum->alloc_q10 += s->alloc_q10;
	sum->free_bytes += s->free_bytes;
	sum->peak_bytes += s->peak_bytes;
	sum->temp_bytes += s->temp_bytes;
	sum->temp_q10 += s->temp_q10;
	sum->samples += s->samples;
	sum->live_samples += s->live_samples;
}

/* A cell is its own and its children's; returns how many there are. */
static size_t check_cell(struct report_tree *tree, const struct report_cell *cell)
{
	size_t n, count = 1;
	struct trace_stats sum = { 0 };
	const struct report_cell *const *children = report_tree_children(tree, cell, REPORT_LIVE_BYTES, &n);

	add(&sum, &cell->self);
	for (size_t i = 0; i < n; i++) {
		add(&sum, &children[i]->total);
		count += check_cell(tree, children[i]);
	}
	same(&sum, &cell->total);
	return count;
}

/* Sites add up to the total; the trees' roots are it; the inverted tree's first calls are the sites. */
static void check_report(struct report *r, const struct trace_stats *total)
{
	size_t n, calls;
	struct trace_stats sum = { 0 };
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);

	assert_true(n >= 5);
	for (size_t i = 0; i < n; i++)
		add(&sum, &sites[i].s);
	same(&sum, total);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *tree = report_tree(r, inverted);
		const struct report_cell *root = report_tree_root(tree);
		same(&root->total, total);
		assert_true(check_cell(tree, root) > n);
	}
	struct report_tree *tree = report_tree(r, true);
	const struct report_cell *const *cells =
		report_tree_children(tree, report_tree_root(tree), REPORT_LIVE_BYTES, &calls);
	assert_int_equal(calls, n);
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;
		while (k < calls && cells[k]->func_key != sites[i].id)
			k++;
		assert_true(k < calls);
		same(&cells[k]->total, &sites[i].s);
	}
}

/* On each screen: the row that stands for all of it, or its largest, is what the report says. */
static void check_screens(struct ui *ui, const struct trace_stats *total)
{
	size_t n, asked = 0;
	const struct report_site first = *report_sites(ui->report, REPORT_LIVE_BYTES, false, &n);

	for (int v = 0; v < UI_VIEWS; v++) {
		const struct view_ops *ops = view_ops_of(v);
		struct selection sel = { 0 };
		ui_set_screen(ui, v);
		ui_action(ui, ACT_TOP);
		ui_draw(ui);
		if ((int)ui->screen != v || !ops->selected || !ops->selected(ui, ui->state[v], &sel))
			continue;
		if (sel.is_site)
			same(&sel.s, &first.s);
		else if (sel.cell && !sel.cell->depth)
			same(&sel.s, total);
		else
			continue;
		asked++;
	}
	assert_true(asked >= 3);
}

static void test_agree(void **state)
{
	static const struct fakeheap_config configs[] = { { .rate = 1 }, { .rate = 4096 }, { .rate = 65536, .attached = true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct fakescreen f;
		fakescreen_open(&f, configs[i], 20, 40, 120, true);
		struct trace_stats total = report_total(f.ui->report);
		assert_int_equal(total.live_bytes, f.view->totals.s.live_bytes);
		assert_int_equal(total.live_q10, f.view->totals.s.live_q10);
		check_report(f.ui->report, &total);
		check_screens(f.ui, &total);

		/* written and read back */
		char path[] = "/tmp/heaptop-agree.XXXXXX.pb.gz";
		int fd = mkstemps(path, 6);
		assert_true(fd >= 0);
		close(fd);
		struct export_options options = { .value = REPORT_LIVE_BYTES };
		struct view *back;
		struct names *names;
		assert_null(export_write(path, f.view, fakeheap_names(f.heap), NULL, &options, NULL));
		assert_null(snapshot_read(path, &back, &names));
		unlink(path);
		struct report *r = report_create(names, true);
		report_set_view(r, back);
		check_report(r, &total);
		size_t n, m;
		const struct report_site *now = report_sites(f.ui->report, REPORT_LIVE_BYTES, false, &n);
		const struct report_site *then = report_sites(r, REPORT_LIVE_BYTES, false, &m);
		assert_int_equal(n, m);
		for (size_t a = 0; a < n; a++) {
			size_t b = 0;
			while (b < m && (strcmp(now[a].function, then[b].function) || strcmp(now[a].module, then[b].module)))
				b++;
			assert_true(b < m);
			same(&now[a].s, &then[b].s);
		}
		report_destroy(r);
		view_unref(back);
		names_destroy(names);
		fakescreen_close(&f);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_agree) };

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("gate 8: the same numbers everywhere", tests, NULL, NULL);
}
