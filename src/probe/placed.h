/*
 * Inside of the agent back end: what its files share. find.c decides what to hook, place.c puts it in,
 * late.c keeps up with modules that come and go, remove.c takes it out again and checks, agent.c runs it in
 * between.
 */
#ifndef HEAPTOP_PROBE_PLACED_H
#define HEAPTOP_PROBE_PLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/hook.h"
#include "probe/probe.h"
#include "probe/ring.h"
#include "wire/wire.h"

#define SLOTS_FEW 64u	/* so many are read one by one */

struct elf_file;
struct entries;
struct entry;
struct mapping;

/* A function to be hooked; after prepare only such as can be. */
struct site {
	size_t hook;			/* index in probe.hooks */
	size_t text;			/* index of its module in texts */
	const struct entry *entry;	/* what it is */
	bool named;			/* by the user */
	bool hookable;			/* else the hook says why not */
	size_t beneath;			/* index + 1 of the site it calls, which counts instead; 0: none */
	uint64_t addr;
	struct wire_hook call;		/* what the agent is told: kind, args, instead */
	uint64_t size;			/* of the function, bytes, by its symbol; may be 0 */
	struct hook_plan plan;		/* if hookable */
	uint64_t thunk;			/* its place in an island; 0: none yet */
	uint64_t jump_to;		/* within the thunk */
	bool patched;			/* or, by uprobes, attached to */
	/* by uprobes */
	uint32_t at;			/* bytes from the entry to the probe */
	bool stepped;			/* the kernel single-steps there */
	bool leads;			/* it may call other sites: its return is watched, too */
};

/* A module with entry points: its code, to compare with the file, and what lies around it. */
struct text {
	uint32_t module;		/* id */
	struct elf_file *file;		/* our reference */
	uint64_t bias;
	uint64_t dev, inode;
	bool is_main;
	uint64_t lo, hi;		/* all its mappings */
	struct text_range {
		uint64_t start, end;	/* executable, runtime */
	} *ranges;
	size_t nranges, ranges_cap;
};

/* The agent's code and, from `first` on, places for thunks, HOOK_THUNK_MAX apart. */
struct island {
	uint64_t addr, bytes;
	uint64_t first;			/* offset */
	size_t nplaces;
	bool *taken;			/* by a thunk; one whose module has gone leaves its place to others */
};

struct agent {
	struct probe probe;		/* first */
	struct probe_config config;
	bool by_uprobes;		/* nothing goes into the target (uprobe.c): finding is all that's used */
	struct entries *entries;
	bool *named_found;		/* those of config.named that a module has */
	size_t hooks_cap;
	struct site *sites;
	size_t nsites, sites_cap;
	struct text *texts;
	size_t ntexts, texts_cap;
	struct island *islands;
	size_t nislands, islands_cap;
	bool *looked;			/* by module id: looked through for entry points */
	size_t nlooked;

	/* in the target, 0: not there */
	uint64_t state;
	uint64_t rings, rings_bytes;
	uint32_t nrings;
	uint64_t ring_bytes, ring_stride, nonce;
	uint8_t *shared;		/* the rings' memfd as mapped here, or NULL: */
	uint8_t *copy;			/* one ring read from private memory */

	struct wire_rules *rules;	/* within shared, or NULL */
	struct taught {
		uint64_t pc;		/* 0: free */
		uint32_t rule;
	} *taught;			/* what each of its words was set to: ours, whatever the target
					 * has done to its table; NULL: none yet */
	struct wire_birth *born;	/* wire_births as we have written it; NULL: nothing yet */
	uint32_t next_victim;		/* way of a full line that is overwritten next */
	uint32_t next_forget;		/* part of the table that is set right next */

	struct ring_reader *reader;
	uint64_t ticks_began;		/* TSC and clock at create, to learn the TSC's rate */
	uint64_t ns_began;
	uint64_t lease;
	bool active;
	bool waits;			/* the agent waits for room in a full ring */
	bool raise_next;		/* the agent may raise the rate from the next drain on */
	uint64_t placed_ns;		/* when, */
	double placed_cpu;		/* what the target had used of the processors by then, seconds, */
	bool grown_up;			/* and whether that is long ago; see agent_note_placed */
	uint64_t filter_ns;		/* when a seccomp filter was last looked for; 0: never */
	bool may_syscall;		/* none was found then */
	bool filtered;			/* one was found once */
	uint32_t rings_used;		/* of nrings: nobody has written to a later one, when last looked */

	/* drain: threads whose stack bounds are asked for */
	struct asked {
		uint32_t slot, tid;
		uint64_t sp;
	} *asked;
	size_t nasked, asked_cap;
	uint64_t asked_ns;		/* when they were last looked up */
	uint64_t main_lo, main_hi;	/* as the target has them */
	uint64_t break_at;		/* see wire_ctl */

	struct wire_slot *table;	/* the slots as last read */
	uint32_t slots_used;		/* as the target had counted just before all were last read, */
	uint32_t nfew;			/* and where they are; more than SLOTS_FEW: too many for that */
	uint16_t few[SLOTS_FEW];
	uint32_t tids[WIRE_SLOTS];	/* the slots' threads, as events have told; WIRE_TID_NONE */
	uint32_t absent[WIRE_SLOTS];	/* who was missing in the last list of threads */
	uint32_t tid_at;		/* as the target has it, 0: not known */
	bool may_ask;			/* the agent asks the kernel itself who has ended */
	struct probe_stats stats;
	uint64_t walked, copied;	/* see probe_stats */

	/* remove */
	bool restored;			/* text is as in the file */
	bool others;			/* somebody else has taken the agent out: nothing is ours */
	pid_t *outside;			/* threads seen outside since then */
	size_t noutside, outside_cap;
};

static inline struct agent *agent_of(struct probe *p)
{
	return (struct agent *)p;
}

/* find.c */
struct err *agent_prepare(struct probe *p, struct target *t, const struct modules *mods);
/* Plan sites in modules that weren't looked through yet; the target runs. */
struct err *agent_find(struct agent *a, struct target *t, const struct modules *mods);

/* late.c */
struct err *agent_update(struct probe *p, struct target *t, const struct modules *mods, bool *ret_wanted);
struct err *agent_extend(struct probe *p, struct target *t);
/* Drop the sites whose hook has turned out impossible, and texts without any entry point. */
void agent_tidy(struct agent *a);
void agent_free_text(struct text *x);
/* Modules that have gone, and their sites. */
void agent_forget_gone(struct agent *a, const struct modules *mods);

/* agent.c */
/* What finding starts from; what was found is let go again. */
void agent_init_finding(struct agent *a, const struct probe_config *config);
void agent_free_found(struct agent *a);

/* nesting.c */
/* Of sites that lead to each other, decide which count (site.beneath), and which need a frame. */
void agent_settle_nesting(struct agent *a);

/* place.c */
struct err *agent_place(struct probe *p, struct target *t);
/*
 * Rings, tags and rules as place.c lays them out, mapped in the target at the address a->rings, where something may
 * lie already, or anywhere if that is 0.
 */
struct err *agent_map_rings(struct agent *a, struct target *t);
/* The control block; from then on the agent records. */
struct err *agent_write_control(struct agent *a, struct target *t);
/* From here on the target counts as young: for a while the agent makes no system calls in one that was launched. */
void agent_note_placed(struct agent *a, struct target *t);
uint64_t agent_clock_ns(void);
uint64_t agent_ticks_per_second(const struct agent *a);
/* The main thread's stack: from the start of its mapping to where the program was entered; zeroes if there
 * is none. */
void agent_main_stack(struct target *t, uint64_t *ret_lo, uint64_t *ret_hi);
/* Thunks for the sites that have none. `late`: what can't be is noted as "not hooked", and no error. */
struct err *agent_build_thunks(struct agent *a, struct target *t, bool late);
/* The jumps of sites that aren't patched. ERR_BUSY: try again later; the target may run then. */
struct err *agent_patch_text(struct agent *a, struct target *t);
/* Put back the first bytes of every function patched. */
struct err *agent_restore_text(struct agent *a, struct target *t);
/* Unmap all that was mapped in the target. */
struct err *agent_unmap(struct agent *a, struct target *t);
/* A system call of the target; what the kernel said is an error as well. */
struct err *agent_call(struct target *t, const char *what, long nr, const uint64_t args[6], uint64_t *ret);

/* Address of a field of the control block. */
#define CTL(a, field) ((a)->state + offsetof(struct wire_ctl, field))

static inline uint64_t agent_slot_address(const struct agent *a, uint32_t slot)
{
	return a->state + WIRE_STATE_SLOTS + (uint64_t)slot * sizeof(struct wire_slot);
}

/* bounds.c */
/* A thread whose stack's bounds the agent doesn't know, and where on it it is. */
void agent_ask_bounds(struct agent *a, uint32_t slot, uint64_t sp);
void agent_answer_bounds(struct agent *a, struct target *t, uint64_t now_ns);
/* Those of all threads there are, target stopped, agent's memory mapped. *ret_used: slots taken for them. */
struct err *agent_preset_bounds(struct agent *a, struct target *t, uint32_t *ret_used);

/* slots.c */
/* Fill in what the control block says of threads; target stopped, `may_syscall` is set. */
void agent_know_threads(struct agent *a, struct target *t, struct wire_ctl *ctl);
void agent_present(struct probe *p, struct target *t, const uint32_t *tids, size_t n);

/* births.c */
void agent_born(struct probe *p, struct target *t, const struct target_thread *thread);
void agent_ended(struct probe *p, const struct target_thread *thread);

/* teach.c */
size_t agent_teach(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx);
void agent_resync(struct probe *p);
void agent_reteach(struct probe *p, probe_rule_fn rule, void *ctx);
/* Questions in a sixteenth of the table, another one each time, may be asked again. */
void agent_forget_pending(struct agent *a);

/* remove.c */
/* The anonymous executable mapping around addr is an agent's island. */
bool agent_is_island(struct target *t, uint64_t addr);
/* Is our first island still where we put it? Another heaptop may have cleaned up, another program may run. */
bool agent_still_ours(struct agent *a, struct target *t);
struct err *agent_remove(struct probe *p, struct target *t, bool *ret_again);
struct err *agent_verify(struct probe *p, struct target *t);

#endif
