/*
 * What heaptop keeps in the kernel for the second probe: records and counters come out as calls went in, by all ways,
 * and reading them allocates nothing, however many there are; nor does any operation on a map of the same kind.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef WITH_BPF
#include <bpf/bpf.h>
#endif

#include "base/err.h"
#include "base/mem.h"
#include "probe/uprobe_kernel.h"
#include "probe/uprobe_pool.h"
#include "tests/lib/counted.h"
#include "tests/lib/ownpoint.h"
#include "wire/wire.h"

#define CALLS 3000u
#define ENTRIES 1000u

static jmp_buf *leave;	/* take() doesn't return but goes there */

/* What is probed: neither inlined nor cloned, and never an address of this process's own heap. */
static __attribute__((noipa)) void *take(size_t size)
{
	if (leave)
		longjmp(*leave, 1);
	return (void *)(size << 20);
}

static __attribute__((noipa)) void give(void *block)
{
	__asm__ volatile("" :: "r"(block) : "memory");
}

struct seen {
	uint64_t allocs, frees, bytes, stacks, threads, others;
};

static bool see(void *ctx, const struct uprobe_record *r, size_t size)
{
	struct seen *seen = ctx;

	switch (r->kind) {
	case WIRE_ALLOC:
		seen->allocs++;
		seen->bytes += ((const struct uprobe_alloc *)r)->size;
		seen->stacks += size >= sizeof(struct uprobe_alloc) + r->bytes && r->bytes >= 64;
		break;
	case WIRE_FREE:
		seen->frees++;
		break;
	case WIRE_THREAD:
		seen->threads += r->tid == (uint32_t)syscall(SYS_gettid);
		break;
	default:
		seen->others++;
	}
	return true;
}

static struct uprobe_kernel *opened(enum uprobe_way best, uint64_t rate)
{
	const struct uprobe_ctl init = {
		.rate = rate, .seed = 1, .active = 1, .free_all = rate <= 1, .max_stack = 1024,
	};
	struct uprobe_kernel *k;
	struct err *err = uprobe_kernel_open(&init, best, &k);

	if (err && (err->code == ERR_DENIED || err->code == ERR_UNSUPPORTED)) {
		print_message("%s\n", err->text);
		err_free(err);
		skip();
	}
	if (err)
		fail_msg("%s", err->text);
	return k;
}

static void attach(struct uprobe_kernel *k)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct uprobe_point points[] = {
		{ .addr = (uintptr_t)give, .cookie = 1 << UPROBE_POINTER | 1ull << UPROBE_IS_FREE },
		{ .addr = (uintptr_t)take, .cookie = 1 << UPROBE_SIZE },
	};

	assert_true(fd >= 0);
	assert_true(ownpoint_offset((uintptr_t)give, &points[0].offset));
	assert_true(ownpoint_offset((uintptr_t)take, &points[1].offset));
	struct err *err = uprobe_kernel_attach(k, getpid(), fd, points, 1, ARRAY_SIZE(points));
	if (err)
		fail_msg("%s", err->text);
	close(fd);
}

static void every_call(enum uprobe_way way)
{
	struct uprobe_kernel *k = opened(way, 1);
	struct seen seen = { 0 };
	struct uprobe_counts counts;
	size_t read = 0, rounds = 0;

	assert_int_equal(uprobe_kernel_way(k), way);
	attach(k);
	for (size_t i = 1; i <= CALLS; i++)
		give(take(i));
	counted_begin();
	for (size_t n; (n = uprobe_kernel_read(k, 100, see, &seen)); rounds++) {
		assert_true(n <= 100);
		read += n;
		uprobe_kernel_counts(k, &counts);
		uprobe_kernel_ctl(k)->generation++;
	}
	const struct counted heap = counted_end();
	assert_int_equal(heap.calls, 0);
	assert_true(rounds >= 2 * CALLS / 100);
	assert_int_equal(read, 2 * CALLS + 1);
	assert_int_equal(seen.allocs, CALLS);
	assert_int_equal(seen.frees, CALLS);
	assert_int_equal(seen.bytes, (uint64_t)CALLS * (CALLS + 1) / 2);
	assert_int_equal(seen.stacks, CALLS);
	assert_int_equal(seen.threads, 1);
	assert_int_equal(seen.others, 0);
	assert_int_equal(counts.recorded, 2 * CALLS);
	assert_int_equal(counts.hits, 2 * CALLS);
	assert_int_equal(counts.returns, CALLS);
	assert_int_equal(counts.dropped + counts.lost + counts.nested, 0);
	/* taken out: the calls go on, nothing more is recorded, and what was is still to be read */
	give(take(1));
	uprobe_kernel_detach(k);
	give(take(1));
	assert_int_equal(uprobe_kernel_read(k, 100, see, &seen), 2);
	uprobe_kernel_close(k);
}

#ifdef WITH_BPF
static void test_session(void **state)
{
	(void)state;
	every_call(UPROBE_WAY_SESSION);
}

static void test_multi(void **state)
{
	(void)state;
	every_call(UPROBE_WAY_MULTI);
}
#endif

/* Calls twice from one place, with so much less stack than its caller has: the first call is left by a jump. */
static __attribute__((noipa)) void *take_twice(size_t depth, size_t size)
{
	volatile char below[depth];
	volatile unsigned calls = 0;
	jmp_buf to;

	below[0] = 0;
	(void)setjmp(to);
	leave = calls++ ? NULL : &to;
	void *block = take(size);
	(void)below[0];
	return block;
}

/* Leaves its one call. */
static __attribute__((noipa)) void take_and_leave(size_t depth)
{
	volatile char below[depth];
	jmp_buf to;

	below[0] = 0;
	leave = &to;
	if (!setjmp(to))
		take(1);
	leave = NULL;
	(void)below[0];
}

/*
 * The mark of a call that was left by a jump is stale: calls after it with as much of the stack in use, or less, aren't
 * calls within it.
 */
static void after_jump(enum uprobe_way way)
{
	struct uprobe_kernel *k = opened(way, 1);
	struct seen seen = { 0 };
	struct uprobe_counts counts;

	assert_int_equal(uprobe_kernel_way(k), way);
	attach(k);
	for (size_t i = 0; i < 10; i++) {
		give(take_twice(64, 2));
		take_and_leave(4096);
		give(take(2));
	}
	while (uprobe_kernel_read(k, 100, see, &seen))
		;
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.hits, 10 * 6);
	assert_int_equal(counts.nested, 0);
	assert_int_equal(seen.allocs, 10 * 2);
	assert_int_equal(seen.bytes, 10 * 2 * 2);
	assert_int_equal(seen.frees, 10 * 2);
	uprobe_kernel_close(k);
}

static void test_hits(void **state)
{
	(void)state;
	every_call(UPROBE_WAY_HITS);
}

static void test_jump_hits(void **state)
{
	(void)state;
	after_jump(UPROBE_WAY_HITS);
}

static uint64_t told(const struct uprobe_counts *counts)
{
	return counts->hits + counts->returns + counts->dropped;
}

/*
 * More than the rings take: what is lost is counted to the last record, and a call whose return was among it doesn't
 * silence those with more of the stack in use.
 */
static void test_full(void **state)
{
	(void)state;
	enum { MANY = 80000 };
	struct uprobe_kernel *k = opened(UPROBE_WAY_HITS, 1);
	struct seen seen = { 0 };
	struct uprobe_counts counts;
	uint64_t before;
	cpu_set_t all, one;

	/* each processor has a ring: all goes to one */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	attach(k);
	for (size_t i = 0; i < MANY; i++)
		take(1);
	while (uprobe_kernel_read(k, SIZE_MAX, see, &seen))
		;
	before = seen.allocs;
	for (size_t i = 0; i < 100; i++)
		take_twice(4096, 2);
	while (uprobe_kernel_read(k, SIZE_MAX, see, &seen))
		;
	uprobe_kernel_counts(k, &counts);
	assert_true(counts.dropped > 0);
	assert_int_equal(told(&counts), 2 * MANY + 3 * 100);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(seen.allocs - before, 100);
	assert_int_equal(counts.nested, 0);
	uprobe_kernel_close(k);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

#ifdef WITH_BPF
static void test_jump_session(void **state)
{
	(void)state;
	after_jump(UPROBE_WAY_SESSION);
}

static void test_jump_multi(void **state)
{
	(void)state;
	after_jump(UPROBE_WAY_MULTI);
}
#endif

/* Sampled: a free is told of what was, and of nothing else; a session skips the returns of what wasn't. */
static void sampled(enum uprobe_way way)
{
	struct uprobe_kernel *k = opened(way, 100000);
	struct seen seen = { 0 };
	struct uprobe_counts counts;

	attach(k);
	for (size_t i = 0; i < CALLS; i++)
		give(take(1000 + i));	/* 7.5 MB: some 75 samples */
	while (uprobe_kernel_read(k, 100, see, &seen))
		;
	uprobe_kernel_counts(k, &counts);
	assert_in_range(seen.allocs, 20, 200);
	assert_int_equal(seen.frees, way == UPROBE_WAY_HITS ? CALLS : seen.allocs);
	assert_int_equal(counts.hits, 2 * CALLS);
	if (uprobe_kernel_way(k) == UPROBE_WAY_SESSION)
		assert_int_equal(counts.returns, seen.allocs);
	uprobe_kernel_close(k);
}

#ifdef WITH_BPF
static void test_sampled(void **state)
{
	(void)state;
	sampled(UPROBE_WAY_SESSION);
}
#endif

/* Without BPF all frees are told: whose blocks they were is known where they are looked up. */
static void test_sampled_hits(void **state)
{
	(void)state;
	sampled(UPROBE_WAY_HITS);
}

#ifdef WITH_BPF
/* Records that were handed over stay as they are until the next read, though the ring is full and the program goes on. */
struct kept {
	const struct uprobe_record *at[100];
	struct uprobe_record copy[100];
	size_t n;
};

static bool keep(void *ctx, const struct uprobe_record *r, size_t size)
{
	struct kept *kept = ctx;

	(void)size;
	kept->at[kept->n] = r;
	kept->copy[kept->n++] = *r;
	return true;
}

static void test_ring_stays(void **state)
{
	(void)state;
	struct uprobe_kernel *k = opened(UPROBE_WAY_SESSION, 1);
	struct uprobe_counts counts, later;
	struct kept kept = { 0 };
	struct seen seen = { 0 };
	size_t read;

	attach(k);
	for (size_t i = 0; i < UPROBE_RING_BYTES / 1024; i++)	/* more than a kilobyte each */
		take(1);
	uprobe_kernel_counts(k, &counts);
	assert_true(counts.dropped > 0);
	read = uprobe_kernel_read(k, ARRAY_SIZE(kept.at), keep, &kept);
	assert_int_equal(read, ARRAY_SIZE(kept.at));
	for (size_t i = 0; i < 2 * ARRAY_SIZE(kept.at); i++)
		take(7);
	for (size_t i = 0; i < kept.n; i++)
		assert_memory_equal(kept.at[i], &kept.copy[i], sizeof(kept.copy[i]));
	uprobe_kernel_counts(k, &later);
	assert_int_equal(later.recorded, counts.recorded);
	assert_int_equal(later.dropped, counts.dropped + 2 * ARRAY_SIZE(kept.at));
	/* with the next read there is room again */
	read += uprobe_kernel_read(k, 1, see, &seen);
	for (size_t i = 0; i < ARRAY_SIZE(kept.at) / 2; i++)
		take(7);
	for (size_t n; (n = uprobe_kernel_read(k, SIZE_MAX, see, &seen));)
		read += n;
	assert_int_equal(read, 1 + counts.recorded + ARRAY_SIZE(kept.at) / 2);
	uprobe_kernel_close(k);
}

/* From a deeper place than what a jump has left there. */
static __attribute__((noipa)) void *take_below(size_t depth, size_t size)
{
	volatile char below[depth];

	below[0] = 0;
	void *block = take(size);
	(void)below[0];
	return block;
}

static struct uprobe_kernel *from_pool(struct uprobe_pool *pool, uint64_t rate)
{
	const struct uprobe_ctl init = {
		.rate = rate, .seed = 1, .active = 1, .free_all = rate <= 1, .max_stack = 1024,
	};
	struct uprobe_kernel *k;
	struct err *err = uprobe_pool_open(pool, &init, &k);

	if (err)
		fail_msg("%s", err->text);
	return k;
}

static void take_and_give(size_t n)
{
	for (size_t i = 0; i < n; i++)
		give(take_below(8192, 1000 + i));
}

/* All of n calls of each kind by this thread, who is told of. */
static void assert_seen(struct uprobe_kernel *k, size_t n)
{
	struct uprobe_counts counts;
	struct seen seen = { 0 };

	assert_int_equal(uprobe_kernel_read(k, SIZE_MAX, see, &seen), 2 * n + 1);
	assert_int_equal(seen.threads, 1);
	assert_int_equal(seen.allocs, n);
	assert_int_equal(seen.frees, n);
	assert_int_equal(seen.bytes, n * 1000 + n * (n - 1) / 2);
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.hits, 2 * n);
	assert_int_equal(counts.returns, n);
	assert_int_equal(counts.recorded, 2 * n);
	assert_int_equal(counts.nested + counts.dropped + counts.lost, 0);
}

/*
 * One after the other gets what has served before and finds nothing of it: no records, addresses or counters, and of this
 * thread, which goes on, neither how far it was to its next sample, nor a call that never returned, nor that it was told of.
 */
static void one_after_the_other(enum uprobe_way way)
{
	enum { MANY = 5000 };	/* more than are emptied at a time */
	struct uprobe_pool *pool = uprobe_pool_create(way);
	struct uprobe_kernel *k = from_pool(pool, 2);	/* of so many bytes a sample: every block is one */
	struct uprobe_counts counts;
	struct seen seen = { 0 };

	assert_int_equal(uprobe_kernel_way(k), way);
	attach(k);
	for (size_t i = 0; i < MANY; i++)
		take(1000 + i);
	take_and_leave(64);
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.recorded, MANY);
	uprobe_kernel_ctl(k)->active = 0;
	uprobe_pool_close(pool, k);

	k = from_pool(pool, 1ull << 36);
	assert_int_equal(uprobe_kernel_read(k, SIZE_MAX, see, &seen), 0);
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.hits + counts.returns + counts.recorded, 0);
	attach(k);
	for (size_t i = 0; i < MANY; i++)
		give((void *)((1000 + i) << 20));
	take_and_give(100);
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.hits, MANY + 2 * 100);
	assert_int_equal(counts.nested, 0);
	assert_int_equal(uprobe_kernel_read(k, SIZE_MAX, see, &seen), 0);
	uprobe_pool_close(pool, k);

	k = from_pool(pool, 1);
	attach(k);
	take_and_give(MANY);
	assert_seen(k, MANY);
	/* ... and two at a time never the same */
	struct uprobe_kernel *other = from_pool(pool, 1);
	attach(other);
	take_and_give(MANY);
	assert_seen(other, MANY);
	uprobe_kernel_counts(k, &counts);
	assert_int_equal(counts.recorded, 2 * 2 * MANY);
	assert_int_equal(uprobe_pool_opened(pool), 2);
	uprobe_pool_close(pool, k);
	take_and_give(MANY);	/* the other's alone */
	uprobe_kernel_counts(other, &counts);
	assert_int_equal(counts.recorded, 2 * 2 * MANY);
	k = from_pool(pool, 1);
	attach(k);
	take_and_give(MANY);
	assert_seen(k, MANY);
	assert_int_equal(uprobe_pool_opened(pool), 2);
	uprobe_pool_close(pool, k);
	uprobe_pool_close(pool, other);
	uprobe_pool_destroy(pool);
}

static void test_pool_session(void **state)
{
	(void)state;
	uprobe_kernel_close(opened(UPROBE_WAY_SESSION, 1));	/* else it is skipped */
	one_after_the_other(UPROBE_WAY_SESSION);
}

static void test_pool_multi(void **state)
{
	(void)state;
	uprobe_kernel_close(opened(UPROBE_WAY_MULTI, 1));
	one_after_the_other(UPROBE_WAY_MULTI);
}

/* Spare ones are few, the rest is closed. */
static void test_pool_bounded(void **state)
{
	(void)state;
	enum { ALL = UPROBE_POOL_SPARE + 2 };
	struct uprobe_pool *pool = uprobe_pool_create(UPROBE_WAY_SESSION);
	struct uprobe_kernel *k[ALL];

	uprobe_kernel_close(opened(UPROBE_WAY_SESSION, 1));
	for (int round = 1; round <= 2; round++) {
		for (size_t i = 0; i < ALL; i++)
			k[i] = from_pool(pool, 1);
		for (size_t i = 0; i < ALL; i++)
			uprobe_pool_close(pool, k[i]);
		assert_int_equal(uprobe_pool_opened(pool), ALL + (round - 1) * (ALL - UPROBE_POOL_SPARE));
	}
	uprobe_pool_destroy(pool);
}

/* One key after the other or all at once, the caller's memory is all there is. */
static void test_map_operations(void **state)
{
	(void)state;
	static uint64_t keys[ENTRIES], told[ENTRIES];
	static uint8_t values[ENTRIES];
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "heaptop_test", sizeof(keys[0]), sizeof(values[0]), ENTRIES, NULL);
	uint32_t n = ENTRIES, batch, seen = 0;
	uint64_t key = 0;
	uint8_t value;

	if (map < 0)
		skip();
	for (size_t i = 0; i < ENTRIES; i++) {
		keys[i] = 0x10000 + 16 * i;
		values[i] = (uint8_t)i;
	}
	counted_begin();
	for (size_t i = 0; i < ENTRIES; i++)
		assert_int_equal(bpf_map_update_elem(map, &keys[i], &values[i], BPF_NOEXIST), 0);
	for (size_t i = 0; i < ENTRIES; i++) {
		assert_int_equal(bpf_map_lookup_elem(map, &keys[i], &value), 0);
		assert_int_equal(value, values[i]);
	}
	for (void *last = NULL; bpf_map_get_next_key(map, last, &key) == 0; last = &key)
		seen++;
	assert_int_equal(bpf_map_lookup_batch(map, NULL, &batch, told, values, &n, NULL), -ENOENT);
	for (size_t i = 0; i < ENTRIES; i++)
		assert_int_equal(bpf_map_delete_elem(map, &keys[i]), 0);
	uint32_t again = ENTRIES;
	assert_int_equal(bpf_map_update_batch(map, keys, values, &again, NULL), 0);
	assert_int_equal(bpf_map_delete_batch(map, keys, &again, NULL), 0);
	const struct counted heap = counted_end();
	assert_int_equal(heap.calls, 0);
	assert_int_equal(seen, ENTRIES);
	assert_int_equal(n, ENTRIES);
	assert_int_equal(again, ENTRIES);
	assert_int_equal(bpf_map_get_next_key(map, NULL, &key), -ENOENT);
	close(map);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef WITH_BPF
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_multi),
		cmocka_unit_test(test_jump_session),
		cmocka_unit_test(test_jump_multi),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_ring_stays),
		cmocka_unit_test(test_pool_session),
		cmocka_unit_test(test_pool_multi),
		cmocka_unit_test(test_pool_bounded),
		cmocka_unit_test(test_map_operations),
#endif
		cmocka_unit_test(test_hits),
		cmocka_unit_test(test_jump_hits),
		cmocka_unit_test(test_sampled_hits),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
