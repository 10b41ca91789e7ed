/*
 * The agent in this process (tests/lib/placed.h). Counts, rates, nesting, registers, full rings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "tests/lib/placed.h"
#include "wire/wire.h"

static void test_exact(void **unused)
{
	(void)unused;
	void *p = h_malloc(100);
	const struct probe_event *a = expect_alloc(p, 100);
	assert_true(a->rate == 1);
	void *z = h_malloc(0);
	expect_alloc(z, 0);
	h_free(p);
	assert_int_equal(frees, 1);
	expect_free(p, WIRE_FREE);
	h_free(p);			/* not live any more: not recorded, but passed on */
	assert_int_equal(frees, 2);
	h_free(NULL);
	assert_int_equal(frees, 2);
	expect_nothing();
	assert_null(h_malloc(1ull << 41));	/* fails: nothing to record */
	expect_nothing();
	assert_int_equal(my_slot()->mark, 0);
}

static void test_nested(void **unused)
{
	(void)unused;
	void *p = h_calloc(3, 100), *q = NULL, *r;
	expect_alloc(p, 300);
	assert_int_equal(h_posix_memalign(&q, 64, 70), 0);
	expect_alloc(q, 70);
	r = h_realloc(q, 200);		/* its own malloc and free aren't counted */
	assert_int_equal(expect_free(q, WIRE_FREE)->flags, WIRE_F_REALLOC);
	assert_true(expect_alloc(r, 200)->flags & WIRE_F_REALLOC);
	expect_nothing();
	assert_int_equal(my_slot()->nested, 3);
	realloc_fails = true;
	assert_null(h_realloc(r, 1000));
	expect_free(r, WIRE_FREE);
	expect_free(r, WIRE_UNFREE);
	expect_nothing();
	h_free(r);			/* its tag is there again */
	expect_free(r, WIRE_FREE);
	realloc_fails = false;
	assert_null(h_realloc(p, 0));
	expect_free(p, WIRE_FREE);
	expect_nothing();
	p = h_realloc(NULL, 7);
	expect_alloc(p, 7);
	expect_nothing();
}

/* operator new: the block comes from the form that doesn't throw; else the original is jumped to. */
static void test_new(void **unused)
{
	(void)unused;
	void *(*h_new)(size_t, size_t) = (void *(*)(size_t, size_t))thunk[H_NEW];
	uint64_t before = news;
	void *p = h_new(100, 64);

	expect_alloc(p, 100);			/* and the malloc beneath doesn't count */
	expect_nothing();
	assert_true(news == before);
	assert_non_null(nothrow_given);
	nothrow_fails = true;
	uint64_t sp;
	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	h_new(100, 64);
	nothrow_fails = false;
	expect_nothing();
	assert_true(news == before + 1);
	/* nothing of ours on the stack below it but the return address it was called with */
	assert_true(new_sp < sp + 64 && sp - new_sp < 64);
	assert_int_equal(my_slot()->mark, 0);
	ctl->rate = 1 << 20;
	my_slot()->countdown = 1 << 20;
	my_slot()->rate = 1 << 20;
	h_new(100, 64);				/* not sampled: as if we weren't there */
	assert_true(news == before + 2);
	assert_int_equal(my_slot()->countdown, (1 << 20) - 100);
}

/* Arguments are where the hook says. */
static void test_arguments(void **unused)
{
	(void)unused;
	void *p = ((void *(*)(void))thunk[H_OBJECT])();
	size_t (*h_grow)(void *, size_t) = (size_t (*)(void *, size_t))thunk[H_GROW];

	expect_alloc(p, 64);
	expect_nothing();
	grown = 80;
	h_grow(p, 0xabcd00000050);		/* sizes are ints there */
	expect_free(p, WIRE_FREE);
	expect_alloc(p, 80);
	grown = 80;
	h_grow(p, 1000);			/* it can't */
	expect_free(p, WIRE_FREE);
	expect_free(p, WIRE_UNFREE);
	expect_nothing();
	((void (*)(void *, void *))thunk[H_PUT])(NULL, p);
	expect_free(p, WIRE_FREE);
	expect_nothing();
	assert_int_equal(frees, 1);
}

/* The copy of the stack and the registers are those of the call. */
static void test_stack(void **unused)
{
	(void)unused;
	volatile uint64_t local[4] = { 0x1111, 0x2222, 0x3333, 0x4444 };
	void *p = h_malloc(8);
	const struct probe_event *a = expect_alloc(p, 8);

	assert_true(a->flags & WIRE_F_NO_BOUNDS);
	assert_true(a->stack_bytes >= 2048);
	assert_true(a->regs->ip > (uint64_t)test_stack && a->regs->ip < (uint64_t)test_stack + 4096);
	assert_true(a->regs->sp <= (uint64_t)local && (uint64_t)local < a->regs->sp + a->stack_bytes);
	assert_memory_equal(a->stack + ((uint64_t)local - a->regs->sp), (void *)local,
			    sizeof(local));
	/* Bounds known: the copy ends where the stack does. */
	set_bounds(a->regs->sp - 4096, a->regs->sp + 64);
	a = expect_alloc(h_malloc(8), 8);
	assert_int_equal(a->stack_bytes, 64);
	assert_int_equal(a->flags, 0);
	ctl->max_stack = 32;
	a = expect_alloc(h_malloc(8), 8);
	assert_int_equal(a->stack_bytes, 32);
	assert_int_equal(a->flags, WIRE_F_CUT);
	/* Neither bounds nor system calls: to the end of the page. */
	my_slot()->stack_hi = 0;
	ctl->may_syscall = 0;
	ctl->max_stack = 65536;
	a = expect_alloc(h_malloc(8), 8);
	assert_int_equal(a->stack_bytes, 4096 - a->regs->sp % 4096);
	assert_int_equal(a->flags, WIRE_F_CUT | WIRE_F_NO_BOUNDS);
	assert_true(local[3] == 0x4444);
}

static void set_rule(uint64_t pc, uint32_t rule)
{
	uint64_t hash = wire_rule_hash(pc);

	rules->words[wire_rule_line(hash) + wire_rule_way(hash)] = wire_rule_key(hash) | rule;
}

/* A call from a frame whose words are known. */
void *framed_call(size_t n, uint64_t thunk);
__asm__(".text\n"
	".globl framed_call\nframed_call:\n\tsub $40, %rsp\n\tmovq $0x123456, 24(%rsp)\n"
	"\tmovq $0x777, 32(%rsp)\n\tcall *%rsi\n\tadd $40, %rsp\n\tret\n");

void *framed_deep(size_t n, uint64_t thunk);
__asm__(".text\n"
	".globl framed_deep\nframed_deep:\n\tsub $20488, %rsp\n\tcall framed_call\n\tadd $20488, %rsp\n\tret\n");

/* A stack of unknown bounds: its page is walked, then what the kernel says can be read, and no further. */
static void test_unknown_stack(void **unused)
{
	(void)unused;
	uint8_t *stack = mmap(NULL, 17 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t in_call = 0, in_deep = 0;

	assert_true(stack != MAP_FAILED);
	munmap(stack + 16 * 4096, 4096);
	for (unsigned round = 0; round < 5; round++) {
		/* all but the first within reach of the stack's end only by asking */
		uint64_t top = (uint64_t)stack + (round ? 16 : 8) * 4096 - 64;
		void *p;

		ctl->may_syscall = round != 3;
		if (round == 4)
			mprotect(stack + 14 * 4096, 4096, PROT_NONE);
		*(uint64_t *)top = 0;		/* returned to last: the end */
		__asm__ volatile("mov %%rsp, %%rbx\n\tmov %[top], %%rsp\n\tmov $16, %%edi\n\tmov %[thunk], %%rsi\n\t"
				 "call framed_deep\n\tmov %%rbx, %%rsp\n\tmov %%rax, %[p]"
				 : [p] "=r"(p) : [top] "r"(top), [thunk] "r"(thunk[H_MALLOC])
				 : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
		const struct probe_event *e = expect_alloc(p, 16);
		bool walked = e->flags & WIRE_F_WALKED;
		if (!round) {
			in_call = e->regs->ip;
			in_deep = *(const uint64_t *)(e->stack + 40);
			set_rule(in_call, wire_rule(WIRE_RULE_SP, 0, 6));
			set_rule(in_deep, wire_rule(WIRE_RULE_SP, 0, 20488 / 8 + 1));
			/* what called from here, and "returns" to the zero above it */
			set_rule(*(const uint64_t *)(top - 8), wire_rule(WIRE_RULE_SP, 0, 1));
			rules->generation++;
		}
		assert_int_equal(walked, round == 1 || round == 2);
		if (walked)
			assert_true(e->nframes + e->keep == 3);
		else
			assert_true(e->flags & WIRE_F_NO_BOUNDS);
	}
	munmap(stack, 16 * 4096);
}

/* With rules for all of a stack its addresses are the event; without, a copy from where they end. */
static void test_walked(void **unused)
{
	(void)unused;
	const struct probe_event *a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	struct wire_regs regs = *a->regs;

	set_bounds(regs.sp - 4096, regs.sp + 2048);
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->flags & ~WIRE_F_CUT, 0);
	assert_true(a->regs->ip == regs.ip && a->regs->sp == regs.sp);
	set_rule(regs.ip, wire_rule(WIRE_RULE_END, 0, 0));
	for (unsigned i = 0; i < 3; i++) {
		unsigned seq = a->seq;

		a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
		assert_int_equal(a->flags, WIRE_F_WALKED);
		/* the second time it is as before: that is all the event says */
		assert_int_equal(a->nframes, i == 0);
		assert_int_equal(a->keep, i > 0);
		assert_int_equal(a->seq, seq + 1);
		if (!i)
			assert_true(a->frames[0] == regs.ip);
	}
	assert_int_equal(slots_walk()->sent, slots_walk()->seq);
	/* A rule that isn't true, but shows in the event. */
	set_rule(regs.ip, wire_rule(WIRE_RULE_SP, 0, 4));
	rules->generation++;
	ctl->max_stack = 65536;
	my_slot()->stack_hi = regs.sp + 64;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);	/* all of it can be copied: from the start */
	assert_int_equal(a->nframes, 0);
	assert_true(a->regs->sp == regs.sp && a->stack_bytes == 64);
	ctl->max_stack = 48;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->nframes, 1);
	assert_int_equal(a->flags, 0);
	assert_true(a->frames[0] == regs.ip);
	assert_true(a->regs->sp == regs.sp + 32 && a->regs->ip == 0x123456);
	assert_int_equal(a->stack_bytes, 32);
	assert_true(*(const uint64_t *)a->stack == 0x777);
}

/* What was walked but never got into the ring isn't referred to. */
static void test_difference_after_drop(void **unused)
{
	(void)unused;
	const struct probe_event *a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	struct wire_regs regs = *a->regs;

	set_bounds(regs.sp - 4096, regs.sp + 2048);
	set_rule(regs.ip, wire_rule(WIRE_RULE_END, 0, 0));
	for (unsigned i = 0; i < 2; i++)
		a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->keep, 1);
	struct wire_ring *r = my_ring();
	uint64_t tail = r->tail;
	r->tail -= RING_BYTES;		/* full */
	framed_call(8, thunk[H_MALLOC]);
	assert_int_equal(my_ring()->dropped, 1);
	r->tail = tail;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->keep, 0);
	assert_int_equal(a->nframes, 1);
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->keep, 1);
}

/* Bytes below the caller's stack pointer that a call of malloc's thunk writes to. */
static __attribute__((noinline)) size_t depth_of_call(bool bounds)
{
	static uint64_t other[1024] __attribute__((aligned(16)));
	size_t untouched = 0;

	memset(other, 0xa5, sizeof(other));
	set_bounds((uint64_t)other, bounds ? (uint64_t)&other[1024] : 0);
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %[top], %%rsp\n\tmov $16, %%edi\n\tcall *%[thunk]\n\t"
			 "mov %%rbx, %%rsp"
			 :: [top] "r"(&other[1000]), [thunk] "r"(thunk[H_MALLOC])
			 : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	while (other[untouched] == 0xa5a5a5a5a5a5a5a5ull)
		untouched++;
	return (1000 - untouched) * 8;
}

/* Programs have small stacks, too: fibers, those of signal handlers. Every way, that of a full filter bucket. */
static void test_stack_use(void **unused)
{
	(void)unused;
	size_t deepest = 0;

	expect_alloc(h_malloc(8), 8);
	for (unsigned way = 0; way < 6; way++) {
		ctl->max_stack = way == 1 ? 64 : 4096;		/* cut: starts where the walk ended */
		ctl->wait = way == 2;				/* for a rule */
		ctl->rate = way == 3 ? 4 : 1;
		for (unsigned i = 0; i < 40; i++) {
			bump = 0x600000000000 + (uint64_t)(way * 40 + i) * (1u << 18);
			size_t depth = depth_of_call(way < 5);	/* else copied by a system call */
			const struct probe_event *e = next_event();

			if (e && way == 4 && !(e->flags & WIRE_F_WALKED))
				set_rule(e->regs->ip, wire_rule(WIRE_RULE_END, 0, 0));
			if (depth > deepest)
				deepest = depth;
			while (next_event())
				;
		}
	}
	assert_true(deepest > 208 && deepest < 512);
	bump = 0x700000000000;
}

static uint32_t rule_word(uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc), word = rules->words[wire_rule_line(hash) + wire_rule_way(hash)];

	return (word ^ wire_rule_key(hash)) >> WIRE_RULE_BITS ? 0 : (uint32_t)(word ^ wire_rule_key(hash));
}

/* An address without a rule is asked for once; a rule that is on its way is waited for, not for ever. */
static void test_pending(void **unused)
{
	(void)unused;
	const struct probe_event *a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	struct wire_regs regs = *a->regs;

	assert_int_equal(rule_word(regs.ip), WIRE_RULE_PENDING);	/* on a stack of unknown bounds, too */
	set_bounds(regs.sp - 4096, regs.sp + 2048);
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_false(a->flags & WIRE_F_WALKED);
	assert_int_equal(rule_word(regs.ip), WIRE_RULE_PENDING);
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(my_slot()->waited, 0);		/* unless asked to, it doesn't wait */
	ctl->wait = 1;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(my_slot()->waited, 0);		/* nor while there is much room */
	my_ring()->tail -= RING_BYTES / 4 + 8;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_true(my_slot()->waited > 0);
	assert_false(a->flags & WIRE_F_WALKED);
	assert_int_equal(rule_word(regs.ip), WIRE_RULE_COPY);
	uint64_t waited = my_slot()->waited;
	my_ring()->tail -= RING_BYTES / 4 + 8;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(my_slot()->waited, waited);
	set_rule(regs.ip, wire_rule(WIRE_RULE_END, 0, 0));
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_true(a->flags & WIRE_F_WALKED);
}

/* Nobody waits for a rule that is on its way: once copies take a quarter of the ring they become short. */
static void test_crowded(void **unused)
{
	(void)unused;
	const struct probe_event *a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	struct wire_regs regs = *a->regs;

	assert_int_equal(rule_word(regs.ip), WIRE_RULE_PENDING);
	set_bounds(regs.sp - 4096, regs.sp + 2048);
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->stack_bytes, 2048);
	assert_int_equal(a->flags, 0);
	my_ring()->tail -= RING_BYTES / 4 + 8;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->stack_bytes, 256);
	assert_int_equal(a->flags, WIRE_F_CUT);
	assert_true(a->regs->ip == regs.ip);
	/* what has no rule to come is copied whole all the same */
	set_rule(regs.ip, wire_rule(WIRE_RULE_COPY, 0, 0));
	my_ring()->tail -= RING_BYTES / 4 + 8;
	a = expect_alloc(framed_call(8, thunk[H_MALLOC]), 8);
	assert_int_equal(a->stack_bytes, 2048);
}

/* Sum of weights must be the true bytes: one block of s stands for s / (1 - exp(-s/R)). */
static void test_rate(void **unused)
{
	(void)unused;
	static const size_t sizes[] = { 1, 16, 100, 1000, 5000, 40000, 0 };
	const double rate = 4096;
	double truth = 0, sum = 0, var = 0;
	unsigned n = 0;

	ctl->rate = 4096;
	ctl->max_stack = 0;
	for (unsigned i = 0; i < 200000; i++) {
		size_t s = sizes[i % 7];
		void *p = i % 3 ? h_malloc(s) : h_calloc(1, s);

		truth += (double)s;
		const struct probe_event *h = next_event();
		if (!h)
			continue;
		assert_true(h->size == s && h->addr == (uint64_t)p && h->rate == 4096 && s > 0);
		double q = 1 - exp(-(double)s / rate);
		sum += (double)s / q;
		var += (double)s * (double)s * (1 - q) / (q * q);
		n++;
		expect_nothing();
	}
	assert_true(n > 1000);
	assert_true(fabs(sum - truth) < 4 * sqrt(var));
}

/* A change of rate between draws: each event names the rate it was drawn with, no bias. */
static void test_rate_change(void **unused)
{
	(void)unused;
	double truth = 0, sum = 0, var = 0;

	ctl->max_stack = 0;
	for (unsigned i = 0; i < 300000; i++) {
		size_t s = 48 + i % 100;

		if (i % 50 == 0)
			ctl->rate = i / 50 % 2 ? 20000 : 1000;
		if (i % 70 == 0 && my_slot())
			my_slot()->countdown = 0;	/* as heaptop does to make it effective */
		h_malloc(s);
		truth += (double)s;
		const struct probe_event *h = next_event();
		if (!h)
			continue;
		double q = 1 - exp(-(double)s / (double)h->rate);
		sum += (double)s / q;
		var += (double)s * (double)s * (1 - q) / (q * q);
	}
	assert_true(fabs(sum - truth) < 4 * sqrt(var));
}

static void test_lease(void **unused)
{
	(void)unused;
	void *p = h_malloc(10);
	expect_alloc(p, 10);
	ctl->lease = 0;
	h_malloc(10);
	h_free(p);
	expect_nothing();
	assert_int_equal(my_ring()->gap, 2);
	assert_int_equal(ctl->active, 0);	/* nobody looks at the clock any more */
	ctl->lease = ~0ull;
	ctl->active = 1;
	for (unsigned i = 0; i < 40000; i++)
		h_malloc(100);
	assert_non_null(next_event());		/* comes back by itself */
	while (next_event())
		;
	ctl->active = 0;
	h_calloc(1, 10);
	h_realloc(p, 1000);
	expect_nothing();
}

/* Nobody reads the ring any more, and nobody waits: that must not go on for ever. */
static void test_lease_full(void **unused)
{
	(void)unused;
	expect_alloc(h_malloc(8), 8);
	my_ring()->tail -= RING_BYTES;
	ctl->lease = 1;
	h_malloc(8);
	assert_int_equal(ctl->active, 0);
}

static void test_ring_full(void **unused)
{
	(void)unused;
	unsigned allocs = 0, kept = 0;
	void *first[100];

	ctl->max_stack = 64;
	for (unsigned i = 0; i < 100; i++)
		first[i] = h_malloc(16);
	ctl->max_stack = 1024;
	for (unsigned i = 0; i < 2000; i++)
		h_malloc(16);
	assert_true(my_ring()->dropped > 1000);
	assert_int_equal(my_slot()->recorded + my_ring()->dropped, 2100);
	for (unsigned i = 0; i < 100; i++)	/* frees have room of their own */
		h_free(first[i]);
	assert_int_equal(my_ring()->lost, 0);
	for (const struct probe_event *h; (h = next_event()); allocs++)
		kept += h->kind == WIRE_FREE;
	assert_int_equal(kept, 100);
	assert_int_equal(allocs, my_slot()->recorded);
	for (unsigned i = 0; i < 5000; i++) {	/* round the end of the ring many times */
		void *p = h_malloc(i % 50);
		expect_alloc(p, i % 50);
		h_free(p);
		expect_free(p, WIRE_FREE);
	}
}

static void *late_reader(void *stop)
{
	unsigned *n = stop;

	while (!__atomic_load_n(&n[1], __ATOMIC_ACQUIRE)) {
		const struct probe_event *h = next_event();
		n[0] += h != NULL;
	}
	return NULL;
}

static void test_wait(void **unused)
{
	(void)unused;
	unsigned n[2] = { 0, 0 };
	pthread_t t;

	ctl->wait = 1;
	ctl->max_stack = 4096;
	pthread_create(&t, NULL, late_reader, n);
	for (unsigned i = 0; i < 3000; i++)
		h_malloc(16);
	__atomic_store_n(&n[1], 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	while (next_event())
		n[0]++;
	assert_int_equal(n[0], 3000);
	assert_int_equal(my_ring()->dropped, 0);
	/* With nobody there any more the wait ends when the lease does. */
	ctl->lease = __rdtsc() + 100000000;
	for (unsigned i = 0; i < 3000; i++)
		h_malloc(16);
	assert_true(my_slot()->waited > 0);
}

static jmp_buf escape;
static void jump_out(void)
{
	malloc_body_hook = NULL;
	longjmp(escape, 1);
}

static __attribute__((noinline)) void *deeper(size_t n)
{
	volatile char room[2000];

	room[0] = 1;
	void *p = h_malloc(n);
	return room[0] ? p : NULL;
}

static __attribute__((noinline)) void *a_little_deeper(size_t n)
{
	void *p = h_malloc(n);

	__asm__ volatile("" ::: "memory");	/* no jump in place of the call */
	return p;
}

/* A longjmp out of the allocator leaves a mark behind; it must not silence the thread. */
static void test_stale_mark(void **unused)
{
	(void)unused;
	malloc_body_hook = jump_out;
	if (!setjmp(escape))
		deeper(16);
	assert_int_not_equal(my_slot()->mark, 0);
	void *p = h_malloc(20);
	expect_alloc(p, 20);
	expect_nothing();
	p = deeper(30);
	expect_alloc(p, 30);

	/* Not even while all calls come from deeper than where it was left. */
	malloc_body_hook = jump_out;
	if (!setjmp(escape))
		h_malloc(16);
	assert_int_not_equal(my_slot()->mark, 0);
	ctl->main_stack_lo = my_slot()->mark - (1 << 16);
	ctl->main_stack_hi = my_slot()->mark + 8;
	p = a_little_deeper(40);
	expect_alloc(p, 40);
	expect_nothing();
}

/* A forked child finds zeroes and goes straight through. */
static void test_fork(void **unused)
{
	(void)unused;
	void *p = h_malloc(10);
	expect_alloc(p, 10);
	pid_t pid = fork();
	if (!pid) {
		for (unsigned i = 0; i < 1000; i++)
			h_free(h_malloc(100000));
		h_free(p);
		h_realloc(h_calloc(1, 2), 5);
		_exit(frees == 1002 ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_nothing();
}

/* All registers but rax, r10 and r11 are as they were when the original runs and returns. */
static void test_registers(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 2; round++) {
		uint64_t in[6] = { 0, 2, 3, 4, 5, 6 }, out[6];

		ctl->free_all = round;
		__asm__ volatile("mov %[in], %%rax\n\tmov 0(%%rax), %%rdi\n\tmov 8(%%rax), %%rsi\n\t"
				 "mov 16(%%rax), %%rdx\n\tmov 24(%%rax), %%rcx\n\tmov 32(%%rax), %%r8\n\t"
				 "mov 40(%%rax), %%r9\n\t"
				 "mov %[f], %%r10\n\tmov %%rsp, %%r12\n\tand $-16, %%rsp\n\tcall *%%r10\n\t"
				 "mov %%r12, %%rsp\n\tmov %[out], %%rax\n\tmov %%rdi, 0(%%rax)\n\t"
				 "mov %%rsi, 8(%%rax)\n\tmov %%rdx, 16(%%rax)\n\tmov %%rcx, 24(%%rax)\n\t"
				 "mov %%r8, 32(%%rax)\n\tmov %%r9, 40(%%rax)\n\t"
				 :: [in] "m"((uint64_t *){ in }), [f] "m"(thunk[H_FREE]), [out] "m"((uint64_t *){ out })
				 : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
		assert_memory_equal(in, out, sizeof(in));
	}
}

#define THREADS 8
#define ROUNDS 3000
static void *churn(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		h_free(h_malloc(16 + (size_t)arg));
	return NULL;
}

static void test_threads(void **unused)
{
	(void)unused;
	pthread_t t[THREADS];
	unsigned n[2] = { 0, 0 };
	pthread_t reader;

	ctl->wait = 1;
	ctl->max_stack = 64;
	pthread_create(&reader, NULL, late_reader, n);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, churn, (void *)(uint64_t)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&n[1], 1, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	while (next_event())
		n[0]++;
	assert_int_equal(n[0], 2 * THREADS * ROUNDS);
	assert_int_equal(ctl->no_slot, 0);
	assert_int_equal(ctl->free_all, 0);
	/* Every tag was taken out again. */
	for (unsigned i = 0; i < WIRE_FILTER_BYTES / 4; i++)
		assert_int_equal(((uint32_t *)(state + WIRE_STATE_FILTER))[i], 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, placed_setup, placed_teardown)
	const struct CMUnitTest tests[] = {
		T(test_exact), T(test_nested), T(test_new), T(test_arguments), T(test_stack), T(test_walked), T(test_difference_after_drop),
		T(test_pending), T(test_unknown_stack), T(test_stack_use), T(test_rate), T(test_rate_change),
		T(test_crowded), T(test_lease), T(test_lease_full), T(test_ring_full), T(test_wait),
		T(test_stale_mark), T(test_fork), T(test_registers), T(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
