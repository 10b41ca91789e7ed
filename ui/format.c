/* Fixed-width numbers; see format.h. */
#include "ui/format.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

uint64_t format_clamp(double v)
{
	if (!(v > 0))
		return 0;
	if (v >= 18e18)
		return UINT64_C(18000000000000000000);
	return (uint64_t)v;
}

static int clamp_width(int width)
{
	return width < 0 ? 0 : width > FORMAT_BUF - 8 ? FORMAT_BUF - 8 : width;
}

/* "1023.9K" has one character too many for six columns: leave the decimal out. */
static void shorten(char *s, size_t width)
{
	char *point = strchr(s, '.');

	/* narrower than five: "as wide as it needs", in running text */
	if (width < 5 || strlen(s) <= width || !point)
		return;
	char *unit = point + 1;
	while (*unit >= '0' && *unit <= '9')
		unit++;
	memmove(point, unit, strlen(unit) + 1);
}

static const char *right(char buf[FORMAT_BUF], const char *s, int width)
{
	snprintf(buf, FORMAT_BUF, "%*s", clamp_width(width), s);
	return buf;
}

const char *format_bytes(char buf[FORMAT_BUF], uint64_t bytes, int width)
{
	char text[TEXT_NUMBER];

	text_bytes(text, bytes);
	shorten(text, clamp_width(width));
	return right(buf, text, width);
}

const char *format_count(char buf[FORMAT_BUF], uint64_t n, int width)
{
	char text[TEXT_NUMBER];

	text_count(text, n);
	shorten(text, clamp_width(width));
	return right(buf, text, width);
}

const char *format_delta(char buf[FORMAT_BUF], double bytes, int width, bool plus)
{
	char text[TEXT_NUMBER + 2];
	bool minus = bytes < 0;

	text_bytes(text + 1, format_clamp(minus ? -bytes : bytes));
	shorten(text + 1, clamp_width(width - 1));
	text[0] = minus ? '-' : '+';
	bool zero = !strcmp(text + 1, "0");
	return right(buf, zero || (!minus && !plus) ? text + 1 : text, width);
}

const char *format_percent(char buf[FORMAT_BUF], double part, double whole, int width)
{
	char text[24];

	if (!(whole > 0) || !(part >= 0))
		return right(buf, "", width);
	double p = part / whole * 1000;
	unsigned tenths = p > 99999 ? 99999 : (unsigned)(p + 0.5);
	snprintf(text, sizeof(text), "%u.%u", tenths / 10, tenths % 10);
	return right(buf, text, width);
}

const char *format_share(char buf[FORMAT_BUF], double part, double whole)
{
	char percent[FORMAT_BUF];

	format_percent(percent, part, whole, 1);
	snprintf(buf, FORMAT_BUF, "%.*s%%", FORMAT_BUF - 2, *percent == ' ' ? "0" : percent);
	return buf;
}

const char *format_value(char buf[FORMAT_BUF], double value, enum report_value kind, int width)
{
	uint64_t n = format_clamp(value + 0.5);

	return report_value_is_bytes(kind) ? format_bytes(buf, n, width) : format_count(buf, n, width);
}

const char *format_error(char buf[FORMAT_BUF], double se, double value, bool unicode)
{
	const char *sign = unicode ? "±" : "~";
	char digits[16];

	if (!(se > 0)) {
		snprintf(buf, FORMAT_BUF, "%4s", "");
		return buf;
	}
	double p = value > 0 ? se / value * 100 : 100;
	if (p >= 99.5)
		snprintf(digits, sizeof(digits), "99+");
	else
		snprintf(digits, sizeof(digits), "%u%%", (unsigned)(p + 0.5));
	size_t used = strlen(digits) + 1;
	snprintf(buf, FORMAT_BUF, "%*s%s%s", used < 4 ? (int)(4 - used) : 0, "", sign, digits);
	return buf;
}
