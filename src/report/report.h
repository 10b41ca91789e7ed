/*
 * View + names -> rows. What the screens, batch and exports all show, so that their numbers are
 * the same numbers: sites (flat list) and the merged call tree, both directions. Unknown names
 * show as module+offset until they are there. One report belongs to one thread; it keeps a cache
 * from one view to the next (sites per node, history of each site's live bytes).
 *
 * A *site* is the innermost frame that is not an allocator or an allocation wrapper (operator
 * new, std::allocator…, xmalloc, g_malloc, strdup, …; a rule list the user can extend). Frames
 * of the tree are *functions* (with module): the different return addresses within a function merge,
 * inlined functions are frames of their own.
 */
#ifndef HEAPTOP_REPORT_REPORT_H
#define HEAPTOP_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

struct err;
struct modules;
struct names;
struct report;
struct wrappers;

enum report_value {
	REPORT_LIVE_BYTES,	/* "live" */
	REPORT_LIVE_BLOCKS,	/* "blocks" */
	REPORT_ALLOC_BPS,	/* "rate": bytes a second */
	REPORT_ALLOC_CPS,	/* "calls": calls a second */
	REPORT_ALLOC_BYTES,	/* "alloc": since the start */
	REPORT_ALLOC_BLOCKS,	/* "allocs" */
	REPORT_TEMP_BLOCKS,	/* "temp" */
	REPORT_PEAK_BYTES,	/* "peak": held at the process's peak */
	REPORT_RES_BYTES,	/* "res": live bytes that are in memory */
	REPORT_UNTOUCHED_BYTES,	/* "untouched": live bytes that neither are nor were swapped out */
	REPORT_SWAP_BYTES,	/* "swap": live bytes swapped out */
	REPORT_FAULT_BYTES,	/* "faults": bytes of pages this stack was the first to touch */
	REPORT_OLD_BYTES,	/* "age": live bytes that are at least a minute old */
	REPORT_DELTA_BYTES,	/* "delta": live bytes less those of the base; signed, ordered by size */
	REPORT_VALUES
};
/* Name for the command line ("live"), title for the screen ("live bytes"); -1 / NULL if unknown. */
const char *report_value_name(enum report_value v);
const char *report_value_title(enum report_value v);
int report_value_parse(const char *name);
/* Of delta, which statistics alone don't have, 0: see report_site_value, report_cell_value. */
double report_value_of(const struct trace_stats *s, enum report_value v);
/* Is the value in bytes (else in blocks or calls)? per second? */
bool report_value_is_bytes(enum report_value v);
/* Is there anything known of it in the view? (Page maps may not be readable, faults not sampled, older snapshots
 * have neither.) Delta: true. */
bool report_value_known(const struct view *view, enum report_value v);

/* `wait`: batch and exports wait for every name; screens never do. `names` must outlive the
 * report; NULL: all frames are shown as module+offset. */
struct report *report_create(struct names *names, bool wait);
void report_destroy(struct report *r);	/* accepts NULL */
/* Where modules without any known name yet have their names from. Optional, borrowed. */
void report_set_modules(struct report *r, const struct modules *mods);
/* Look at another view (reference taken). Cheap if it is the same one and no name came in. */
void report_set_view(struct report *r, struct view *view);
const struct view *report_view(const struct report *r);
/* Names came in since report_set_view that were missing then. */
bool report_stale(const struct report *r);

/*
 * Filter: only traces with a frame or site whose function, file or module matches the extended
 * regex (smart case: case counts if the pattern has capitals); "!re" excludes. NULL or "": none.
 * ERR_BAD_INPUT with regerror's text for a malformed one (the old filter stays).
 */
struct err *report_set_filter(struct report *r, const char *pattern);
/* And of these only traces with their site in the module of this name; NULL: in any. */
void report_set_module(struct report *r, const char *module);
/* Does trace `trace` (index in the view) pass the filters? */
bool report_trace_passes(struct report *r, size_t trace);

/*
 * Compare with `view` from now on: an earlier view of the same process, or one from a file; `names` are
 * those of its frames and must outlive the report. NULL: no longer. Rows of both with the same function
 * (cells: the same path of functions) are the same; those that only the base has live bytes in are there as
 * well, `gone` and with zeroes.
 */
struct err *report_set_base(struct report *r, struct view *view, struct names *names);
/* NULL: there is none. */
const struct view *report_base(const struct report *r);

/* ---- sites ---- */
#define REPORT_TREND 10
/* Of a row's live blocks, where each has been looked at (report_set_held). */
struct report_held {
	bool known;		/* else the rest is 0 */
	uint8_t age;		/* age class (heap/classes.h): half of the live bytes, or more, are in it or older */
	uint32_t threads;	/* that have allocated them, ended ones too; mappings have none */
};
struct report_site {
	uint64_t id;		/* stable from view to view (also when the name comes in) */
	const char *function;	/* full, demangled or module+offset; valid until the next report_set_view */
	const char *file;	/* NULL if unknown */
	uint32_t line;		/* 0 if the site's traces differ or it is unknown */
	const char *module;
	bool unknown;		/* no symbol */
	struct trace_stats s;
	double se;		/* standard error of live_bytes, bytes; 0: exact */
	uint64_t trend[REPORT_TREND];	/* live bytes at the last views about 1 s apart, newest last */
	uint32_t ntrend;
	double trend_seconds;		/* from the first of them to the last */
	int64_t delta;		/* live bytes less those of the base; 0 without one */
	struct report_held held;
	bool fresh, gone;	/* had never allocated in the base; is only there */
	const struct report_more *more;	/* rows of other groups (groups.h); NULL: a site */
};
double report_site_value(const struct report_site *site, enum report_value v);
/* What rows' errors are shown of where they are measured by `v`: bytes first touched, or else, whatever is shown, live bytes.
 * Returns the standard error, 0: exact; *ret_of: those bytes. */
double report_error(const struct trace_stats *s, enum report_value v, double *ret_of);
/* What percents are of: the total; of delta the sum of all sites' differences, signs left out. */
double report_whole(struct report *r, enum report_value v);
/* Sites sorted by `value`, largest first (reverse: smallest first); ties by id. The array and what
 * it points to stay valid until the next report_sites or report_set_view. Functions that only touched memory
 * are there by REPORT_FAULT_BYTES alone. */
const struct report_site *report_sites(struct report *r, enum report_value value, bool reverse,
				       size_t *ret_n);
/*
 * Rows, but those of threads, are to have `held` from now on: a pass over the view's classes each time they are made.
 * They have none without.
 */
void report_set_held(struct report *r, bool on);
bool report_has_held(const struct report *r);
/* Sum over the sites shown (after the filter). */
struct trace_stats report_total(struct report *r);

/* ---- merged tree ---- */
/*
 * A tree is made of cells, created lazily as they are looked at. The path of functions from the
 * root identifies a cell: `key` is a hash of it, stable from view to view, so that a screen can
 * remember what was open. Top-down: root = all, then thread starts / main, … down to the site and
 * wrappers. Inverted: root = all, then sites, then their callers outwards.
 */
struct report_cell {
	uint64_t key;
	uint64_t func_key;	/* same function in another place of the tree: same func_key */
	const char *function;	/* "all" for the root */
	const char *file;
	uint32_t line;
	const char *module;
	bool unknown, inlined, pseudo;	/* pseudo: "[incomplete stack: …]" */
	bool has_children;
	uint32_t depth;
	struct trace_stats total;	/* with everything below */
	struct trace_stats self;	/* allocated by this function itself (zero if inverted and not a
					 * stack's end) */
	int64_t delta;			/* as in report_site */
	bool gone;
};
double report_cell_value(const struct report_cell *cell, enum report_value v);
/*
 * Leave the frames of system libraries out of the trees: what they called and allocated counts for the function
 * that called them. Those are (system.h) known by their names, or, where the modules' files are known, by the
 * folders they are in; the program itself never is one.
 */
void report_set_user_only(struct report *r, bool on);
struct report_tree;
/* Valid until report_set_view, report_set_filter; owned by the report. */
struct report_tree *report_tree(struct report *r, bool inverted);
/*
 * Do a part, of a few ms, of what the first look at the top-down tree would wait for, and keep it: some 100 ms at
 * 100,000 traces. True: there is more to do.
 */
bool report_warm(struct report *r);
const struct report_cell *report_tree_root(struct report_tree *t);
/* Children of a cell by `value`, largest first; of those that only touched memory as report_sites. Array valid as long as the tree. */
const struct report_cell *const *report_tree_children(struct report_tree *t,
						      const struct report_cell *cell,
						      enum report_value value, size_t *ret_n);
const struct report_cell *report_tree_parent(struct report_tree *t, const struct report_cell *cell);
/*
 * How old what each of n cells holds is, with everything below it (inverted: outside of it), as of the rows of
 * report_set_held, which needn't be on; threads aren't told. All different; for as many as a screen has rows.
 */
void report_cells_held(struct report_tree *t, const struct report_cell *const *cells, size_t n, struct report_held *ret);

/* ---- stacks ---- */
struct report_frame {
	const char *function, *file, *module;
	uint32_t line;
	bool inlined, unknown, pseudo;
};
/* The frames of trace `trace` (index in the view), innermost first, inlines expanded; site_index: which
 * of them is the site. Array valid until the next call. */
const struct report_frame *report_stack(struct report *r, size_t trace, size_t *ret_n,
					size_t *ret_site);
/* Index of the trace with most live bytes (or, if none is live, allocated bytes) of a site; SIZE_MAX if gone. */
size_t report_site_trace(struct report *r, uint64_t site_id);
/*
 * The id a site has now. Ids survive a name's coming in, except where the name shows that two
 * rows were one function: then the one's id ends, and this leads from it to the other's.
 */
uint64_t report_site_id(struct report *r, uint64_t site_id);

/* ---- names ---- */
/*
 * Short form of a function name into buf (at most len bytes with NUL): template and function
 * arguments elided to <…> and (), ABI tags and inline namespaces (std::__cxx11) folded.
 * ascii: "..." for the ellipsis.
 */
void report_short_name(const char *function, char *buf, size_t len, bool ascii);

/* The name as the linker has it, of a `function` of this report's rows, cells or stacks; itself if unknown. */
const char *report_raw_name(struct report *r, const char *function);

/* Text of a pseudo frame (tree.h), whose address is 1..FRAME_PSEUDO_MAX; and back, 0 if it is none. */
const char *report_pseudo_text(uint64_t addr);
uint64_t report_pseudo_parse(const char *text);

/* The user's rules for what a wrapper is (wrappers.h), which must outlive the report; NULL: none. */
void report_set_wrappers(struct report *r, const struct wrappers *wrappers);

#endif
