/* The trace tree: identity of stacks, caches that never change an answer, readers beside the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/tree.h"

#define DEPTH 24

static uint64_t random_state = 42;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static size_t random_stack(uint64_t *addrs)
{
	size_t n = 1 + random_below(DEPTH);

	/* few choices near the root, so that stacks share their outer frames */
	for (size_t i = 0; i < n; i++)
		addrs[n - 1 - i] = frame_addr(1 + i % 3, 0x1000 + 16 * random_below(i < 4 ? 2 : 3));
	return n;
}

static void assert_stack(const struct tree *tree, uint32_t id, const uint64_t *addrs, size_t n)
{
	assert_int_equal(tree_get(tree, id).depth, n);
	for (size_t i = 0; i < n; i++) {
		struct tree_node node = tree_get(tree, id);
		assert_int_equal(node.addr, addrs[i]);
		assert_true(node.parent < id);
		id = node.parent;
	}
	assert_int_equal(id, 0);
}

static void test_frame_addr(void **state)
{
	(void)state;
	uint64_t addr = frame_addr(0xffff, 0x123456789abcull);
	assert_int_equal(frame_module(addr), 0xffff);
	assert_int_equal(frame_vaddr(addr), 0x123456789abcull);
	assert_int_equal(frame_module(frame_addr(0x10000, 5)), 0);
	assert_int_equal(frame_vaddr(frame_addr(1, UINT64_MAX)), (1ull << 48) - 1);
}

static void test_empty(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	assert_int_equal(tree_count(tree), 1);
	assert_int_equal(tree_insert(tree, NULL, 0, NULL, 0), 0);
	assert_int_equal(tree_get(tree, 0).parent, 0);
	assert_int_equal(tree_get(tree, 0).depth, 0);
	tree_destroy(tree);
	tree_destroy(NULL);
}

/* The same stacks through a plain tree, a cached one and one told differences only: the same nodes. */
static void test_random(void **state)
{
	(void)state;
	struct tree *plain = tree_create(), *cached = tree_create(), *told = tree_create();
	struct tree_path path = { 0 };
	uint64_t addrs[DEPTH], previous[DEPTH];
	size_t previous_n = 0;

	tree_set_last_lookup(plain, false);
	for (int k = 0; k < 100000; k++) {
		size_t n = random_stack(addrs), same = 0;
		if (k % 5 == 0 && previous_n) {
			n = previous_n;
			memcpy(addrs, previous, sizeof(addrs));
		}
		uint32_t known = tree_find(plain, NULL, 0, addrs, n);
		uint32_t id = tree_insert(plain, NULL, 0, addrs, n);
		if (known != TREE_NONE)
			assert_int_equal(known, id);
		assert_int_equal(tree_find(plain, NULL, 0, addrs, n), id);
		assert_int_equal(tree_insert(cached, NULL, 0, addrs, n), id);
		while (same < n && same < previous_n && addrs[n - 1 - same] == previous[previous_n - 1 - same])
			same++;
		size_t keep = random_below((uint32_t)same + 1);
		assert_int_equal(tree_insert(told, &path, keep, addrs, n - keep), id);
		assert_int_equal(path.n, n);
		assert_stack(cached, id, addrs, n);
		memcpy(previous, addrs, sizeof(addrs));
		previous_n = n;
	}
	struct tree_stats a = tree_stats(plain), b = tree_stats(cached), c = tree_stats(told);
	assert_int_equal(a.last_hits, 0);
	assert_true(b.last_hits > 0);
	assert_int_equal(b.added, tree_count(cached) - 1);
	assert_int_equal(b.steps, b.last_hits + b.hash_hits + b.added);
	assert_int_equal(c.steps, c.last_hits + c.hash_hits + c.added);
	assert_int_equal(tree_count(plain), tree_count(cached));
	assert_int_equal(tree_count(plain), tree_count(told));
	tree_destroy(plain);
	tree_destroy(cached);
	tree_destroy(told);
	tree_path_deinit(&path);
}

static void test_repeated_stack_hits(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	struct tree_path path = { 0 };
	uint64_t addrs[3] = { frame_addr(1, 3), frame_addr(1, 2), frame_addr(1, 1) };
	uint32_t id = tree_insert(tree, &path, 0, addrs, 3);
	assert_int_equal(id, 3);
	assert_int_equal(tree_insert(tree, NULL, 0, addrs, 3), id);
	assert_int_equal(tree_stats(tree).last_hits, 3);
	assert_int_equal(tree_insert(tree, &path, 3, NULL, 0), id);
	assert_int_equal(tree_stats(tree).last_hits, 6);
	/* the outer part only; and a path that isn't so long */
	assert_int_equal(tree_insert(tree, &path, 2, NULL, 0), 2);
	assert_int_equal(tree_insert(tree, &path, 77, addrs, 1), id);
	tree_path_deinit(&path);
	tree_destroy(tree);
}

/* What isn't there and isn't added: nothing can follow from it. */
static void test_find_below_nothing(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	struct tree_path path = { 0 };
	uint64_t addrs[3] = { frame_addr(1, 3), frame_addr(1, 2), frame_addr(1, 1) };
	uint64_t other = frame_addr(1, 9);

	tree_insert(tree, NULL, 0, addrs, 3);
	uint64_t strange[3] = { addrs[0], other, addrs[2] };
	assert_int_equal(tree_find(tree, &path, 0, strange, 3), TREE_NONE);
	assert_int_equal(tree_find(tree, &path, 2, addrs, 1), TREE_NONE);
	assert_int_equal(tree_insert(tree, &path, 2, addrs, 1), TREE_NONE);
	assert_int_equal(tree_find(tree, &path, 1, addrs, 2), 3);
	assert_int_equal(tree_count(tree), 4);
	tree_path_deinit(&path);
	tree_destroy(tree);
}

static void test_deep(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	size_t n = 10000;
	uint64_t *addrs = xcalloc(n, sizeof(*addrs));
	for (size_t i = 0; i < n; i++)
		addrs[i] = frame_addr(1, i);
	uint32_t id = tree_insert(tree, NULL, 0, addrs, n);
	assert_int_equal(tree_get(tree, id).depth, TREE_MAX_DEPTH);
	assert_int_equal(tree_get(tree, id).addr, addrs[0]);
	assert_int_equal(tree_insert(tree, NULL, 0, addrs, n), id);
	free(addrs);
	tree_destroy(tree);
}

/* A view's reference keeps it. */
static void test_outlives(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	uint64_t addr = frame_addr(1, 1);
	uint32_t id = tree_insert(tree, NULL, 0, &addr, 1);
	const struct tree *kept = tree_ref(tree);
	tree_destroy(tree);
	assert_int_equal(tree_get(kept, id).addr, addr);
	tree_unref(kept);
}

struct reading {
	const struct tree *tree;
	int stop;
	int bad;
};

static void *read_all(void *arg)
{
	struct reading *reading = arg;

	while (!__atomic_load_n(&reading->stop, __ATOMIC_ACQUIRE)) {
		uint32_t n = tree_count(reading->tree);
		for (uint32_t id = 1; id < n; id++) {
			struct tree_node node = tree_get(reading->tree, id);
			if (node.parent >= id || !node.addr
			    || node.depth != tree_get(reading->tree, node.parent).depth + 1)
				reading->bad = 1;
		}
	}
	return NULL;
}

static void test_reader(void **state)
{
	(void)state;
	struct tree *tree = tree_create();
	struct reading reading = { .tree = tree };
	pthread_t thread;
	uint64_t addrs[DEPTH];

	assert_int_equal(pthread_create(&thread, NULL, read_all, &reading), 0);
	for (int k = 0; k < 20000; k++)
		tree_insert(tree, NULL, 0, addrs, random_stack(addrs));
	__atomic_store_n(&reading.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(reading.bad, 0);
	tree_destroy(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_addr),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_repeated_stack_hits),
		cmocka_unit_test(test_find_below_nothing),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_outlives),
		cmocka_unit_test(test_reader),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
