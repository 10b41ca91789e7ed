/* Numbers of fixed width, key names, and the key table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/action.h"
#include "ui/format.h"
#include "ui/key.h"

static void test_bytes(void **state)
{
	char buf[FORMAT_BUF];

	(void)state;
	assert_string_equal(format_bytes(buf, 0, 6), "     0");
	assert_string_equal(format_bytes(buf, 1023, 6), "  1023");
	assert_string_equal(format_bytes(buf, 1024, 6), "  1.0K");
	assert_string_equal(format_bytes(buf, 432327475, 6), "412.3M");
	assert_string_equal(format_bytes(buf, 1023 * 1024 + 900, 6), " 1023K");
	assert_string_equal(format_bytes(buf, 500 * 1024, 1), "500.0K");
	assert_string_equal(format_count(buf, 1830000, 6), " 1.83M");
	assert_string_equal(format_count(buf, 999999, 6), " 1.00M");
}

/* Whatever the number, the width is the same: the promise that nothing jitters. */
static void test_widths(void **state)
{
	char buf[FORMAT_BUF];

	(void)state;
	for (int width = 6; width <= 8; width++)
		for (double v = 1; v < 1.8e19; v = v * 1.01 + 1) {
			assert_int_equal(strlen(format_bytes(buf, format_clamp(v), width)), width);
			assert_int_equal(strlen(format_count(buf, format_clamp(v), width)), width);
			assert_int_equal(strlen(format_delta(buf, v, width + 1, true)), width + 1);
			assert_int_equal(strlen(format_delta(buf, -v, width + 1, true)), width + 1);
		}
	assert_int_equal(strlen(format_bytes(buf, UINT64_MAX, 6)), 6);
	for (double p = 0; p <= 1; p += 0.001)
		assert_int_equal(strlen(format_percent(buf, p, 1, 5)), 5);
}

static void test_odd_values(void **state)
{
	char buf[FORMAT_BUF];

	(void)state;
	assert_true(format_clamp(NAN) == 0);
	assert_true(format_clamp(-INFINITY) == 0);
	assert_true(format_clamp(INFINITY) > 0);
	assert_string_equal(format_percent(buf, 1, 0, 5), "     ");
	assert_string_equal(format_percent(buf, NAN, 1, 5), "     ");
	assert_string_equal(format_percent(buf, 1, 3, 5), " 33.3");
	assert_string_equal(format_percent(buf, 3, 3, 5), "100.0");
	assert_string_equal(format_delta(buf, -3.2 * 1048576, 7, true), "  -3.2M");
	assert_string_equal(format_delta(buf, 0, 7, true), "      0");
	assert_string_equal(format_error(buf, 0, 100, true), "    ");
	assert_string_equal(format_error(buf, 6, 100, true), " ±6%");
	assert_string_equal(format_error(buf, 31, 100, false), "~31%");
	assert_string_equal(format_error(buf, 400, 100, true), "±99+");
	assert_string_equal(format_error(buf, 400, 0, true), "±99+");
}

static void test_key_names(void **state)
{
	(void)state;
	for (uint32_t k = 33; k < 127; k++)
		assert_int_equal(key_parse((char[]){ (char)k, '\0' }), k);
	assert_int_equal(key_parse("Space"), ' ');
	assert_int_equal(key_parse("S-Tab"), UKEY_BACKTAB);
	assert_int_equal(key_parse("PgDn"), UKEY_PGDN);
	assert_int_equal(key_parse("F1"), UKEY_F1);
	assert_int_equal(key_parse("F12"), UKEY_F12);
	assert_int_equal(key_parse("C-f"), 6);
	assert_int_equal(key_parse("C-]"), 29);
	assert_int_equal(key_parse("é"), 0xe9);
	assert_int_equal(key_parse("nonsense"), UKEY_NONE);
	assert_int_equal(key_parse(""), UKEY_NONE);
}

/* Each action is whole, each key of the table does what the table says, no two on one screen. */
static void test_key_table(void **state)
{
	(void)state;
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++) {
		const struct action_def *def = action_def(a);
		char keys[64], *save = NULL;
		assert_non_null(def->keys);
		assert_non_null(def->help);
		assert_non_null(def->group);
		assert_int_equal(action_parse(def->name), a);
		snprintf(keys, sizeof(keys), "%s", def->keys);
		bool plain = false;
		for (char *k = strtok_r(keys, " ", &save); k; k = strtok_r(NULL, " ", &save)) {
			uint32_t key = key_parse(k);
			assert_int_not_equal(key, UKEY_NONE);
			plain = plain || key < UKEY_F1 || key > UKEY_F12;
			for (int v = 0; v < UI_VIEWS; v++)
				if (def->screens & ON(v))
					assert_int_equal(action_of_key(key, v), a);
		}
		/* no action is reachable by a function key alone: terminals keep some for themselves */
		assert_true(plain);
	}
	assert_int_equal(action_of_key(UKEY_NONE, UI_SITES), ACT_NONE);
	assert_int_equal(action_parse("no-such"), ACT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_widths), cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_key_names), cmocka_unit_test(test_key_table),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
