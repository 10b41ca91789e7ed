/* Labels of the classes of sizes: each says its bounds, in the eight columns that there are for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "heap/classes.h"
#include "report/parts.h"

static void test_size_labels(void **state)
{
	(void)state;
	static const struct {
		uint64_t from;
		unsigned step;
		const char *label;
	} cases[] = {
		{ 16, 1, "16-31" }, { 512, 1, "512-1K" }, { 2048, 1, "2K-4K" }, { 64 << 10, 1, "64K-128K" },
		{ 128 << 10, 1, "128-256K" }, { 256 << 10, 1, "256-512K" }, { 512 << 10, 1, "512K-1M" }, { 128 << 10, 2, "128-512K" },
		{ 128 << 20, 1, "128-256M" },
	};
	char label[REPORT_LABEL], before[REPORT_LABEL] = "";
	size_t seen = 0;

	for (unsigned k = 0; k < CLASS_SIZES; k++) {
		for (unsigned step = 1; step <= 4 && k + step <= CLASS_SIZES; step++) {
			report_size_label(k, k + step - 1, label);
			assert_in_range(strlen(label), 1, 8);
			for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
				if (class_size_from(k) == cases[i].from && step == cases[i].step) {
					assert_string_equal(label, cases[i].label);
					seen++;
				}
		}
		/* no two are the same */
		report_size_label(k, k, label);
		assert_string_not_equal(label, before);
		strcpy(before, label);
	}
	assert_int_equal(seen, sizeof(cases) / sizeof(cases[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_size_labels) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
