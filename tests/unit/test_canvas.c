/* The drawing surface, styles, and the small parts drawn with them: pieces, graph, prompt, list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "ui/canvas.h"
#include "ui/graph.h"
#include "ui/keymap.h"
#include "ui/pieces.h"
#include "ui/prompt.h"
#include "ui/style.h"

static void expect_dump(const struct canvas *c, const char *wanted)
{
	char *text = canvas_dump(c);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_put(void **state)
{
	struct canvas *c = canvas_create(2, 10, true);

	(void)state;
	assert_int_equal(canvas_put(c, 0, 2, STYLE_TEXT, "abc"), 5);
	assert_int_equal(canvas_put(c, 1, 8, STYLE_TEXT, "wxyz"), 12);
	expect_dump(c, "  abc\n        wx\n");
	canvas_clear(c);
	canvas_put_cut(c, 0, 0, 5, STYLE_TEXT, "abcdefg");
	canvas_put_cut(c, 0, 5, 5, STYLE_TEXT, "abcde");
	canvas_put_right(c, 1, 0, 6, STYLE_TEXT, "12");
	canvas_put_right(c, 1, 6, 3, STYLE_TEXT, "12345");
	expect_dump(c, "abcd…abcde\n    12345\n");
	canvas_put(c, -1, 0, STYLE_TEXT, "no");
	canvas_put(c, 0, -2, STYLE_TEXT, "XYZ");
	canvas_put(c, INT_MAX, INT_MIN, STYLE_TEXT, "no");
	canvas_fill(c, 0, INT_MIN, INT_MAX, STYLE_TEXT, 'q');
	canvas_restyle(c, 1, -5, INT_MAX, 0, STYLE_SELECTED);
	expect_dump(c, "Zbcd…abcde\n    12345\n");
	assert_int_equal(canvas_at(c, 1, 9)->style, STYLE_SELECTED);
	assert_null(canvas_at(c, 2, 0));
	canvas_destroy(c);
}

static void test_clip(void **state)
{
	struct canvas *c = canvas_create(3, 8, true);

	(void)state;
	canvas_clip(c, 1, 2, 1, 3);
	for (int y = 0; y < 3; y++)
		canvas_fill(c, y, 0, 8, STYLE_TEXT, 'x');
	expect_dump(c, "\n  xxx\n\n");
	canvas_clip(c, INT_MAX, INT_MAX, INT_MAX, INT_MAX);
	canvas_put(c, 0, 0, STYLE_TEXT, "no");
	canvas_clip(c, -5, -5, 6, 7);
	canvas_put(c, 0, 0, STYLE_TEXT, "yes");
	expect_dump(c, "ye\n  xxx\n\n");
	canvas_destroy(c);
}

static void test_wide(void **state)
{
	(void)state;
	if (wcwidth(0x6f22) != 2)
		skip();	/* the locale doesn't know it */
	struct canvas *c = canvas_create(1, 5, true);
	assert_int_equal(canvas_put(c, 0, 0, STYLE_TEXT, "漢字x"), 5);
	assert_int_equal(canvas_at(c, 0, 1)->ch, 0);
	/* half of one is overwritten: the other half becomes a blank */
	canvas_put(c, 0, 1, STYLE_TEXT, "a");
	expect_dump(c, " a字x\n");
	canvas_put(c, 0, 2, STYLE_TEXT, "b");
	expect_dump(c, " ab x\n");
	/* only half of one fits */
	canvas_put(c, 0, 4, STYLE_TEXT, "字");
	expect_dump(c, " ab\n");
	canvas_put_cut(c, 0, 0, 4, STYLE_TEXT, "字字字");
	expect_dump(c, "字…\n");
	canvas_destroy(c);
}

static void test_hostile(void **state)
{
	static const char *const nasty[] = {
		"\033[31m\a\b\n\t\r\x7f", "\xff\xfe\x80", "\xe2\x80", "e\xcc\x81", "\xe2\x80\xae" "rtl",
		"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9", "\xed\xa0\x80", "\xc2\x9b" "31m", "",
	};

	(void)state;
	for (int unicode = 0; unicode < 2; unicode++) {
		struct canvas *c = canvas_create(3, 7, unicode);
		for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
			canvas_clear(c);
			int end = canvas_put(c, 1, 1, STYLE_TEXT, nasty[i]);
			assert_int_equal(end - 1, canvas_width(c, nasty[i]));
			for (int k = 0; k < 21; k++) {
				uint32_t ch = c->cells[k].ch;
				assert_true(ch == 0 || (ch >= 0x20 && ch != 0x7f && !(ch >= 0x80 && ch < 0xa0)));
				assert_true(unicode || (ch >= 0x20 && ch < 0x7f));
				assert_true(ch != 0x202e && ch != 0x200d && ch != 0x301);
			}
			char *text = canvas_dump(c);
			assert_true(strlen(text) >= 3);
			free(text);
		}
		canvas_destroy(c);
	}
}

/* Anything anywhere: the address sanitizer is the judge, and the halves must always pair up. */
static void test_random(void **state)
{
	static const char *const texts[] = { "漢字漢字", "abc", "é", "…›─│", "x", "\xff\xff", "" };
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct canvas *c = canvas_create(rand_r(&seed) % 6 - 1, rand_r(&seed) % 12 - 1, rand_r(&seed) % 2);
		for (int k = 0; k < 100; k++) {
			int y = rand_r(&seed) % 10 - 3, x = rand_r(&seed) % 20 - 5, n = rand_r(&seed) % 15 - 3;
			const char *text = texts[rand_r(&seed) % ARRAY_SIZE(texts)];
			switch (rand_r(&seed) % 7) {
			case 0: canvas_put(c, y, x, STYLE_TEXT, text); break;
			case 1: canvas_put_max(c, y, x, n, STYLE_TEXT, text); break;
			case 2: canvas_put_cut(c, y, x, n, STYLE_TEXT, text); break;
			case 3: canvas_put_right(c, y, x, n, STYLE_TEXT, text); break;
			case 4: canvas_fill(c, y, x, n, STYLE_TEXT, 0x2500); break;
			case 5: canvas_clip(c, y, x, n, n); break;
			case 6: canvas_restyle(c, y, x, n, 3, 0x100); break;
			}
		}
		for (int y = 0; y < c->rows; y++)
			for (int x = 0; x < c->cols; x++) {
				const struct cell *cell = canvas_at(c, y, x);
				bool wide = cell->ch > 0x2fff;
				assert_true(cell->ch || x > 0);
				if (wide)
					assert_int_equal(canvas_at(c, y, x + 1)->ch, 0);
				else if (cell->ch && x + 1 < c->cols)
					assert_int_not_equal(canvas_at(c, y, x + 1)->ch, 0);
			}
		canvas_destroy(c);
	}
}

static void test_ascii(void **state)
{
	struct canvas *c = canvas_create(1, 20, false);

	(void)state;
	canvas_put(c, 0, 0, STYLE_TEXT, "▸▾├─└─│▏┊…›▲▼漢");
	expect_dump(c, "+-|-`-||:~>^v?\n");
	canvas_destroy(c);
}

static void test_styles(void **state)
{
	(void)state;
	for (int id = 0; id < STYLE_IDS; id++) {
		struct style_look mono = style_look(id, STYLE_DEPTH_MONO);
		/* no colours at all, and no greys */
		assert_int_equal(mono.fg, -1);
		assert_int_equal(mono.bg, -1);
		assert_false(mono.dim);
		struct style_look eight = style_look(id, STYLE_DEPTH_8);
		assert_true(eight.fg < 8 && eight.bg < 8);
		/* the cursor is unmistakable whatever lies under it */
		assert_true(style_look(id | STYLE_SELECTED, STYLE_DEPTH_MONO).reverse);
		assert_true(style_look(id | STYLE_SELECTED | STYLE_FADED, STYLE_DEPTH_256).reverse);
		assert_true(style_look(id | STYLE_MATCH, STYLE_DEPTH_MONO).underline);
	}
	assert_int_equal(style_look(style_ansi(10, 0, false, false, false, false), STYLE_DEPTH_8).fg, 1);
	assert_true(style_look(style_ansi(10, 0, false, false, false, false), STYLE_DEPTH_8).bold);
	assert_int_equal(style_of_module("app", false, "app"), STYLE_CODE_MAIN);
	assert_int_equal(style_of_module("libc.so.6", false, "app"), STYLE_CODE_SYSTEM);
	assert_int_equal(style_of_module("", true, "app"), STYLE_CODE_UNKNOWN);
	assert_int_equal(style_of_module("libx.so", false, NULL), style_of_module("libx.so", false, "app"));
}

static void test_graph(void **state)
{
	static const uint64_t values[] = { 0, 1, 25, 50, 75, 100, 100, UINT64_MAX };
	struct canvas *c = canvas_create(2, 6, true);

	(void)state;
	graph_draw(c, 0, 0, 1, 4, GRAPH_BRAILLE, STYLE_GRAPH, values, 8, 100);
	expect_dump(c, "⢀⣠⣾⣿\n\n");
	canvas_clear(c);
	graph_draw(c, 0, 0, 2, 3, GRAPH_BRAILLE, STYLE_GRAPH, values + 4, 3, 100);
	expect_dump(c, " ⢠⣿\n ⢸⣿\n");
	canvas_clear(c);
	graph_draw(c, 0, 0, 1, 6, GRAPH_ASCII, STYLE_GRAPH, values, 6, 100);
	expect_dump(c, " .:+#@\n\n");
	graph_draw(c, -5, -5, 100, 100, GRAPH_BLOCK, STYLE_GRAPH, values, 8, 100);
	graph_draw(c, 0, 0, 0, -3, GRAPH_BLOCK, STYLE_GRAPH, values, 8, 0);
	canvas_destroy(c);
}

static void test_pieces(void **state)
{
	(void)state;
	for (int cols = 1; cols < 120; cols++) {
		struct canvas *c = canvas_create(1, 120, true);
		struct pieces p = { .n = 0 };
		pieces_set(pieces_add(&p, 0, 0, 0), "heaptop", NULL, "▶", NULL);
		struct piece *command = pieces_add(&p, 0, 0, 0);
		pieces_set(command, "", NULL, "./a/very/long/command --with arguments", "command");
		command->stretch = true;
		pieces_set(pieces_add(&p, 40, 0, 0), "overhead", "ovh", "1.8%", NULL);
		pieces_set(pieces_add(&p, 10, 0, 0), "dropped", "drop", "0", NULL);
		pieces_draw(&p, c, 0, 0, cols, 3);
		/* nothing beyond its columns, pieces in order, the least important one gone first */
		for (int x = cols; x < 120; x++)
			assert_int_equal(canvas_at(c, 0, x)->ch, ' ');
		if (p.list[2].x1 > p.list[2].x0)
			assert_true(p.list[3].x1 > p.list[3].x0);
		for (size_t i = 1, last = 0; i < p.n; i++) {
			if (p.list[i].x1 <= p.list[i].x0)
				continue;
			assert_true(p.list[i].x0 >= p.list[last].x1);
			last = i;
		}
		canvas_destroy(c);
	}
}

static void type(struct prompt *p, const char *keys)
{
	for (; *keys; keys++)
		prompt_key(p, (unsigned char)*keys);
}

static void test_prompt(void **state)
{
	struct prompt p = { 0 };
	struct canvas *c = canvas_create(1, 10, true);

	(void)state;
	prompt_open(&p, PROMPT_FIND, "");
	type(&p, "abc");
	prompt_key(&p, 0xe9);
	assert_string_equal(p.text, "abcé");
	prompt_key(&p, UKEY_LEFT);
	prompt_key(&p, UKEY_LEFT);
	prompt_key(&p, UKEY_BACKSPACE);
	assert_string_equal(p.text, "acé");
	prompt_key(&p, UKEY_END);
	prompt_key(&p, UKEY_BACKSPACE);
	assert_string_equal(p.text, "ac");
	assert_int_equal(prompt_key(&p, UKEY_ENTER), PROMPT_DONE);
	assert_int_equal(p.kind, PROMPT_NONE);
	prompt_open(&p, PROMPT_FIND, "");
	assert_int_equal(prompt_key(&p, UKEY_UP), PROMPT_CHANGED);
	assert_string_equal(p.text, "ac");
	for (int i = 0; i < 2000; i++)
		type(&p, "x");
	assert_int_equal(p.len, PROMPT_MAX - 1);
	prompt_draw(&p, c, 0, 0, 10, "hint");
	/* the cursor is visible at the end of a text longer than the row */
	assert_true(canvas_at(c, 0, 9)->style & STYLE_SELECTED);
	prompt_key(&p, KEY_CTRL_('u'));
	assert_string_equal(p.text, "");
	assert_int_equal(prompt_key(&p, UKEY_BACKSPACE), PROMPT_CANCELLED);
	prompt_deinit(&p);
	canvas_destroy(c);
}

static void test_keymap(void **state)
{
	struct keymap m = { .max = 1000 };
	uint64_t v;

	(void)state;
	assert_false(keymap_get(&m, 0, &v));
	for (uint64_t k = 0; k < 900; k++)
		keymap_put(&m, k << 32, k);
	keymap_put(&m, 5ull << 32, 77);
	assert_int_equal(m.n, 900);
	for (uint64_t k = 0; k < 900; k++) {
		assert_true(keymap_get(&m, k << 32, &v));
		assert_int_equal(v, k == 5 ? 77 : k);
	}
	for (uint64_t k = 0; k < 5000; k++)
		keymap_put(&m, k * 3, k);
	assert_true(m.n <= 1000);
	keymap_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put), cmocka_unit_test(test_clip), cmocka_unit_test(test_wide),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_random), cmocka_unit_test(test_ascii),
		cmocka_unit_test(test_styles), cmocka_unit_test(test_graph), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_prompt), cmocka_unit_test(test_keymap),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
