/*
 * Switching page faults and looks at memory on and off from the screen: what is asked of the source, and what is said when
 * it can't be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "tests/lib/fakescreen.h"
#include "ui/watching.h"

#define WHY "page faults can't be sampled: a reason"

static int faults_wanted, res_wanted;	/* 1, 0; -1: nobody has asked */

static void want_faults(void *ctx, bool want)
{
	(void)ctx;
	faults_wanted = want;
}

static void want_res(void *ctx, bool want)
{
	(void)ctx;
	res_wanted = want;
}

static void open_screen(struct fakescreen *f, bool can)
{
	fakescreen_open(f, (struct fakeheap_config){ .rate = 1 }, 3, 24, 80, true);
	f->source.want_faults = can ? want_faults : NULL;
	f->source.want_res = can ? want_res : NULL;
	faults_wanted = res_wanted = -1;
}

/* The next view, in which that became of it. */
static void next_view(struct fakescreen *f, bool faults, const char *why)
{
	view_unref(f->view);
	fakeheap_step(f->heap);
	f->view = fakeheap_view(f->heap);
	f->view->info.faults = faults;
	f->view->info.faults_why = why ? xstrdup(why) : NULL;
	ui_poll(f->ui);
}

static void test_value_begins_it(void **state)
{
	(void)state;
	struct fakescreen f;

	open_screen(&f, true);
	ui_set_value(f.ui, REPORT_FAULT_BYTES, false);
	assert_int_equal(faults_wanted, 1);
	assert_int_equal(f.ui->value, REPORT_FAULT_BYTES);
	next_view(&f, true, NULL);
	assert_int_equal(f.ui->value, REPORT_FAULT_BYTES);
	assert_non_null(strstr(f.ui->message, "sampled from now on"));
	/* once it runs it isn't asked for again */
	faults_wanted = -1;
	ui_set_value(f.ui, REPORT_LIVE_BYTES, false);
	ui_set_value(f.ui, REPORT_FAULT_BYTES, false);
	assert_int_equal(faults_wanted, -1);
	fakescreen_close(&f);
}

static void test_refused(void **state)
{
	(void)state;
	struct fakescreen f;

	open_screen(&f, true);
	ui_set_value(f.ui, REPORT_FAULT_BYTES, false);
	/* one that was on its way says nothing of it yet */
	next_view(&f, false, NULL);
	assert_int_equal(f.ui->value, REPORT_FAULT_BYTES);
	next_view(&f, false, WHY);
	assert_int_equal(f.ui->value, REPORT_LIVE_BYTES);
	assert_string_equal(f.ui->message, WHY);
	assert_true(f.ui->message_bad);
	/* said once */
	ui_message(f.ui, false, "something else");
	next_view(&f, false, WHY);
	assert_string_equal(f.ui->message, "something else");
	fakescreen_close(&f);
}

static void test_commands(void **state)
{
	(void)state;
	struct fakescreen f;

	open_screen(&f, true);
	assert_true(command_run(f.ui, "faults on"));
	assert_int_equal(faults_wanted, 1);
	assert_true(command_run(f.ui, "faults off"));
	assert_int_equal(faults_wanted, 0);
	assert_true(command_run(f.ui, "res off"));
	assert_int_equal(res_wanted, 0);
	assert_true(command_run(f.ui, "res on"));
	assert_int_equal(res_wanted, 1);
	assert_false(command_run(f.ui, "res maybe"));
	assert_string_equal(f.ui->message, "res is on or off");
	fakescreen_close(&f);
}

/* A snapshot has no program behind it; one that has ended can't be looked at. */
static void test_nothing_to_watch(void **state)
{
	(void)state;
	struct fakescreen f;

	open_screen(&f, false);
	ui_set_value(f.ui, REPORT_FAULT_BYTES, false);
	assert_int_equal(f.ui->value, REPORT_LIVE_BYTES);
	assert_non_null(strstr(f.ui->message, "nothing of page faults"));
	assert_false(command_run(f.ui, "res off"));
	fakescreen_close(&f);
	open_screen(&f, true);
	fakeheap_end(f.heap, 0);
	next_view(&f, false, NULL);
	assert_false(watching_set_faults(f.ui, true));
	assert_false(watching_set_res(f.ui, true));
	assert_int_equal(faults_wanted, -1);
	fakescreen_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_begins_it), cmocka_unit_test(test_refused), cmocka_unit_test(test_commands),
		cmocka_unit_test(test_nothing_to_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
