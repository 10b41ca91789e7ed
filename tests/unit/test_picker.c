/* The process picker without a terminal: rows in, keys in, canvas and choice out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>

#include "base/mem.h"
#include "target/proclist.h"
#include "ui/picker.h"

struct fixture {
	struct picker picker;
	struct canvas *canvas;
};

/* Largest first, as proclist_read has them. */
static void take(struct picker *p)
{
	static const struct proc_row made[] = {
		{ .pid = 310, .rss = 900u << 20, .command = (char *)"postgres: writer", .user = "db" },
		{ .pid = 42, .rss = 500u << 20, .command = (char *)"./sceneview --hd", .user = "ann" },
		{ .pid = 77, .rss = 20u << 20, .command = (char *)"./scene-cache", .user = "ann",
		  .refusal = (char *)"process 77 is already traced by gdb" },
	};
	size_t n = ARRAY_SIZE(made);
	struct proc_row *rows = xcalloc(n, sizeof(*rows));

	for (size_t i = 0; i < n; i++) {
		rows[i] = made[i];
		rows[i].command = xstrdup(made[i].command);
		rows[i].refusal = made[i].refusal ? xstrdup(made[i].refusal) : NULL;
	}
	picker_take(p, rows, n);
}

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->canvas = canvas_create(24, 80, true);
	picker_init(&f->picker, NULL);
	take(&f->picker);
	picker_draw(&f->picker, f->canvas);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	picker_deinit(&f->picker);
	canvas_destroy(f->canvas);
	free(f);
	return 0;
}

static enum picker_result key(struct fixture *f, uint32_t k)
{
	enum picker_result result = picker_key(&f->picker, &(struct key_event){ .key = k });

	picker_draw(&f->picker, f->canvas);
	return result;
}

static void type(struct fixture *f, const char *s)
{
	for (; *s; s++)
		assert_int_equal(key(f, (unsigned char)*s), PICKER_GOES_ON);
}

#define SEES(f, text) assert_true(canvas_contains((f)->canvas, text))
#define SEES_NOT(f, text) assert_false(canvas_contains((f)->canvas, text))

static void test_filter_and_choose(void **state)
{
	struct fixture *f = *state;

	SEES(f, "postgres");
	/* letters filter, also those that are keys elsewhere */
	type(f, "scene");
	SEES_NOT(f, "postgres");
	SEES(f, "./sceneview");
	/* asked first (test_pickask) */
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	assert_int_equal(key(f, UKEY_ENTER), PICKER_CHOSEN);
	assert_int_equal(f->picker.cursor, 42);
	assert_int_equal(key(f, UKEY_ESC), PICKER_GOES_ON);
	/* one that can't be attached says why and isn't chosen */
	assert_int_equal(key(f, UKEY_DOWN), PICKER_GOES_ON);
	SEES(f, "already traced by gdb");
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	/* a fresh list leaves the cursor on its process */
	take(&f->picker);
	assert_int_equal(f->picker.cursor, 77);
	type(f, "x");
	SEES(f, "no process matches");
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	assert_int_equal(key(f, UKEY_BACKSPACE), PICKER_GOES_ON);
	SEES(f, "./scene-cache");
}

/* A click on a row: does it open the question? Which goes again then. */
static bool clicked(struct fixture *f, int y)
{
	const struct key_event left = { .key = UKEY_MOUSE, .button = MOUSE_LEFT, .y = y, .x = 5 };

	assert_int_equal(picker_key(&f->picker, &left), PICKER_GOES_ON);
	bool asks = f->picker.ask.pid;
	if (asks)
		key(f, UKEY_ESC);
	return asks;
}

static void test_second_click_opens(void **state)
{
	struct fixture *f = *state;

	type(f, "scene");
	/* the cursor is there already: a click is still only the first */
	assert_int_equal(f->picker.cursor, 42);
	assert_false(clicked(f, 2));
	assert_true(clicked(f, 2));
	assert_int_equal(f->picker.cursor, 42);
	/* not one on another row, nor after a key, nor of what can't be attached to */
	assert_false(clicked(f, 3));
	assert_false(clicked(f, 3));
	assert_false(clicked(f, 2));
	assert_int_equal(key(f, UKEY_UP), PICKER_GOES_ON);
	assert_false(clicked(f, 2));
	/* rows begin higher on a low terminal */
	canvas_resize(f->canvas, 5, 80);
	picker_draw(&f->picker, f->canvas);
	assert_true(clicked(f, 1));
}

static void test_esc_clears_then_leaves(void **state)
{
	struct fixture *f = *state;

	SEES(f, "Esc Quit");
	type(f, "scene");
	SEES(f, "Esc Clear filter");
	assert_int_equal(key(f, UKEY_ESC), PICKER_GOES_ON);
	SEES(f, "postgres");
	SEES(f, "Esc Quit");
	assert_int_equal(key(f, UKEY_ESC), PICKER_LEFT);
	/* who wants out at once has other keys */
	type(f, "scene");
	assert_int_equal(key(f, UKEY_F10), PICKER_LEFT);
	assert_int_equal(key(f, KEY_CTRL_('c')), PICKER_INTERRUPTED);
}

/* At 40 columns nothing that says what to do is cut, and the cursor's row isn't covered by why it can't be attached. */
static void test_narrow(void **state)
{
	struct fixture *f = *state;

	canvas_resize(f->canvas, 10, 40);
	picker_draw(&f->picker, f->canvas);
	SEES(f, "Esc Quit");
	SEES(f, "says what it would do");
	for (int i = 0; i < 20; i++)
		key(f, UKEY_DOWN);
	picker_draw(&f->picker, f->canvas);
	SEES(f, "Enter Attach");
	struct proc_row *row = xcalloc(1, sizeof(*row));
	*row = (struct proc_row){ .pid = 7, .command = xstrdup("seven"),
		.refusal = xstrdup("ptrace_scope is 1: only its own children may be traced") };
	picker_take(&f->picker, row, 1);
	picker_draw(&f->picker, f->canvas);
	SEES(f, "seven");
	SEES(f, "may be traced");
	type(f, "v");
	picker_draw(&f->picker, f->canvas);
	SEES(f, "Esc All again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_filter_and_choose, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_click_opens, setup, teardown),
		cmocka_unit_test_setup_teardown(test_narrow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_esc_clears_then_leaves, setup, teardown),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
