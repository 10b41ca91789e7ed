/* What leads out of the screen, as far as it needs no terminal: themes, keys, columns, copying, source files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/source.h"
#include "ui/action.h"
#include "ui/columns.h"
#include "ui/copy.h"
#include "ui/graph.h"
#include "ui/key.h"
#include "ui/style.h"
#include "ui/theme.h"

/* ---- themes ---- */

static struct err *add(struct themes *themes, const char *name, const char *text)
{
	CLEANUP_FREE char *copy = xstrdup(text);

	return themes_add(themes, name, copy);
}

static void test_theme_text(void **state)
{
	(void)state;
	struct themes themes;

	themes_init(&themes);
	CLEANUP_FREE char *names = themes_names(&themes);
	assert_string_equal(names, "default, light, contrast, mono");
	assert_null(add(&themes, "own", "# mine\nbase = light\nlabel = 17 bright-red bold underline\ntext = default\nmatch=- 3\n"));
	const struct theme *own = themes_find(&themes, "own"), *light = themes_find(&themes, "light");
	assert_int_equal(own->looks[STYLE_LABEL].fg, 17);
	assert_int_equal(own->looks[STYLE_LABEL].bg, 9);
	assert_int_equal(own->looks[STYLE_LABEL].attr, THEME_BOLD | THEME_UNDERLINE);
	assert_int_equal(own->looks[STYLE_TEXT].fg, -1);
	assert_int_equal(own->looks[THEME_MATCH].bg, 3);
	assert_memory_equal(&own->looks[STYLE_BOX], &light->looks[STYLE_BOX], sizeof(own->looks[0]));
	static const char *const wrong[] = {
		"label", "label =", "label = purple", "label = 256", "label = 1 2 3", "label = 1 bold 3 4", "labell = 1", "base = none",
		"label = -1", "label = 1 2 blink",
	};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err *err = add(&themes, "bad", wrong[i]);
		if (!err)
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(strstr(err->text, "line 1"));
		err_free(err);
	}
	assert_null(themes_find(&themes, "bad"));
	/* every element has a name of its own */
	for (unsigned id = 0; id < THEME_IDS; id++) {
		assert_non_null(theme_element(id));
		for (unsigned k = 0; k < id; k++)
			assert_string_not_equal(theme_element(id), theme_element(k));
	}
	themes_deinit(&themes);
}

static void test_looks(void **state)
{
	(void)state;
	struct themes themes;

	themes_init(&themes);
	assert_null(add(&themes, "own", "grew = 196 default underline\ntab-active = 231 24 bold\nmatch = 46\nfaded = 250\n"));
	const struct theme *own = themes_find(&themes, "own"), *mono = themes_find(&themes, "mono");
	struct style_look look = style_look_in(own, STYLE_GREW, STYLE_DEPTH_256);
	assert_true(look.fg == 196 && look.bg == -1 && look.underline && !look.bold);
	/* the nearest there is: bright red, then red */
	assert_int_equal(style_look_in(own, STYLE_GREW, STYLE_DEPTH_16).fg, 9);
	assert_int_equal(style_look_in(own, STYLE_GREW, STYLE_DEPTH_8).fg, 1);
	look = style_look_in(own, STYLE_GREW, STYLE_DEPTH_MONO);
	assert_true(look.fg == -1 && look.underline);
	/* a ground isn't lost without colours */
	assert_true(style_look_in(own, STYLE_TAB_ACTIVE, STYLE_DEPTH_MONO).reverse);
	look = style_look_in(own, STYLE_TEXT | STYLE_MATCH, STYLE_DEPTH_256);
	assert_true(look.fg == 46 && look.bold && look.underline);
	assert_int_equal(style_look_in(own, STYLE_TEXT | STYLE_FADED, STYLE_DEPTH_256).fg, 250);
	/* what it doesn't say is as it is without */
	for (unsigned id = 0; id < STYLE_IDS; id++) {
		struct style_look without = style_look((style_t)id, STYLE_DEPTH_256), with = style_look_in(own, (style_t)id, STYLE_DEPTH_256);
		if (!own->looks[id].set)
			assert_memory_equal(&with, &without, sizeof(with));
	}
	/* in every theme and depth: colours in range, and the cursor is never ambiguous */
	static const int colors[] = { 0, 8, 16, 256 };
	for (size_t t = 0; t < themes.n; t++)
		for (unsigned id = 0; id < STYLE_IDS; id++)
			for (int depth = STYLE_DEPTH_MONO; depth <= STYLE_DEPTH_256; depth++) {
				look = style_look_in(themes.list[t], (style_t)id, depth);
				assert_in_range(look.fg + 1, 0, colors[depth]);
				assert_in_range(look.bg + 1, 0, colors[depth]);
				assert_true(style_look_in(themes.list[t], (style_t)(id | STYLE_SELECTED), depth).reverse);
				assert_true(style_look_in(themes.list[t], (style_t)(id | STYLE_MATCH), depth).underline);
			}
	assert_int_equal(style_look_in(mono, STYLE_BAD, STYLE_DEPTH_256).fg, -1);
	themes_deinit(&themes);
}

static void test_nearest(void **state)
{
	(void)state;
	for (int c = 0; c < 16; c++)
		assert_int_equal(style_nearest(c, STYLE_DEPTH_16), c);
	assert_int_equal(style_nearest(-1, STYLE_DEPTH_8), -1);
	assert_int_equal(style_nearest(231, STYLE_DEPTH_16), 15);
	assert_int_equal(style_nearest(16, STYLE_DEPTH_8), 0);
	assert_int_equal(style_nearest(244, STYLE_DEPTH_16), 8);
	assert_int_equal(style_nearest(200, STYLE_DEPTH_256), 200);
}

/* ---- columns, graph, keys ---- */

static void test_columns(void **state)
{
	(void)state;
	uint32_t hidden = 77;
	struct columns l = { 0 };

	assert_null(columns_parse("percent, blocks", &hidden));
	CLEANUP_FREE char *list = columns_list(hidden);
	assert_string_equal(list, "percent,blocks");
	l.hidden = hidden;
	columns_layout(&l, 200, REPORT_LIVE_BYTES, COLUMNS_SITES, true, true, false);
	assert_int_equal(l.n, 3);	/* live is always there */
	assert_null(columns_parse("", &hidden));
	l.hidden = hidden;
	columns_layout(&l, 200, REPORT_ALLOC_BYTES, COLUMNS_TREE, true, true, true);
	assert_true(l.n >= 1 && l.list[0].id == COLUMN_VALUE);
	CLEANUP_FREE char *all = columns_list(0);
	assert_null(columns_parse(all, &hidden));
	assert_int_equal(hidden, 0);
	hidden = 5;
	struct err *err = columns_parse("percent,blcks", &hidden);
	assert_non_null(strstr(err->text, "'blcks'"));
	assert_int_equal(hidden, 5);
	err_free(err);

	struct canvas *c = canvas_create(2, 2, true);
	assert_int_equal(graph_kind_for(c), GRAPH_BRAILLE);
	c->graph = GRAPH_BLOCK;
	assert_int_equal(graph_kind_for(c), GRAPH_BLOCK);
	c->unicode = false;
	assert_int_equal(graph_kind_for(c), GRAPH_ASCII);
	for (int k = GRAPH_BRAILLE; k <= GRAPH_ASCII; k++)
		assert_int_equal(graph_kind_parse(graph_kind_name(k)), k);
	assert_int_equal(graph_kind_parse("dots"), -1);
	canvas_destroy(c);
}

static void test_bind(void **state)
{
	(void)state;
	char name[16];

	assert_int_equal(action_of_key('n', UI_SITES), ACT_FIND_NEXT);
	assert_true(action_bind("n", "tree"));
	assert_int_equal(action_of_key('n', UI_SITES), ACT_TREE);
	assert_int_equal(action_of_key('2', UI_SITES), ACT_TREE);
	assert_string_equal(action_first_key(ACT_TREE, name), "n");
	assert_string_equal(action_first_key(ACT_FIND_NEXT, name), "");
	assert_true(action_bind("Space", "none"));
	assert_int_equal(action_of_key(' ', UI_SITES), ACT_NONE);
	assert_int_equal(action_of_key('z', UI_SITES), ACT_FREEZE);
	/* a key of another screen stays */
	assert_true(action_bind("o", "sort-left"));
	assert_int_equal(action_of_key('o', UI_SITES), ACT_SORT_LEFT);
	assert_int_equal(action_of_key('o', UI_FLAME), ACT_FLIP);
	assert_false(action_bind("nokey", "tree"));
	assert_false(action_bind("n", "trees"));
	assert_int_equal(action_of_key('n', UI_SITES), ACT_TREE);
	for (int i = 0; i < 100; i++) {		/* bounded */
		char key[2] = { (char)('!' + i % 90), 0 };
		assert_true(action_bind(key, "help"));
	}
	assert_int_equal(action_of_key(UKEY_F1, UI_SITES) == ACT_HELP || action_of_key('j', UI_SITES) == ACT_HELP, 1);
}

/* ---- copying ---- */

static void test_copy(void **state)
{
	(void)state;
	static const struct { const char *text, *base64; } cases[] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *seq = copy_sequence(cases[i].text, strlen(cases[i].text), COPY_PLAIN);
		CLEANUP_FREE char *wanted = xasprintf("\033]52;c;%s\a", cases[i].base64);
		assert_string_equal(seq, wanted);
	}
	CLEANUP_FREE char *tmux = copy_sequence("foo", 3, COPY_TMUX);
	assert_string_equal(tmux, "\033]52;c;Zm9v\a\033Ptmux;\033\033]52;c;Zm9v\a\033\\");
	/* screen: what it hands on, put together, is the plain one, in pieces it takes */
	char big[3000];
	memset(big, 'x', sizeof(big));
	CLEANUP_FREE char *plain = copy_sequence(big, sizeof(big), COPY_PLAIN);
	CLEANUP_FREE char *screen = copy_sequence(big, sizeof(big), COPY_SCREEN), *joined = xstrdup(screen);
	char *out = joined;
	size_t piece = 0;
	for (const char *s = screen; *s;) {
		if (!strncmp(s, "\033P", 2)) {
			s += 2;
			piece = 0;
		} else if (!strncmp(s, "\033\\", 2)) {
			s += 2;
		} else {
			assert_true(++piece <= 760);
			*out++ = *s++;
		}
	}
	*out = '\0';
	assert_string_equal(joined, plain);

	assert_int_equal(copy_way(NULL, NULL), COPY_PLAIN);
	assert_int_equal(copy_way("/tmp/tmux-0/default,1,0", "1.x"), COPY_TMUX);
	assert_int_equal(copy_way("", "1.x"), COPY_SCREEN);
	assert_true(copy_terminal_can("xterm-256color"));
	assert_false(copy_terminal_can("linux"));
	assert_false(copy_terminal_can("vt100"));
	assert_false(copy_terminal_can(NULL));
}

/* ---- source files ---- */

static void expect_path(const struct source_paths *paths, const char *file, const char *wanted)
{
	CLEANUP_FREE char *got = source_paths_apply(paths, file, NULL);

	assert_string_equal(got, wanted);
}

static void test_paths(void **state)
{
	(void)state;
	struct source_paths paths = { 0 };

	expect_path(&paths, "a.c", "a.c");
	assert_null(source_paths_add(&paths, "/build/=/src"));
	assert_null(source_paths_add(&paths, "=/rel/"));
	assert_null(source_paths_add(&paths, "/build/x=/y"));
	expect_path(&paths, "/build/a.c", "/src/a.c");
	expect_path(&paths, "/build2/a.c", "/build2/a.c");
	expect_path(&paths, "/build/x/a=b.c", "/y/a=b.c");
	expect_path(&paths, "/build/xy/a.c", "/src/xy/a.c");
	expect_path(&paths, "src/a.c", "/rel/src/a.c");
	expect_path(&paths, "/other", "/other");
	CLEANUP_FREE char *mapped = source_paths_apply(&paths, "src/a.c", "/build/x");
	assert_string_equal(mapped, "/rel/src/a.c");
	struct source_paths fewer = { .list = paths.list, .n = 1 };
	CLEANUP_FREE char *whole = source_paths_apply(&fewer, "src/a.c", "/build/x");
	assert_string_equal(whole, "/src/x/src/a.c");
	CLEANUP_FREE char *absolute = source_paths_apply(&fewer, "/a.c", "/build/x");
	assert_string_equal(absolute, "/a.c");
	static const char *const wrong[] = { "", "x", "x=" };
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err *err = source_paths_add(&paths, wrong[i]);
		assert_non_null(err);
		err_free(err);
	}
	source_paths_deinit(&paths);
}

static char *write_file(const char *dir, const char *bytes, size_t n)
{
	char *path = xasprintf("%s/a.c", dir);
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
	return path;
}

static void test_source(void **state)
{
	(void)state;
	char dir[] = "/tmp/heaptop-test.XXXXXX";
	static const char text[] = "int a;\n\tb\r\n  \xc3\xa4\tc\n\x1b[31m\x07\0\xff\xe2\x80\xae.\n\nlast";
	struct source_paths none = { 0 };

	assert_non_null(mkdtemp(dir));
	CLEANUP_FREE char *path = write_file(dir, text, sizeof(text) - 1);
	struct source_text *s = source_read(&none, path, NULL);
	assert_null(s->error);
	assert_string_equal(s->path, path);
	assert_int_equal(s->n, 6);
	assert_string_equal(s->lines[0], "int a;");
	assert_string_equal(s->lines[1], "        b");
	assert_string_equal(s->lines[2], "  \xc3\xa4     c");
	assert_string_equal(s->lines[3], "?[31m?" "???" "??.");
	assert_string_equal(s->lines[4], "");
	assert_string_equal(s->lines[5], "last");
	assert_null(s->lines[6]);
	source_destroy(s);

	/* long lines are cut, tabs and all */
	char *big = xmalloc(200000);
	memset(big, '\t', 200000);
	big[100000] = '\n';
	free(write_file(dir, big, 200000));
	s = source_read(&none, path, NULL);
	assert_int_equal(s->n, 2);
	assert_true(strlen(s->lines[0]) <= SOURCE_MAX_LINE && strlen(s->lines[0]) > 900);
	source_destroy(s);
	free(big);

	/* where was it looked for? */
	assert_null(source_paths_add(&none, "/build=/nowhere"));
	s = source_read(&none, "a.c", "/build");
	assert_non_null(strstr(s->error, "/nowhere/a.c"));
	assert_int_equal(s->n, 0);
	source_destroy(s);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	s = source_read(&none, path, NULL);
	assert_non_null(strstr(s->error, "not a regular file"));
	source_destroy(s);
	source_paths_deinit(&none);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_theme_text),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_bind),	/* last: keys stay as bound */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
