/*
 * X switches collection off and on: the first one also where it began switched off (--paused), before there is any view
 * that says so; after that what the view says counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/lib/fakescreen.h"

static int asked;	/* -1: nothing; 0: on, 1: off */

static void note_pause(void *ctx, bool paused)
{
	(void)ctx;
	asked = paused;
}

static struct view *no_view(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void press_first(bool paused)
{
	const struct ui_options options = { .delay = 1, .paused = paused };
	const struct ui_source source = { .view = no_view, .pause = note_pause, .live = true };
	struct ui *ui = ui_create(&source, NULL, NULL, &options, 24, 80, true);

	asked = -1;
	ui->now = 1000;
	ui_poll(ui);
	ui_draw(ui);
	ui_action(ui, ACT_PAUSE);
	assert_int_equal(asked, !paused);
	assert_non_null(strstr(ui->message, paused ? "collection on" : "collection off"));
	ui_action(ui, ACT_PAUSE);
	assert_int_equal(asked, paused);
	ui_destroy(ui);
}

static void test_before_a_view(void **state)
{
	(void)state;
	press_first(true);
	press_first(false);
}

/* --delay-start has gone by: collection is on without a key. */
static void test_resumed(void **state)
{
	struct fakescreen f;

	(void)state;
	fakescreen_open(&f, (struct fakeheap_config){ .rate = 1 }, 3, 24, 80, true);
	f.source.pause = note_pause;
	f.ui->paused = true;
	fakeheap_step(f.heap);
	view_unref(f.view);
	f.view = fakeheap_view(f.heap);
	ui_poll(f.ui);
	ui_action(f.ui, ACT_PAUSE);
	assert_int_equal(asked, 1);
	fakescreen_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_a_view),
		cmocka_unit_test(test_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
