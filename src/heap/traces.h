/*
 * Statistics per trace: which node of the tree has which record, what an allocation and a free
 * do to it, the peak, rates over a window, and merging when the records are used up. The collector
 * thread. heap.c decides what an event means; this only counts.
 *
 * The peak. Each trace must know what it held at the moment the *process* held most, and that
 * moment is found only in hindsight, at every new maximum, so nothing may be done per trace then.
 * An epoch counts the maxima. A trace's peak is right for the maximum number peak_epoch; if that
 * isn't the newest, the trace hasn't changed since (every change settles it first), so its live
 * bytes now are its live bytes then. Summed over any set of traces these are exact.
 *
 * Publishing looks only at chunks (store.h) where something may differ from the view before: an event
 * marks its chunk; rates go on changing until the window has passed the last event; and a new
 * maximum makes the live bytes of a trace its peak, also if nothing happened to it, where these two
 * differed. A chunk that is `watched` for the latter two has been marked by an event before, so
 * all in all publishing costs what happened. Only once it is over all are looked at, to say so.
 */
#ifndef HEAPTOP_HEAP_TRACES_H
#define HEAPTOP_HEAP_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/heap.h"
#include "heap/series.h"
#include "heap/sums.h"
#include "heap/view.h"

struct store;

/* What rates are computed from: counters at the start of a window. */
struct trace_base {
	uint64_t alloc_bytes, alloc_q10, free_bytes, free_q10;
};

struct trace {
	uint32_t node;		/* TREE_NONE: spare */
	uint64_t touched;	/* time of its last allocation */
	uint64_t peak_epoch;
	struct trace_stats s;
	struct trace_base base[2];	/* counters at times->base[] */
};

struct traces {
	struct trace *items;
	size_t n, cap;
	uint32_t max;
	uint32_t *of_node;	/* trace index + 1 by node id, 0: none */
	size_t of_node_cap;
	uint32_t *spare;	/* indices freed by merging */
	size_t nspare, spare_cap;
	uint32_t merged_trace;	/* index + 1 of the FRAME_MERGED trace, 0: not needed yet */
	uint32_t merged;	/* traces and stacks given up */
	uint32_t sweep_at;	/* value of `merged` at which another sweep may be worth it */
	uint64_t live_bytes;	/* sum over all traces */
	uint64_t peak_bytes;	/* its maximum */
	uint64_t peak_time;
	uint64_t epoch;
	uint64_t base_time[2];	/* ns */
	/* publishing; by chunk: */
	uint8_t *dirty;		/* 1: something happened since the last view */
	uint8_t *watched;	/* WATCH_ bits, set when it was last looked at */
	size_t nchunks, dirty_cap, watched_cap;
	struct store *store;
	struct sums total;	/* of the records in the newest view */
	uint64_t published_epoch;
	bool published_over;
	struct series series;	/* of live bytes, by trace */
};

void traces_init(struct traces *traces, uint32_t max);
void traces_deinit(struct traces *traces);

/* The record of a node, made if need be. When no more may be made: that of node `merged_node`. */
uint32_t traces_of_node(struct traces *traces, uint32_t node, uint32_t merged_node);
/* The record for stacks that have no node of their own any more. */
uint32_t traces_merged(struct traces *traces, uint32_t merged_node);

void traces_alloc(struct traces *traces, uint32_t trace, const struct heap_weight *w,
		  uint64_t time);
void traces_free(struct traces *traces, uint32_t trace, const struct heap_weight *w, bool temp);
/* Exactly undoes traces_free. */
void traces_unfree(struct traces *traces, uint32_t trace, const struct heap_weight *w, bool temp,
		   uint64_t time);

/* A part of something allocated, but not the last of it, comes or goes: bytes without blocks. */
void traces_grow(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t time);
void traces_trim(struct traces *traces, uint32_t trace, uint64_t bytes);
/* Exactly undoes traces_trim. */
void traces_untrim(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t time);

/* What of its live blocks is in memory and swapped out now, bounded by what is live. */
void traces_resident(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t swapped);

/* What of its live blocks is a minute old or more, bounded by what is live. */
void traces_old(struct traces *traces, uint32_t trace, uint64_t bytes);

/* Bytes that it was the first to touch. */
void traces_fault(struct traces *traces, uint32_t trace, const struct heap_fault *fault);

/* Give the view its traces, peaks and rates filled in, and totals.s. over: nothing happens here any more. */
void traces_publish(struct traces *traces, uint64_t time, bool over, struct view *view);

#endif
