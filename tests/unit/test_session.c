/*
 * A whole session without a terminal: screens on a made-up heap, keys in, canvas out. Every size,
 * hostile names, random keys; and what the user is promised about cursor, order and honesty.
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

#include "base/mem.h"
#include "heap/view.h"
#include "tests/lib/fakeheap.h"
#include "ui/detail.h"
#include "ui/screen.h"

struct fixture {
	struct fakeheap *heap;
	struct view *view;
	struct ui_source source;
	struct ui *ui;
	unsigned saves, pauses;
};

static struct view *source_view(void *ctx)
{
	struct fixture *f = ctx;

	return view_ref(f->view);
}

static void source_save(void *ctx, const char *path)
{
	(void)path;
	((struct fixture *)ctx)->saves++;
}

static void source_pause(void *ctx, bool paused)
{
	(void)paused;
	((struct fixture *)ctx)->pauses++;
}

static struct fixture *fixture_create(struct fakeheap_config config, int rows, int cols, bool unicode)
{
	static const struct ui_options options = { .delay = 1, .title = "./sceneview --hd scene.json" };
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->heap = fakeheap_create(&config);
	fakeheap_step(f->heap);
	f->view = fakeheap_view(f->heap);
	f->source = (struct ui_source){
		.ctx = f, .view = source_view, .save = source_save, .pause = source_pause, .live = true,
		.launched = true,
	};
	f->ui = ui_create(&f->source, fakeheap_names(f->heap), NULL, &options, rows, cols, unicode);
	f->ui->now = 1000;
	ui_poll(f->ui);
	ui_draw(f->ui);
	return f;
}

static void fixture_destroy(struct fixture *f)
{
	ui_destroy(f->ui);
	view_unref(f->view);
	fakeheap_destroy(f->heap);
	free(f);
}

static void step(struct fixture *f)
{
	fakeheap_step(f->heap);
	view_unref(f->view);
	f->view = fakeheap_view(f->heap);
	f->ui->now += 1;
	ui_poll(f->ui);
	ui_draw(f->ui);
}

static void key(struct fixture *f, uint32_t k)
{
	struct key_event ev = { .key = k };

	ui_key(f->ui, &ev);
	ui_poll(f->ui);
	ui_draw(f->ui);
}

static void keys(struct fixture *f, const char *s)
{
	for (; *s; s++)
		key(f, (unsigned char)*s);
}

#define SEES(f, text) assert_true(canvas_contains((f)->ui->canvas, text))
#define SEES_NOT(f, text) assert_false(canvas_contains((f)->ui->canvas, text))

static const struct selection *selected(struct fixture *f)
{
	static struct selection sel;
	const struct view_ops *ops = view_ops_of(f->ui->screen);

	return ops->selected(f->ui, f->ui->state[f->ui->screen], &sel) ? &sel : NULL;
}

static void test_screens(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 100, true);

	(void)state;
	SEES(f, "[1 Sites]");
	SEES(f, "LIVE▼");
	key(f, '2');
	SEES(f, "[2 Tree]");
	SEES(f, "▾ all");
	key(f, 'i');
	SEES(f, "SITE AND ITS CALLERS");
	key(f, UKEY_TAB);
	SEES(f, "[3 Flame]");
	SEES(f, "inverted");
	key(f, UKEY_TAB);
	SEES(f, "[4 Time]");
	key(f, UKEY_TAB);
	SEES(f, "[5 Threads]");
	key(f, UKEY_TAB);
	SEES(f, "[6 Modules]");
	key(f, UKEY_TAB);
	/* no terminal of the program's: no Output screen */
	SEES(f, "[1 Sites]");
	key(f, '7');
	SEES(f, "no terminal");
	keys(f, "v");
	SEES(f, "BLOCKS▼");
	keys(f, "sp");
	SEES(f, "PEAK▼");
	key(f, UKEY_F1);
	SEES(f, "previous-screen");
	key(f, 'q');
	SEES_NOT(f, "previous-screen");
	key(f, '!');
	SEES(f, "not hooked: valloc in libodd.so");
	key(f, UKEY_ESC);
	key(f, 'q');
	SEES(f, "The program still runs");
	key(f, 'c');
	assert_false(f->ui->leaving);
	keys(f, "qd");
	assert_true(f->ui->leaving);
	assert_int_equal(f->ui->leave, UI_LEAVE_DETACH);
	fixture_destroy(f);
}

static void test_cursor_follows(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 80, true);

	(void)state;
	keys(f, "jjj");
	char *name = xstrdup(selected(f)->function);
	for (int i = 0; i < 40; i++)
		step(f);
	/* rows went past it, the cursor stayed on its site */
	assert_string_equal(selected(f)->function, name);
	key(f, '3');
	keys(f, "jjj");
	free(name);
	name = xstrdup(selected(f)->function);
	for (int i = 0; i < 40; i++)
		step(f);
	assert_string_equal(selected(f)->function, name);
	free(name);
	fixture_destroy(f);
}

/* Rows rest for some seconds after a key, and then go to their places. */
static void test_rest(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 80, true);
	char first[200] = "";
	unsigned moved = 0;
	size_t n;

	(void)state;
	for (int i = 0; i < 40; i++) {
		/* g: the cursor stays on the first row, whatever lies there */
		key(f, 'g');
		snprintf(first, sizeof(first), "%s", selected(f)->function);
		step(f);
		assert_string_equal(selected(f)->function, first);
		for (int k = 0; k < 4; k++)
			step(f);
		const struct report_site *sites = report_sites(f->ui->report, REPORT_LIVE_BYTES, false, &n);
		assert_string_equal(selected(f)->function, sites[0].function);
		moved += strcmp(first, sites[0].function) != 0;
	}
	/* the made-up heap has leaks that pass the others */
	assert_true(moved > 0);
	fixture_destroy(f);
}

static void test_freeze(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 120, true);

	(void)state;
	key(f, ' ');
	uint64_t seq = f->ui->view->seq;
	step(f);
	step(f);
	assert_int_equal(f->ui->view->seq, seq);
	SEES(f, "frozen +2");
	key(f, ' ');
	assert_int_equal(f->ui->view->seq, seq + 2);
	SEES_NOT(f, "frozen");
	key(f, 'X');
	assert_int_equal(f->pauses, 1);
	key(f, 'S');
	assert_int_equal(f->saves, 1);
	fixture_destroy(f);
}

static void test_find_filter(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 100, true);

	(void)state;
	keys(f, "/PNG");
	/* capitals count */
	SEES(f, "not found");
	key(f, UKEY_ESC);
	keys(f, "/png");
	key(f, UKEY_ENTER);
	assert_string_equal(selected(f)->function, "png_create_row");
	/* the next key has the status row show the selection again; the search goes on */
	SEES(f, "/png: ");
	key(f, 'j');
	SEES_NOT(f, "/png: ");
	/* with the whole path of its file, which no row has */
	SEES(f, "  src/");
	key(f, 'n');
	SEES(f, "/png: ");
	key(f, '2');
	key(f, 'n');
	SEES(f, "frame 1 of 2");
	key(f, 'n');
	SEES(f, "frame 2 of 2");
	key(f, '3');
	keys(f, "n");
	assert_non_null(strstr(selected(f)->function, "png"));
	key(f, UKEY_ESC);
	key(f, '1');
	keys(f, "\\libpng");
	key(f, UKEY_ENTER);
	SEES(f, "filter: libpng");
	SEES(f, "png_create_row");
	SEES_NOT(f, "config_read");
	keys(f, "\\");
	key(f, KEY_CTRL_('u'));
	keys(f, "(");
	key(f, UKEY_ENTER);
	/* a bad one is refused, the old one stays */
	assert_string_equal(f->ui->filter, "libpng");
	key(f, UKEY_DELETE);
	SEES(f, "config_read");
	fixture_destroy(f);
}

static void test_honesty(void **state)
{
	struct fakeheap_config config = { .rate = 65536, .attached = true, .dropped = 1234 };
	struct fixture *f = fixture_create(config, 40, 120, true);

	(void)state;
	SEES(f, "since attach");
	SEES(f, "1:64K");
	SEES(f, "Live ≈");
	SEES(f, "±");
	SEES(f, "1.2k (! log)");
	SEES(f, "98.7%");
	SEES(f, "1 not hooked");
	SEES(f, "overhead 1.8%");
	fixture_destroy(f);
	f = fixture_create((struct fakeheap_config){ .rate = 1, .auto_rate = true }, 40, 120, true);
	SEES(f, "exact (auto)");
	/* in a storm it sampled: what was seen then stays an estimate */
	f->view->info.rate = 1;
	f->view->totals.s.alloc_var = 1;
	ui_draw(f->ui);
	SEES(f, "every call");
	SEES_NOT(f, "exact");
	SEES(f, "Live ≈");
	fixture_destroy(f);
	f = fixture_create((struct fakeheap_config){ .rate = 1 }, 40, 120, true);
	SEES(f, "exact");
	SEES_NOT(f, "(auto)");
	SEES_NOT(f, "±");
	SEES_NOT(f, "≈");
	fakeheap_end(f->heap, 7);
	step(f);
	SEES(f, "exited rc=7");
	key(f, 'q');
	/* nothing runs any more: no question */
	assert_true(f->ui->leaving);
	fixture_destroy(f);
}

static void test_sizes(void **state)
{
	static const int sizes[][2] = {
		{ 1, 1 }, { 1, 80 }, { 80, 1 }, { 2, 2 }, { 3, 19 }, { 4, 20 }, { 5, 5 }, { 7, 30 }, { 10, 40 },
		{ 24, 80 }, { 40, 120 }, { 60, 200 }, { 200, 400 },
	};

	(void)state;
	for (int hostile = 0; hostile < 2; hostile++)
		for (int unicode = 0; unicode < 2; unicode++) {
			struct fakeheap_config config = { .rate = hostile ? 4096 : 1, .hostile = hostile };
			struct fixture *f = fixture_create(config, 24, 80, unicode);
			for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
				ui_resize(f->ui, sizes[i][0], sizes[i][1]);
				keys(f, "1jv2jE3jj");
				key(f, UKEY_ENTER);
				keys(f, "0?j");
				key(f, UKEY_ESC);
				keys(f, "!");
				key(f, UKEY_ESC);
				keys(f, "x");
				key(f, UKEY_ESC);
				keys(f, "sq/e");
				key(f, UKEY_ESC);
				keys(f, "qc");
				/* something is always said */
				char *text = canvas_dump(f->ui->canvas);
				assert_true(strspn(text, "\n ") < strlen(text));
				free(text);
			}
			fixture_destroy(f);
		}
}

static void test_random_keys(void **state)
{
	unsigned seed = 3;

	(void)state;
	for (int round = 0; round < 4; round++) {
		struct fakeheap_config config = { .rate = round & 1 ? 4096 : 1, .hostile = round & 2 };
		struct fixture *f = fixture_create(config, 24, 80, true);
		for (int i = 0; i < 3000; i++) {
			struct key_event ev = { 0 };
			switch (rand_r(&seed) % 8) {
			case 0:
				ev.key = UKEY_BASE + 1 + rand_r(&seed) % (UKEY_F12 - UKEY_BASE);
				break;
			case 1:
				ev = (struct key_event){ UKEY_MOUSE, MOUSE_LEFT + rand_r(&seed) % 5,
					rand_r(&seed) % 30 - 2, rand_r(&seed) % 90 - 2 };
				break;
			default:
				ev.key = rand_r(&seed) % 127 + 1;
			}
			/* :save-display and the like would write files */
			if (ev.key == ':')
				continue;
			ui_key(f->ui, &ev);
			f->ui->leaving = f->ui->suspend = false;
			if (i % 50 == 0)
				ui_resize(f->ui, rand_r(&seed) % 50 + 1, rand_r(&seed) % 150 + 1);
			if (i % 20 == 0)
				step(f);
			else
				ui_draw(f->ui);
		}
		fixture_destroy(f);
	}
}

static void test_mouse(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 80, true);
	struct key_event ev = { .key = UKEY_MOUSE, .button = MOUSE_LEFT };

	(void)state;
	ev.y = f->ui->layout.tabs.y;
	ev.x = f->ui->layout.tab_x[UI_TREE][0] + 1;
	ui_key(f->ui, &ev);
	assert_int_equal(f->ui->screen, UI_TREE);
	ev.x = f->ui->layout.tab_x[UI_SITES][0] + 1;
	ui_key(f->ui, &ev);
	ui_draw(f->ui);
	ev.y = f->ui->layout.screen.y + 3;
	ev.x = 40;
	ui_key(f->ui, &ev);
	ui_draw(f->ui);
	assert_true(canvas_at(f->ui->canvas, ev.y, 0)->style & STYLE_SELECTED);
	ui_key(f->ui, &ev);
	/* the second click opens */
	assert_true(detail_is_open(f->ui));
	ev.button = MOUSE_RIGHT;
	ui_key(f->ui, &ev);
	assert_false(detail_is_open(f->ui));
	fixture_destroy(f);
}

/* Functions that look the same without their arguments are told apart; whole names need no mark. */
static void test_alike(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1, .alike = true }, 30, 120, true);

	(void)state;
	SEES(f, "decode<…>()  config.c");
	SEES(f, "decode<…>()#2  filter.c");
	SEES_NOT(f, "#3");
	/* the number belongs to the function, whatever order the rows are in */
	key(f, 'R');
	SEES(f, "decode<…>()#2  filter.c");
	/* in narrow rows the name is cut, its mark isn't */
	ui_resize(f->ui, 30, 20);
	ui_draw(f->ui);
	SEES(f, "…#2");
	key(f, 'w');
	SEES_NOT(f, "#2");
	fixture_destroy(f);
}

static struct view *source_no_view(void *ctx)
{
	(void)ctx;
	return NULL;
}

/* A program that was launched is never let go without a word, even before there is anything to show. */
/* m, D, M: what is shown is what report/ says against the view of then, whatever else is pressed. */
static void test_marks(void **state)
{
	(void)state;
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 40, 120, true);
	size_t n;

	keys(f, "D");
	SEES(f, "m sets a mark");
	assert_int_equal(f->ui->value, REPORT_LIVE_BYTES);
	for (int v = 0; v < REPORT_VALUES; v++)
		if (ui_value_known(f->ui, v))
			keys(f, "v");
	assert_int_equal(f->ui->value, REPORT_LIVE_BYTES);	/* once around, delta and what isn't known left out */
	struct view *mark = view_ref(f->view);
	keys(f, "m");
	SEES(f, "mark set");
	SEES(f, "Δ LIVE");
	SEES(f, "Δ since");
	for (int i = 0; i < 6; i++)
		step(f);
	assert_ptr_equal(report_base(f->ui->report), mark);
	keys(f, "D");
	assert_int_equal(f->ui->value, REPORT_DELTA_BYTES);
	const struct report_site *rows = report_sites(f->ui->report, REPORT_DELTA_BYTES, false, &n);
	int64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += rows[i].delta;
	assert_true(sum == (int64_t)(f->view->totals.s.live_bytes - mark->totals.s.live_bytes));
	assert_true(sum != 0);
	keys(f, "2i3i1");
	/* the tenth pushes out the first */
	for (int i = 0; i < 9; i++) {
		step(f);
		keys(f, "m");
	}
	assert_int_equal(f->ui->nmarks, UI_MARKS);
	assert_ptr_not_equal(f->ui->marks[0], mark);
	keys(f, "m");	/* the same instant again */
	assert_int_equal(f->ui->nmarks, UI_MARKS);
	keys(f, "M");
	SEES(f, "Compare with");
	keys(f, "1");
	assert_null(f->ui->modal);
	assert_int_equal(f->ui->base, 0);
	assert_ptr_equal(report_base(f->ui->report), f->ui->marks[0]);
	/* the last row is "nothing": that is one up from the newest */
	keys(f, "mM");
	key(f, UKEY_UP);
	key(f, UKEY_ENTER);
	assert_int_equal(f->ui->base, UI_BASE_NONE);
	assert_null(report_base(f->ui->report));
	assert_int_equal(f->ui->value, REPORT_LIVE_BYTES);
	SEES_NOT(f, "Δ");
	view_unref(mark);
	fixture_destroy(f);
}

static void test_quit_asks_before_the_first_view(void **state)
{
	struct fixture *f = fixture_create((struct fakeheap_config){ .rate = 1 }, 24, 80, true);
	static const struct ui_options options = { .delay = 1, .title = "./sceneview" };

	(void)state;
	f->source.view = source_no_view;
	ui_destroy(f->ui);
	f->ui = ui_create(&f->source, fakeheap_names(f->heap), NULL, &options, 24, 80, true);
	ui_poll(f->ui);
	ui_draw(f->ui);
	key(f, 'q');
	assert_false(f->ui->leaving);
	assert_non_null(f->ui->modal);
	key(f, 'k');
	assert_true(f->ui->leaving);
	assert_int_equal(f->ui->leave, UI_LEAVE_KILL);
	fixture_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_screens), cmocka_unit_test(test_cursor_follows), cmocka_unit_test(test_rest),
		cmocka_unit_test(test_freeze), cmocka_unit_test(test_find_filter), cmocka_unit_test(test_honesty),
		cmocka_unit_test(test_sizes), cmocka_unit_test(test_random_keys), cmocka_unit_test(test_mouse),
		cmocka_unit_test(test_alike), cmocka_unit_test(test_marks),
		cmocka_unit_test(test_quit_asks_before_the_first_view),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
