/* base/text: sanitising, parsing, number formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "base/text.h"

static void check_sanitize(const char *in, const char *want)
{
	char buf[256];

	strcpy(buf, in);
	text_sanitize(buf);
	assert_string_equal(buf, want);
}

static void sanitize(void **state)
{
	(void)state;
	check_sanitize("plain text", "plain text");
	check_sanitize("a\033[31mb", "a?[31mb");
	check_sanitize("tab\tnl\nbell\a", "tab?nl?bell?");
	check_sanitize("\x7f", "?");
	check_sanitize("\xc2\x9b" "31m", "??31m");		/* C1: CSI as UTF-8 */
	check_sanitize("\x9b" "31m", "?31m");			/* and as a bare byte */
	check_sanitize("x\xe2\x80\xae" "y", "x???y");		/* right-to-left override */
	check_sanitize("\xc3\xa4\xe2\x96\x8f\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x96\x8f\xf0\x9f\x98\x80");
	check_sanitize("cut \xe2\x96", "cut ??");
	check_sanitize("\xc0\xaf\xed\xa0\x80", "?????");	/* overlong, surrogate */
}

/* No byte string, however hostile, leaves anything a terminal acts on. */
static void sanitize_random(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		char buf[33];
		size_t len = (size_t)(rand() % 32);
		for (size_t i = 0; i < len; i++)
			buf[i] = (char)(1 + rand() % 255);
		buf[len] = 0;
		text_sanitize(buf);
		assert_int_equal(strlen(buf), len);
		for (size_t i = 0; i < len;) {
			uint32_t c;
			size_t n = text_utf8_decode(buf + i, len - i, &c);
			assert_true(n > 0);
			assert_true(c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0));
			i += n;
		}
	}
}

static void sizes(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_true(text_parse_size("0", &v) && v == 0);
	assert_true(text_parse_size("512K", &v) && v == 512 * 1024);
	assert_true(text_parse_size("4k", &v) && v == 4096);
	assert_true(text_parse_size("1.5M", &v) && v == 1536 * 1024);
	assert_true(text_parse_size("2GiB", &v) && v == 2ull << 30);
	assert_true(text_parse_size("7B", &v) && v == 7);
	assert_false(text_parse_size("", &v));
	assert_false(text_parse_size("-1", &v));
	assert_false(text_parse_size("K", &v));
	assert_false(text_parse_size("12Q", &v));
	assert_false(text_parse_size("12KK", &v));
	assert_false(text_parse_size("0x10", &v));
	assert_false(text_parse_size("inf", &v));
	assert_false(text_parse_size("99999999999T", &v));
}

static void times(void **state)
{
	double v = 0;

	(void)state;
	assert_true(text_parse_time("500ms", &v) && v == 0.5);
	assert_true(text_parse_time("30s", &v) && v == 30);
	assert_true(text_parse_time("2", &v) && v == 2);
	assert_true(text_parse_time("1.5m", &v) && v == 90);
	assert_true(text_parse_time("1h", &v) && v == 3600);
	assert_false(text_parse_time("", &v));
	assert_false(text_parse_time("5d", &v));
	assert_false(text_parse_time("-3s", &v));
}

static void numbers(void **state)
{
	char b[TEXT_NUMBER];

	(void)state;
	assert_string_equal(text_bytes(b, 0), "0");
	assert_string_equal(text_bytes(b, 1023), "1023");
	assert_string_equal(text_bytes(b, 1024), "1.0K");
	assert_string_equal(text_bytes(b, 1048575), "1.0M");
	assert_string_equal(text_bytes(b, 432328499), "412.3M");
	assert_string_equal(text_bytes(b, UINT64_MAX), "16.0E");
	assert_string_equal(text_count(b, 999), "999");
	assert_string_equal(text_count(b, 14600), "14.6k");
	assert_string_equal(text_count(b, 999960), "1.00M");
	assert_string_equal(text_count(b, 1210000), "1.21M");
	assert_string_equal(text_count(b, UINT64_MAX), "18.4E");
	assert_string_equal(text_clock(b, 192.9), "3:12");
	assert_string_equal(text_clock(b, 3725), "1:02:05");
	assert_string_equal(text_clock(b, -5), "0:00");
}

/* What glibc would die of is refused, and nothing that people type. */
static void smart_case(void **state)
{
	(void)state;
	assert_true(pattern_ignores_case("parse"));
	assert_true(pattern_ignores_case(""));
	assert_true(pattern_ignores_case("\\Wparse\\B"));
	assert_false(pattern_ignores_case("Parse"));
	assert_false(pattern_ignores_case("\\\\Parse"));
	assert_true(pattern_ignores_case("parse\\"));
}

static void patterns(void **state)
{
	(void)state;
	static const char *const fine[] = {
		"", "Vec<int>", "a|b|(c.*d)+$", "[^](){255}{255}{255}]x", "[[:alpha:](]{2,40}", "\\{9\\}", "x{0,255}",
		"(((((((((((((((((((((((((((((x)))))))))))))))))))))))))))))", "^std::(map|set)<[^>]*>::", "x{30,}{200}",
	};
	static const char *const bad[] = {
		"x{255}{255}", "(x{1,255}){1,255}", "((x+y{90}){90}){2}", "x{99999999999999999999}", "(a)\\1", "x++++++++++++++++",
		"((((((((((((((((((((((((((((((((x))))))))))))))))))))))))))))))))", "[", "(x", "x{", "x{5,}{9000}", "x*******y", "(((((((a*)?)*)+)*)*)*)",
	};
	CLEANUP_FREE char *lengthy = xcalloc(1, PATTERN_MAX_LEN + 2);
	memset(lengthy, 'x', PATTERN_MAX_LEN + 1);
	regex_t re;

	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		struct err *err = pattern_compile(fine[i], true, &re);
		if (err)
			fail_msg("%s: %s", fine[i], err->text);
		regfree(&re);
	}
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		struct err *err = pattern_compile(i < ARRAY_SIZE(bad) ? bad[i] : lengthy, false, &re);
		if (!err)
			fail_msg("%s is taken", bad[i]);
		assert_int_equal(err->code, ERR_BAD_INPUT);
		err_free(err);
	}
	assert_null(pattern_compile("xy$", false, &re));
	assert_true(pattern_matches(&re, "abxy"));
	assert_false(pattern_matches(&re, "abxyz"));
	regfree(&re);
	/* an end that isn't looked at isn't an end */
	CLEANUP_FREE char *name = xmalloc(PATTERN_MAX_INPUT + 3);
	memset(name, 'x', PATTERN_MAX_INPUT);
	memcpy(name + PATTERN_MAX_INPUT, "zz", 3);
	assert_null(pattern_compile("z", false, &re));
	assert_false(pattern_matches(&re, name));
	regfree(&re);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sanitize),
		cmocka_unit_test(sanitize_random),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times),
		cmocka_unit_test(numbers),
		cmocka_unit_test(patterns),
		cmocka_unit_test(smart_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
