/*
 * Frames and functions of a report. A *frame* is one distinct address (module, vaddr); once its
 * name is there it knows its *functions*, innermost inline first. A function is (module name,
 * function name): frames of the same function share it. A frame without a name has a provisional
 * function of its own, "module+offset".
 *
 * Ids. A function's id is a hash of what it is; but when the name of a frame comes in that was
 * shown before, the function takes over the provisional one's id, so that cursors and open
 * branches stay. If it had an id already, the old one becomes an alias. One thread: the report's.
 */
#ifndef HEAPTOP_REPORT_FUNCS_H
#define HEAPTOP_REPORT_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/arena.h"
#include "report/report.h"

struct modules;
struct name;
struct name_func;
struct names;
struct wrappers;

struct func {
	uint64_t id;			/* 0: not given yet */
	uint64_t hash;
	const char *function, *module;
	const char *raw;		/* as the linker has it, of the first frame with this name; or NULL */
	bool unknown, pseudo, wrapper;
	int8_t match;			/* filter: 1 matches, 0 doesn't, -1 not looked at */
	uint32_t site;			/* sites.c: index + 1 of its record, 0: never was a site */
	uint64_t trend[REPORT_TREND];	/* ring of live bytes, a value a second */
	uint32_t ntrend;		/* values ever put, 0: never was a site */
};

struct frame {
	uint64_t addr;
	const struct name *name;	/* NULL: not known (yet) */
	const uint32_t *funcs;		/* indices, innermost first */
	uint32_t nfuncs;		/* 0: never looked at */
	uint32_t asked;			/* round in which its name was last asked for */
	int8_t match;			/* filter, as above; file names included */
	uint32_t provisional;		/* index + 1 of its provisional function */
};

struct funcs {
	struct names *names;
	const struct modules *mods;
	const struct wrappers *wrappers;	/* borrowed; NULL: the well-known ones alone */
	bool wait;			/* for names */
	bool missing;			/* a name asked for wasn't there */
	uint32_t round;			/* goes up when names may have come in */
	struct func *items;
	size_t n, cap;
	uint32_t *slots;		/* hash of functions: index + 1 */
	size_t nslots;
	struct frame *frames;
	size_t nframes, frames_cap;
	uint32_t *frame_slots;		/* hash of addresses: index + 1 */
	size_t nframe_slots;
	struct { uint64_t id; uint32_t func; } *ids;	/* hash: all ids and aliases */
	size_t nids, nid_slots;
	struct { const char *function; uint32_t func; } *raws;	/* hash by the string's address; see funcs_raw */
	size_t nraw_slots, nraws;	/* functions that are in it */
	const char **module_names;	/* by module id, learnt from names; NULL: not yet */
	size_t nmodule_names;
	struct arena arena;
};

void funcs_init(struct funcs *funcs, struct names *names, bool wait);
void funcs_deinit(struct funcs *funcs);

/* Index of the frame of an address (not its name yet). */
uint32_t funcs_frame(struct funcs *funcs, uint64_t addr);
/* The frame with its functions as far as known now. Valid until the next call. */
const struct frame *funcs_resolve(struct funcs *funcs, uint32_t frame);
/* Source file and line of function `i` of a resolved frame: NULL, 0 if unknown. */
const char *frame_file(const struct frame *frame, uint32_t i);
const char *frame_dir(const struct frame *frame);	/* what relative files are relative to */
uint32_t frame_line(const struct frame *frame, uint32_t i);
bool frame_inlined(const struct frame *frame, uint32_t i);

/* What a function is: a hash of its module's and its own name. */
uint64_t funcs_what(const char *function, const char *module);
/* The linker's name of a function of this list, by `function`, the very string of it; NULL if it isn't one. */
const char *funcs_raw(struct funcs *funcs, const char *function);
/* Function with this id or alias; -1 if there is none. */
int64_t funcs_by_id(const struct funcs *funcs, uint64_t id);
/* Judge all functions again: the wrapper rules have changed. */
void funcs_rejudge(struct funcs *funcs);

static inline uint64_t funcs_mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b) * 0x9e3779b97f4a7c15ull + (a << 17 | a >> 47);

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

#endif
