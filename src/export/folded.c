/* Folded stacks; see folded.h. */
#include "export/folded.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/paths.h"

struct path {
	char *text;
	size_t len, cap;
};

static void path_add(struct path *path, const char *function)
{
	size_t n = strlen(function), need = path->len + n + 2;

	if (need > path->cap) {
		path->cap = need * 2;
		path->text = xreallocarray(path->text, path->cap, 1);
	}
	if (path->len)
		path->text[path->len++] = ';';
	for (size_t i = 0; i < n; i++) {
		char c = function[i];
		path->text[path->len++] = c == ';' ? ',' : c == '\n' ? ' ' : c;
	}
	path->text[path->len] = '\0';
}

struct folded {
	FILE *out;
	enum report_value value;
	struct path path;
	size_t *ends;		/* of path, after each function */
	size_t cap;
};

static bool write_path(void *ctx, const struct report_cell *const *cells, size_t n)
{
	struct folded *f = ctx;
	const struct report_cell *cell = cells[n - 1];

	VEC_GROW(f->ends, n - 1, f->cap);
	f->path.len = n > 1 ? f->ends[n - 2] : 0;
	path_add(&f->path, cell->function);
	f->ends[n - 1] = f->path.len;
	double own = report_value_of(&cell->self, f->value);
	if (own >= 0.5)
		fprintf(f->out, "%s %llu\n", f->path.text, (unsigned long long)(own + 0.5));
	return report_value_of(&cell->total, f->value) > 0 && !ferror(f->out);
}

struct err *folded_write(FILE *out, struct report *report, enum report_value value)
{
	struct folded f = { .out = out, .value = value };

	errno = 0;
	paths_walk(report, value, write_path, &f);
	free(f.ends);
	free(f.path.text);
	if (fflush(out) || ferror(out))
		return err_errno(errno ? errno : EIO, "writing folded stacks");
	return NULL;
}
