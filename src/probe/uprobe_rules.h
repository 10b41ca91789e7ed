/*
 * What a hit of a probe means: which calls count and which of them are sampled, how an entry and a return are paired,
 * what is told of them. Compiled twice, so that both do the same: into the program that runs in the kernel (uprobe.bpf.c),
 * and into heaptop for hits that come to it one by one (uprobe_hits.c). Sampling as in agent/agent.c, which
 * tells why that is unbiased.
 *
 * The file that includes this defines what is declared first below; `env` is its own.
 */
#ifndef HEAPTOP_PROBE_UPROBE_RULES_H
#define HEAPTOP_PROBE_UPROBE_RULES_H

#include <stdbool.h>
#include <linux/types.h>

#include "probe/uprobe_wire.h"
#include "wire/wire.h"

/* A thread that calls: what is kept of it between its calls, and between a call and its return. */
struct uprobe_caller {
	__u64 countdown;	/* bytes to the next sample */
	__u64 generation;	/* ctl.generation when it was drawn, and 1 more: 0: never */
	__u64 rate;		/* that it was drawn with */
	__u64 rng;
	__u64 mark;		/* stack pointer at the entry of the call that is watched to its return, or 0 */
	__u64 size, cookie, pointer, out, sampled_rate;	/* of that call */
	__u32 sampled;
	__u32 freed;		/* its old block was told to be freed */
	__u32 told;		/* who it is */
	__u32 tid;
	__u32 use;		/* ctl.use that all this is of */
	__u32 pad;
};

/* Is a free of this block to be told; a block that was told of; one whose free was. */
static bool uprobe_known(const struct uprobe_ctl *k, __u64 addr);
static void uprobe_remember(struct uprobe_ctl *k, __u64 addr);
static void uprobe_forget(__u64 addr);
/* Tell of a free (WIRE_FREE, UNFREE), of an allocation; false: there was no room. The first counts by itself. */
static bool uprobe_tell_free(void *env, struct uprobe_caller *t, struct uprobe_counts *c, __u64 sp, __u32 kind, __u32 flags,
			     __u64 addr);
static bool uprobe_tell_alloc(void *env, const struct uprobe_ctl *k, struct uprobe_caller *t, const struct kernel_regs *g,
			      __u32 flags, __u64 addr);
/* A word of the program's, as it is at the call's return. */
static bool uprobe_word(void *env, __u64 addr, __u64 *ret);

#define UPROBE_COUNT_UP(field) do { if (c) c->field++; } while (0)
#define UPROBE_BITS(cookie, shift, n) ((cookie) >> (shift) & ((1u << (n)) - 1))

/* ---- sampling ---- */

/* Numbers of splitmix64 (Steele, Lea, Flood 2014). */
static __always_inline __u64 uprobe_mix(__u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * floor(E) + 1 with E exponential of mean `rate` (< 2^37), as agent_gap(), in 64-bit arithmetic: -log2(u) of u = x / 2^64
 * with 26 bits behind the point, of which 20 go into the product.
 */
static __always_inline __u64 uprobe_gap(__u64 x, __u64 rate)
{
	__u64 m, log = 0, bits;
	__u32 lz = 0;

	x |= 1;
	/* no such instruction here */
	for (int i = 32; i; i /= 2)
		if (!(x >> (64 - i))) {
			x <<= i;
			lz += i;
		}
	m = x >> 32;		/* in [1, 2), 31 bits behind the point */
	for (int i = 0; i < 26; i++) {
		__u64 square = m * m;	/* 62 */
		__u64 two = square >> 63;

		log = log << 1 | two;
		m = square >> (31 + two);
	}
	bits = (((__u64)lz + 1) << 26) - log;
	return ((bits >> 6) * 1488522236ull >> 31) * rate >> 20 | 0;	/* ln 2, 31 bits */
}

static __always_inline void uprobe_draw(const struct uprobe_ctl *k, struct uprobe_caller *t)
{
	t->generation = k->generation + 1;
	t->rate = k->rate;
	if (t->rate <= 1) {
		t->rate = 1;
		return;
	}
	t->rng += 0x9e3779b97f4a7c15ull;
	t->countdown = uprobe_gap(uprobe_mix(t->rng), t->rate) + 1;
}

/* Is a call for so many bytes sampled? t->rate: by which rate. */
static __always_inline bool uprobe_is_sampled(const struct uprobe_ctl *k, struct uprobe_caller *t, __u64 size, __u64 *ret_rate)
{
	/* before deciding: nothing about the old gap led here */
	if (t->generation != k->generation + 1)
		uprobe_draw(k, t);
	*ret_rate = t->rate;
	if (t->rate <= 1)
		return true;
	if (t->countdown > size) {
		t->countdown -= size;
		return false;
	}
	uprobe_draw(k, t);
	return true;
}

/* Arguments in registers, counted from 1; [0] and [7] are zero. */
struct uprobe_args {
	__u64 n[8];
};

static __always_inline __u64 uprobe_request(const struct uprobe_args *a, __u64 cookie)
{
	__u32 s = UPROBE_BITS(cookie, UPROBE_SIZE, 3), n = UPROBE_BITS(cookie, UPROBE_COUNT, 3);
	__u64 size = a->n[s], count, most;

	if (!s)
		return cookie >> UPROBE_BYTES;
	if (UPROBE_BITS(cookie, UPROBE_INT, 1))
		size = (__u32)size;
	if (!n)
		return size;
	count = a->n[n];
	if (UPROBE_BITS(cookie, UPROBE_INT, 1))
		count = (__u32)count;
	/* one that overflows fails in the allocator and is never recorded */
	if (!size)
		return 0;
	most = ~0ull / size;
	asm volatile("" : "+r"(most));	/* or clang makes a 128-bit product of it, which BPF doesn't have */
	return count > most ? ~0ull >> 1 : size * count;
}

/* ---- calls ---- */

/* A block is freed; before the allocator runs. */
static __always_inline bool uprobe_release(void *env, const struct uprobe_ctl *k, struct uprobe_caller *t,
					   struct uprobe_counts *c, __u64 sp, __u64 addr, __u32 flags)
{
	if (!addr || !uprobe_known(k, addr) || !uprobe_tell_free(env, t, c, sp, WIRE_FREE, flags, addr))
		return false;
	uprobe_forget(addr);
	return true;
}

/* Is it called by the allocator itself, within a call that is watched to its return? */
static __always_inline bool uprobe_is_nested(struct uprobe_caller *t, __u64 sp)
{
	/* a mark deeper than this is left over from a longjmp */
	if (t->mark && t->mark <= sp)
		t->mark = 0;
	return t->mark;
}

static __always_inline __u64 uprobe_block_of(void *env, __u64 result, const struct uprobe_caller *t)
{
	__u64 addr = 0;

	switch (UPROBE_BITS(t->cookie, UPROBE_RETURNS, 2)) {
	case WIRE_RETURNS_STATUS:
		if ((__u32)result || !uprobe_word(env, t->out, &addr))
			return 0;
		return addr;
	case WIRE_RETURNS_SIZE:
		return result < t->size ? 0 : t->pointer;
	}
	return result;
}

/* Returns 1: no need to run at the function's return. */
static __always_inline int uprobe_entry(void *env, struct uprobe_ctl *k, struct uprobe_caller *t, struct uprobe_counts *c,
					const struct kernel_regs *g, __u64 cookie)
{
	const struct uprobe_args a = { { 0, g->di, g->si, g->dx, g->cx, g->r8, g->r9 } };
	__u64 rate = 1;

	if (uprobe_is_nested(t, g->sp)) {
		UPROBE_COUNT_UP(nested);
		return 1;
	}
	if (UPROBE_BITS(cookie, UPROBE_IS_FREE, 1)) {
		uprobe_release(env, k, t, c, g->sp, a.n[UPROBE_BITS(cookie, UPROBE_POINTER, 3)], 0);
		return 1;
	}
	t->size = uprobe_request(&a, cookie);
	t->sampled = uprobe_is_sampled(k, t, t->size, &rate);
	t->sampled_rate = rate;
	t->pointer = a.n[UPROBE_BITS(cookie, UPROBE_POINTER, 3)];
	t->freed = 0;
	if (t->pointer)
		t->freed = uprobe_release(env, k, t, c, g->sp, t->pointer, WIRE_F_REALLOC);
	if (!t->sampled && !t->freed && !UPROBE_BITS(cookie, UPROBE_FRAME, 1))
		return 1;
	t->cookie = cookie;
	t->out = a.n[UPROBE_BITS(cookie, UPROBE_OUT, 3)];
	t->mark = g->sp;
	return 0;
}

/* `result`: of the function. */
static __always_inline void uprobe_return(void *env, struct uprobe_ctl *k, struct uprobe_caller *t, struct uprobe_counts *c,
					  const struct kernel_regs *g, __u64 result)
{
	__u64 addr;
	__u32 flags;

	/* the return address has been taken off */
	if (!t->mark || t->mark + 8 != g->sp)
		return;
	t->mark = 0;
	addr = uprobe_block_of(env, result, t);
	flags = t->pointer ? WIRE_F_REALLOC : 0;
	if (!addr) {
		/* realloc to nothing frees; else the old block lives on */
		if (t->freed && t->size && !UPROBE_BITS(t->cookie, UPROBE_FREES, 1) &&
		    uprobe_tell_free(env, t, c, g->sp, WIRE_UNFREE, WIRE_F_REALLOC, t->pointer))
			uprobe_remember(k, t->pointer);
		return;
	}
	if (!t->sampled)
		return;
	if (!uprobe_tell_alloc(env, k, t, g, flags, addr)) {
		UPROBE_COUNT_UP(dropped);
		return;
	}
	UPROBE_COUNT_UP(recorded);
	uprobe_remember(k, addr);
}

#endif
