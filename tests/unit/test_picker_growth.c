/* The picker's growth: of RSS since a process was first seen, by pid and start; and long command lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/proclist.h"
#include "ui/picker.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

struct made {
	int pid;
	uint64_t start, rss;
	const char *command;
};

static void take(struct picker *p, const struct made *made, size_t n)
{
	struct proc_row *rows = xcalloc(n, sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		rows[i] = (struct proc_row){ .pid = made[i].pid, .start = made[i].start, .rss = made[i].rss,
					     .user = "ann", .command = xstrdup(made[i].command) };
	picker_take(p, rows, n);
}

/* The row of the screen that has this text; the caller frees. */
static char *row_with(struct picker *p, struct canvas *c, const char *text)
{
	picker_draw(p, c);
	CLEANUP_FREE char *all = canvas_dump(c);
	char *at = strstr(all, text);
	assert_non_null(at);
	char *begin = at;
	while (begin > all && begin[-1] != '\n')
		begin--;
	return xstrndup(begin, strcspn(begin, "\n"));
}

static void expect(struct picker *p, struct canvas *c, const char *name, const char *text, bool there)
{
	CLEANUP_FREE char *row = row_with(p, c, name);

	if ((strstr(row, text) != NULL) != there)
		fail_msg("'%s' %s have '%s'", row, there ? "should" : "shouldn't", text);
}

static void test_growth(void **state)
{
	(void)state;
	struct canvas *c = canvas_create(24, 80, true);
	struct picker p;

	picker_init(&p, NULL);
	take(&p, (struct made[]){ { 310, 5, 900 * MIB, "writer" }, { 42, 9, 500 * MIB, "view" }, { 77, 1, 20 * MIB, "cache" } }, 3);
	expect(&p, c, "PID", "GROWTH", true);
	expect(&p, c, "writer", "+", false);
	/* another order, one that grew, one that shrank, a pid that now is another process's, and a new one */
	take(&p, (struct made[]){ { 42, 9, 1000 * MIB, "view" }, { 310, 5, 900 * MIB - 512 * KIB, "writer" },
				  { 77, 2, 30 * MIB, "cache" }, { 7, 8, 10 * MIB, "fresh" } }, 4);
	expect(&p, c, "view", "+500.0M", true);
	expect(&p, c, "writer", "-512.0K", true);
	expect(&p, c, "cache", "+", false);
	expect(&p, c, "fresh", "+", false);
	/* it adds up, and isn't forgotten by a filter */
	picker_key(&p, &(struct key_event){ .key = 'v' });
	take(&p, (struct made[]){ { 42, 9, 1001 * MIB, "view" }, { 7, 8, 11 * MIB, "fresh v" } }, 2);
	expect(&p, c, "view", "+501.0M", true);
	expect(&p, c, "fresh", "+1.0M", true);
	/* one that was gone for a time begins anew */
	take(&p, (struct made[]){ { 7, 8, 11 * MIB, "fresh v" } }, 1);
	take(&p, (struct made[]){ { 42, 9, 2000 * MIB, "view" }, { 7, 8, 11 * MIB, "fresh v" } }, 2);
	expect(&p, c, "view", "+", false);
	canvas_resize(c, 24, 60);
	expect(&p, c, "PID", "GROWTH", false);
	expect(&p, c, "fresh", "+1.0M", false);
	picker_deinit(&p);
	canvas_destroy(c);
}

static void test_long_commands(void **state)
{
	(void)state;
	static const struct made made[] = {
		{ 1, 1, 9 * MIB, "/usr/lib/some/folder/that/is/deep/server --port 80" }, { 2, 1, 8 * MIB, "/bin/sh -c x" },
		{ 3, 1, 7 * MIB, "nginx: worker process in /usr/share/nginx/html and more" }, { 4, 1, 6 * MIB, "/" },
	};
	struct canvas *c = canvas_create(10, 40, true);
	struct picker p;

	picker_init(&p, NULL);
	take(&p, made, ARRAY_SIZE(made));
	expect(&p, c, "server", " server --port 80", true);
	expect(&p, c, "bin/sh", " /bin/sh -c x", true);
	expect(&p, c, "nginx", " nginx: worker", true);
	canvas_resize(c, 10, 120);
	expect(&p, c, "server", " /usr/lib/some", true);
	for (int cols = 1; cols < 90; cols++) {
		canvas_resize(c, 10, cols);
		picker_draw(&p, c);
	}
	picker_deinit(&p);
	canvas_destroy(c);
}

static void test_said(void **state)
{
	(void)state;
	struct canvas *c = canvas_create(10, 40, true);
	struct picker p;

	picker_init(&p, NULL);
	picker_say(&p, "process 4242 has ended before it could be attached to");
	take(&p, (const struct made[]){ { 1, 1, 9 * MIB, "server" } }, 1);
	expect(&p, c, "process 4242", "has ended", true);
	expect(&p, c, "server", "9.0M", true);
	expect(&p, c, "attached to", "be attached", true);
	/* also where there is nobody to choose */
	take(&p, NULL, 0);
	expect(&p, c, "process 4242", "has ended", true);
	picker_key(&p, &(struct key_event){ .key = 's' });
	picker_draw(&p, c);
	assert_false(canvas_contains(c, "4242"));
	picker_deinit(&p);
	canvas_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_long_commands),
		cmocka_unit_test(test_said),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
