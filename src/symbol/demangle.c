/*
 * Demangling through libiberty, with bounded work; see names.h. Substitutions let a symbol of
 * a few hundred bytes stand for gigabytes of text, so the text goes through a callback that jumps
 * out once there is more of it than anybody reads. What is too long for that is demangled once more without its template
 * arguments: cut, it would end within the first of them, and what the function is called, and whether it is a
 * wrapper, stands behind them. (The C++ demangler has everything on its
 * stack and the Rust one at most one buffer, which is lost then: a hostile symbol's price.)
 * libiberty's own recursion limit stays on; it also refuses C++ symbols above 1,024 bytes.
 */
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>	/* Debian, Fedora */
#else
#include <demangle.h>
#endif
#undef ARRAY_SIZE	/* libiberty's; base/mem.h has the same */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "symbol/names.h"

#define SYMBOL_MAX 65536
#define TEXT_MAX 65536
#define WORK_MAX (8u << 20)	/* bytes that are looked at to leave most of them out: some 20 ms */

struct sink {
	char *text;
	size_t len, cap;
	jmp_buf full;
	/* without template arguments: */
	bool fold;
	size_t work;		/* bytes looked at */
	unsigned depth;		/* of '<' */
	char last;		/* byte before */
	char mark[16];		/* stands for the arguments: of two functions that differ in them alone the names do, too */
};

static void sink_add(const char *s, size_t n, void *ctx)
{
	struct sink *sink = ctx;
	bool full = n > TEXT_MAX - sink->len;

	if (!n)
		return;
	if (full)
		n = TEXT_MAX - sink->len;
	if (n > sink->cap - sink->len) {
		sink->cap = 2 * (sink->len + n);
		sink->text = xreallocarray(sink->text, sink->cap, 1);
	}
	memcpy(sink->text + sink->len, s, n);
	sink->len += n;
	if (full)
		longjmp(sink->full, 1);
}

/* Is the text so far, without this, an operator's name that a '<' or '>' is part of? */
static bool ends_in_operator(const struct sink *sink)
{
	static const char *const ends[] = { "operator", "operator<", "operator>", "operator-", "operator<=" };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i]);
		if (sink->len >= n && !memcmp(sink->text + sink->len - n, ends[i], n))
			return true;
	}
	return false;
}

static void fold_add(const char *s, size_t n, void *ctx)
{
	struct sink *sink = ctx;

	sink->work += n;
	if (sink->work > WORK_MAX)
		longjmp(sink->full, 1);
	for (size_t i = 0; i < n; sink->last = s[i++]) {
		bool open = s[i] == '<', close = s[i] == '>' && sink->last != '-';
		if ((open || close) && !sink->depth && ends_in_operator(sink))
			open = close = false;
		if (open && !sink->depth++) {
			sink_add("<", 1, sink);
			sink_add(sink->mark, strlen(sink->mark), sink);
		}
		if (close && sink->depth)
			sink->depth--;
		if (!sink->depth)
			sink_add(&s[i], 1, sink);
	}
}

/* True if the sink holds the whole name, or as much of it as fits. */
static bool run(struct sink *sink, const char *symbol)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	demangle_callbackref add = sink->fold ? fold_add : sink_add;

	if (setjmp(sink->full))
		return true;
	/* Rust first: its legacy symbols are valid C++ ones too, with a hash at their end */
	if (!sink->fold && rust_demangle_callback(symbol, options, add, sink))
		return true;
	sink->len = 0;
	return cplus_demangle_v3_callback(symbol, options, add, sink);
}

/* Once more, without template arguments, into an empty sink. */
static void run_folded(struct sink *sink, const char *symbol)
{
	uint32_t hash = 0x811c9dc5;

	for (const char *s = symbol; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x01000193;
	sink->fold = true;
	snprintf(sink->mark, sizeof(sink->mark), "#%08x", (unsigned)hash);
	/* hostile, or no C++: what was cut is all there is */
	if (!run(sink, symbol) || sink->work > WORK_MAX)
		sink->len = 0;
}

static bool looks_mangled(const char *s)
{
	return (s[0] == '_' && (s[1] == 'Z' || s[1] == 'R')) || !strncmp(s, "_GLOBAL_", 8);
}

char *demangle(const char *linkage)
{
	char *ret = NULL;

	if (looks_mangled(linkage) && strnlen(linkage, SYMBOL_MAX) < SYMBOL_MAX) {
		struct sink *sink = xcalloc(1, sizeof(*sink));
		if (run(sink, linkage) && sink->len)
			ret = xstrndup(sink->text, sink->len);
		if (ret && sink->len == TEXT_MAX) {
			run_folded(sink, linkage);
			if (sink->len) {
				free(ret);
				ret = xstrndup(sink->text, sink->len);
			}
		}
		free(sink->text);
		free(sink);
	}
	if (!ret)
		ret = xstrndup(linkage, SYMBOL_MAX);
	text_sanitize(ret);
	return ret;
}
