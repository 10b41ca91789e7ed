/*
 * The parts Detail is put together from. Each draws itself at (y, x), `cols` wide, on a canvas whose clip is set, and
 * returns how many rows it took; y may lie outside of what is seen, which is how Detail scrolls.
 */
#ifndef HEAPTOP_UI_DETAIL_BLOCKS_H
#define HEAPTOP_UI_DETAIL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/parts.h"
#include "ui/screen.h"

struct report_touched;
struct source_text;

/* Live bytes of the selection over time, one about each second, oldest first. */
#define DETAIL_HISTORY 240u
struct detail_history {
	uint64_t values[DETAIL_HISTORY];
	double times[DETAIL_HISTORY];	/* seconds since the start */
	size_t n;
};

struct detail_facts {
	const struct selection *sel;
	const struct report_parts *parts;
	const struct report_touched *touched;
	const struct detail_history *history;
	const struct report_frame *stack;	/* of the heaviest trace, innermost first */
	size_t nframes, site;
	const char *file;		/* of the source, NULL: unknown */
	uint32_t line;
	const struct source_text *source;	/* NULL: not read yet */
};

int detail_verdict(struct ui *ui, const struct detail_facts *f, int y, int x, int cols);
int detail_numbers(struct ui *ui, const struct detail_facts *f, int y, int x, int cols);
/* max_frames: beyond, the outer ones are counted. */
int detail_stack(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max_frames);
/* The lines around the selection's own. */
int detail_source(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, unsigned around);
/* Live blocks by size, live bytes by age: beside each other where there is room; at most `rows` classes each. */
int detail_classes(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t rows);
/* With the live bytes over time beside it, or below. */
int detail_threads(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max_threads);
/* Page faults, both ways; an empty row behind each. Nothing where nothing is known. */
int detail_touched(struct ui *ui, const struct detail_facts *f, int y, int x, int cols);
/* What the title leaves out of a long name. */
int detail_name(struct ui *ui, const struct detail_facts *f, int y, int x, int cols);

#endif
