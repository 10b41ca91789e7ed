/*
 * A probe places something in or beside a target that turns its allocator calls into wire
 * events. Two back ends stand behind one ops table: the agent, and uprobes, with which nothing is placed in
 * the target. The collector doesn't know which one it drains.
 *
 * All on the collector thread. Order: create, place (target stopped), then while the target
 * runs: renew + drain some tens of times a second, retune at will; then remove (target stopped; asks
 * for the target to run in between if threads are inside), destroy.
 */
#ifndef HEAPTOP_PROBE_PROBE_H
#define HEAPTOP_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/rss.h"
#include "wire/wire.h"

struct err;
struct modules;
struct named_list;
struct target;
struct target_thread;
struct uprobe_pool;

struct probe_config {
	uint64_t rate;		/* mean bytes between samples; 0, 1: every call */
	bool exact;		/* every call and every free is recorded, none is filtered */
	bool raise;		/* a full ring: the agent raises the rate by itself and drops; else
				 * it waits for room, and nothing is lost */
	uint32_t max_stack;	/* bytes of stack per event; 0: default */
	bool mmap;		/* mappings the program makes are recorded, too */
	const bool *leaving;	/* atomic; true: nobody waits for what is recorded any more. NULL: never */
	const struct named_list *named;	/* entry points the user named, or NULL; outlives the probe */
	bool no_memfd;		/* force the process_vm_readv way (tests) */
	double ns_per_tick;	/* of the TSC, if known; 0: measured, which takes 5 ms */
	struct uprobe_pool *uprobes;	/* uprobes: what they have in the kernel comes from there; outlives the probe */
};

/* An allocator entry point, hooked or not. */
struct probe_hook {
	uint32_t module;	/* id in modules */
	uint64_t addr;		/* runtime address */
	char name[48];		/* "malloc" */
	bool hooked;
	char reason[96];	/* why not, if not */
};

struct probe_stats {
	uint64_t recorded, dropped, nested, gap, no_slot, filter_full, abandoned, bad;
	uint64_t lost;		/* frees lost to a full ring: their blocks look live for longer */
	uint64_t wrapped;	/* malloc calls seen inside another malloc, both counted: a wrapper */
	uint64_t cycles;	/* TSC ticks the target spent recording */
	uint64_t waited;	/* TSC ticks it waited for room */
	uint64_t rate;		/* as the agent has it now: it may have raised it */
	uint64_t walked, copied;	/* stacks walked inside the target; copies to be walked here */
	uint32_t threads;	/* slots in use */
	bool free_all;		/* frees are not filtered */
};

/*
 * An event as it is handed over, decoded from its record (wire.h); every length in it has been
 * checked. Pointers lead into the probe's buffer and are valid until the next drain begins.
 */
struct probe_event {
	enum wire_kind kind;
	unsigned flags;			/* enum wire_flags */
	uint32_t slot;			/* < WIRE_SLOTS */
	uint64_t tsc;
	uint64_t addr;			/* of the block; WIRE_THREAD: the thread's id in the target's PID namespace */
	const char *name;		/* WIRE_THREAD only: 16 bytes, not always ended by a 0; untrusted */
	uint64_t sp;			/* WIRE_THREAD only: on its stack */
	/* WIRE_ALLOC and, size only, WIRE_UNMAP */
	uint64_t size;			/* bytes asked for */
	uint64_t rate;			/* mean bytes between samples it was drawn with; 1: exact */
	uint32_t nframes;		/* return addresses, innermost first; WALKED: all that differ from */
	const uint64_t *frames;		/* the slot's stack before, of which the */
	uint32_t keep;			/* outermost ones come behind them, provided that one's seq */
	uint8_t seq;			/* was one less than this one's */
	/* unless WALKED: the frame after those, and a copy of the stack from regs->sp on */
	const struct wire_regs *regs;
	const uint8_t *stack;
	uint32_t stack_bytes;
};

typedef void (*probe_event_fn)(void *ctx, const struct probe_event *event);

/* The rule for a return address in the agent's words, 0 if it has none; see unwind/. */
typedef uint32_t (*probe_rule_fn)(void *ctx, uint64_t pc);

struct probe;
struct probe_ops {
	const char *name;
	/* `mods` are the target's, fresh. Look up symbols with the target running where possible:
	 * prepare() runs before the stop, place() while stopped. */
	struct err *(*prepare)(struct probe *p, struct target *t, const struct modules *mods);
	struct err *(*place)(struct probe *p, struct target *t);
	/* Move the lease on; both states. ERR_GONE if its memory is gone. */
	struct err *(*renew)(struct probe *p, struct target *t);
	struct err *(*set_rate)(struct probe *p, struct target *t, uint64_t rate);
	/* As probe_config.raise; true from the next drain on. */
	struct err *(*set_raise)(struct probe *p, struct target *t, bool raise);
	struct err *(*set_active)(struct probe *p, struct target *t, bool active);
	/*
	 * Have more threads than processors of a launched program filled a good part of their rings, that can only spin
	 * once there is no room? They leave heaptop a share of the processors to make it with: it is to be held while
	 * its rings are drained. NULL: never.
	 */
	bool (*crowded)(struct probe *p, struct target *t);
	/*
	 * Hand over all events committed before the call, in the order of their TSC (see wire.h); but for one
	 * whose thread was interrupted between stamping and committing it: nothing handed over before
	 * depends on that.
	 * `last`: the target has ended or is held: hand over everything that is there at the call; what others write to
	 * its memory meanwhile isn't waited for. Returns the number; `more` says whether another call is needed.
	 */
	size_t (*drain)(struct probe *p, struct target *t, bool last, probe_event_fn fn, void *ctx);
	void (*stats)(struct probe *p, struct target *t, struct probe_stats *ret);
	/*
	 * These return addresses were on a stack that could not be walked inside the target: tell
	 * their rules, so that next time it can, or that they have none, so that nobody asks again.
	 * Cheap for those known. Returns how many were new.
	 */
	size_t (*teach)(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx);
	/*
	 * An event told a difference to a stack that was never handed over: all threads shall tell
	 * their whole stacks again. As cheap as not to be minded now and then.
	 */
	void (*resync)(struct probe *p);
	/* These threads there are (ids in the target's PID namespace, ascending); `stats` was called before the
	 * list was made. */
	void (*present)(struct probe *p, struct target *t, const uint32_t *tids, size_t n);
	/* A thread of a target that runs, about to execute its first instruction; only where threads are traced
	 * from their birth on. And one of them that is no more; its registers are those of its birth. */
	void (*born)(struct probe *p, struct target *t, const struct target_thread *thread);
	void (*ended)(struct probe *p, const struct target_thread *thread);
	/* Where in the target its own memory lies; at most `max` ranges, returns how many. */
	size_t (*memory)(const struct probe *p, struct rss_range *ret, size_t max);
	/* The modules have changed: take back what isn't so any more. */
	void (*reteach)(struct probe *p, probe_rule_fn rule, void *ctx);
	/*
	 * Keep up with modules that come and go; the target runs. `mods` have just been read: look for
	 * entry points in what is new, forget what has gone without touching its memory, and see whether
	 * a module has been loaded afresh at its old place, without our jumps. *ret_wanted: something is
	 * to be hooked: stop the target and call extend(). Where nothing has changed it costs a few
	 * microseconds. probe.hooks changes.
	 */
	struct err *(*update)(struct probe *p, struct target *t, const struct modules *mods, bool *ret_wanted);
	/* Target stopped: hook what update() has found. ERR_BUSY: a thread is at an entry point: let the
	 * target run a moment (it may run already) and try again. */
	struct err *(*extend)(struct probe *p, struct target *t);
	/*
	 * Take everything out again, target stopped. *ret_again: threads are still inside; the text is
	 * restored already; let the target run a moment (it may run already), stop it and call again. Or leave it at that:
	 * then its memory stays, unused; so it does where the target may no longer unmap it (`stays`).
	 */
	struct err *(*remove)(struct probe *p, struct target *t, bool *ret_again);
	/* Compare the text of every module hooked with its file: NULL if identical. */
	struct err *(*verify)(struct probe *p, struct target *t);
	/* How it measures, in words for the user: "BPF session uprobes". Lives until it is asked again. */
	const char *(*where)(struct probe *p);
	void (*destroy)(struct probe *p);
};

struct probe {
	const struct probe_ops *ops;
	const char *stays;		/* after `remove`: why its memory is still mapped, unused; NULL: it isn't */
	struct probe_hook *hooks;	/* after prepare; of the modules there are, as of the last update */
	size_t nhooks;
	bool unheld;			/* the caller can't hold it: it is drained as it runs, crowded or not */
	bool outlives;			/* what was recorded can still be drained after `remove` */
	bool more;			/* after a drain: it has left something for the next, though it was there */
};

/* The agent back end. */
struct probe *probe_agent_create(const struct probe_config *config);

/*
 * The uprobe back end. Its target is never stopped or written to by it: place, extend and remove take a running one as
 * well.
 */
#define PROBE_UPROBE_RATE (512u << 10)	/* to begin with, where it is chosen by cost */
struct probe *probe_uprobe_create(const struct probe_config *config);

/*
 * The agent that a process just forked has inherited from `of`'s, made one of its own: the patched text is
 * there, so are thunks and code; control block, slots and filter are there and zero; only the rings are
 * still its parent's. Target stopped. What follows is as if it had been placed. *ret NULL without an error:
 * there is none in it, or it runs in its parent's memory. After an error its hooks pass everything on.
 */
struct err *probe_agent_inherit(const struct probe *of, struct target *t, const struct probe_config *config,
				struct probe **ret);

/*
 * Take out an agent that a killed heaptop left behind: entry points whose bytes are a jump into an
 * island get their file's bytes back, then the island's memory goes once no thread is inside.
 * Target stopped. *ret_found: number of hooks taken out. *ret_again as in remove.
 */
struct err *probe_agent_cleanup(struct target *t, const struct modules *mods, size_t *ret_found,
				bool *ret_again);

#endif
