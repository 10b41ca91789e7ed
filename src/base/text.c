/* Sanitising, parsing and formatting of text; see text.h. */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t text_utf8_decode(const char *str, size_t len, uint32_t *ret)
{
	const unsigned char *s = (const unsigned char *)str;
	size_t n;
	uint32_t c, min;

	if (!len)
		return 0;
	if (s[0] < 0x80) {
		*ret = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		n = 2, c = s[0] & 0x1f, min = 0x80;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3, c = s[0] & 0x0f, min = 0x800;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		n = 4, c = s[0] & 0x07, min = 0x10000;
	} else {
		return 0;
	}
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

static bool is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f)	/* C0, DEL, C1 */
		|| (c >= 0x200b && c <= 0x200f)		/* zero width, direction marks */
		|| (c >= 0x2028 && c <= 0x202e)		/* separators, direction overrides */
		|| (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void text_sanitize(char *s)
{
	size_t len = strlen(s);

	while (len) {
		uint32_t c;
		size_t n = text_utf8_decode(s, len, &c);
		if (!n) {
			*s = '?';
			n = 1;
		} else if (is_hostile(c)) {
			memset(s, '?', n);
		}
		s += n;
		len -= n;
	}
}

static bool parse_number(const char *s, double *ret, const char **ret_end)
{
	/* strtod also takes "inf", "0x1p3", "-1" and leading blanks: not here */
	if ((*s < '0' || *s > '9') && *s != '.')
		return false;
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return false;
	double value = 0, scale = 1;
	bool digits = false, point = false;
	for (;; s++) {
		if (*s >= '0' && *s <= '9') {
			digits = true;
			if (point)
				value += (*s - '0') * (scale /= 10);
			else
				value = value * 10 + (*s - '0');
		} else if (*s == '.' && !point) {
			point = true;
		} else {
			break;
		}
	}
	*ret = value;
	*ret_end = s;
	return digits;
}

bool text_parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	double value;

	if (!parse_number(s, &value, &s))
		return false;
	if (*s && *s != 'B' && *s != 'b') {
		char c = *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s;
		const char *u = strchr(units, c);
		if (!u)
			return false;
		for (long i = u - units; i >= 0; i--)
			value *= 1024;
		s++;
		if (*s == 'i')
			s++;
	}
	if (*s == 'B' || *s == 'b')
		s++;
	if (*s || value >= 9e18)
		return false;
	*ret = (uint64_t)(value + 0.5);
	return true;
}

bool text_parse_time(const char *s, double *ret)
{
	double value;

	if (!parse_number(s, &value, &s))
		return false;
	if (!strcmp(s, "ms"))
		value /= 1000;
	else if (!strcmp(s, "m") || !strcmp(s, "min"))
		value *= 60;
	else if (!strcmp(s, "h"))
		value *= 3600;
	else if (*s && strcmp(s, "s"))
		return false;
	if (value > 1e9)
		return false;
	*ret = value;
	return true;
}

static const char *fixed1(char buf[TEXT_NUMBER], double value, char unit)
{
	/* tenths in integers: printf's %f follows the locale's decimal point */
	unsigned long long tenths = (unsigned long long)(value * 10 + 0.5);

	snprintf(buf, TEXT_NUMBER, "%llu.%llu%c", tenths / 10, tenths % 10, unit);
	return buf;
}

const char *text_bytes(char buf[TEXT_NUMBER], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	int unit = -1;

	/* 1023.95 would be printed as 1024.0: go to the next unit before that */
	while (value >= (unit < 0 ? 1024 : 1023.95) && unit < 5) {
		value /= 1024;
		unit++;
	}
	if (unit < 0) {
		snprintf(buf, TEXT_NUMBER, "%llu", (unsigned long long)bytes);
		return buf;
	}
	return fixed1(buf, value, units[unit]);
}

const char *text_count(char buf[TEXT_NUMBER], uint64_t n)
{
	if (n < 1000) {
		snprintf(buf, TEXT_NUMBER, "%llu", (unsigned long long)n);
		return buf;
	}
	static const char units[] = "kMGTPE";
	double value = (double)n / 1000;
	int unit = 0;
	while (value >= 999.95 && unit < 5) {
		value /= 1000;
		unit++;
	}
	if (value < 9.995 && unit > 0) {
		unsigned hundredths = (unsigned)(value * 100 + 0.5);
		snprintf(buf, TEXT_NUMBER, "%u.%02u%c", hundredths / 100, hundredths % 100,
			 units[unit]);
		return buf;
	}
	return fixed1(buf, value, units[unit]);
}

const char *text_clock(char buf[TEXT_NUMBER], double seconds)
{
	if (!(seconds > 0))
		seconds = 0;
	if (seconds > 3.6e8)
		seconds = 3.6e8;
	unsigned long s = (unsigned long)seconds;
	if (s >= 3600)
		snprintf(buf, TEXT_NUMBER, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(buf, TEXT_NUMBER, "%lu:%02lu", s / 60, s % 60);
	return buf;
}
