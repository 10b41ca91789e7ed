/*
 * Published views: chunks shared between them, and what is left out of publishing. The reference is a
 * second set of traces that is fed the same and has every chunk marked before every view: both must
 * publish the same records, and views kept must stay as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/store.h"
#include "heap/sums.h"
#include "heap/traces.h"

static uint64_t random_state = 11;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- sums ---- */

static struct trace_stats random_stats(void)
{
	struct trace_stats s;
	uint64_t counts[SUMS_COUNTS];

	for (int i = 0; i < SUMS_COUNTS; i++)
		counts[i] = (uint64_t)random_below(UINT32_MAX) << random_below(20);
	memset(&s, 0, sizeof(s));
	memcpy(&s, counts, sizeof(counts));
	s.live_var = random_below(2) ? (double)random_below(1u << 30) * (1ull << random_below(40)) / 7 : 0;
	s.alloc_var = (double)random_below(1u << 30) / 3;
	s.alloc_bps = (float)random_below(1u << 30) / 3;
	s.alloc_cps = (float)random_below(100) / 7;
	return s;
}

static void test_sums(void **state)
{
	(void)state;
	enum { N = 2000 };
	struct trace_stats *list = xcalloc(N, sizeof(*list));
	struct sums up = { 0 }, down = { 0 }, diff = { 0 }, zero = { 0 };
	long double var = 0, rate = 0;

	for (int i = 0; i < N; i++) {
		list[i] = random_stats();
		sums_add(&up, &list[i]);
		var += list[i].live_var;
		rate += list[i].alloc_cps;
	}
	for (int i = N; i-- > 0; )
		sums_add(&down, &list[i]);
	assert_memory_equal(&up, &down, sizeof(up));
	struct trace_stats sum = sums_get(&up);
	assert_true(sum.live_var / var > 1 - 1e-6L && sum.live_var / var < 1 + 1e-6L);
	assert_true(sum.alloc_cps / rate > 1 - 1e-6L && sum.alloc_cps / rate < 1 + 1e-6L);
	/* a difference may be negative */
	sums_sub(&diff, &list[0]);
	sums_add(&diff, &list[1]);
	sums_merge(&up, &diff);
	sums_sub(&up, &list[1]);
	sums_add(&up, &list[0]);
	assert_memory_equal(&up, &down, sizeof(up));
	for (int i = 0; i < N; i++)
		sums_sub(&up, &list[i]);
	assert_memory_equal(&up, &zero, sizeof(up));
	/* nonsense is 0 or the bound, never undefined */
	struct trace_stats odd = { .live_var = -1, .alloc_var = __builtin_inf(),
				   .alloc_bps = __builtin_nanf(""), .free_bps = -__builtin_inff() };
	sums_add(&up, &odd);
	sum = sums_get(&up);
	assert_true(sum.live_var == 0 && sum.alloc_var > 1e27 && sum.alloc_bps == 0
		    && sum.free_bps == 0);
	free(list);
}

/* ---- traces ---- */

#define NODES 1500
#define KEPT 6
#define SECOND 1000000000ull

struct kept {
	struct view *view;
	struct view_trace *copy;
	size_t n;
	struct trace_stats total;
};

static const struct view_trace no_trace = { .node = TREE_NONE };

static void keep(struct kept *kept, struct view *view)
{
	kept->view = view;
	kept->n = view->ntraces;
	kept->total = view->totals.s;
	kept->copy = xcalloc(kept->n, sizeof(*kept->copy));
	for (size_t i = 0; i < kept->n; i++)
		kept->copy[i] = view_trace(view, i) ? *view_trace(view, i) : no_trace;
}

static void compare(const struct view *view, const struct view_trace *traces, size_t n)
{
	assert_int_equal(view->ntraces, n);
	assert_null(view_trace(view, n));
	for (size_t i = 0; i < n; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			t = &no_trace;
		assert_int_equal(t->node, traces[i].node);
		if (t != &no_trace)
			assert_memory_equal(&t->s, &traces[i].s, sizeof(t->s));
	}
}

static void let_go(struct kept *kept)
{
	if (!kept->view)
		return;
	compare(kept->view, kept->copy, kept->n);
	assert_memory_equal(&kept->view->totals.s, &kept->total, sizeof(kept->total));
	view_unref(kept->view);
	free(kept->copy);
	kept->view = NULL;
}

/* One event, to both. Blocks are all of one size and rate, so that any live one may be freed. */
static void event(struct traces both[2], uint64_t time, uint32_t node)
{
	static const uint64_t sizes[] = { 100, 5000, 70 };
	struct heap_weight w = heap_weigh(sizes[node % 3], node % 5 ? 1 : 3000);
	uint32_t i = traces_of_node(&both[0], node, 0);
	bool free_one = both[0].items[i].s.live_samples && random_below(5) < 3;
	bool temp = random_below(2), undo = random_below(20) == 0;

	assert_int_equal(traces_of_node(&both[1], node, 0), i);
	/* a record for merged stacks takes any size */
	if (both[0].items[i].node != node)
		free_one = false;
	for (int k = 0; k < 2; k++) {
		if (!free_one) {
			traces_alloc(&both[k], i, &w, time);
			continue;
		}
		traces_free(&both[k], i, &w, temp);
		if (undo)
			traces_unfree(&both[k], i, &w, temp, time);
	}
}

static void random_views(uint32_t max)
{
	struct traces both[2];
	struct kept kept[KEPT] = { 0 };
	uint64_t time = 0;
	bool spare = false, shared = false;
	struct view *last = NULL;

	traces_init(&both[0], max);
	traces_init(&both[1], max);
	for (int round = 0; round < 1500; round++) {
		/* many, few or no events; sometimes only in one corner */
		uint32_t n = round % 50 == 0 ? 2000 : random_below(4) ? random_below(8) : 0;
		uint32_t from = random_below(NODES / 2), width = round % 3 ? NODES / 2 : 20;
		for (uint32_t k = 0; k < n; k++)
			event(both, time += 1000, 1 + from + random_below(width));
		time += random_below(3) ? SECOND : random_below(2) ? SECOND / 30 : 3 * SECOND;
		struct view *views[2];
		for (int k = 0; k < 2; k++) {
			if (k == 1 && both[1].nchunks)
				memset(both[1].dirty, 1, both[1].nchunks);
			views[k] = view_create();
			traces_publish(&both[k], time, false, views[k]);
		}
		struct kept reference;
		struct sums sum = { 0 };
		keep(&reference, views[1]);
		compare(views[0], reference.copy, reference.n);
		for (size_t i = 0; i < reference.n; i++) {
			if (reference.copy[i].node != TREE_NONE)
				sums_add(&sum, &reference.copy[i].s);
			else
				spare = true;
		}
		struct trace_stats total = sums_get(&sum);
		assert_memory_equal(&views[0]->totals.s, &total, sizeof(total));
		assert_int_equal(total.peak_bytes, both[0].peak_bytes);
		let_go(&reference);
		for (size_t c = 0; last && c < last->ntraces / VIEW_CHUNK; c++)
			shared |= last->chunks[c] == views[0]->chunks[c];
		/* views die in any order, some at once */
		uint32_t k = random_below(KEPT);
		let_go(&kept[k]);
		keep(&kept[k], views[0]);
		last = views[0];
		if (random_below(3) == 0) {
			let_go(&kept[k]);
			last = NULL;
		}
	}
	assert_true(shared);
	assert_int_equal(spare, max < NODES);
	traces_deinit(&both[0]);
	traces_deinit(&both[1]);
	for (int k = 0; k < KEPT; k++)
		let_go(&kept[k]);
}

static void test_random(void **state)
{
	(void)state;
	random_views(2 * NODES);
}

static void test_random_merged(void **state)
{
	(void)state;
	random_views(700);
}

/* What didn't change is shared, and is left alone once the window of the rates has passed. */
static void test_sharing(void **state)
{
	(void)state;
	struct traces traces;
	struct heap_weight w = heap_weigh(10, 1);
	struct view *views[8];

	traces_init(&traces, 1000);
	for (uint32_t node = 1; node <= 10 * VIEW_CHUNK; node++)
		traces_alloc(&traces, traces_of_node(&traces, node, 0), &w, 0);
	for (uint64_t v = 0; v < 8; v++) {
		if (v == 5)
			traces_alloc(&traces, traces_of_node(&traces, 1, 0), &w, v * SECOND);
		views[v] = view_create();
		traces_publish(&traces, (v + 1) * SECOND, false, views[v]);
	}
	for (size_t c = 0; c < 10; c++) {
		assert_ptr_not_equal(views[0]->chunks[c], views[1]->chunks[c]);
		assert_ptr_equal(views[3]->chunks[c], views[4]->chunks[c]);
		assert_int_equal(views[4]->chunks[c] == views[5]->chunks[c], c > 0);
		assert_int_equal(views[5]->chunks[c] == views[6]->chunks[c], c > 0);
	}
	for (int v = 0; v < 8; v++)
		view_unref(views[v]);
	/* views come and go, one held at a time: chunks are used again */
	uint64_t made = 0;
	struct view *held = NULL;
	for (uint64_t v = 0; v < 100; v++) {
		for (uint32_t k = 0; k < 5; k++)
			traces_alloc(&traces, random_below(10 * VIEW_CHUNK), &w, v * SECOND);
		struct view *view = view_create();
		traces_publish(&traces, (v + 20) * SECOND, false, view);
		view_unref(held);
		held = view;
		if (v == 10)
			made = store_made(traces.store);
	}
	assert_int_equal(store_made(traces.store), made);
	view_unref(held);
	traces_deinit(&traces);
}

static void test_by_hand(void **state)
{
	(void)state;
	struct view_trace traces[VIEW_CHUNK + 3];
	struct view *view = view_create();

	for (uint32_t i = 0; i < VIEW_CHUNK + 3; i++)
		traces[i] = (struct view_trace){ .node = i, .s.live_bytes = i };
	view_set_traces(view, traces, VIEW_CHUNK + 3);
	compare(view, traces, VIEW_CHUNK + 3);
	assert_int_equal(view->totals.s.live_bytes, (VIEW_CHUNK + 2) * (VIEW_CHUNK + 3) / 2);
	view_unref(view);
	view = view_create();
	view_set_traces(view, NULL, 0);
	assert_null(view_trace(view, 0));
	view_unref(view);
}

/* ---- another thread drops the views ---- */

#define IN_FLIGHT 16

struct flight {
	pthread_mutex_t lock;
	struct view *views[IN_FLIGHT];
	bool end;
};

static void *dropper(void *arg)
{
	struct flight *flight = arg;

	for (unsigned k = 0; ; k += 7) {
		pthread_mutex_lock(&flight->lock);
		struct view *view = flight->views[k % IN_FLIGHT];
		flight->views[k % IN_FLIGHT] = NULL;
		bool end = flight->end;
		pthread_mutex_unlock(&flight->lock);
		if (view)
			for (size_t i = 0; i < view->ntraces; i++)
				assert_int_equal(view_trace(view, i)->s.live_bytes % 10, 0);
		view_unref(view);
		if (end)
			return NULL;
	}
}

static void test_threads(void **state)
{
	(void)state;
	struct flight flight = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct traces traces;
	struct heap_weight w = heap_weigh(10, 1);
	pthread_t thread;

	traces_init(&traces, 1000);
	for (uint32_t node = 1; node < 500; node++)
		traces_alloc(&traces, traces_of_node(&traces, node, 0), &w, 0);
	assert_int_equal(pthread_create(&thread, NULL, dropper, &flight), 0);
	for (uint64_t v = 0; v < 3000; v++) {
		traces_alloc(&traces, random_below(499), &w, v * SECOND);
		struct view *view = view_create();
		traces_publish(&traces, v * SECOND, false, view);
		pthread_mutex_lock(&flight.lock);
		struct view **place = &flight.views[random_below(IN_FLIGHT)];
		struct view *old = *place;
		*place = view;
		pthread_mutex_unlock(&flight.lock);
		view_unref(old);
	}
	traces_deinit(&traces);
	pthread_mutex_lock(&flight.lock);
	flight.end = true;
	pthread_mutex_unlock(&flight.lock);
	pthread_join(thread, NULL);
	for (int k = 0; k < IN_FLIGHT; k++)
		view_unref(flight.views[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_merged),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
