/*
 * The agent's slots, in this process (tests/lib/placed.h): who has which, passed on when threads end, and
 * nothing of the one before taken for the next one's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/placed.h"
#include "wire/wire.h"

#define STACK (64u << 10)

static uint64_t thread_pointer(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* Where this libc keeps a thread's id: as heaptop finds it. */
static uint32_t find_tid_at(void)
{
	const uint32_t *words = (const uint32_t *)thread_pointer();

	for (uint32_t i = 2; i < 1024; i++)
		if (words[i] == (uint32_t)getpid())
			return i * 4;
	fail_msg("the libc's word isn't there");
	return 0;
}

static size_t used(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < WIRE_SLOTS; i++)
		n += slots()[i].tp != 0;
	return n;
}

static struct wire_births *births(void)
{
	return (struct wire_births *)((uint8_t *)rules + WIRE_RULES_BYTES);
}

/* What a thread saw of itself. */
struct seen {
	struct wire_slot *slot, before;	/* before: the slot as it is when the thread begins, if it has one */
	uint64_t tp;
	uint32_t tid;
	const char *name;
	int born;			/* heaptop has seen it come, -1: one with another id at that place */
	bool dirty;			/* leave it with a mark, bounds and a walk */
	bool *go, *there;		/* wait for go when there */
};

static void *body(void *arg)
{
	struct seen *s = arg;

	s->tp = thread_pointer();
	s->tid = (uint32_t)syscall(SYS_gettid);
	if (my_slot())
		s->before = *my_slot();
	if (s->born)	/* heaptop writes it before the thread has run */
		births()->of[wire_slot_hash(s->tp) + 1] = (struct wire_birth){
			.tp = s->tp, .stack_lo = s->tp - STACK, .tid = s->born > 0 ? s->tid : s->tid + 1,
		};
	if (s->name)
		pthread_setname_np(pthread_self(), s->name);
	h_free(h_malloc(24));
	s->slot = my_slot();
	if (s->slot && s->dirty) {
		set_bounds(s->tp - STACK, s->tp);
		h_malloc(8);
		s->slot->mark = s->tp - 64;
		s->slot->countdown = 0;
	}
	if (s->go) {
		__atomic_store_n(s->there, true, __ATOMIC_RELEASE);
		while (!__atomic_load_n(s->go, __ATOMIC_ACQUIRE))
			usleep(1000);
	}
	return NULL;
}

/* On this stack: the thread pointer is the same each time. */
static void run(void *stack, struct seen *s)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, body, s), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	pthread_attr_destroy(&attr);
}

static void *map_stack(void)
{
	void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(stack != MAP_FAILED);
	return stack;
}

/* The ways to know a thread: the libc's word, the kernel, and the word alone where that mustn't be asked. */
static const struct {
	bool word, syscalls;
} ways[] = { { true, true }, { false, true }, { true, false } };

static void set_way(unsigned way)
{
	ctl->tid_at = ways[way].word ? find_tid_at() : 0;
	ctl->main_tp = thread_pointer();
	ctl->may_syscall = ways[way].syscalls;
}

/* The next thread with the same thread pointer has the same slot, as if it were new, but for the counters. */
static void test_renewed(void **unused)
{
	void *stack = map_stack();

	(void)unused;
	for (unsigned way = 0; way < 3; way++) {
		struct seen a = { .name = "first", .dirty = true }, b = { .name = "second" };

		set_way(way);
		run(stack, &a);
		while (next_event())
			;
		assert_int_equal(told.addr, a.tid);
		assert_true(told.sp > (uint64_t)stack && told.sp < a.tp);
		assert_string_equal(told_name, ways[way].syscalls ? "first" : "");
		uint64_t recorded = a.slot->recorded;
		uint32_t ring = a.slot->ring, owners = a.slot->owners, count = ntold;
		run(stack, &b);
		assert_true(b.tp == a.tp && b.slot == a.slot);
		assert_int_not_equal(b.tid, a.tid);
		assert_true(b.before.mark != 0);
		assert_int_equal(b.slot->tid, b.tid);
		assert_int_equal(b.slot->how, ways[way].word ? WIRE_TID_WORD : WIRE_TID_ASK);
		assert_int_equal(b.slot->mark, 0);
		assert_int_not_equal(b.slot->stack_tid, b.tid);
		assert_int_equal(b.slot->ring, ring);
		assert_int_equal(b.slot->owners, owners + 1);
		assert_int_equal(b.slot->recorded, recorded + 2);
		const struct probe_event *e = next_event();
		assert_non_null(e);
		assert_int_equal(ntold, count + 1);	/* before its first event */
		assert_int_equal(told.addr, b.tid);
		assert_int_equal(e->slot, told.slot);
		assert_int_equal(e->keep, 0);
		while (next_event())
			;
		assert_int_equal(ntold, count + 1);
	}
	munmap(stack, STACK);
}

/* As if a thread with another thread pointer had it. */
static void occupy(struct wire_slot *s, uint32_t tid)
{
	*s = (struct wire_slot){ .tp = 0x1000 + (uint64_t)(s - slots()) * 8, .rng = 1, .tid = tid, .recorded = 7,
				 .ring = 1 };
}

/* A slot whose thread has ended goes to another; that of one there is doesn't, nor one nobody knows. */
static void test_taken(void **unused)
{
	struct seen probe = { 0 };
	void *stack = map_stack();

	(void)unused;
	set_way(0);
	run(stack, &probe);		/* learn the thread pointer */
	uint32_t home = wire_slot_hash(probe.tp);
	for (unsigned way = 0; way < 3; way++) {
		struct seen s = { 0 };

		set_way(way);
		memset(slots(), 0, WIRE_SLOTS * sizeof(struct wire_slot));
		for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++)
			occupy(&slots()[home + i], (uint32_t)getpid());
		slots()[home + 3].tid = WIRE_TID_NONE;
		slots()[home + 4].tid = WIRE_TID_TAKEN;
		run(stack, &s);
		assert_null(s.slot);
		assert_int_equal(ctl->no_slot, 1);	/* the block isn't recorded, so its free isn't looked at */
		ctl->no_slot = 0;
		slots()[home + 9].tid = slots()[home + 9].gone = probe.tid;	/* there was such a thread */
		slots()[home + 9].mark = 99;
		slots()[home + 9].stack_tid = probe.tid;
		run(stack, &s);
		assert_true(s.slot == &slots()[home + 9]);
		assert_int_equal(s.slot->tid, s.tid);
		assert_int_equal(s.slot->recorded, 9);
		assert_int_equal(s.slot->mark, 0);
		assert_int_equal(s.slot->ring, 1);
		assert_int_equal(ctl->no_slot, 0);
		/* the nearest to its home is the cheapest */
		slots()[home + 9].tp = 0x1000;
		slots()[home + 9].tid = (uint32_t)getpid();
		slots()[home + 1].tid = slots()[home + 1].gone = probe.tid;
		run(stack, &s);
		assert_true(s.slot == &slots()[home + 1]);
		/* heaptop's word doesn't count where the kernel knows better */
		slots()[home + 1].tp = 0x1000;
		slots()[home + 1].tid = slots()[home + 1].gone = (uint32_t)getpid();
		run(stack, &s);
		assert_int_equal(s.slot != NULL, !ways[way].syscalls);
		ctl->no_slot = 0;
		while (next_event())
			;
	}
	munmap(stack, STACK);
}

/*
 * What heaptop has seen at a thread's birth counts, if it was that thread's: its stack's bounds are known from
 * the first event, and once it has ended its slot is free for others, without a question to the kernel.
 */
static void test_births(void **unused)
{
	struct seen first = { .born = 1 }, other = { .born = -1 };
	void *stack = map_stack(), *elsewhere = map_stack();

	(void)unused;
	set_way(2);
	run(stack, &first);		/* learn the thread pointer */
	births()->of[wire_slot_hash(first.tp)].tp = 1;	/* another one's */
	run(stack, &first);
	assert_true(first.slot->stack_tid == first.tid && first.slot->stack_hi == first.tp);
	assert_true(first.slot->stack_lo == first.tp - STACK);
	while (next_event())
		;
	assert_int_equal(told.addr, first.tid);
	assert_false(told.flags & WIRE_F_NO_BOUNDS);
	run(elsewhere, &other);
	births()->of[wire_slot_hash(other.tp)].tp = 1;
	run(elsewhere, &other);
	assert_int_not_equal(other.slot->stack_tid, other.tid);
	while (next_event())
		;
	assert_int_equal(told.addr, other.tid);
	assert_true(told.flags & WIRE_F_NO_BOUNDS);

	/* all slots of its home are taken, the last one by a thread that heaptop saw come */
	uint32_t home = wire_slot_hash(first.tp), last = home + WIRE_SLOT_PROBES - 1;
	memset(slots(), 0, WIRE_SLOTS * sizeof(struct wire_slot));
	for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++)
		occupy(&slots()[home + i], (uint32_t)getpid());
	struct wire_birth *b = &births()->of[wire_slot_hash(slots()[last].tp)];
	*b = (struct wire_birth){ .tp = slots()[last].tp, .tid = (uint32_t)getpid() };
	run(stack, &first);
	assert_null(first.slot);
	b->ended = 1;
	run(stack, &first);
	assert_true(first.slot == &slots()[last]);
	while (next_event())
		;
	munmap(stack, STACK);
	munmap(elsewhere, STACK);
}

/* Where nothing tells who it is, the slot stays with its thread pointer, until something does. */
static void test_unknown(void **unused)
{
	(void)unused;
	ctl->may_syscall = 0;
	h_malloc(8);
	assert_int_equal(my_slot()->tid, WIRE_TID_NONE);
	next_event();
	assert_int_equal(ntold, 0);
	set_bounds(thread_pointer() - 4096, thread_pointer());
	ctl->tid_at = find_tid_at();
	ctl->main_tp = thread_pointer();
	h_malloc(8);
	assert_int_equal(my_slot()->tid, getpid());
	assert_int_equal(my_slot()->how, WIRE_TID_WORD);
	next_event();
	assert_int_equal(ntold, 1);
	assert_int_equal(used(), 1);
}

/* A word that isn't the thread's id doesn't count, whatever heaptop thinks. */
static void test_wrong_word(void **unused)
{
	(void)unused;
	ctl->tid_at = find_tid_at() + 4;
	ctl->main_tp = thread_pointer();
	for (unsigned i = 0; i < 10; i++)
		h_malloc(8);
	assert_int_equal(my_slot()->tid, getpid());
	assert_int_equal(my_slot()->how, WIRE_TID_ASK);
	assert_int_equal(my_slot()->owners, 0);
	ctl->tid_at -= 4;
	h_malloc(8);
	assert_int_equal(my_slot()->how, WIRE_TID_WORD);
}

#define CROWD 200
#define WAVES 40
static int failures;

static void *crowd_body(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 5; i++)
		h_free(h_malloc(16));
	struct wire_slot *s = my_slot();
	if (!s || s->tid != (uint32_t)syscall(SYS_gettid))
		__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Waves of threads whose slots are all within one stretch: taken from the dead by many at once. */
static void test_crowd(void **unused)
{
	static pthread_t t[CROWD];
	uint64_t recorded = 0, lost = 0;

	(void)unused;
	set_way(0);
	ctl->max_stack = 0;
	failures = 0;
	/* leave room for little more than a wave in all the table */
	for (unsigned i = 0; i < WIRE_SLOTS; i++)
		if (i % 8)
			occupy(&slots()[i], (uint32_t)getpid());
	for (unsigned wave = 0; wave < WAVES; wave++) {
		for (unsigned i = 0; i < CROWD; i++)
			assert_int_equal(pthread_create(&t[i], NULL, crowd_body, NULL), 0);
		for (unsigned i = 0; i < CROWD; i++)
			pthread_join(t[i], NULL);
		while (next_event())
			;
	}
	for (unsigned i = 0; i < WIRE_SLOTS; i++) {
		struct wire_slot *s = &slots()[i];
		recorded += s->tid == (uint32_t)getpid() && s->recorded == 7 ? 0 : s->recorded;
	}
	for (unsigned i = 0; i < NRINGS; i++)
		lost += ring_number(i)->dropped + ring_number(i)->lost;
	assert_int_equal(ctl->no_slot, 0);
	assert_int_equal(failures, 0);
	assert_int_equal(lost, 0);
	assert_int_equal(recorded, WAVES * CROWD * 10);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, placed_setup, placed_teardown)
	const struct CMUnitTest tests[] = {
		T(test_renewed), T(test_taken), T(test_births), T(test_unknown), T(test_wrong_word), T(test_crowd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
