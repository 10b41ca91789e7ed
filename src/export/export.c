/* Which format, where to, and back; see export.h. */
#include "export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/file.h"
#include "export/folded.h"
#include "export/json.h"
#include "export/pprof.h"
#include "export/text.h"
#include "heap/view.h"
#include "symbol/names.h"

static const struct {
	const char *suffix;
	enum export_format format;
} suffixes[] = {
	{ ".pb.gz", EXPORT_PPROF },
	{ ".pprof", EXPORT_PPROF },
	{ ".pb", EXPORT_PPROF },
	{ ".folded", EXPORT_FOLDED },
	{ ".json", EXPORT_JSON },
	{ ".txt", EXPORT_TEXT },
};

static bool ends_in(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n > k && !strcmp(s + n - k, suffix);
}

struct err *export_format_of(const char *path, enum export_format *ret)
{
	if (!strcmp(path, "-")) {
		*ret = EXPORT_PPROF;
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (ends_in(path, suffixes[i].suffix)) {
			*ret = suffixes[i].format;
			return NULL;
		}
	}
	return err_new(ERR_BAD_INPUT, "%s: the suffix says no format: use .pb.gz, .pprof or .pb "
		       "(pprof), .folded, .json or .txt", path);
}

static struct err *write_to(FILE *out, const char *path, enum export_format format,
			    struct report *report, struct names *names, const struct modules *mods,
			    enum report_value value)
{
	switch (format) {
	case EXPORT_PPROF:
		return pprof_write(out, report, names, mods, !ends_in(path, ".pb"));
	case EXPORT_FOLDED:
		return folded_write(out, report, value);
	case EXPORT_JSON:
		return json_write(out, report, value);
	case EXPORT_TEXT:
		return text_write(out, report, value);
	}
	return err_new(ERR_OTHER, "no such format");
}

struct err *export_check(const char *path)
{
	enum export_format format;
	struct new_file *file = NULL;
	FILE *out;

	struct err *err = export_format_of(path, &format);
	if (err || !strcmp(path, "-"))
		return err;
	CLEANUP_FREE char *place = file_expand(path, (int)getpid());
	err = file_begin(place, &file, &out);
	if (!err)
		file_abandon(file);
	return err;
}

struct err *export_write(const char *path, struct view *view, struct names *names,
			 const struct modules *mods, const struct export_options *options,
			 char **ret_path)
{
	const struct export_options defaults = { .value = REPORT_LIVE_BYTES };
	CLEANUP_FREE char *place = strcmp(path, "-") ? file_expand(path, view->info.pid)
		: xstrdup(path);
	enum export_format format;
	struct new_file *file = NULL;
	FILE *out = stdout;

	if (!options)
		options = &defaults;
	struct err *err = export_format_of(place, &format);
	if (err)
		return err;
	/* before the work of naming: a place that can't be written is told at once */
	if (strcmp(place, "-") && (err = file_begin(place, &file, &out)))
		return err;
	struct report *report = report_create(names, true);
	report_set_modules(report, mods);
	report_set_wrappers(report, options->wrappers);
	err = report_set_filter(report, options->filter);
	if (!err) {
		report_set_view(report, view);
		err = write_to(out, place, format, report, names, mods, options->value);
		if (err)
			err = err_prefix(err, "%s", file ? place : "standard output");
	}
	report_destroy(report);
	if (file) {
		if (err)
			file_abandon(file);
		else
			err = file_commit(file);
	}
	if (!err && ret_path)
		*ret_path = xstrdup(place);
	return err;
}

struct err *snapshot_read_into(const char *path, struct names *names, struct view **ret_view)
{
	CLEANUP_FREE uint8_t *bytes = NULL;
	size_t len;

	struct err *err = file_read_all(path, PPROF_MAX_FILE, &bytes, &len);
	if (err)
		return err;
	return pprof_read_into(bytes, len, path, names, ret_view);
}

struct err *snapshot_read(const char *path, struct view **ret_view, struct names **ret_names)
{
	struct names *names = names_create(NULL);
	struct err *err = snapshot_read_into(path, names, ret_view);

	if (err)
		names_destroy(names);
	else
		*ret_names = names;
	return err;
}
