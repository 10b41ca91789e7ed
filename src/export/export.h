/*
 * Snapshots: a view written to a file and read back. The native form is a pprof profile
 * (github.com/google/pprof proto/profile.proto, gzipped protobuf), which other tools read:
 * sample types alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes
 * (default), one sample per trace. What pprof has no field for travels in comments, which others
 * show or ignore. Any thread; symbolising may take seconds, so never on a screen's thread.
 */
#ifndef HEAPTOP_EXPORT_EXPORT_H
#define HEAPTOP_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

struct err;
struct names;
struct modules;

enum export_format {
	EXPORT_PPROF,		/* .pb.gz, .pprof, .pb (not compressed) */
	EXPORT_FOLDED,		/* .folded: "outer;…;inner value" a line, value = live bytes or --value */
	EXPORT_JSON,		/* .json: header, graph, threads, sites, stacks; see json.h */
	EXPORT_TEXT,		/* .txt: header, totals, sites, a tree of the largest */
};
/* By suffix; ERR_BAD_INPUT naming the known suffixes. "-" is pprof. */
struct err *export_format_of(const char *path, enum export_format *ret);

/*
 * Could export_write create a file there now? NULL: yes. Told before a program is run for hours, not
 * after. Leaves nothing behind.
 */
struct err *export_check(const char *path);

struct export_options {
	enum report_value value;	/* folded, txt order */
	const char *filter;		/* or NULL */
	const struct wrappers *wrappers;	/* report_set_wrappers */
};

/*
 * Write `view` to path: a new file beside it, then renamed over it; an existing symlink or
 * special file at `path` is refused, never followed; a short write leaves the old file. "-" writes to
 * standard output. %p (pid), %h (host), %t (time) and %% are expanded. `mods` may be NULL (snapshots).
 */
struct err *export_write(const char *path, struct view *view, struct names *names,
			 const struct modules *mods, const struct export_options *options,
			 char **ret_path);

/*
 * Read a pprof profile, ours or another tool's (gzipped or not): a view in state VIEW_SNAPSHOT and
 * a names table filled from it. Every sample type found by name maps onto trace_stats
 * (inuse_space/inuse_objects, alloc_space/alloc_objects; of a profile without them the default or last
 * sample type of unit bytes becomes live bytes). Untrusted input: bounded memory (stated limits),
 * ERR_BAD_INPUT with one line.
 */
struct err *snapshot_read(const char *path, struct view **ret_view, struct names **ret_names);
/* The same with a table of names that is there already; after an error it has some of them. */
struct err *snapshot_read_into(const char *path, struct names *names, struct view **ret_view);

#endif
