/* The geometry of the flame screen on made-up trees: exact cumulative edges, nothing outside its parent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/flame_layout.h"

struct node {
	double value;
	uint64_t key;
	const void *children[64];
	size_t n;
};

static const void *const *children_of(void *ctx, const void *node, size_t *ret_n)
{
	(void)ctx;
	*ret_n = ((const struct node *)node)->n;
	return ((const struct node *)node)->children;
}

static double value_of(void *ctx, const void *node)
{
	(void)ctx;
	return ((const struct node *)node)->value;
}

static uint64_t key_of(void *ctx, const void *node)
{
	(void)ctx;
	return ((const struct node *)node)->key;
}

static const struct flame_source source = { NULL, children_of, value_of, key_of };

static struct node *node_new(double value)
{
	static uint64_t keys;
	struct node *n = xcalloc(1, sizeof(*n));

	n->value = value;
	n->key = ++keys;
	return n;
}

static struct node *node_add(struct node *parent, double value)
{
	struct node *n = node_new(value);

	assert_true(parent->n < ARRAY_SIZE(parent->children));
	parent->children[parent->n++] = n;
	return n;
}

static void node_free(struct node *n)
{
	for (size_t i = 0; i < n->n; i++)
		node_free((struct node *)n->children[i]);
	free(n);
}

/* A random tree: children largest first, their sum at most the parent's value. */
static void grow(struct node *n, int depth, unsigned *seed)
{
	double parts[20], rest = n->value * (rand_r(seed) % 11) / 10;
	size_t count = depth > 0 ? rand_r(seed) % 20 : 0;

	for (size_t i = 0; i < count; i++) {
		parts[i] = i + 1 == count ? rest : rest * (rand_r(seed) % 1000) / 1000;
		rest -= parts[i];
	}
	while (count) {
		size_t best = 0;
		for (size_t i = 1; i < count; i++)
			if (parts[i] > parts[best])
				best = i;
		grow(node_add(n, parts[best]), depth - 1, seed);
		parts[best] = parts[--count];
	}
}

static void check(const struct flame_layout *l, int width)
{
	assert_int_equal(l->levels[l->nlevels], l->n);
	for (size_t level = 0; level < l->nlevels; level++) {
		int at = 0;
		for (size_t i = l->levels[level]; i < l->levels[level + 1]; i++) {
			const struct flame_frame *f = &l->frames[i];
			assert_int_equal(f->level, level);
			assert_true(f->x0 < f->x1);
			assert_true(f->x0 >= at);	/* no overlap */
			at = f->x1;
			assert_true(f->x1 <= width);
			assert_int_equal(flame_at(l, level, f->x0), i);
			assert_int_equal(flame_at(l, level, f->x1 - 1), i);
			if (!level)
				continue;
			const struct flame_frame *up = &l->frames[f->parent];
			assert_int_equal(up->level, level - 1);
			assert_false(up->gap);
			assert_true(f->x0 >= up->x0 && f->x1 <= up->x1);
		}
	}
}

/* Each frame's edges are its exact interval's, rounded: computed here again, straight from the tree. */
static void check_edges(const struct flame_layout *l, const struct node *n, double a, double b)
{
	double total = n->value, cum = 0;
	for (size_t i = 0; i < n->n; i++) {
		const struct node *c = n->children[i];
		double ca = a + (b - a) * (cum / total), cb;
		cum += c->value;
		cb = a + (b - a) * (cum < total ? cum / total : 1);
		size_t found = flame_find(l, c->key);
		if (cb - ca >= 1) {
			assert_true(found < l->n);
			assert_int_equal(l->frames[found].x0, (int)floor(ca + 0.5));
			assert_int_equal(l->frames[found].x1, (int)floor(cb + 0.5));
			check_edges(l, c, ca, cb);
		} else {
			assert_true(found == SIZE_MAX);
		}
	}
}

static void test_edges(void **state)
{
	struct flame_layout l = { 0 };
	struct node *root = node_new(100);
	const void *zoom[] = { root };

	(void)state;
	for (int i = 0; i < 10; i++)
		node_add(root, 10);
	flame_layout(&l, &source, zoom, 1, 33, NULL);
	assert_int_equal(l.n, 11);
	/* 3.3 columns each: 0 3 7 10 13 17 20 23 26 30 33, no drift */
	static const int edges[] = { 0, 3, 7, 10, 13, 17, 20, 23, 26, 30, 33 };
	for (int i = 0; i < 10; i++) {
		assert_int_equal(l.frames[1 + i].x0, edges[i]);
		assert_int_equal(l.frames[1 + i].x1, edges[i + 1]);
	}
	flame_layout_deinit(&l);
	node_free(root);
}

static void test_random(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct node *root = node_new(1 + rand_r(&seed) % 100000);
		const void *zoom[] = { root };
		struct flame_layout l = { 0 };
		struct keymap order = { 0 };
		grow(root, 4, &seed);
		static const int widths[] = { 1, 2, 3, 10, 79, 80, 200, 400 };
		for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
			flame_layout(&l, &source, zoom, 1, widths[w], NULL);
			check(&l, widths[w]);
			check_edges(&l, root, 0, widths[w]);
			flame_layout(&l, &source, zoom, 1, widths[w], &order);
			check(&l, widths[w]);
		}
		keymap_deinit(&order);
		flame_layout_deinit(&l);
		node_free(root);
	}
}

static void test_gaps(void **state)
{
	struct flame_layout l = { 0 };
	struct node *root = node_new(100);
	const void *zoom[] = { root };

	(void)state;
	node_add(root, 70);
	for (int i = 0; i < 30; i++)
		node_add(root, 1);
	/* 0.5 columns each: one gap of 15 columns that says how many lie in it */
	flame_layout(&l, &source, zoom, 1, 50, NULL);
	assert_int_equal(l.n, 3);
	assert_true(l.frames[2].gap);
	assert_int_equal(l.frames[2].count, 30);
	assert_int_equal(l.frames[2].x0, 35);
	assert_int_equal(l.frames[2].x1, 50);
	assert_true(l.frames[2].value == 30);
	flame_layout_deinit(&l);
	node_free(root);
}

static void test_order(void **state)
{
	struct flame_layout l = { 0 };
	struct keymap order = { 0 };
	struct node *root = node_new(100), *a = node_add(root, 60), *b = node_add(root, 40);
	const void *zoom[] = { root };

	(void)state;
	flame_layout(&l, &source, zoom, 1, 100, &order);
	assert_true(l.frames[1].node == a);
	/* b is larger now, but not by more than 20%: it stays behind a */
	a->value = 48;
	b->value = 52;
	root->children[0] = b;
	root->children[1] = a;
	flame_layout(&l, &source, zoom, 1, 100, &order);
	assert_true(l.frames[1].node == a);
	a->value = 40;
	b->value = 60;
	flame_layout(&l, &source, zoom, 1, 100, &order);
	assert_true(l.frames[1].node == b);
	keymap_deinit(&order);
	flame_layout_deinit(&l);
	node_free(root);
}

static void test_zoom(void **state)
{
	struct flame_layout l = { 0 };
	struct node *root = node_new(100), *a = node_add(root, 60), *b = node_add(root, 40);
	struct node *c = node_add(b, 30);
	const void *zoom[] = { root, b };

	(void)state;
	(void)a;
	flame_layout(&l, &source, zoom, 2, 80, NULL);
	assert_int_equal(l.n, 3);
	assert_true(l.frames[0].ancestor && !l.frames[1].ancestor);
	assert_int_equal(l.frames[1].x1, 80);
	assert_true(l.frames[2].node == c);
	assert_int_equal(l.frames[2].x1, 60);
	check(&l, 80);
	flame_layout_deinit(&l);
	node_free(root);
}

static void test_odd(void **state)
{
	struct flame_layout l = { 0 };
	struct node *root = node_new(0);
	const void *zoom[] = { root };

	(void)state;
	/* nothing, not-a-number, children that hold more than their parent, a very deep chain */
	flame_layout(&l, &source, zoom, 1, 80, NULL);
	check(&l, 80);
	flame_layout(&l, &source, zoom, 0, 80, NULL);
	assert_int_equal(l.n, 0);
	flame_layout(&l, &source, zoom, 1, 0, NULL);
	assert_int_equal(l.n, 0);
	root->value = 10;
	node_add(root, NAN);
	node_add(root, INFINITY);
	node_add(root, -5);
	node_add(root, 30);
	node_add(root, 20);
	flame_layout(&l, &source, zoom, 1, 80, NULL);
	check(&l, 80);
	assert_int_equal(l.frames[l.n - 1].x1, 80);
	node_free(root);
	root = node_new(1);
	zoom[0] = root;
	struct node *n = root;
	for (int i = 0; i < 3000; i++)
		n = node_add(n, 1);
	flame_layout(&l, &source, zoom, 1, 80, NULL);
	check(&l, 80);
	assert_int_equal(l.nlevels, FLAME_LEVELS);
	assert_true(l.cut);
	flame_layout_deinit(&l);
	/* not recursive: it is deep */
	while (root->n) {
		n = (struct node *)root->children[0];
		free(root);
		root = n;
	}
	free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges), cmocka_unit_test(test_random), cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_order), cmocka_unit_test(test_zoom), cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
