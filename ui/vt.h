/*
 * A small terminal emulation for programs that write lines: from bytes to rows of cells with
 * scrollback. Understood are CR, LF, BS, TAB, colours and attributes (SGR), erasing in the line and
 * moving within it, as line editors and progress bars do; everything else is swallowed. A program
 * that addresses the cursor gives readable raw text, a row for each place it jumps to, and a flag.
 *
 * Any bytes are allowed, split anywhere. What comes out is safe for a terminal: cells hold
 * printable code points of width 1 or 2 only; the rest is `·`. Pure memory; one thread. Widths come
 * from wcwidth(), so the locale has to be set before.
 */
#ifndef HEAPTOP_UI_VT_H
#define HEAPTOP_UI_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

#define VT_COLS_MAX CANVAS_MAX

struct vt;

/* `cols`: the program's terminal width, taken as 2 at least; `max_bytes`: memory of the scrollback, the oldest rows go first. */
struct vt *vt_create(size_t cols, size_t max_bytes);
void vt_destroy(struct vt *vt);		/* accepts NULL */

void vt_feed(struct vt *vt, const void *buf, size_t len);

/* Another width, for what comes; rows that are there keep theirs. */
void vt_set_cols(struct vt *vt, size_t cols);

/*
 * Rows are numbered from the first one ever, so that a number stays right while old rows go:
 * those from vt_first up to, not including, vt_end are there. The last is the one being written
 * and may be empty.
 */
uint64_t vt_first(const struct vt *vt);
uint64_t vt_end(const struct vt *vt);

/* Cells of a row without trailing blanks; 0 for one that isn't there. */
size_t vt_width(const struct vt *vt, uint64_t row);
/* Copy at most `max` cells of a row; returns how many. A wide character is followed by a cell of ch 0. */
size_t vt_cells(const struct vt *vt, uint64_t row, struct cell *cells, size_t max);
/* Did the row end at the right edge, the next one continuing it? */
bool vt_wrapped(const struct vt *vt, uint64_t row);
/* The row as UTF-8, without attributes; the caller frees. */
char *vt_text(const struct vt *vt, uint64_t row);

/* The cursor's column in the last row: 0 to cols - 1. */
size_t vt_cursor(const struct vt *vt);
/* The program addresses the cursor or uses the alternate screen. */
bool vt_addressing(const struct vt *vt);
/* DECCKM is on: the program wants cursor keys as ESC O. */
bool vt_app_cursor(const struct vt *vt);
/* Memory of the scrollback, bytes. */
size_t vt_bytes(const struct vt *vt);

#endif
