/* What stands beside a name: a module's is there as far as it says something, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/canvas.h"

static char *beside(int cols, int end, const char *module)
{
	struct canvas *c = canvas_create(1, cols, true);

	canvas_put_module(c, 0, 4, end, STYLE_DIM, module);
	char *text = canvas_dump(c);
	text[strcspn(text, "\n")] = '\0';
	canvas_destroy(c);
	return text;
}

static void test_module(void **state)
{
	(void)state;
	static const struct {
		int end;
		const char *module, *shown;
	} cases[] = {
		{ 40, "libc.so.6", "      libc.so.6" },
		{ 15, "libc.so.6", "      libc.so.6" },
		{ 14, "libc.so.6", "      libc.so…" },
		{ 12, "libc.so.6", "      libc.…" },
		/* "li…" could be anything */
		{ 11, "libc.so.6", "" }, { 9, "libc.so.6", "" }, { 6, "libc.so.6", "" }, { 4, "libc.so.6", "" }, { 0, "libc.so.6", "" },
		/* a short one is whole, or isn't there */
		{ 10, "node", "      node" }, { 9, "node", "" }, { 20, "", "" },
		{ 14, "漢字漢字", "      漢字漢字" }, { 13, "漢字漢字", "      漢字漢…" }, { 11, "漢字漢字", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *text = beside(40, cases[i].end, cases[i].module);
		if (strcmp(text, cases[i].shown))
			fail_msg("%s up to %d: '%s', wanted '%s'", cases[i].module, cases[i].end, text, cases[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_module) };

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
