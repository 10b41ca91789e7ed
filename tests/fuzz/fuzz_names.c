/*
 * Names the target chose: sanitised, demangled, shortened. What comes out is clean, within its length,
 * and sanitising it again changes nothing; numbers read from text are read the same way always.
 */
#include <math.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/report.h"
#include "report/short.h"
#include "symbol/names.h"
#include "tests/fuzz/fuzz.h"

static void check_short(const char *function)
{
	char buf[SHORT_MAX];

	short_skeleton(function, buf);
	FUZZ_ASSERT(memchr(buf, 0, sizeof(buf)) && fuzz_is_clean(buf));
	for (size_t len = 1; len < sizeof(buf); len = len * 3 + 1) {
		for (int ascii = 0; ascii < 2; ascii++) {
			memset(buf, 'x', sizeof(buf));
			report_short_name(function, buf, len, ascii);
			FUZZ_ASSERT(memchr(buf, 0, len) && fuzz_is_clean(buf));
		}
	}
}

static void check_clean(char *text)
{
	size_t len = strlen(text);

	text_sanitize(text);
	FUZZ_ASSERT(strlen(text) <= len);
	for (const char *s = text; *s;) {
		uint32_t ch;
		size_t n = text_utf8_decode(s, strlen(s), &ch);
		FUZZ_ASSERT(n && ch >= 0x20 && ch != 0x7f && (ch < 0x80 || ch >= 0xa0));
		FUZZ_ASSERT(!(ch >= 0x202a && ch <= 0x202e) && !(ch >= 0x2066 && ch <= 0x2069));
		s += n;
	}
	CLEANUP_FREE char *again = xstrdup(text);
	text_sanitize(again);
	FUZZ_ASSERT(!strcmp(text, again));
}

static void check_numbers(const char *text)
{
	char buf[TEXT_NUMBER];
	uint64_t size;
	double time;

	if (text_parse_size(text, &size)) {
		FUZZ_ASSERT(strlen(text_bytes(buf, size)) < TEXT_NUMBER);
		FUZZ_ASSERT(strlen(text_count(buf, size)) < TEXT_NUMBER);
	}
	if (text_parse_time(text, &time)) {
		FUZZ_ASSERT(isfinite(time) && time >= 0);
		FUZZ_ASSERT(strlen(text_clock(buf, time)) < TEXT_NUMBER);
	}
}

static void run_names(const uint8_t *data, size_t len)
{
	CLEANUP_FREE char *text = fuzz_string(data, len);

	check_numbers(text);
	char *name = demangle(text);
	FUZZ_ASSERT(strlen(name) <= 65536 && fuzz_is_clean(name));
	check_short(name);
	free(name);
	check_clean(text);
	check_short(text);
}

const struct fuzz_target fuzz_names = { "names", 1024, run_names };
