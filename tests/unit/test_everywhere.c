/*
 * Gate 7, and the layout at every size: all screens and what lies over them, from 1x1 to 400x200, with names of 50,000
 * characters, control bytes, CJK, emoji joined, combining, right to left, not UTF-8. Screens and actions are taken from
 * the table, so that a new one can't be forgotten. HEAPTOP_SEED: another course; HEAPTOP_ROUNDS: a longer one.
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
#include <wchar.h>

#include "base/mem.h"
#include "tests/lib/fakescreen.h"

#define ROUNDS 150
#define ROWS_MAX 200
#define COLS_MAX 400

static unsigned seed = 20261;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

/* The sizes where the layout changes its mind, and any other. */
static int pick(const int *edges, size_t n, int max)
{
	return below(2) ? edges[below(n)] : 1 + (int)below(max);
}

/* Every cell is a character or the right half of one; nothing that a terminal would take for an order. */
static void check_cells(const struct canvas *c)
{
	for (int y = 0; y < c->rows; y++)
		for (int x = 0; x < c->cols; x++) {
			uint32_t ch = c->cells[(size_t)y * c->cols + x].ch;
			if (!ch) {
				assert_true(x > 0);
				assert_int_equal(wcwidth((wchar_t)c->cells[(size_t)y * c->cols + x - 1].ch), 2);
				continue;
			}
			assert_true(ch >= 0x20 && ch != 0x7f && !(ch >= 0x80 && ch < 0xa0));
			assert_true(c->unicode || ch < 0x7f);
			int w = wcwidth((wchar_t)ch);
			assert_true(w == 1 || w == 2);
			/* the terminal would move on by two: there must be room, and it must be ours */
			if (w == 2)
				assert_true(x + 1 < c->cols && !c->cells[(size_t)y * c->cols + x + 1].ch);
			/* those that turn the direction or join with others */
			assert_true(ch != 0x202e && ch != 0x200d && ch != 0xfe0f && !(ch >= 0x300 && ch < 0x370));
		}
}

static void draw(struct ui *ui)
{
	ui->leaving = ui->suspend = false;
	ui_draw(ui);
	check_cells(ui->canvas);
}

static bool harmless(enum action a)
{
	/* writes a file; takes what comes for its text */
	return a != ACT_SAVE && a != ACT_COMMAND;
}

static void press(struct ui *ui, uint32_t key)
{
	struct key_event ev = { .key = key };

	ui_key(ui, &ev);
}

static void back(struct ui *ui)
{
	for (int i = 0; i < 4; i++)
		press(ui, UKEY_ESC);
}

static void test_everywhere(void **state)
{
	static const int rows[] = { 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 16, 20, 24, 35, 36, 40, 200 };
	static const int cols[] = { 1, 2, 3, 10, 19, 20, 21, 29, 30, 39, 40, 41, 75, 76, 79, 80, 109, 110, 120, 400 };
	const char *given = getenv("HEAPTOP_SEED"), *more = getenv("HEAPTOP_ROUNDS");
	int rounds = more ? atoi(more) : ROUNDS;
	struct fakescreen f[4];

	(void)state;
	if (given)
		seed = (unsigned)atoi(given);
	printf("# HEAPTOP_SEED=%u HEAPTOP_ROUNDS=%d\n", seed, rounds);
	for (int i = 0; i < 4; i++)
		fakescreen_open(&f[i], (struct fakeheap_config){ .rate = i & 1 ? 65536 : 1, .hostile = true,
				.attached = i & 1, .dropped = i & 1 ? 12345 : 0 }, 6, 24, 80, i & 2);
	for (int round = 0; round < rounds; round++) {
		struct ui *ui = f[round % 4].ui;
		ui_resize(ui, pick(rows, ARRAY_SIZE(rows), ROWS_MAX), pick(cols, ARRAY_SIZE(cols), COLS_MAX));
		for (int v = 0; v < UI_VIEWS; v++) {
			back(ui);
			ui_action(ui, ACT_NEXT_SCREEN);
			draw(ui);
			for (int i = 0; i < 6; i++) {
				enum action a = 1 + below(ACTIONS - 1);
				if (harmless(a))
					ui_action(ui, a);
				draw(ui);
				/* into whatever has come up: letters to search for, and ways to move */
				press(ui, below(2) ? 'a' + below(26) : UKEY_BASE + 1 + below(UKEY_F12 - UKEY_BASE));
				draw(ui);
				back(ui);
			}
		}
	}
	for (int i = 0; i < 4; i++)
		fakescreen_close(&f[i]);
}

/* Left of the names are numbers, each right in its column, whatever the names are. */
static void test_columns(void **state)
{
	static const int sizes[][2] = { { 10, 40 }, { 24, 80 }, { 40, 120 }, { 60, 200 } };

	(void)state;
	for (int unicode = 0; unicode < 2; unicode++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct fakescreen f;
			int rows = 0;
			fakescreen_open(&f, (struct fakeheap_config){ .rate = 1, .hostile = true }, 20, sizes[i][0], sizes[i][1],
					unicode);
			const struct canvas *c = f.ui->canvas;
			struct rect r = f.ui->layout.screen;
			/* where the heading of the names begins */
			int at = -1;
			for (int x = 0; x + 4 <= c->cols && at < 0; x++)
				if (canvas_at(c, r.y, x)->ch == 'S' && canvas_at(c, r.y, x + 1)->ch == 'I' &&
				    canvas_at(c, r.y, x + 2)->ch == 'T' && canvas_at(c, r.y, x + 3)->ch == 'E')
					at = x;
			assert_true(at > 10);
			for (int y = r.y + 1; y < r.y + r.rows; y++) {
				bool number = false;
				for (int x = 2; x < at; x++)
					number |= canvas_at(c, y, x)->ch >= '0' && canvas_at(c, y, x)->ch <= '9';
				if (!number)
					continue;
				rows++;
				/* flags, numbers, units, ages and the trend; a name would show itself by a letter */
				for (int x = 0; x < at; x++) {
					uint32_t ch = canvas_at(c, y, x)->ch;
					assert_true(ch && (ch == ' ' || strchr(">~+^.0123456789KMGTk%<smhd", (int)ch & 0x7f) || ch > 0x2000 ||
							   (!unicode && x > at - 12)));
				}
				/* LIVE ends in its column in every row */
				assert_int_equal(canvas_at(c, y, at - 1)->ch, ' ');
				assert_int_equal(canvas_at(c, y, 9)->ch, ' ');
				assert_true(canvas_at(c, y, 8)->ch != ' ');
			}
			assert_true(rows >= 4);
			fakescreen_close(&f);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_everywhere), cmocka_unit_test(test_columns) };

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("gate 7: no name moves a column", tests, NULL, NULL);
}
