/* Patterns; see pattern.h. The size is reckoned by one pass over the pattern, as glibc will make it. */
#include "base/pattern.h"

#include <stdint.h>
#include <string.h>

#include "base/err.h"

/*
 * What is open while it is read: a group's size so far, and that of its last piece; and how deep repetitions lie
 * in each other, in all of it and in the last piece: each of them multiplies the steps through all within.
 */
struct group {
	uint64_t size, last;
	unsigned nested, last_nested;
};

/* Behind a bracket expression; a ']' that comes first is one of its characters. */
static const char *skip_bracket(const char *s)
{
	s += s[1] == '^' ? 2 : 1;
	if (*s == ']')
		s++;
	for (; *s && *s != ']'; s++) {
		if (*s == '[' && (s[1] == ':' || s[1] == '.' || s[1] == '=')) {
			const char close[] = { s[1], ']', '\0' }, *end = strstr(s + 2, close);
			if (!end)
				return s + strlen(s);
			s = end + 1;
		}
	}
	return *s ? s + 1 : s;
}

static uint64_t number(const char **s)
{
	uint64_t ret = 0;

	for (; **s >= '0' && **s <= '9'; ++*s)
		ret = ret < PATTERN_MAX_SIZE ? ret * 10 + (uint64_t)(**s - '0') : ret;
	return ret;
}

/* Copies that a repetition at *s takes, and *s behind it; 0: there is none. "+" is one and then any number. */
static uint64_t repetition(const char **s)
{
	switch (**s) {
	case '*':
	case '?':
		++*s;
		return 1;
	case '+':
		++*s;
		return 2;
	case '{':
		break;
	default:
		return 0;
	}
	const char *at = *s + 1;
	uint64_t n = number(&at), copies = n;
	if (*at == ',') {
		at++;
		copies = *at == '}' ? n + 1 : number(&at);
	}
	if (*at != '}')
		return 0;	/* a brace like any character, or an error that regcomp tells */
	*s = at + 1;
	if (copies < n)
		copies = n;
	return copies ? copies : 1;
}

static const char *too_much(const char *s)
{
	struct group groups[PATTERN_MAX_DEPTH + 1] = { { 0 } }, *g = groups;

	if (strnlen(s, PATTERN_MAX_LEN + 1) > PATTERN_MAX_LEN)
		return "it is too long";
	while (*s) {
		uint64_t copies = repetition(&s);
		if (copies) {
			g->size += g->last * (copies - 1);
			g->last *= copies;
			if (++g->last_nested > g->nested)
				g->nested = g->last_nested;
			if (g->size > PATTERN_MAX_SIZE || g->nested > PATTERN_MAX_NESTED)
				return "it repeats too much";
			continue;
		}
		if (*s == '(') {
			if (g == groups + PATTERN_MAX_DEPTH)
				return "its parentheses are too deep";
			*++g = (struct group){ .size = 1 };
			s++;
			continue;
		}
		if (*s == ')' && g > groups) {
			g[-1].last = g->size;
			g[-1].size += g->size;
			g[-1].last_nested = g->nested;
			if (g->nested > g[-1].nested)
				g[-1].nested = g->nested;
			g--;
			s++;
			continue;
		}
		if (*s == '\\' && s[1] >= '1' && s[1] <= '9')
			return "back references aren't supported";
		g->last = 1;
		g->last_nested = 0;
		g->size++;
		s = *s == '[' ? skip_bracket(s) : *s == '\\' && s[1] ? s + 2 : s + 1;
	}
	while (g > groups) {
		g[-1].size += g->size;
		g--;
	}
	return g->size > PATTERN_MAX_SIZE ? "it repeats too much" : NULL;
}

bool pattern_ignores_case(const char *s)
{
	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s >= 'A' && *s <= 'Z')
			return false;
	}
	return true;
}

struct err *pattern_compile(const char *pattern, bool icase, regex_t *ret)
{
	const char *why = too_much(pattern);
	char text[256];

	if (why)
		return err_new(ERR_BAD_INPUT, "%s", why);
	int code = regcomp(ret, pattern, REG_EXTENDED | REG_NOSUB | (icase ? REG_ICASE : 0));
	if (!code)
		return NULL;
	regerror(code, ret, text, sizeof(text));
	return err_new(ERR_BAD_INPUT, "%s", text);
}

bool pattern_matches(const regex_t *re, const char *text)
{
	regmatch_t all = { 0, (regoff_t)strnlen(text, PATTERN_MAX_INPUT) };

	return !regexec(re, text, 1, &all, REG_STARTEND);
}
