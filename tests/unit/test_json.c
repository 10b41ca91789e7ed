/* JSON as text: every byte that a string may have, figures that JSON has none for, and that folded stacks agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/folded.h"
#include "export/json.h"
#include "heap/view.h"
#include "tests/lib/fakeheap.h"

static char *written(struct view *view, struct fakeheap *heap, struct err *(*write)(FILE *, struct report *, enum report_value))
{
	struct report *r = report_create(fakeheap_names(heap), true);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	report_set_view(r, view);
	assert_null(write(out, r, REPORT_LIVE_BYTES));
	fclose(out);
	report_destroy(r);
	return text;
}

static void test_strings(void **state)
{
	(void)state;
	static const struct {
		const char *bytes, *json;
	} cases[] = {
		{ "plain /bin/true --x", "plain /bin/true --x" },
		{ "a\"b\\c", "a\\\"b\\\\c" },
		{ "\x01\b\t\n\r\x1b[0m\x1f\x7f", "\\u0001\\u0008\\u0009\\u000a\\u000d\\u001b[0m\\u001f\\u007f" },
		{ "\xc2\x85\xc2\xa0", "\\u0085\xc2\xa0" },	/* NEL is a control character, the blank behind it none */
		{ "\xff\xfe \xc0\xaf", "\\ufffd\\ufffd \\ufffd\\ufffd" },
		{ "\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd" },	/* a surrogate */
		{ "cut \xe6\xbc", "cut \\ufffd\\ufffd" },
		{ "\xe6\xbc\xa2\xf0\x9f\x91\xa9", "\xe6\xbc\xa2\xf0\x9f\x91\xa9" },
		{ "", "" },
	};
	struct fakeheap *heap = fakeheap_create(&(struct fakeheap_config){ .rate = 1 });
	struct view *view = fakeheap_view(heap);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		free(view->info.command);
		view->info.command = xstrdup(cases[i].bytes);
		CLEANUP_FREE char *text = written(view, heap, json_write);
		CLEANUP_FREE char *wanted = xasprintf("\n\"command\":\"%s\",\n", cases[i].json);
		if (!strstr(text, wanted))
			fail_msg("case %zu: no %s in %.300s", i, wanted, text);
	}
	view_unref(view);
	fakeheap_destroy(heap);
}

static void test_no_number(void **state)
{
	(void)state;
	struct fakeheap *heap = fakeheap_create(&(struct fakeheap_config){ .rate = 512 });
	struct view *view = fakeheap_view(heap);

	view->time = NAN;
	view->totals.peak_time = HUGE_VALF;
	view->info.overhead = -HUGE_VALF;
	view->totals.s.live_var = NAN;
	CLEANUP_FREE char *text = written(view, heap, json_write);
	assert_non_null(strstr(text, "\"time_s\":null,"));
	assert_non_null(strstr(text, "\"peak_time_s\":null,"));
	assert_non_null(strstr(text, "\"overhead_pct\":null,"));
	assert_non_null(strstr(text, "\"live_error_pct\":null,"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf,"));
	view_unref(view);
	fakeheap_destroy(heap);
}

/* Both are made of the same paths: a stack's line in one has its line in the other. */
static void test_as_folded(void **state)
{
	(void)state;
	struct fakeheap *heap = fakeheap_create(&(struct fakeheap_config){ .rate = 1 });
	struct view *view = fakeheap_view(heap);
	CLEANUP_FREE char *json = written(view, heap, json_write), *folded = written(view, heap, folded_write);
	size_t lines = 0;

	for (char *line, *rest = folded; (line = strsep(&rest, "\n")) && *line; lines++) {
		char *space = strrchr(line, ' ');
		CLEANUP_FREE char *frames = xcalloc(8, strlen(line)), *wanted = NULL;
		*space = '\0';
		for (char *at = line, *f; (f = strsep(&at, ";")); )
			sprintf(frames + strlen(frames), "%s\"%s\"", *frames ? "," : "", f);
		wanted = xasprintf("{\"frames\":[%s],\"live_bytes\":%s,", frames, space + 1);
		if (!strstr(json, wanted))
			fail_msg("no %s", wanted);
	}
	assert_true(lines > 5);
	view_unref(view);
	fakeheap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_no_number),
		cmocka_unit_test(test_as_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
