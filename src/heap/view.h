/*
 * A published view: what the model knew at one instant. Immutable, reference-counted, any thread.
 * Screens, batch and exports all read views, so their numbers agree. A snapshot file read back is
 * a view too.
 */
#ifndef HEAPTOP_HEAP_VIEW_H
#define HEAPTOP_HEAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/tree.h"

/* Block counts are in 1/1024 blocks while summed; this rounds for showing. */
static inline uint64_t q10_round(uint64_t q)
{
	return (q + 512) >> 10;
}

struct trace_stats {
	uint64_t alloc_bytes, alloc_q10;	/* since the start */
	uint64_t free_bytes, free_q10;
	uint64_t live_bytes, live_q10;		/* = alloc - free */
	uint64_t temp_bytes, temp_q10;		/* freed within 10 ms of their allocation */
	uint64_t peak_bytes, peak_q10;		/* held at the moment of the process's peak: these
						 * sum up to the peak over any set of traces */
	uint64_t samples;			/* allocation events seen */
	uint64_t live_samples;			/* of them still live */
	uint64_t res_bytes, swap_bytes;		/* of live_bytes: in memory, swapped out, when that was last looked
						 * at (resident.h); never more than live_bytes together */
	uint64_t fault_bytes;			/* of pages first touched by this stack since the start, of whatever
						 * block; a stack that only touched has nothing else here */
	uint64_t old_bytes;			/* of live_bytes: at least a minute old, when each block was last looked at
						 * (classes.h); of no meaning in a view without classes */
	uint64_t over_bytes;			/* of live_bytes: what processes held when they ended or were let go;
						 * nobody allocates or frees there any more. Not in files */
	double live_var, alloc_var, fault_var;	/* variance of live_bytes, alloc_bytes, fault_bytes; 0: exact */
	float alloc_bps, alloc_cps;		/* bytes, calls a second, over the last ~2 s; 0 when it is over */
	float free_bps, free_cps;
};

struct store;
struct view_trace {
	uint32_t node;		/* innermost frame's node in the tree; TREE_NONE: no trace here */
	struct trace_stats s;
};

/*
 * Records lie in chunks, which views of the same heap share as long as nothing in them changes:
 * a reader that knows one view finds the differences to the next by comparing pointers. Since views
 * hold their chunks, a pointer isn't used again while one of the two is held.
 */
#define VIEW_CHUNK 16u
struct view_chunk {
	struct view_chunk *next;	/* these two: store.c's */
	uint64_t born;
	struct view_trace traces[VIEW_CHUNK];
};

struct view_point {		/* of the live graph, one a second or so; older ones stand for spans (points.h) */
	float time;		/* seconds since the start, of the span's beginning */
	uint64_t live_bytes, rss;	/* the highest in the span */
	float alloc_bps;
};

enum view_state {
	VIEW_RUNNING,
	VIEW_PAUSED,		/* collection is off in the target */
	VIEW_EXITED,		/* the program has ended; exit_code */
	VIEW_DETACHED,
	VIEW_SNAPSHOT,		/* read from a file */
};

/* Nothing can happen in the process any more that we would see: it has ended, or was let go. */
static inline bool view_state_over(enum view_state state)
{
	return state == VIEW_EXITED || state == VIEW_DETACHED;
}

/* "running" …; "?" if it is none of them. */
const char *view_state_name(enum view_state state);

/* A hook that couldn't be placed. */
struct view_unhooked {
	char *name, *module, *reason;
};

/*
 * What the system counts, and what of it isn't the heap, to set against it (report/rss.h). From /proc, read together,
 * now and then. All in bytes.
 */
struct view_memory {
	uint64_t anon, file, shmem;	/* RssAnon, RssFile, RssShmem: together the RSS; 0: not known (yet) */
	uint64_t swap;			/* VmSwap */
	uint64_t stacks;		/* of anon: all threads' stacks */
	uint64_t data;			/* of anon: data of modules: written to, or relocated */
	uint64_t agent_anon, agent_shmem;	/* heaptop's own in it, of anon and of shmem */
	uint64_t older;			/* attached: what of anon was there then and isn't any of these */
	uint64_t tracked_anon, tracked_file;	/* of live blocks: resident.h's totals; estimated */
	double tracked_var;		/* variance of the two together */
	float scan_share;		/* of a core that looking at the page maps takes */
};

struct view_info {
	int pid;
	char *command;		/* sanitised */
	char *probe;		/* how it is measured: "BPF session uprobes", in brackets why not by a better way; NULL: agent */
	char *thread;		/* only blocks of these threads are in the view (heap_choose_threads); NULL: all */
	enum view_state state;
	int exit_code;
	bool attached;		/* to a running process: older blocks are unknown */
	bool exact;		/* exact mode asked for (-e) */
	bool auto_rate;
	uint64_t min_size;	/* bytes: smaller blocks aren't in the view; 0: all are */
	uint64_t rate;		/* mean bytes between samples now; <= 1: every call */
	float overhead;		/* measured: fraction of the target's CPU time, e.g. 0.018 */
	uint64_t events;	/* handled */
	uint64_t dropped;	/* events lost to full rings or abandoned */
	uint64_t gap;		/* samples not recorded because heaptop was late */
	uint64_t stacks, stacks_complete;	/* allocation events; those whose stack reached its root */
	uint64_t ends[8];	/* allocation events by enum unwind_end */
	uint64_t walked, copied;	/* stacks walked inside the target; copied, to be walked here */
	uint64_t untracked;	/* live blocks beyond the table's bound, or calls of slotless threads */
	uint64_t rss;		/* bytes */
	struct view_memory memory;
	bool faults;		/* page faults are sampled */
	char *faults_why;	/* why they can't be; NULL: they can, or nobody has asked */
	bool res_off;		/* nobody wants to know what is in memory: what is said of it is of before */
	uint32_t threads;
	float pause;		/* seconds the target was stopped at attach */
	uint32_t processes;	/* the view is the sum of that many; 0, 1: of one */
	uint32_t nhooks;	/* entry points hooked */
	struct view_unhooked *unhooked;
	size_t nunhooked;
};

/*
 * What a thread has allocated, whoever freed it. Threads that have ended are added up by name when there
 * are many.
 */
#define VIEW_THREAD_NAME 32
struct view_thread {
	uint32_t tid;		/* in the target's PID namespace; 0: not known, or a sum */
	uint32_t merged;	/* not 0: a sum over so many ended threads of this name */
	bool ended;
	bool chosen;		/* by the filter: view_info.thread */
	char name[VIEW_THREAD_NAME];	/* sanitised; "": not known */
	struct trace_stats s;	/* but for temporary blocks and peaks */
};

struct view_totals {
	struct trace_stats s;	/* peak_bytes: the peak */
	uint64_t lost_frees;
	float peak_time;	/* seconds since the start */
	float trend_bps;	/* growth of live bytes a second, over the last ~5 s; 0 when it is over */
	struct tree_stats tree;
	uint32_t merged;	/* traces given up for the bound */
};

struct classes;
struct touches;
struct view_series;
struct view {
	int refs;		/* atomic; view_ref, view_unref */
	uint64_t seq;		/* 1, 2, 3 … */
	double time;		/* seconds since the start (attach or launch) */
	int64_t wall_ns;	/* CLOCK_REALTIME of the view */
	struct view_info info;	/* strings owned */
	struct view_totals totals;
	const struct tree *tree;	/* shared, reference held */
	uint32_t nnodes;	/* nodes that may be read */
	/*
	 * Traces have indices, the same in all views of a heap as long as the trace lives; where one was
	 * merged there is none until another takes its place. view_trace gives them.
	 */
	size_t ntraces;		/* indices are below this */
	struct view_chunk **chunks;
	struct view_point *points;	/* oldest first, at most 1000 */
	size_t npoints;
	struct view_thread *threads;	/* in no order; their sums are the totals, if there is no filter */
	size_t nthreads;
	struct classes *classes;	/* what the live blocks are like (classes.h), or NULL: nobody asked. Reference held */
	bool classes_fresh;		/* of this view; else of an earlier one of the same heap */
	struct view_series *series;	/* what its traces held before (series.h), or NULL: not known, or nobody will ask. Reference held */
	struct view_series *thread_series;	/* the same of `threads`, by their indices */
	struct touches *touches;	/* who touched whose memory (touches.h), or NULL: nothing. Reference held */
	/* store.c's */
	struct store *store;
	uint64_t store_seq;
	struct view *older, *newer;
	struct view_chunk *replaced;
};

/* Trace `i` of the view; NULL if there is none. */
static inline const struct view_trace *view_trace(const struct view *view, size_t i)
{
	if (i >= view->ntraces)
		return NULL;
	const struct view_trace *trace = &view->chunks[i / VIEW_CHUNK]->traces[i % VIEW_CHUNK];
	return trace->node == TREE_NONE ? NULL : trace;
}

struct view *view_ref(struct view *view);
void view_unref(struct view *view);	/* accepts NULL */

/*
 * An empty view with one reference, for those who fill one (heap_publish, the snapshot reader).
 * view_info_copy copies the strings too; what dst held before is not freed.
 */
struct view *view_create(void);
void view_info_copy(struct view_info *dst, const struct view_info *src);

/* Give a view that is made by hand its traces, copied (once only; indices as in the array), and
 * totals.s. */
void view_set_traces(struct view *view, const struct view_trace *traces, size_t n);

/* dst += src, field by field (rates and variances too; peaks add, see above). */
void trace_stats_add(struct trace_stats *dst, const struct trace_stats *src);

#endif
