/*
 * What the agent (inside the target) and heaptop say to each other: control block, thread
 * slots, free filter, rings, events. Plain records, no libc, fixed-width fields, the same
 * layout on both sides. Everything here is readable and writable by the target, so heaptop
 * believes none of it: every length, index and address read back is checked.
 *
 * Memory in the target
 *   state  private anonymous, MADV_WIPEONFORK: wire_ctl, slots[], filter[], walks[]. A forked
 *          child reads zeroes: not active, no tag matches, no slot is claimed.
 *   rings  memfd, shared with heaptop (or private memory read with process_vm_readv where
 *          memfd_create is forbidden): rings, each a wire_ring + data; behind them the tags that
 *          the filter had no room for (wire_tags), and, if shared, wire_rules and wire_births. Pages
 *          nobody has written to take no memory.
 *   island one or more, executable, within +-2 GiB of the modules they serve: a copy of the
 *          agent's code, the hooks' thunks, the relocated instructions, and the addresses of
 *          state and rings (struct wire_island), since after a fork ctl can't be trusted.
 *
 * Order of events. Each has a TSC taken after its place in the ring was reserved. An allocation is
 * committed to its ring after the allocator returned and before the program sees the block; a free
 * before the allocator runs. So an event that depends on another is always committed later. A
 * reader that takes the TSC, then reads all rings, and handles in TSC order only the events up to
 * that TSC, keeping the others for the next round, never sees a free before its allocation. Where
 * a ring is blocked by a record still busy, what lies behind it was reserved, and hence stamped,
 * after the reader last found the ring's head before that record: it goes only up to then. The busy
 * record itself is no reason to: nothing depends on it before it is committed.
 */
#ifndef HEAPTOP_WIRE_WIRE_H
#define HEAPTOP_WIRE_WIRE_H

#include <stdint.h>

#define WIRE_VERSION 4u
#define WIRE_ISLAND_MAGIC 0x706f747061656801ull	/* "\1heaptop", little-endian */
#define WIRE_CTL_MAGIC 0x6c74637061656801ull

#define WIRE_SLOT_HOMES 4096u		/* the slots a thread pointer can hash to, a power of two */
#define WIRE_SLOT_PROBES 32u		/* slots looked at from there on, at most */
#define WIRE_SLOTS (WIRE_SLOT_HOMES + WIRE_SLOT_PROBES)	/* so that probing need not wrap */
#define WIRE_FILTER_BITS 14		/* buckets, log2 */
#define WIRE_FILTER_WAYS 7u		/* 32-bit tags a bucket; the eighth word is a count */
#define WIRE_FILTER_WORDS 8u		/* 32-bit words a bucket */
#define WIRE_MAX_RINGS 64u
#define WIRE_MAX_STACK (64u << 10)	/* bytes of stack an event copies at most */
#define WIRE_MAX_FRAMES 512u		/* return addresses of a stack walked in the target, at most */

/*
 * Control block, first page of the state mapping. Written by heaptop while the target runs,
 * a field at a time; the agent reads it on its slow paths only (free_all: on each free).
 */
struct wire_ctl {
	uint64_t magic;
	uint32_t version;
	uint32_t active;	/* 0: record nothing, pass everything through. The agent clears it, too, when
				 * it finds the lease over; heaptop sets it again with each renewal */
	uint64_t lease;		/* TSC value after which nothing is recorded: heaptop has gone */
	uint64_t rate;		/* mean bytes between samples; 0 and 1: every call */
	uint32_t free_all;	/* 1: the filter isn't asked, every free is recorded. The agent
				 * sets it too, when there is no room for a tag anywhere. */
	uint32_t wait;		/* 1: a full ring is waited for, 0: drop and count */
	uint32_t pid;		/* the target's pid in its own namespace: for process_vm_readv */
	uint32_t may_syscall;	/* 1: the agent may call process_vm_readv (copy of a stack whose bounds it
				 * doesn't know), sched_yield and ppoll to wait, and for threads gettid, tgkill without a
				 * signal and prctl(PR_GET_NAME); 0: seccomp might kill */
	uint32_t max_stack;	/* bytes of stack to copy at most, <= WIRE_MAX_STACK */
	uint32_t raise;		/* 1: the agent may raise `rate` itself when a ring or the filter
				 * fills up faster than heaptop looks; heaptop reads it back */
	uint64_t main_stack_lo;	/* the main thread's stack: lowest mapped byte when last seen, */
	uint64_t main_stack_hi;	/* and where the program was entered, or the mapping's end */
	uint64_t seed;		/* for the slots' generators */
	uint64_t owner_start;	/* heaptop's own start time, as in its /proc/PID/stat, and its */
	uint32_t owner;		/* pid: does somebody still look after this agent? */
	uint32_t slots_used;	/* written by the agent: number of slots claimed so far */
	uint32_t tid_at;	/* the libc keeps a thread's id that many bytes behind its thread pointer;
				 * 0: not known. See wire_slot */
	uint32_t pad;
	uint64_t main_tp;	/* thread pointer of the first thread, 0: not known */
	uint64_t break_at;	/* where the libc keeps the program's break, so that nobody has to ask; 0: not known */
	uint64_t pad1;
	/* counters, written by the agent: a cache line of their own */
	uint64_t no_slot;	/* calls not looked at: no slot within reach of the home */
	uint64_t filter_full;	/* tags that found no room anywhere */
	uint64_t wrapped;	/* malloc seen calling another hooked malloc: a wrapper */
};

/*
 * A thread's slot, found by its thread pointer in an open-addressed table of WIRE_SLOTS (home:
 * wire_slot_hash; linear probing, no further than WIRE_SLOT_PROBES, no wrapping). Claimed by one CAS on tp,
 * where that is 0. Owned by its thread; heaptop reads the counters, writes the bounds of the stack and `gone`,
 * and makes slots beforehand for threads it finds. A slot never becomes empty again, so a search may end at the
 * first empty one.
 *
 * Its owner is the thread with the id `tid`, whoever has its thread pointer: libcs use the memory of an ended
 * thread, and with it its thread pointer, for new ones. So each event compares `tid` with the id that the libc
 * keeps for the running thread behind its thread pointer: the kernel writes it there when the
 * thread is made and clears it when it ends. When the slot was claimed the kernel was asked, too, once: if that
 * word held something else (a thread made by hand), or isn't known, it is asked with every event.
 *
 * Hand-over. What belonged to the owner before is wiped, its counters go on: heaptop only looks at sums.
 *   renewed  by a new thread with the same thread pointer: CAS of tid from the old id to 0, then wiped and
 *            settled as after a claim. 0 says to a signal handler that comes between: settle it.
 *   taken    by a thread with another one that, claiming a slot, meets this on its way, and whose owner has
 *            ended: the kernel knows no such thread any more, or, where it may not be asked, heaptop says so
 *            in `gone` or in wire_births. CAS of tid to WIRE_TID_TAKEN, wiped, then tp, then settled. A thread whose own thread
 *            pointer's slot is taken away meanwhile loses the CAS, or sees the other tp, and looks further.
 * The owner before can't be at work in it in either case: it is no more. Nobody needs to stop anybody.
 */
struct wire_slot {
	uint64_t tp;		/* thread pointer, 0: unclaimed */
	uint64_t countdown;	/* bytes to the next sample; 0: look at every call */
	uint64_t mark;		/* inside a hook: stack pointer at its entry, else 0. Deeper than
				 * the current stack pointer, or its frame written over: stale
				 * (siglongjmp, cancellation) */
	uint64_t rate;		/* interval the countdown was drawn for; WIRE_RATE_IDLE: it wasn't
				 * drawn, nothing was being recorded */
	uint64_t rng;		/* 0: it has no ring yet */
	uint64_t moving;	/* inside realloc: the old block, whose nested free isn't counted */
	uint64_t inside;	/* while mark is set: island | kind of the hook */
	uint32_t tid;		/* of its owner, in the target's PID namespace; 0: to be settled; or WIRE_TID_ */
	uint16_t how;		/* enum wire_tid_how */
	uint16_t told;		/* 1: a WIRE_THREAD event has told who it is */

	uint64_t cycles;	/* TSC ticks spent recording (waiting for room not counted) */
	uint64_t waited;	/* TSC ticks spent waiting for room */
	uint64_t recorded;	/* allocations and frees committed; what isn't is counted in wire_ring */
	uint64_t nested;	/* calls passed through because they came from inside a hook */
	uint32_t ring;		/* its ring: wire_ring_of(the number of slots before it) */
	uint32_t owners;	/* threads it has had before this one */
	uint32_t gone;		/* by heaptop: the thread with this id has ended */
	uint32_t stack_tid;	/* whose the bounds of the stack are: if it isn't tid, an owner's before */

	uint64_t stack_lo;	/* the thread's own stack as heaptop saw it; hi 0: not yet known. */
	uint64_t stack_hi;	/* [sp, hi) is readable whenever lo <= sp < hi: hi is tp, which both
				 * glibc and musl place on top of the stack it belongs to */
	uint64_t pad[16];
};
_Static_assert(sizeof(struct wire_slot) == 256, "entry-*.S multiplies by it");

#define WIRE_TID_NONE 0xffffffffu	/* nothing tells which thread it is: nobody else gets the slot */
#define WIRE_TID_TAKEN 0xfffffffeu	/* changes hands just now */

enum wire_tid_how {
	WIRE_TID_ASK,		/* the kernel is asked with every event */
	WIRE_TID_WORD,		/* the word at tp + tid_at */
};

#define WIRE_RATE_IDLE (~0ull)
#define WIRE_SLOT_MULTIPLIER 0x9e3779b1u	/* fits the immediate of a 32-bit multiply */

/* Index of a thread pointer's home slot: Fibonacci hashing (Knuth 6.4). */
static inline uint32_t wire_slot_hash(uint64_t tp)
{
	return (uint32_t)(tp >> 6) * WIRE_SLOT_MULTIPLIER >> 20;	/* 12 bits: WIRE_SLOT_HOMES */
}

/*
 * Free filter: exact. A bucket is chosen by WIRE_FILTER_BITS bits above the low four; the tag
 * is all the address bits left (47-bit user addresses, 8-byte granules) + 1, so equal tags in
 * a bucket mean equal addresses. 0 is an empty way. Insert and remove are one 32-bit CAS. The word
 * after the ways is WIRE_FILTER_MORE plus the number of the bucket's tags that are in wire_tags
 * for want of room here, or 0: so only frees of such a bucket look there.
 */
#define WIRE_FILTER_MORE 0x80000000u

static inline uint32_t wire_filter_bucket(uint64_t addr)
{
	return (uint32_t)(addr >> 4) & ((1u << WIRE_FILTER_BITS) - 1);
}

static inline uint32_t wire_filter_tag(uint64_t addr)
{
	return ((uint32_t)(addr >> (4 + WIRE_FILTER_BITS)) << 1 | (uint32_t)(addr >> 3 & 1)) + 1;
}

/*
 * Tags without room in the filter: 2^22 in lines of one cache line. Multiplying by an odd number
 * permutes the 44 bits of an address in 8-byte granules: the upper ones choose a line, the other 26
 * are the key. A tag is WIRE_TAG_USED | key << 1 | second: it may lie in its own line or, second, in
 * the one whose number is that one's xor a function of the key; so it stands for one address.
 */
#define WIRE_TAG_LINES_LOG2 18
#define WIRE_TAG_WAYS 16u
#define WIRE_TAG_KEY_BITS (44 - WIRE_TAG_LINES_LOG2)
#define WIRE_TAG_USED 0x80000000u
_Static_assert(WIRE_TAG_KEY_BITS + 1 <= 31, "a tag has 32 bits");

struct wire_tags {
	uint32_t tag[1u << WIRE_TAG_LINES_LOG2][WIRE_TAG_WAYS];
};

static inline uint64_t wire_tag_hash(uint64_t addr)
{
	return (addr >> 3) * 0x9e3779b97f4a7c15ull & ((1ull << 44) - 1);
}

static inline uint32_t wire_tag_line(uint64_t hash, unsigned second)
{
	uint32_t line = (uint32_t)(hash >> WIRE_TAG_KEY_BITS);
	uint32_t key = (uint32_t)hash & ((1u << WIRE_TAG_KEY_BITS) - 1);

	/* odd: never the same line */
	return second ? line ^ ((key * 0x9e3779b1u >> (32 - WIRE_TAG_LINES_LOG2)) | 1) : line;
}

static inline uint32_t wire_tag_of(uint64_t hash, unsigned second)
{
	return WIRE_TAG_USED | ((uint32_t)hash & ((1u << WIRE_TAG_KEY_BITS) - 1)) << 1 | second;
}

/*
 * Rules: how to get from a frame to its caller, by return address; the code looked up is the byte
 * before it, as ever. One 64-bit word each, written in one store, so a reader sees a whole rule
 * or none. Multiplying by an odd number permutes the 47-bit addresses: 13 bits of the product
 * choose a line of eight words, the other 34 are the word's key, and so a word that fits is for
 * that address and no other. In the 30 bits left:
 *
 *	kind	 3 bits	enum wire_rule_kind
 *	bp	 8	SP, BP: the caller's frame pointer lies that many words below the CFA; 0:
 *			it is unchanged. DEREF: 1: it lies where the frame pointer points to
 *	offset	16	words, signed for DEREF: CFA = sp or bp + offset, or the word there
 *
 * The return address lies in the word below the CFA. Whatever doesn't fit has no rule: the
 * event then carries a copy of the stack, and heaptop finds out by its own means.
 */
#define WIRE_RULE_LINES_LOG2 13
#define WIRE_RULE_WAYS 8u
#define WIRE_RULE_WORDS (WIRE_RULE_WAYS << WIRE_RULE_LINES_LOG2)
#define WIRE_RULE_BITS 30
#define WIRE_PC_BITS 47		/* addresses at or above aren't user code */
_Static_assert(WIRE_PC_BITS - WIRE_RULE_LINES_LOG2 + WIRE_RULE_BITS == 64, "the key is all the rest");

enum wire_rule_kind {
	WIRE_RULE_NONE,
	WIRE_RULE_SP,		/* CFA = sp + offset */
	WIRE_RULE_BP,		/* CFA = frame pointer + offset */
	WIRE_RULE_DEREF,	/* CFA = the word at frame pointer + offset: a realigned stack */
	WIRE_RULE_END,		/* outermost frame */
	WIRE_RULE_COPY,		/* heaptop has looked: there is no such rule, the event carries a
				 * copy of the stack from here on */
	WIRE_RULE_PENDING,	/* written by the agent: heaptop has been sent a stack with this
				 * address in it and has yet to answer */
};

struct wire_rules {
	uint64_t generation;	/* heaptop adds 1 after it has removed or changed a rule */
	uint64_t pad[7];
	uint64_t words[WIRE_RULE_WORDS];
};

static inline uint64_t wire_rule_hash(uint64_t pc)
{
	return pc * 0x9e3779b97f4a7c15ull << (64 - WIRE_PC_BITS);
}

static inline uint32_t wire_rule_line(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - WIRE_RULE_LINES_LOG2)) * WIRE_RULE_WAYS;
}

/* The way of its line that a rule is first looked for at. */
static inline uint32_t wire_rule_way(uint64_t hash)
{
	return (uint32_t)(hash >> (61 - WIRE_RULE_LINES_LOG2)) % WIRE_RULE_WAYS;
}

/* A word is for this address if word ^ key is less than 1 << WIRE_RULE_BITS; that is the rule. */
static inline uint64_t wire_rule_key(uint64_t hash)
{
	return hash << WIRE_RULE_LINES_LOG2;
}

static inline uint32_t wire_rule(enum wire_rule_kind kind, uint8_t bp, uint16_t offset)
{
	return (uint32_t)kind | (uint32_t)bp << 3 | (uint32_t)offset << 11;
}

static inline enum wire_rule_kind wire_rule_kind(uint32_t rule)
{
	return (enum wire_rule_kind)(rule & 7);
}

static inline uint8_t wire_rule_bp(uint32_t rule)
{
	return (uint8_t)(rule >> 3);
}

static inline uint16_t wire_rule_offset(uint32_t rule)
{
	return (uint16_t)(rule >> 11);
}

/* Where what follows the rules lies, bytes from their beginning. */
#define WIRE_RULES_BYTES ((sizeof(struct wire_rules) + 4095) & ~4095ull)

/*
 * What heaptop saw of threads that it traces from their birth on (a launched program's): so the agent
 * needn't ask the kernel, which a seccomp filter might punish. Found by the thread pointer as slots are, an entry
 * each. heaptop alone writes, a thread's entry before the thread has run its first instruction: it can
 * change under a thread's eyes only if that is no more. tid last when an entry is filled in, and 0 first when it
 * passes on to another one; an entry never becomes empty again.
 */
struct wire_birth {
	uint64_t tp;		/* 0: empty, and nothing comes behind it */
	uint64_t stack_lo;	/* [sp, tp) is readable for lo <= sp < tp; 0: not known */
	uint32_t tid;		/* in heaptop's PID namespace, which is the target's, or there is no entry */
	uint32_t ended;		/* 1: it is no more */
	uint64_t pad;
};

struct wire_births {
	struct wire_birth of[WIRE_SLOTS];
};

/*
 * A thread's last complete walk, outermost frame first, so that the part of a stack that stays
 * is found at the same place. The thread's own; heaptop doesn't look.
 */
struct wire_walk_frame {
	uint64_t pc;		/* return address, found at sp - 8; 0: the word that ended the walk */
	uint64_t sp;
	uint64_t bp;		/* frame pointer there, if `from` isn't 0 */
	uint64_t from;		/* where bp was loaded from; 0: no frame from here on needs it, */
};				/* 1: as in the frame within, 2: sp came from memory: can't be checked */

struct wire_walk {
	uint64_t seq;		/* + 1 whenever a walk begins */
	uint64_t generation;	/* of the rules it was made by */
	uint32_t n;		/* 0: there is none */
	uint32_t zero;		/* 1: frame[0] is no frame but the zero word that ended the walk */
	uint64_t sent;		/* seq of the walk whose stack the slot's last event told */
	uint32_t count;		/* events with a stack: wire_alloc.seq */
	uint32_t pad[7];
	struct wire_walk_frame frame[WIRE_MAX_FRAMES];
};

/* Offsets within the state mapping, bytes. */
#define WIRE_STATE_SLOTS 4096u
#define WIRE_STATE_FILTER (WIRE_STATE_SLOTS + WIRE_SLOTS * 256u)
#define WIRE_FILTER_BYTES ((4u * WIRE_FILTER_WORDS) << WIRE_FILTER_BITS)
#define WIRE_STATE_WALKS (WIRE_STATE_FILTER + WIRE_FILTER_BYTES)
#define WIRE_STATE_BYTES (WIRE_STATE_WALKS + WIRE_SLOTS * (uint64_t)sizeof(struct wire_walk))

/* What is done at an entry point. What its arguments mean is told by wire_args. */
enum wire_hook_kind {
	WIRE_HOOK_MALLOC,	/* an allocation whose only size is argument 1, and which calls no
				 * other hooked one: has a fast path, on which it leaves no mark */
	WIRE_HOOK_FREE,		/* a free of argument 1: has a fast path */
	WIRE_HOOK_NEW,		/* as MALLOC, but it may throw: for a sampled block `instead` is
				 * called, which doesn't, and the original only if that fails */
	WIRE_HOOK_NEW_OUTER,	/* as NEW, but it may call other hooked ones: no fast path */
	WIRE_HOOK_ALLOC,	/* any other allocation */
	WIRE_HOOK_REALLOC,	/* frees one block and allocates another, or changes its size */
	WIRE_HOOK_RELEASE,	/* any other free */
	WIRE_HOOK_RANGE,	/* changes mappings: wire_args.range */
	WIRE_HOOK_KINDS
};
#define WIRE_ENTRIES 8u		/* room for kinds */
_Static_assert(WIRE_HOOK_KINDS <= WIRE_ENTRIES, "wire_island.entry");

/* How a call tells which block there is now. */
enum wire_returns {
	WIRE_RETURNS_BLOCK,	/* its result is the address; NULL: it failed */
	WIRE_RETURNS_STATUS,	/* its result is an int, 0: the address lies where `out` points to */
	WIRE_RETURNS_SIZE,	/* its result is the block's size now, at its old place; less than
				 * asked for: it failed */
};

enum wire_args_flags {
	WIRE_ARGS_INT = 1,	/* size and count are 32 bits, what is above them undefined */
	WIRE_ARGS_FREES = 2,	/* realloc: the old block is freed even if it fails */
};

/* Which argument is which: counted from 1, at most 6 (those in registers); 0: there is none. */
struct wire_args {
	uint8_t size;		/* bytes; 0: always `bytes` */
	uint8_t count;		/* of such sizes */
	uint8_t pointer;	/* the block freed or moved */
	uint8_t out;		/* where to the address of the new block is written */
	uint8_t returns;	/* enum wire_returns */
	uint8_t flags;		/* enum wire_args_flags */
	uint8_t nothrow;	/* of `instead`: std::nothrow, a reference to an empty object */
	uint8_t range;		/* RANGE: enum wire_range_op; and then */
	uint32_t bytes;		/* RANGE: of its module's code that lie before the entry point */
};
#define WIRE_ARGS_MAX 6u

/* The calls that change mappings, by their usual arguments. */
enum wire_range_op {
	WIRE_RANGE_MMAP = 1,	/* mmap(addr, length, prot, flags, fd, offset) */
	WIRE_RANGE_MUNMAP,	/* munmap(addr, length) */
	WIRE_RANGE_MREMAP,	/* mremap(addr, length, new_length, flags, new_addr) */
	WIRE_RANGE_BRK,		/* brk(addr) */
	WIRE_RANGE_SBRK,	/* sbrk(increment) */
};

/*
 * Start of an island, written by heaptop, never by the agent. heaptop finds a left-behind agent
 * by looking for the magic at the start of anonymous executable mappings. entry[] and
 * code_bytes come with the agent's code; the rest is zero there.
 */
struct wire_island {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;		/* of the whole mapping */
	uint64_t ctl;		/* address of the wire_ctl (start of the state mapping) */
	uint64_t state_bytes;
	uint64_t rings;		/* address of the first wire_ring */
	uint64_t rings_bytes;	/* of the whole mapping of rings */
	uint64_t ring_bytes;	/* data bytes of one ring, a power of two */
	uint64_t ring_stride;	/* from one wire_ring to the next, bytes */
	uint64_t nonce;		/* mixed into the commit words, so stale bytes never match */
	uint32_t nrings;	/* a power of two, <= WIRE_MAX_RINGS */
	uint32_t code_bytes;	/* this header and the agent's code; thunks follow */
	uint32_t entry[WIRE_ENTRIES];	/* offsets in the island, by kind of hook */
	uint64_t rules;		/* address of the wire_rules, 0: there are none */
	uint64_t tags;		/* address of the wire_tags, 0: there are none */
};
_Static_assert(sizeof(struct wire_island) == 128, "agent/entry-*.S lays it out too");

/* A hook, in the island: its thunk loads the address of this and jumps to entry[kind]. */
struct wire_hook {
	uint64_t instead;	/* called for a block that is to be recorded: the original or, for the
				 * kinds NEW, a function that does the same and doesn't throw */
	uint64_t at;		/* the entry point: heaptop finds there what a dead one has patched */
	uint32_t kind;
	uint32_t index;		/* heaptop's number for it */
	struct wire_args args;
	uint32_t above;		/* RANGE: bytes of its module's code from the entry point on: what is called
				 * from there isn't the program's doing */
	uint64_t original;	/* where the relocated first instructions lie; all that fast paths read,
				 * and so last: in one cache line with the code behind it */
};
_Static_assert(sizeof(struct wire_hook) == 48, "agent/entry-*.S");

/*
 * A ring: producers reserve by CAS on head, write, and commit by storing the record's first
 * word; heaptop consumes in order and moves tail. Positions count bytes and never wrap;
 * position p lies at data[p % ring_bytes]. A record never wraps: a WIRE_PAD record fills the
 * rest of the ring. A slot keeps to one ring. Allocations leave the last eighth
 * of a ring to frees: a lost allocation is a smaller sample, a lost free looks like a leak.
 */
/*
 * The first slots have a ring each: nobody else reserves there but the thread and its signal handlers, and
 * so one instruction will do, without a locked one's wait for all stores before it. All later slots share
 * the last quarter of the rings.
 */
static inline uint32_t wire_own_rings(uint32_t nrings)
{
	return nrings - (nrings < 4 ? 1 : nrings / 4);
}

static inline uint32_t wire_ring_of(uint32_t slots_before, uint32_t nrings)
{
	uint32_t own = wire_own_rings(nrings);

	return slots_before < own ? slots_before : own + (slots_before - own) % (nrings - own);
}

/*
 * What couldn't be recorded is counted here and not in the slots: it can be read when the target has gone. Where
 * the ring is a thread's own, that thread counts.
 */
struct wire_ring {
	uint64_t head;
	uint64_t dropped;	/* allocations that found no room */
	uint64_t lost;		/* frees that found none: blocks that look live until their address is used again */
	uint64_t gap;		/* samples and frees after the lease was over */
	uint64_t pad0[4];
	uint64_t tail;
	uint64_t pad1[7];
	/* ring_bytes of data follow */
};

/*
 * First word of a record at position p:
 *
 *	63..32	wire_tag(p, nonce): a word with another tag is a stale one, nothing is there yet
 *	31..24	enum wire_flags
 *	23..20	enum wire_kind
 *	19..3	bytes / 8, this word included
 *	1	WIRE_PAD: nothing but this word is valid, the rest of the ring is skipped
 *	0	WIRE_BUSY: reserved and being filled; a record that stays busy for more than a second
 *		was abandoned (siglongjmp out of a signal handler that interrupted the agent):
 *		skip it and count it
 */
#define WIRE_BUSY 1u
#define WIRE_PAD 2u
#define WIRE_SIZE_MASK 0xffff8u
#define WIRE_KIND_SHIFT 20
#define WIRE_FLAGS_SHIFT 24

static inline uint32_t wire_tag(uint64_t pos, uint64_t nonce)
{
	return (uint32_t)((pos >> 3) ^ nonce ^ nonce >> 32);
}

enum wire_kind {
	WIRE_ALLOC = 1,	/* wire_alloc: a block came into being */
	WIRE_FREE,	/* wire_head: free(addr), or the old block of a realloc (flag) */
	WIRE_UNFREE,	/* wire_head: the realloc that this slot's last WIRE_FREE of addr with
			 * WIRE_F_REALLOC announced has failed: the block still lives */
	WIRE_VOID,	/* wire_head: nothing after all */
	WIRE_UNMAP,	/* wire_range: what is mapped there goes */
	WIRE_THREAD,	/* wire_thread: the slot's events from here on are another thread's. Comes before the
			 * first of them; now and then twice (signal handlers) */
};

enum wire_flags {
	WIRE_F_REALLOC = 1,	/* FREE: old block of a realloc; ALLOC: its new block */
	WIRE_F_CUT = 2,		/* the stack copy ends before the stack does (max_stack) */
	WIRE_F_NO_BOUNDS = 4,	/* the stack's bounds were unknown: heaptop, please look */
	WIRE_F_WALKED = 8,	/* the frames are the rest of the stack; no copy */
	WIRE_F_LARGE = 16,	/* the size has a word of its own */
	WIRE_F_RATE = 32,	/* the rate has one; else 1: exact */
	WIRE_F_RANGE = 64,	/* ALLOC: a mapping, not a block; it replaces what was there. With REALLOC: what
				 * the slot's last UNMAP has taken has come here. UNFREE: that has failed */
};

struct wire_head {
	uint64_t word;
	uint64_t tsc;
	uint64_t addr_slot;	/* address of the block << 16 | index of the slot */
};

struct wire_range {
	struct wire_head h;	/* addr: where it starts */
	uint64_t bytes;
};

struct wire_thread {
	struct wire_head h;	/* in place of an address: the thread's id in the target's PID namespace */
	char name[16];		/* as the kernel had it then, not always ended by a 0; "": not known */
	uint64_t sp;		/* an address on its stack; WIRE_F_NO_BOUNDS: heaptop, please look where that ends */
};

static inline unsigned wire_kind(uint64_t word)
{
	return (unsigned)(word >> WIRE_KIND_SHIFT) & 15;
}

static inline unsigned wire_flags(uint64_t word)
{
	return (unsigned)(word >> WIRE_FLAGS_SHIFT) & 255;
}

/*
 * An allocation, most often all of it: the stack is told by what differs from the one that the slot's event
 * with a stack before this one has told. What follows, in this order:
 *
 *	uint64_t size		if WIRE_F_LARGE
 *	uint64_t rate		if WIRE_F_RATE: mean bytes between samples it was drawn with
 *	uint64_t frame[nframes]	return addresses, innermost first
 *	struct wire_copy	unless WIRE_F_WALKED
 *
 * WALKED: nframes new frames, and further out the `keep` outermost ones of the stack before. That
 * holds only if that event's seq is one less than this one's; else an event was lost.
 * Otherwise keep is 0 and the copy starts at the frame after those in frame[]. With nframes 0 all registers
 * are right, else only ip, sp and the frame pointer: a copy begins further out only where
 * it would otherwise be cut.
 */
struct wire_alloc {
	struct wire_head h;
	uint32_t size;		/* bytes asked for */
	uint32_t stack;		/* seq << 24 | keep << 12 | nframes */
};
#define WIRE_STACK_BITS 12
#define WIRE_STACK_MAX ((1u << WIRE_STACK_BITS) - 1)
_Static_assert(WIRE_MAX_FRAMES <= WIRE_STACK_MAX, "keep and nframes fit");
#define WIRE_LARGE 0xffffffffull	/* sizes from here on have a word of their own */

/*
 * Registers at the call of the allocator, as its caller sees them on return: ip is the return
 * address, sp is past it. Callee-saved ones only: no CFI needs others there.
 */
struct wire_regs {
	uint64_t ip, sp;
	uint64_t saved[10];	/* x86-64: bp, bx, r12, r13, r14, r15; arm64: x19..x28 */
	uint64_t fp, lr;	/* arm64 */
};

struct wire_copy {
	struct wire_regs regs;	/* of the frame after the last of frame[] */
	uint64_t bytes;		/* of the stack from regs.sp on, a multiple of 8; they follow */
};

#define WIRE_RECORD_MAX (sizeof(struct wire_alloc) + 16 + WIRE_MAX_FRAMES * 8 + \
			 sizeof(struct wire_copy) + WIRE_MAX_STACK)
_Static_assert(WIRE_RECORD_MAX <= WIRE_SIZE_MASK, "a record's size fits");

#endif
