/*
 * The scrollback of vt.c: finished rows, packed as UTF-8 and runs of style, in a queue that is
 * bounded in bytes. One thread.
 */
#ifndef HEAPTOP_UI_VT_LINES_H
#define HEAPTOP_UI_VT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

struct vt_line;

struct vt_lines {
	struct vt_line **ring;	/* the k-th is ring[(head + k) & (cap - 1)] */
	size_t head, n, cap;	/* cap: 0 or a power of two */
	size_t bytes, max_bytes;
	uint64_t dropped;	/* rows that went: the number of the oldest one left */
};

void vt_lines_init(struct vt_lines *lines, size_t max_bytes);
void vt_lines_deinit(struct vt_lines *lines);

/* Append a row of n cells, at most VT_COLS_MAX; `wrapped`: the next one continues it. */
void vt_lines_push(struct vt_lines *lines, const struct cell *cells, size_t n, bool wrapped);

/* The k-th row there, k < n. */
size_t vt_lines_width(const struct vt_lines *lines, size_t k);
bool vt_lines_wrapped(const struct vt_lines *lines, size_t k);
size_t vt_lines_cells(const struct vt_lines *lines, size_t k, struct cell *cells, size_t max);

/* Columns of a code point as the cells have it: 1 or 2; 0: it mustn't get into one. */
int vt_char_width(uint32_t ch);
/* Encode a code point (a valid one) as UTF-8; returns the number of bytes. */
size_t vt_encode(uint32_t ch, char buf[4]);

#endif
