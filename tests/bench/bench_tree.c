/*
 * What a stack costs in the trace tree, with and without the last-lookup cache:
 *
 *	bench_tree [recorded.stacks [max]]
 *
 * Without a file, a made-up program is walked: a random call graph whose stack changes a little from
 * one allocation to the next. Each way gets the whole stream twice, into a fresh tree: the first pass
 * builds the tree, the second only finds. The ways take turns, so that whatever disturbs the machine
 * disturbs all of them; medians are printed. Lines of the table: tree.NAME.WAY, NAME the file's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "heap/tree.h"
#include "line.h"
#include "stacks.h"

#define ROUNDS 9

enum way { HASH_ONLY, LAST_LOOKUP, WITH_PATH, WAYS };
static const char *const way_ids[WAYS] = { "hash", "cache", "path" };
static const char *const way_names[WAYS] = {
	"hash only", "last-lookup cache", "cache, and only what differs from the last stack",
};

static uint64_t random_state = 2463534242;

static uint32_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32);
}

/*
 * 3,000 functions with a few call places each, some much more often taken than others (the minimum
 * of two draws). Between two allocations the stack loses a few frames and gains a few; a long
 * return to near the root now and then: another phase.
 */
static void make_up(struct stacks *s, size_t n)
{
	enum { FUNCTIONS = 3000, DEEPEST = 60 };
	uint32_t path[DEEPEST] = { 0 };
	uint64_t frames[DEEPEST], addrs[DEEPEST];
	size_t depth = 1;

	frames[0] = frame_addr(1, 0x1000);
	for (size_t k = 0; k < n; k++) {
		uint32_t r = random_next();
		size_t back = r % 4 == 0 ? 0 : 1 + r / 4 % 3;
		if (r % 997 == 0)
			back = depth - 2;
		depth = back < depth ? depth - back : 1;
		/* the same call again is the most common of all: a loop */
		size_t want = r % 4 == 0 ? depth : depth + random_next() % (depth < 12 ? 7 : 4);
		while (depth < want && depth < DEEPEST) {
			uint32_t a = random_next() % 6, b = random_next() % 6;
			uint32_t place = a < b ? a : b;
			uint32_t callee = (path[depth - 1] * 2654435761u + place * 40503u) % FUNCTIONS;
			path[depth] = callee;
			frames[depth] = frame_addr(1 + callee % 5, 0x1000 + callee * 256 + place * 16);
			depth++;
		}
		for (size_t i = 0; i < depth; i++)
			addrs[i] = frames[depth - 1 - i];
		stacks_add(s, addrs, (uint32_t)depth);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Outer frames that each stack shares with the one before: in a program the agent tells them. */
static uint32_t *shared_frames(const struct stacks *s)
{
	uint32_t *keep = xcalloc(s->n, sizeof(*keep));
	const uint64_t *addrs = s->addrs;

	for (size_t i = 1; i < s->n; i++) {
		const uint64_t *end = addrs + s->lens[i - 1];
		addrs = end;
		while (keep[i] < s->lens[i] && keep[i] < s->lens[i - 1] &&
		       addrs[s->lens[i] - 1 - keep[i]] == end[-1 - (ptrdiff_t)keep[i]])
			keep[i]++;
	}
	return keep;
}

/* ns a stack. */
static double pass(struct tree *tree, const struct stacks *s, const uint32_t *keep, enum way way)
{
	const uint64_t *addrs = s->addrs;
	struct tree_path path = { 0 };
	double start = now();

	for (size_t i = 0; i < s->n; i++) {
		if (way == WITH_PATH)
			tree_insert(tree, &path, keep[i], addrs, s->lens[i] - keep[i]);
		else
			tree_insert(tree, NULL, 0, addrs, s->lens[i]);
		addrs += s->lens[i];
	}
	double ns = (now() - start) / (double)s->n;
	tree_path_deinit(&path);
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

int main(int argc, char **argv)
{
	struct stacks s = { 0 };
	double build[WAYS][ROUNDS], find[WAYS][ROUNDS], hits[WAYS];
	struct tree_stats stats = { 0 };
	uint32_t nodes = 0;

	if (argc > 1) {
		struct err *err = stacks_read(argv[1], argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000,
					      &s);
		if (err) {
			fprintf(stderr, "%s\n", err->text);
			return 1;
		}
	} else {
		make_up(&s, 300000);
	}
	if (!s.n) {
		fprintf(stderr, "no stacks\n");
		return 1;
	}
	uint32_t *keep = shared_frames(&s);
	for (int round = 0; round < ROUNDS; round++) {
		for (int w = 0; w < WAYS; w++) {
			enum way way = (enum way)((w + round) % WAYS);
			struct tree *tree = tree_create();
			tree_set_last_lookup(tree, way != HASH_ONLY);
			build[way][round] = pass(tree, &s, keep, way);
			struct tree_stats before = tree_stats(tree);
			find[way][round] = pass(tree, &s, keep, way);
			stats = tree_stats(tree);
			hits[way] = 100.0 * (double)(stats.last_hits - before.last_hits)
				/ (double)(stats.steps - before.steps);
			nodes = tree_count(tree);
			tree_destroy(tree);
		}
	}
	const char *name = argc > 1 ? strrchr(argv[1], '/') : NULL;
	name = name ? name + 1 : argc > 1 ? argv[1] : "made-up";
	printf("# %s: %zu stacks of %.1f frames, %u nodes\n", name, s.n, (double)s.naddrs / (double)s.n, nodes);
	for (int w = 0; w < WAYS; w++) {
		char line[96], what[96];
		double ns = median(find[w], ROUNDS);
		snprintf(line, sizeof(line), "tree.%s.%s", name, way_ids[w]);
		snprintf(what, sizeof(what), "tree_insert of recorded stacks, %s", way_names[w]);
		bench_line(line, what, "printed", true,
			   "%.0f ns a stack, %.0f ns the first time; %.1f %% cache hits; %.1f bytes a node", ns,
			   median(build[w], ROUNDS), hits[w], (double)stats.bytes / nodes);
	}
	free(keep);
	stacks_free(&s);
	return 0;
}
