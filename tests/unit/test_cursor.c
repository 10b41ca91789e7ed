/* The cursor's row looks otherwise than the rows beside it: in lists and in menus, in all themes, with any colours or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "ui/style.h"
#include "ui/theme.h"

static const style_t rows[] = { STYLE_TEXT, STYLE_NUMBER, STYLE_DIM, STYLE_LABEL, STYLE_BOX, STYLE_CODE_MAIN, STYLE_CODE_SYSTEM };

static void check(const struct theme *theme, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int depth = STYLE_DEPTH_MONO; depth <= STYLE_DEPTH_256; depth++) {
			struct style_look plain = style_look_in(theme, rows[i], depth);
			struct style_look cursor = style_look_in(theme, rows[i] | STYLE_SELECTED, depth);
			/* as a row of cells: its ground is what one sees */
			if (plain.reverse == cursor.reverse && plain.bg == cursor.bg && plain.fg == cursor.fg)
				fail_msg("theme %s, depth %d, style %u: the cursor can't be seen", name, depth, (unsigned)rows[i]);
		}
}

static void test_cursor(void **state)
{
	(void)state;
	struct themes themes;
	CLEANUP_FREE char *own = xstrdup("box = white blue bold\n");

	themes_init(&themes);
	assert_null(themes_add(&themes, "own", own));
	check(NULL, "none");
	static const char *const names[] = { "default", "light", "contrast", "mono", "own" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct theme *theme = themes_find(&themes, names[i]);
		assert_non_null(theme);
		check(theme, names[i]);
	}
	themes_deinit(&themes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cursor) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
