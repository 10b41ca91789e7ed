/* The Output pane, with a relay that is a buffer here. */
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
#include "target/relay.h"
#include "ui/canvas.h"
#include "ui/key.h"
#include "ui/output.h"

/* ---- the relay's functions that the pane uses ---- */

struct relay {
	char *text;
	size_t n, cap, at;
	bool ended;		/* -1 behind the text */
	bool none;
	char typed[256];
	size_t n_typed;
	int rows, cols;
};

bool relay_has_terminal(const struct relay *r) { return !r->none; }
int relay_fd(const struct relay *r) { (void)r; return -1; }
long relay_read(struct relay *r, void *buf, size_t len)
{
	size_t n = r->n - r->at < len ? r->n - r->at : len;

	if (!n)
		return r->ended ? -1 : 0;
	memcpy(buf, r->text + r->at, n);
	r->at += n;
	return (long)n;
}
void relay_type(struct relay *r, const void *buf, size_t len)
{
	assert_true(len <= sizeof(r->typed) - r->n_typed);
	memcpy(r->typed + r->n_typed, buf, len);
	r->n_typed += len;
}
void relay_resize(struct relay *r, int rows, int cols)
{
	r->rows = rows;
	r->cols = cols;
}

static void program_writes(struct relay *r, const char *text)
{
	size_t len = strlen(text);

	if (r->n + len > r->cap) {
		r->cap = 2 * (r->n + len);
		r->text = xreallocarray(r->text, r->cap, 1);
	}
	memcpy(r->text + r->n, text, len);
	r->n += len;
}

static void writes_lines(struct relay *r, int from, int to)
{
	char line[32];

	for (int i = from; i < to; i++) {
		snprintf(line, sizeof(line), "line %d\r\n", i);
		program_writes(r, line);
	}
}

static char *shown(struct output *o, int rows, int cols)
{
	struct canvas *c = canvas_create(rows, cols, true);

	while (output_pump(o))
		;
	output_draw(o, c, 0, 0, rows, cols);
	char *text = canvas_dump(c);
	canvas_destroy(c);
	return text;
}

static void shows(struct output *o, int rows, int cols, const char *wanted)
{
	char *text = shown(o, rows, cols);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_follow(void **state)
{
	struct relay r = { 0 };
	struct output *o = output_create(&r, 80);

	(void)state;
	assert_false(output_unseen(o));
	writes_lines(&r, 0, 2);
	assert_true(output_pump(o));
	assert_true(output_unseen(o));
	shows(o, 3, 20, "line 0\nline 1\n\n");
	assert_false(output_unseen(o));
	assert_int_equal(r.rows, 3);
	assert_int_equal(r.cols, 20);
	writes_lines(&r, 2, 100);
	shows(o, 3, 20, "line 97\nline 98\nline 99\n");
	/* what is scrolled to stays, whatever comes */
	assert_true(output_key(o, 'k'));
	shows(o, 3, 20, "line 96\nline 97\nline 98\n");
	writes_lines(&r, 100, 200);
	shows(o, 3, 20, "line 96\nline 97\nline 98\n");
	assert_true(output_key(o, 'G'));
	shows(o, 3, 20, "line 197\nline 198\nline 199\n");
	assert_true(output_key(o, 'g'));
	shows(o, 3, 20, "line 0\nline 1\nline 2\n");
	assert_true(output_key(o, UKEY_PGDN));
	shows(o, 3, 20, "line 2\nline 3\nline 4\n");
	output_scroll(o, -1000);
	writes_lines(&r, 200, 201);
	shows(o, 3, 20, "line 198\nline 199\nline 200\n");
	output_scroll(o, 1000000);
	shows(o, 3, 20, "line 0\nline 1\nline 2\n");
	assert_false(output_key(o, 'x'));
	output_destroy(o);
	free(r.text);
}

static void test_narrow(void **state)
{
	struct relay r = { 0 };
	struct output *o = output_create(&r, 20);

	(void)state;
	program_writes(&r, "abcdefghij0123456789\r\nend\r\n");
	shows(o, 3, 20, "abcdefghij0123456789\nend\n\n");
	/* a row that was wider is folded, not cut */
	shows(o, 4, 8, "abcdefgh\nij012345\n6789\nend\n");
	shows(o, 2, 8, "6789\nend\n");
	output_key(o, 'k');
	shows(o, 2, 8, "ij012345\n6789\n");
	for (int rows = 1; rows < 5; rows++) {
		for (int cols = 1; cols < 5; cols++)
			free(shown(o, rows, cols));
	}
	output_destroy(o);
	free(r.text);
}

static void test_old_lines_go(void **state)
{
	struct relay r = { 0 };
	struct output *o = output_create(&r, 80);

	(void)state;
	writes_lines(&r, 0, 10);
	shows(o, 2, 20, "line 8\nline 9\n");
	output_key(o, 'g');
	shows(o, 2, 20, "line 0\nline 1\n");
	writes_lines(&r, 10, 300000);
	char *text = shown(o, 2, 20);
	assert_null(strstr(text, "line 0\n"));
	assert_int_equal(strncmp(text, "line ", 5), 0);
	free(text);
	output_destroy(o);
	free(r.text);
}

static void types(struct relay *r, struct output *o, uint32_t key, const char *wanted)
{
	r->n_typed = 0;
	assert_true(output_key(o, key));
	assert_int_equal(r->n_typed, strlen(wanted));
	assert_memory_equal(r->typed, wanted, r->n_typed);
}

static void test_typing(void **state)
{
	struct relay r = { 0 };
	struct output *o = output_create(&r, 80);

	(void)state;
	program_writes(&r, "$ ");
	shows(o, 1, 10, "$\n");
	assert_true(output_set_typing(o, true));
	types(&r, o, 'j', "j");
	types(&r, o, UKEY_ENTER, "\r");
	types(&r, o, KEY_CTRL_('C'), "\003");
	types(&r, o, UKEY_ESC, "\033");
	types(&r, o, 0x20ac, "\u20ac");
	types(&r, o, UKEY_BACKSPACE, "\177");
	types(&r, o, UKEY_UP, "\033[A");
	types(&r, o, UKEY_F10, "\033[21~");
	program_writes(&r, "\033[?1h");
	output_pump(o);
	types(&r, o, UKEY_UP, "\033OA");
	assert_false(output_key(o, UKEY_MOUSE));
	types(&r, o, KEY_CTRL_(']'), "");
	assert_false(output_typing(o));
	/* the end of the program ends typing */
	assert_true(output_set_typing(o, true));
	r.ended = true;
	while (output_pump(o))
		;
	assert_false(output_typing(o));
	assert_false(output_set_typing(o, true));
	output_destroy(o);
	free(r.text);
}

static void last_lines(struct relay *r, size_t max, const char *wanted)
{
	struct output *o = output_create(r, 10);
	char joined[4096] = "";
	size_t n;
	char **lines;

	r->ended = true;
	lines = output_last_lines(o, max, &n);
	assert_true(n <= max);
	for (size_t i = 0; i < n; i++) {
		strcat(joined, lines[i]);
		strcat(joined, "|");
		free(lines[i]);
	}
	free(lines);
	assert_string_equal(joined, wanted);
	output_destroy(o);
	free(r->text);
	memset(r, 0, sizeof(*r));
}

static void test_last_lines(void **state)
{
	struct relay r = { 0 };

	(void)state;
	last_lines(&r, 20, "");
	writes_lines(&r, 0, 30);
	last_lines(&r, 3, "line 27|line 28|line 29|");
	program_writes(&r, "a\r\nb");
	last_lines(&r, 20, "a|b|");
	program_writes(&r, "\r\n\r\nx\r\n\r\n\r\n");
	last_lines(&r, 20, "||x|");
	/* what the terminal's width cut is one line again */
	program_writes(&r, "one\r\n0123456789abcdefghijABC\r\n");
	last_lines(&r, 1, "0123456789abcdefghijABC|");
	program_writes(&r, "\033[31mred\033]0;t\007\033[2J\u202e\x9b" "1m\r\n");
	last_lines(&r, 5, "red|\u00b7\u00b7" "1m|");
	/* megabytes without a newline: bounded */
	for (int i = 0; i < 100000; i++)
		program_writes(&r, "0123456789");
	struct output *o = output_create(&r, 10);
	size_t n;
	r.ended = true;
	char **lines = output_last_lines(o, 2, &n);
	assert_int_equal(n, 1);
	assert_true(strlen(lines[0]) <= 2 * 16 * 10);
	free(lines[0]);
	free(lines);
	output_destroy(o);
	free(r.text);
}

static void test_without(void **state)
{
	struct relay r = { .none = true };
	struct output *o = output_create(NULL, 80);

	(void)state;
	assert_false(output_pump(o));
	assert_false(output_set_typing(o, true));
	char *text = shown(o, 5, 60);
	assert_non_null(strstr(text, "No program"));
	free(text);
	assert_true(output_key(o, 'k'));
	assert_non_null(output_status(o));
	output_destroy(o);
	o = output_create(&r, 80);
	text = shown(o, 5, 60);
	assert_non_null(strstr(text, "--io"));
	free(text);
	output_destroy(o);
	output_destroy(NULL);
}

static void test_status(void **state)
{
	struct relay r = { 0 };
	struct output *o = output_create(&r, 80);

	(void)state;
	writes_lines(&r, 0, 5);
	free(shown(o, 2, 40));
	assert_non_null(strstr(output_status(o), "5 lines"));
	output_key(o, 'k');
	assert_non_null(strstr(output_status(o), "line 3 at the top"));
	program_writes(&r, "\033[5;5Hx");
	output_pump(o);
	assert_non_null(strstr(output_status(o), "--io=/dev/pts/"));
	output_set_typing(o, true);
	assert_non_null(strstr(output_status(o), "Ctrl-]"));
	output_destroy(o);
	free(r.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follow),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_old_lines_go),
		cmocka_unit_test(test_typing),
		cmocka_unit_test(test_last_lines),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_status),
	};

	if (!setlocale(LC_ALL, "C.UTF-8"))
		setlocale(LC_ALL, "en_US.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
