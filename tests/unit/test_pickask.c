/*
 * The question before a process is attached to: Enter asks, Enter again attaches, Esc goes back; what is told of it may come
 * at any time, or when nobody wants to know any more; a process that ends meanwhile; in any size the keys are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "target/proclist.h"
#include "ui/pickask.h"

#define TELLS "Hooks 14 allocator functions of libc.so.6.\nIts 31 threads stand still for that twice, about 3 ms together."

struct fixture {
	struct picker picker;
	struct canvas *canvas;
};

/* The first n of them. */
static void take(struct picker *p, size_t n)
{
	static const struct proc_row made[] = {
		{ .pid = 310, .rss = 900u << 20, .command = (char *)"/usr/lib/postgres/postgres -D x", .user = "db" },
		{ .pid = 42, .rss = 500u << 20, .command = (char *)"./sceneview --hd", .user = "ann" },
	};
	struct proc_row *rows = xcalloc(ARRAY_SIZE(made), sizeof(*rows));

	for (size_t i = 0; i < n; i++) {
		rows[i] = made[i];
		rows[i].command = xstrdup(made[i].command);
	}
	picker_take(p, rows, n);
}

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->canvas = canvas_create(24, 80, true);
	picker_init(&f->picker, NULL);
	take(&f->picker, 2);
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

static void tell(struct fixture *f, pid_t pid, const char *text)
{
	picker_tell(&f->picker, pid, xstrdup(text));
	picker_draw(&f->picker, f->canvas);
}

#define SEES(f, text) assert_true(canvas_contains((f)->canvas, text))
#define SEES_NOT(f, text) assert_false(canvas_contains((f)->canvas, text))

static void test_asks(void **state)
{
	struct fixture *f = *state;

	SEES_NOT(f, "Attach to");
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	SEES(f, "Attach to 310 (postgres)?");
	SEES(f, "Looking at its allocators");
	SEES(f, "Enter attaches  Esc goes back");
	/* of another one, asked about before */
	tell(f, 42, "wrong");
	SEES_NOT(f, "wrong");
	tell(f, 310, TELLS);
	SEES(f, "Hooks 14 allocator functions of libc.so.6");
	SEES(f, "Its 31 threads stand still");
	SEES_NOT(f, "Looking at");
	/* letters don't filter what is behind, arrows don't move there */
	assert_int_equal(key(f, 'x'), PICKER_GOES_ON);
	assert_int_equal(key(f, UKEY_DOWN), PICKER_GOES_ON);
	assert_string_equal(f->picker.filter, "");
	SEES(f, "Attach to 310");
	/* a fresh list, in which it still is */
	take(&f->picker, 2);
	picker_draw(&f->picker, f->canvas);
	SEES(f, "Its 31 threads stand still");
	assert_int_equal(key(f, UKEY_ENTER), PICKER_CHOSEN);
	assert_int_equal(f->picker.cursor, 310);
}

static void test_goes_back(void **state)
{
	static const uint32_t keys[] = { UKEY_ESC, UKEY_BACKSPACE, 'q', 'n' };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
		SEES(f, "Attach to");
		assert_int_equal(key(f, keys[i]), PICKER_GOES_ON);
		SEES_NOT(f, "Attach to");
		SEES(f, "postgres");
	}
	/* another one is looked at anew */
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	tell(f, 310, TELLS);
	assert_int_equal(key(f, UKEY_ESC), PICKER_GOES_ON);
	assert_int_equal(key(f, UKEY_DOWN), PICKER_GOES_ON);
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	SEES(f, "Attach to 42 (sceneview)?");
	SEES(f, "Looking at its allocators");
	assert_int_equal(key(f, KEY_CTRL_('c')), PICKER_INTERRUPTED);
	assert_int_equal(key(f, UKEY_F10), PICKER_LEFT);
}

static void test_ends_meanwhile(void **state)
{
	struct fixture *f = *state;

	key(f, UKEY_DOWN);
	key(f, UKEY_ENTER);
	SEES(f, "Attach to 42");
	take(&f->picker, 1);
	picker_draw(&f->picker, f->canvas);
	SEES_NOT(f, "Attach to");
	SEES(f, "has ended");
	/* Enter is for the row that is there now, and asks again */
	assert_int_equal(key(f, UKEY_ENTER), PICKER_GOES_ON);
	SEES(f, "Attach to 310");
}

static void click(struct fixture *f, const char *text, enum mouse_button button, enum picker_result want)
{
	CLEANUP_FREE char *all = canvas_dump(f->canvas);
	int y = 0;
	const char *line = all, *at = strstr(all, text);

	assert_non_null(at);
	for (const char *s = all; s < at; s++)
		if (*s == '\n') {
			y++;
			line = s + 1;
		}
	/* the frame has three bytes a column */
	CLEANUP_FREE char *before = xstrndup(line, (size_t)(at - line));
	const struct key_event ev = { .key = UKEY_MOUSE, .button = button, .y = y, .x = canvas_width(f->canvas, before) };
	assert_int_equal(picker_key(&f->picker, &ev), want);
	picker_draw(&f->picker, f->canvas);
}

static void test_mouse(void **state)
{
	struct fixture *f = *state;

	key(f, UKEY_ENTER);
	click(f, "Looking", MOUSE_LEFT, PICKER_GOES_ON);
	SEES(f, "Attach to");
	click(f, "Esc goes", MOUSE_LEFT, PICKER_GOES_ON);
	SEES_NOT(f, "Attach to");
	key(f, UKEY_ENTER);
	click(f, "Looking", MOUSE_RIGHT, PICKER_GOES_ON);
	SEES_NOT(f, "Attach to");
	key(f, UKEY_ENTER);
	click(f, "Enter attaches", MOUSE_LEFT, PICKER_CHOSEN);
}

/* However small, what the keys do is told; hostile texts don't break out of the box. */
static void test_sizes(void **state)
{
	struct fixture *f = *state;

	key(f, UKEY_ENTER);
	CLEANUP_FREE char *text = xmalloc(20001);
	memset(text, 'x', 20000);
	text[20000] = '\0';
	for (size_t i = 0; i < 20000; i += 1 + i / 7)
		text[i] = i % 3 ? ' ' : '\n';
	tell(f, 310, text);
	for (int rows = 1; rows < 30; rows++)
		for (int cols = 1; cols < 100; cols += 3) {
			canvas_resize(f->canvas, rows, cols);
			picker_draw(&f->picker, f->canvas);
			if (cols >= 34)
				SEES(f, "Enter attaches  Esc goes back");
		}
	tell(f, 310, "");
	SEES(f, "Enter attaches");
}

static char *foresee(void *ctx, pid_t pid)
{
	(void)ctx;
	return xasprintf("of process %d", (int)pid);
}

/* By a worker; what was asked for and given up doesn't turn up, nor does anything after the list is gone. */
static void test_worker(void **state)
{
	struct fixture *f = *state;
	struct worker *w = worker_create("test");

	picker_look(&f->picker, w, foresee, NULL);
	assert_false(worker_busy(w));
	key(f, UKEY_ENTER);
	picker_look(&f->picker, w, NULL, NULL);
	assert_false(worker_busy(w));
	picker_look(&f->picker, w, foresee, NULL);
	picker_look(&f->picker, w, foresee, NULL);
	key(f, UKEY_ESC);
	key(f, UKEY_DOWN);
	key(f, UKEY_ENTER);
	picker_look(&f->picker, w, foresee, NULL);
	while (worker_busy(w))
		worker_poll(w);
	picker_draw(&f->picker, f->canvas);
	SEES(f, "of process 42");
	SEES_NOT(f, "of process 310");
	picker_look(&f->picker, w, foresee, NULL);
	assert_false(worker_busy(w));
	key(f, UKEY_ESC);
	key(f, UKEY_ENTER);
	picker_look(&f->picker, w, foresee, NULL);
	picker_deinit(&f->picker);
	while (worker_busy(w))
		worker_poll(w);
	worker_destroy(w);
	picker_init(&f->picker, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_goes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mouse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_worker, setup, teardown),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("pickask", tests, NULL, NULL);
}
