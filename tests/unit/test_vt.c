/* The terminal emulation of the Output pane: bytes in, rows out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ui/vt.h"
#include "ui/vt_lines.h"

static struct vt *fed(size_t cols, const char *bytes)
{
	struct vt *vt = vt_create(cols, 1 << 20);

	vt_feed(vt, bytes, strlen(bytes));
	return vt;
}

/* All rows, joined by '|'; a row that wraps is followed by '>' instead. */
static char *all_text(const struct vt *vt)
{
	char *ret = NULL;
	size_t len;
	FILE *f = open_memstream(&ret, &len);

	for (uint64_t row = vt_first(vt); row < vt_end(vt); row++) {
		char *text = vt_text(vt, row);
		fputs(text, f);
		free(text);
		if (row + 1 < vt_end(vt))
			fputc(vt_wrapped(vt, row) ? '>' : '|', f);
	}
	fclose(f);
	return ret;
}

static void expect(size_t cols, const char *bytes, const char *rows)
{
	struct vt *vt = fed(cols, bytes);
	char *text = all_text(vt);

	assert_string_equal(text, rows);
	free(text);
	vt_destroy(vt);
}

static void test_lines(void **state)
{
	(void)state;
	expect(80, "", "");
	expect(80, "one\r\ntwo\r\n", "one|two|");
	expect(80, "one\ntwo", "one|two");
	expect(80, "10%\r20%\r100%\n", "100%|");
	expect(80, "abc\b\bX", "aXc");
	expect(80, "\b\bx", "x");
	expect(80, "a\tb\tc", "a       b       c");
	expect(80, "abcdefgh\r\tX", "abcdefghX");
	expect(20, "\t\t\t\t\tX", "                   X");
	expect(80, "a\007b\016\017\001\177c", "abc");
	expect(80, "a\n\n\nb\n", "a|||b|");
	expect(80, "blank   \n", "blank|");
}

static void test_wrapping(void **state)
{
	(void)state;
	expect(5, "abcdefgh", "abcde>fgh");
	expect(5, "abcde\r\nx", "abcde|x");
	expect(5, "abcde\rX", "Xbcde");
	/* what a line editor does at the right edge */
	expect(5, "abcde \rX", "abcde>X");
	expect(5, "abcde\bX", "abcXe");
	/* a wide character doesn't fit into one column */
	expect(5, "abcd\u4e2d", "abcd>\u4e2d");
	expect(4, "ab\u4e2d\u6587", "ab\u4e2d>\u6587");
}

static void test_editing(void **state)
{
	(void)state;
	expect(80, "hello\r\033[K", "");
	expect(80, "hello world\r\033[5C\033[K", "hello");
	expect(80, "hello\033[1K!", "     !");
	expect(80, "hello\033[2Kx", "     x");
	expect(80, "hello\033[2D\033[1Pxy", "helxy");
	expect(80, "held\033[2D\033[@l", "helld");
	expect(80, "hello\r\033[3X", "   lo");
	expect(80, "hello\033[2GE", "hEllo");
	expect(80, "hello\033[99999D\033[0CJ", "hJllo");
	expect(10, "ab\033[99999CX", "ab       X");
	expect(10, "abcdefghij\r\033[99999@", "");
	expect(10, "abcdefghij\r\033[3@", "   abcdefg");
	expect(10, "abcdefghij\r\033[99999P", "");
	expect(80, "old\033[J\r\nnew", "old|new");
	/* no half of a wide character stays */
	expect(80, "\u4e2d\u6587\r\033[CX", " X\u6587");
	expect(80, "\u4e2d\u6587\rX", "X \u6587");
	expect(80, "\u4e2d\u6587\r\033[C\033[K", "");
	expect(80, "\u4e2d\u6587\r\033[C\033[P", "  \u6587" + 1);
	expect(80, "\u4e2d\u6587\r\033[C\033[@", "   \u6587");
	expect(4, "\u4e2d\u6587\r\033[@", " \u4e2d");
}

static void test_swallowed(void **state)
{
	(void)state;
	expect(80, "a\033]0;title\007b", "ab");
	expect(80, "a\033]8;;http://x\033\\link\033]8;;\033\\b", "alinkb");
	expect(80, "a\033P1$r0m\033\\b", "ab");
	expect(80, "a\033_hidden\033\\b", "ab");
	expect(80, "a\033]0;cut\030b", "ab");
	expect(80, "a\033(Bb\033#8c", "abc");
	expect(80, "a\033[?25lb\033[?2004hc", "abc");
	expect(80, "a\033[>4;2mb\033[!pc\033[6nd", "abcd");
	expect(80, "a\033[1\0302b", "a2b");
	expect(80, "a\033[3\n1mb", "a|b");
	expect(80, "a\033", "a");
	expect(80, "\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28"
		   ";29;30;31;32;33;34;35;36;37;38;39;40mx", "x");
	expect(80, "\033[99999999999999999999999Cx", "                                        "
						     "                                       x");
}

static void test_endless_string(void **state)
{
	(void)state;
	/* a title that never ends must not hide the rest for ever */
	struct vt *vt = fed(80, "\033]0;");
	char *junk = malloc(1 << 20);
	memset(junk, 'x', 1 << 20);
	vt_feed(vt, junk, 1 << 20);
	free(junk);
	vt_feed(vt, "x\nseen\n", 7);	/* no ESC, which would end it anyway */
	char *text = vt_text(vt, vt_end(vt) - 2);
	assert_string_equal(text, "seen");
	free(text);
	vt_destroy(vt);
}

static struct cell cell_of(struct vt *vt, size_t i)
{
	struct cell cells[VT_COLS_MAX];
	size_t n = vt_cells(vt, vt_first(vt), cells, VT_COLS_MAX);

	assert_true(i < n);
	return cells[i];
}

static void expect_style(const char *bytes, style_t style)
{
	/* the same from the row being written and from the packed one */
	for (int packed = 0; packed < 2; packed++) {
		struct vt *vt = fed(80, bytes);
		vt_feed(vt, packed ? "X\n" : "X", packed ? 2 : 1);
		struct cell cell = cell_of(vt, 0);
		assert_int_equal(cell.ch, 'X');
		assert_int_equal(cell.style, style);
		vt_destroy(vt);
	}
}

static void test_colours(void **state)
{
	(void)state;
	expect_style("", STYLE_TEXT);
	expect_style("\033[31m", style_ansi(2, 0, false, false, false, false));
	expect_style("\033[1;4;7;31;42m", style_ansi(2, 3, true, false, true, true));
	expect_style("\033[2;97;100m", style_ansi(16, 9, false, true, false, false));
	expect_style("\033[31m\033[m", STYLE_TEXT);
	expect_style("\033[31m\033[39m", STYLE_TEXT);
	expect_style("\033[1;31m\033[22m", style_ansi(2, 0, false, false, false, false));
	expect_style("\033[38;5;9m", style_ansi(10, 0, false, false, false, false));
	expect_style("\033[38;5;196m", style_ansi(10, 0, false, false, false, false));
	expect_style("\033[48;5;232m", style_ansi(0, 1, false, false, false, false));
	expect_style("\033[38;2;255;255;255;1m", style_ansi(16, 0, true, false, false, false));
	expect_style("\033[38:2::255:255:255m", style_ansi(16, 0, false, false, false, false));
	expect_style("\033[38:2:255:255:255m", style_ansi(16, 0, false, false, false, false));
	expect_style("\033[38:5:1;1m", style_ansi(2, 0, true, false, false, false));
	expect_style("\033[4:3m", style_ansi(0, 0, false, false, true, false));
	expect_style("\033[4:3m\033[4:0m", STYLE_TEXT);
	expect_style("\033[58;2;1;2;3;1m", style_ansi(0, 0, true, false, false, false));
	expect_style("\033[38;5m", STYLE_TEXT);
	expect_style("\033[38;9;1m", STYLE_TEXT);
	expect_style("\033[38m", STYLE_TEXT);
	expect_style("\033[38;2;999999;0;0m", style_ansi(10, 0, false, false, false, false));
}

static void test_style_runs(void **state)
{
	(void)state;
	struct vt *vt = fed(80, "a\033[31mb\u4e2d\033[0mc\n");
	style_t red = style_ansi(2, 0, false, false, false, false);
	assert_int_equal(vt_width(vt, 0), 5);
	assert_int_equal(cell_of(vt, 0).style, STYLE_TEXT);
	assert_int_equal(cell_of(vt, 1).style, red);
	assert_int_equal(cell_of(vt, 2).ch, 0x4e2d);
	assert_int_equal(cell_of(vt, 2).style, red);
	assert_int_equal(cell_of(vt, 3).ch, 0);
	assert_int_equal(cell_of(vt, 4).ch, 'c');
	assert_int_equal(cell_of(vt, 4).style, STYLE_TEXT);
	vt_destroy(vt);
}

static void test_utf8(void **state)
{
	(void)state;
	expect(80, "gr\u00fc\u00dfe \u20ac \U0001f600", "gr\u00fc\u00dfe \u20ac \U0001f600");
	expect(80, "\xff", "\u00b7");
	expect(80, "\xc3", "");
	expect(80, "\xc3(", "\u00b7(");
	expect(80, "\xc3\r\nx", "\u00b7|x");
	expect(80, "\xe2\x82\033[1mx", "\u00b7\u00b7x");
	expect(80, "\xc0\xaf", "\u00b7\u00b7");			/* overlong */
	expect(80, "\xed\xa0\x80", "\u00b7\u00b7\u00b7");	/* surrogate */
	expect(80, "\xf5\x80\x80\x80", "\u00b7\u00b7\u00b7\u00b7");
	expect(80, "\xe2\x82\xe2\x82\xac", "\u00b7\u00b7\u20ac");
	expect(80, "\xc2\x9b" "31mx", "31mx");		/* C1 CSI: dropped, never passed on */
	expect(80, "\x9b" "31mx", "\u00b7" "31mx");
	expect(80, "a\u202eb", "a\u00b7" "b");			/* direction override */
	expect(80, "a\u200bb", "a\u00b7" "b");			/* zero width */
	expect(80, "a\u0301", "a\u00b7");			/* combining */
}

static bool addressing(const char *bytes)
{
	struct vt *vt = fed(80, bytes);
	bool ret = vt_addressing(vt);

	vt_destroy(vt);
	return ret;
}

static void test_addressing(void **state)
{
	(void)state;
	assert_false(addressing("plain \033[31mred\033[K\r\n"));
	assert_false(addressing("\033[H\033[2Jcleared"));
	assert_true(addressing("\033[5;10Hx"));
	assert_true(addressing("\033[Ax"));
	assert_true(addressing("\033[?1049h"));
	assert_false(addressing("\033[?1049h\033[3;3Hx\033[?1049l"));
	/* and the text stays apart */
	expect(80, "\033[2;1HCPU\033[3;1HMem\033[4;1H", "CPU|Mem|");
	struct vt *vt = fed(80, "\033[?1h");
	assert_true(vt_app_cursor(vt));
	vt_feed(vt, "\033[?1l", 5);
	assert_false(vt_app_cursor(vt));
	vt_destroy(vt);
}

static void test_bounded(void **state)
{
	(void)state;
	const size_t max = 64 << 10;
	struct vt *vt = vt_create(80, max);
	char line[64];
	unsigned i;

	for (i = 0; i < 20000; i++) {
		int n = snprintf(line, sizeof(line), "line %u\r\n", i);
		vt_feed(vt, line, (size_t)n);
		assert_true(vt_bytes(vt) <= max);
	}
	assert_int_equal(vt_end(vt), 20001);
	assert_true(vt_first(vt) > 15000);
	assert_true(vt_end(vt) - vt_first(vt) > 500);
	for (uint64_t row = vt_first(vt); row + 1 < vt_end(vt); row++) {
		char *text = vt_text(vt, row);
		snprintf(line, sizeof(line), "line %u", (unsigned)row);
		assert_string_equal(text, line);
		free(text);
	}
	/* those that went are empty, as are those to come */
	assert_int_equal(vt_width(vt, 0), 0);
	assert_int_equal(vt_width(vt, vt_end(vt) + 5), 0);
	assert_int_equal(vt_width(vt, UINT64_MAX), 0);
	/* rows without text cost memory too */
	for (i = 0; i < 100000; i++)
		vt_feed(vt, "\n", 1);
	assert_true(vt_bytes(vt) <= max);
	assert_true(vt_end(vt) - vt_first(vt) < 4000);
	vt_destroy(vt);
}

static void test_narrowed(void **state)
{
	(void)state;
	struct vt *vt = fed(80, "0123456789012345678901234567890123456789");
	vt_set_cols(vt, 10);
	vt_feed(vt, "ab\r\033[3@\033[2PX\033[K\n", 17);
	vt_set_cols(vt, 0);
	vt_feed(vt, "\u4e2d\033[99@\tx\n", 12);
	vt_set_cols(vt, 1u << 30);
	vt_feed(vt, "\033[99999Cx\n", 10);
	assert_true(vt_end(vt) > 3);
	char *text = all_text(vt);
	assert_non_null(strstr(text, "0123456789"));
	free(text);
	vt_destroy(vt);
}

/* Deterministic noise with many escape sequences in it. */
static uint32_t noise_seed;
static uint32_t noise(void)
{
	noise_seed = noise_seed * 1664525u + 1013904223u;
	return noise_seed >> 8;
}

static size_t make_noise(unsigned char *buf, size_t max)
{
	static const char *const pieces[] = {
		"\033[", "\033]", "\033P", "\033\\", "\r", "\n", "\b", "\t", "m", "K", "J", "@", "P",
		"X", "C", "D", "G", ";", ":", "38;5;", "48;2;1;2;", "?1049h", "?1049l", "9", "99999",
		"\u4e2d", "\u4e2d\u6587", "\xe4", "\xb8", "\xad", "\xc2\x9b", "\u202e", "\xf0\x9f",
		"\x98\x80", "text", " ", "\033", "\030", "\007", "\177", "H", "A", "\033M", "\033c",
	};
	size_t n = 0;

	while (n + 16 < max) {
		if (noise() % 4 == 0) {
			buf[n++] = (unsigned char)noise();
			continue;
		}
		const char *piece = pieces[noise() % (sizeof(pieces) / sizeof(pieces[0]))];
		size_t len = strlen(piece);
		memcpy(buf + n, piece, len);
		n += len;
	}
	return n;
}

static void check_safe(const struct vt *vt, size_t cols)
{
	struct cell cells[VT_COLS_MAX];

	for (uint64_t row = vt_first(vt); row < vt_end(vt); row++) {
		size_t n = vt_cells(vt, row, cells, VT_COLS_MAX);
		assert_true(n <= cols);
		assert_int_equal(n, vt_width(vt, row));
		for (size_t i = 0; i < n; i++) {
			int width = cells[i].ch ? vt_char_width(cells[i].ch) : -1;
			if (cells[i].ch == 0) {
				assert_true(i > 0);
				assert_int_equal(vt_char_width(cells[i - 1].ch), 2);
				continue;
			}
			assert_true(width == 1 || width == 2);
			/* a wide one is followed by its other half */
			assert_true(width == 1 || (i + 1 < n && cells[i + 1].ch == 0));
		}
		char *text = vt_text(vt, row), *safe = strdup(text);
		text_sanitize(safe);
		assert_string_equal(text, safe);
		free(safe);
		free(text);
	}
}

static void test_hostile(void **state)
{
	(void)state;
	unsigned char buf[4096];

	for (unsigned round = 0; round < 300; round++) {
		noise_seed = round;
		size_t cols = 2 + noise() % 100;
		struct vt *vt = vt_create(cols, 1 << 16);
		size_t n = make_noise(buf, sizeof(buf));
		vt_feed(vt, buf, n);
		check_safe(vt, cols);
		vt_destroy(vt);
	}
}

static void assert_same(const struct vt *a, const struct vt *b)
{
	struct cell cells_a[VT_COLS_MAX], cells_b[VT_COLS_MAX];

	assert_int_equal(vt_end(a), vt_end(b));
	assert_int_equal(vt_first(a), vt_first(b));
	assert_int_equal(vt_cursor(a), vt_cursor(b));
	assert_int_equal(vt_addressing(a), vt_addressing(b));
	for (uint64_t row = vt_first(a); row < vt_end(a); row++) {
		size_t n = vt_cells(a, row, cells_a, VT_COLS_MAX);
		assert_int_equal(n, vt_cells(b, row, cells_b, VT_COLS_MAX));
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(cells_a[i].ch, cells_b[i].ch);
			assert_int_equal(cells_a[i].style, cells_b[i].style);
		}
		assert_int_equal(vt_wrapped(a, row), vt_wrapped(b, row));
	}
}

/* However the bytes come in pieces, the rows are the same. */
static void test_split(void **state)
{
	(void)state;
	unsigned char buf[400];

	for (unsigned round = 0; round < 20; round++) {
		noise_seed = 1000 + round;
		size_t n = make_noise(buf, sizeof(buf));
		struct vt *whole = vt_create(20, 1 << 16);
		vt_feed(whole, buf, n);
		for (size_t cut = 0; cut <= n; cut++) {
			struct vt *vt = vt_create(20, 1 << 16);
			vt_feed(vt, buf, cut);
			vt_feed(vt, buf + cut, n - cut);
			assert_same(whole, vt);
			vt_destroy(vt);
		}
		struct vt *bytes = vt_create(20, 1 << 16);
		for (size_t i = 0; i < n; i++)
			vt_feed(bytes, buf + i, 1);
		assert_same(whole, bytes);
		vt_destroy(bytes);
		vt_destroy(whole);
	}
}

/* Width and text of a row are the same before and after it is packed. */
static void test_packed(void **state)
{
	(void)state;
	unsigned char buf[200];

	for (unsigned round = 0; round < 200; round++) {
		noise_seed = 5000 + round;
		size_t n = make_noise(buf, sizeof(buf));
		struct vt *a = vt_create(2000, 1 << 16), *b = vt_create(2000, 1 << 16);
		vt_feed(a, buf, n);
		vt_feed(a, "\030\033\\", 3);
		vt_feed(b, buf, n);
		vt_feed(b, "\030\033\\\n", 4);
		uint64_t row = vt_end(a) - 1;
		struct cell cells_a[VT_COLS_MAX], cells_b[VT_COLS_MAX];
		size_t width = vt_cells(a, row, cells_a, VT_COLS_MAX);
		assert_int_equal(width, vt_cells(b, row, cells_b, VT_COLS_MAX));
		for (size_t i = 0; i < width; i++) {
			assert_int_equal(cells_a[i].ch, cells_b[i].ch);
			assert_int_equal(cells_a[i].style, cells_b[i].style);
		}
		vt_destroy(a);
		vt_destroy(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_wrapping),
		cmocka_unit_test(test_editing),
		cmocka_unit_test(test_swallowed),
		cmocka_unit_test(test_endless_string),
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_style_runs),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_addressing),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_narrowed),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_packed),
	};

	/* widths come from the locale */
	if (!setlocale(LC_ALL, "C.UTF-8"))
		setlocale(LC_ALL, "en_US.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
