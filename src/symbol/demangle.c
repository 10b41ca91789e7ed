/*
 * Demangling through libiberty, with bounded work; see names.h. Substitutions let a symbol of
 * a few hundred bytes stand for gigabytes of text, so the text goes through a callback that jumps
 * out once there is more of it than anybody reads. (The C++ demangler has everything on its
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
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "symbol/names.h"

#define SYMBOL_MAX 65536
#define TEXT_MAX 65536

struct sink {
	char *text;
	size_t len, cap;
	jmp_buf full;
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

/* True if the sink holds the whole name, or as much of it as fits. */
static bool run(struct sink *sink, const char *symbol)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(sink->full))
		return true;
	/* Rust first: its legacy symbols are valid C++ ones too, with a hash at their end */
	if (rust_demangle_callback(symbol, options, sink_add, sink))
		return true;
	sink->len = 0;
	return cplus_demangle_v3_callback(symbol, options, sink_add, sink);
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
		free(sink->text);
		free(sink);
	}
	if (!ret)
		ret = xstrndup(linkage, SYMBOL_MAX);
	text_sanitize(ret);
	return ret;
}
