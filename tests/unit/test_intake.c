/*
 * From events to the model: stacks told by differences are the stacks they stand for, an event that was
 * lost in between shows, is counted and asks for whole stacks; nothing is allocated for an event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "collect/frames.h"
#include "collect/intake.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "probe/probe.h"
#include "tests/lib/counted.h"

static struct modules *mods, *shared;
static struct ticks_clock ticks = { .ns_per_tick = 1 };
static struct intake *in;
static size_t taught, missed_at;

static bool missed(void *ctx, const uint64_t *pcs, size_t n)
{
	(void)ctx;
	(void)pcs;
	missed_at = n;
	return false;
}

static void teach(void *ctx, const uint64_t *pcs, size_t n)
{
	(void)ctx;
	(void)pcs;
	taught += n;
}

static int setup(void **state)
{
	(void)state;
	mods = modules_create();
	shared = modules_create();
	in = xcalloc(1, sizeof(*in));
	*in = (struct intake){
		.heap = heap_create(NULL), .frames = frames_create(mods, shared), .unwinder = unwinder_create(mods),
		.clock = &ticks, .missed = missed, .teach = teach,
	};
	taught = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unwinder_destroy(in->unwinder);
	frames_destroy(in->frames);
	heap_destroy(in->heap);
	free(in);
	modules_destroy(shared);
	modules_destroy(mods);
	return 0;
}

static uint64_t tsc;

static void alloc(uint32_t slot, uint64_t addr, uint8_t seq, uint32_t keep, uint32_t n, const uint64_t *frames)
{
	intake_event(in, &(struct probe_event){
		.kind = WIRE_ALLOC, .flags = WIRE_F_WALKED, .slot = slot, .tsc = ++tsc, .addr = addr, .size = 10,
		.rate = 1, .nframes = n, .frames = frames, .keep = keep, .seq = seq,
	});
	intake_flush(in);
}

static void release(uint32_t slot, uint64_t addr)
{
	intake_event(in, &(struct probe_event){ .kind = WIRE_FREE, .slot = slot, .tsc = ++tsc, .addr = addr });
}

static void assert_stack(uint32_t slot, size_t n, const uint64_t *frames)
{
	uint64_t got[64];

	assert_int_equal(heap_last_stack(in->heap, slot, got, 64), n);
	for (size_t i = 0; i < n; i++)
		assert_true(got[i] == frame_addr(0, frames[i]));
}

static void test_differences(void **state)
{
	(void)state;
	static const uint64_t a[] = { 0x1030, 0x1020, 0x1010 }, b[] = { 0x1050, 0x1040 };
	static const uint64_t whole[] = { 0x1050, 0x1040, 0x1020, 0x1010 };

	alloc(3, 0x100, 7, 0, 3, a);
	alloc(3, 0x200, 8, 3, 0, NULL);		/* as before */
	assert_stack(3, 3, a);
	alloc(5, 0x300, 0, 0, 2, b);		/* another thread has a stack of its own */
	alloc(3, 0x400, 9, 2, 2, b);
	assert_stack(3, 4, whole);
	alloc(3, 0x500, 10, 2, 0, NULL);	/* only the outer part */
	assert_stack(3, 2, a + 1);
	assert_stack(5, 2, b);
	for (int i = 11; i < 300; i++)		/* the number goes round */
		alloc(3, 0x1000 + (uint64_t)i * 16, (uint8_t)i, 2, 0, NULL);
	assert_int_equal(in->ends[UNWIND_END_LOST], 0);
	assert_false(in->resync);
	assert_int_equal(in->stacks_complete, in->allocs);
	assert_int_equal(in->allocs, 5 + 289);
}

static void test_lost(void **state)
{
	(void)state;
	static const uint64_t a[] = { 0x1030, 0x1020, 0x1010 }, b[] = { 0x1050 };

	alloc(3, 0x100, 1, 0, 3, a);
	alloc(3, 0x200, 3, 3, 1, b);	/* number 2 was lost */
	assert_true(in->resync);
	assert_int_equal(in->ends[UNWIND_END_LOST], 1);
	assert_stack(3, 1, b);		/* what is known of it, under "incomplete" */
	in->resync = false;
	alloc(3, 0x280, 4, 1, 0, NULL);	/* nor can anything build on that one */
	assert_true(in->resync);
	assert_int_equal(in->ends[UNWIND_END_LOST], 2);
	in->resync = false;
	alloc(3, 0x300, 9, 0, 3, a);	/* a whole one may follow whatever it likes */
	assert_false(in->resync);
	assert_stack(3, 3, a);
	alloc(3, 0x400, 10, 3, 0, NULL);
	assert_int_equal(in->ends[UNWIND_END_LOST], 2);
	assert_int_equal(heap_live_samples(in->heap), 5);
	/* more than there is, as a hostile target may say */
	alloc(3, 0x500, 11, 400, 1, b);
	intake_reset(in);
	assert_int_equal(in->allocs + in->events + in->stacks_complete + in->ends[UNWIND_END_LOST], 0);
}

/* A copy without anything to walk: the frames told are kept, its addresses are looked up and taught. */
static void test_copied(void **state)
{
	(void)state;
	static const uint64_t a[] = { 0x1030 };
	const struct wire_regs regs = { .ip = 0x2020, .sp = 0x7000 };

	intake_event(in, &(struct probe_event){
		.kind = WIRE_ALLOC, .slot = 1, .tsc = ++tsc, .addr = 0x100, .size = 10, .rate = 1, .nframes = 1,
		.frames = a, .regs = &regs, .stack = (const uint8_t *)a, .stack_bytes = 8, .seq = 1,
	});
	assert_int_equal(in->allocs, 0);	/* not yet */
	intake_flush(in);
	assert_true(taught >= 2 && missed_at == taught);
	assert_int_equal(in->stacks_complete, 0);
	assert_int_equal(in->allocs, 1);
}

static void test_no_allocation(void **state)
{
	(void)state;
	static const uint64_t a[] = { 0x1030, 0x1020, 0x1010 }, b[] = { 0x1050 };
	uint8_t seq = 0;

	for (int round = 0; round < 3; round++) {
		counted_begin();
		for (uint64_t i = 1; i < 20000; i++) {
			alloc(2, i * 16, ++seq, 0, 3, a);
			alloc(2, 0x1000000 + i * 16, ++seq, 2, 1, b);
			release(2, i * 16);
			release(2, 0x1000000 + i * 16);
		}
		struct counted made = counted_end();
		if (round)
			assert_int_equal(made.calls, 0);
		else
			assert_true(made.calls > 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_differences), T(test_lost), T(test_copied), T(test_no_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
