/*
 * Short function names; see short.h and report_short_name in report.h.
 *
 * The grammar isn't parsed, only its brackets: '<' and '(' groups are skipped as wholes, and
 * the blanks at top level before an argument list end a return type, which only templates have:
 *
 *	void ns::f<int, char>(std::vector<int> const&)		f<…>() of ns
 *	std::operator<< <std::char_traits<char> >(std::ostream&, char)
 *	foo(int)::{lambda(int)#1}::operator()(int) const [clone .isra.0]
 *	<alloc::vec::Vec<T> as core::ops::Drop>::drop		(Rust: the first '<' is no argument)
 */
#include "report/short.h"

#include <stdbool.h>
#include <string.h>

#include "report/report.h"

#define OUT_MAX 1024

struct out {
	char text[OUT_MAX];
	size_t len;
	bool bare;		/* skeleton: groups leave nothing */
	const char *ellipsis;
};

static void put(struct out *out, const char *s, size_t n)
{
	if (n > OUT_MAX - 1 - out->len)
		n = OUT_MAX - 1 - out->len;
	memcpy(out->text + out->len, s, n);
	out->len += n;
}

static void put_group(struct out *out, bool angle)
{
	if (out->bare)
		return;
	if (angle) {
		put(out, "<", 1);
		put(out, out->ellipsis, strlen(out->ellipsis));
		put(out, ">", 1);
	} else {
		put(out, "()", 2);
	}
}

static bool is_ident(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
		|| c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Past the ')' that closes the '(' at s, or at the end. */
static const char *skip_paren(const char *s)
{
	size_t depth = 0;

	for (; *s; s++) {
		if (*s == '(')
			depth++;
		else if (*s == ')' && --depth == 0)
			return s + 1;
	}
	return s;
}

/* Is the '<' or '>' at s part of an operator's name or an arrow, not a bracket? `start`: how far back one may look. */
static bool no_bracket(const char *start, const char *s)
{
	if (*s == '>' && s > start && s[-1] == '-')
		return true;
	/* the longest operators with brackets have three characters: <=>, <<=, ->* */
	for (int i = 0; i < 3 && s > start && strchr("<>-=", s[-1]); i++)
		s--;
	return s - start >= 8 && !memcmp(s - 8, "operator", 8);
}

/* Past the '>' that closes the '<' at s, or at the end. Parentheses inside are skipped as wholes. */
static const char *skip_angle(const char *s)
{
	const char *start = s;
	size_t depth = 0;

	while (*s) {
		if (*s == '(') {
			s = skip_paren(s);
			continue;
		}
		if ((*s == '<' || *s == '>') && !no_bracket(start, s)) {
			if (*s == '<')
				depth++;
			else if (--depth == 0)
				return s + 1;
		}
		s++;
	}
	return s;
}

/* "operator" and its symbol; returns past it. Conversions keep the first word of their type. */
static const char *put_operator(struct out *out, const char *s)
{
	static const char *const symbols[] = {
		"()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "==", "!=",
		"&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=",
		"<", ">", "=", "!", "+", "-", "*", "/", "%", "^", "&", "|", "~", ",",
	};

	put(out, s, 8);
	s += 8;
	if (*s == ' ') {
		size_t n = 1;
		while (is_ident(s[n]) || s[n] == ':')
			n++;
		if (s[n] == '[' && s[n + 1] == ']')
			n += 2;
		put(out, s, n);
		return s + n;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		if (starts(s, symbols[i])) {
			put(out, symbols[i], strlen(symbols[i]));
			s += strlen(symbols[i]);
			/* "operator<< <int>": the blank is the demangler's */
			return s[0] == ' ' && s[1] == '<' ? s + 1 : s;
		}
	}
	return s;
}

/* "{lambda(int)#1}", "{closure#0}": kept, without the parameters. */
static const char *put_braces(struct out *out, const char *s)
{
	size_t depth = 0;

	while (*s) {
		if (*s == '(') {
			s = skip_paren(s);
			continue;
		}
		if (*s == '<') {
			s = skip_angle(s);
			put_group(out, true);
			continue;
		}
		put(out, s, 1);
		if (*s == '{')
			depth++;
		else if (*s == '}' && --depth == 0)
			return s + 1;
		s++;
	}
	return s;
}

/* Rust's "<T as Trait>": kept, what is nested in it elided. */
static const char *put_qualified(struct out *out, const char *s)
{
	put(out, s++, 1);
	while (*s) {
		if (*s == '<') {
			s = skip_angle(s);
			put_group(out, true);
			continue;
		}
		put(out, s, 1);
		if (*s++ == '>')
			return s;
	}
	return s;
}

static bool ends_in_decltype(const struct out *out)
{
	size_t n = out->len;

	if (n && out->text[n - 1] == ' ')
		n--;
	return n >= 8 && !memcmp(out->text + n - 8, "decltype", 8);
}

static void elide(struct out *out, const char *s)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *start = s;
	size_t type_end = 0;	/* what the name begins after, if arguments follow */
	bool after_args = false;

	if (*s == '[') {	/* "[incomplete stack: …]" */
		put(out, s, strlen(s));
		return;
	}
	if (*s == '<')
		s = put_qualified(out, s);
	while (*s) {
		bool word = s == start || !is_ident(s[-1]);
		if (word && starts(s, "operator") && !is_ident(s[8])) {
			s = put_operator(out, s);
			after_args = false;
		} else if (*s == '<') {
			s = skip_angle(s);
			put_group(out, true);
		} else if (*s == '(') {
			if (starts(s, anonymous)) {
				put(out, s, sizeof(anonymous) - 1);
				s += sizeof(anonymous) - 1;
				continue;
			}
			if (s > start && s[-1] == '.') {
				/* Go's receiver: "pprof.(*builder).emit" */
				const char *end = skip_paren(s);
				put(out, s, (size_t)(end - s));
				s = end;
				continue;
			}
			bool is_type = ends_in_decltype(out);
			s = skip_paren(s);
			put_group(out, false);
			if (!is_type) {
				out->len -= type_end;
				memmove(out->text, out->text + type_end, out->len);
				type_end = 0;
				after_args = true;
			}
		} else if (*s == '{') {
			s = put_braces(out, s);
		} else if (starts(s, "[abi:")) {
			const char *end = strchr(s, ']');
			s = end ? end + 1 : s + strlen(s);
		} else if (*s == ' ') {
			/* "const", "[clone …]", "&&" behind the arguments; the clone mark of C names */
			if (after_args || starts(s, " [clone"))
				break;
			put(out, s++, 1);
			type_end = out->len;
		} else if (word && starts(s, "__cxx11::")) {
			s += 9;
		} else if (word && starts(s, "__1::")) {
			s += 5;
		} else {
			after_args = false;
			put(out, s++, 1);
		}
	}
}

void short_skeleton(const char *function, char buf[SHORT_MAX])
{
	static const char *const clones[] = { ".part.", ".isra.", ".constprop.", ".cold", ".lto_priv.",
					      "@" };
	struct out out = { .bare = true, .ellipsis = "" };

	if (starts(function, "__GI_"))
		function += 5;
	elide(&out, function);
	size_t n = out.len < SHORT_MAX ? out.len : SHORT_MAX - 1;
	/* between characters */
	while (n > 0 && n < out.len && ((unsigned char)out.text[n] & 0xc0) == 0x80)
		n--;
	memcpy(buf, out.text, n);
	buf[n] = '\0';
	for (size_t i = 0; i < sizeof(clones) / sizeof(clones[0]); i++) {
		char *at = strstr(buf, clones[i]);
		if (at && at > buf)
			*at = '\0';
	}
}

void report_short_name(const char *function, char *buf, size_t len, bool ascii)
{
	const char *ellipsis = ascii ? "..." : "…";
	struct out out = { .ellipsis = ellipsis };

	if (!len)
		return;
	elide(&out, function);
	size_t n = out.len;
	if (n < len && n < OUT_MAX - 1) {
		memcpy(buf, out.text, n);
		buf[n] = '\0';
		return;
	}
	/* cut between characters, with room for the mark */
	size_t mark = strlen(ellipsis);
	if (mark >= len)
		mark = 0;
	if (n > len - 1 - mark)
		n = len - 1 - mark;
	while (n > 0 && ((unsigned char)out.text[n] & 0xc0) == 0x80)
		n--;
	memcpy(buf, out.text, n);
	memcpy(buf + n, ellipsis, mark);
	buf[n + mark] = '\0';
}
