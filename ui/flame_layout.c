/* See flame_layout.h. */
#include "ui/flame_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define OVERTAKE 1.2
#define GAP_SALT UINT64_C(0x6761700000000001)

void flame_layout_deinit(struct flame_layout *l)
{
	free(l->frames);
	free(l->levels);
	memset(l, 0, sizeof(*l));
}

/* The exact intervals of the level at work; columns alone aren't enough to go on from. */
struct edge {
	double a, b;
};

struct child {
	const void *node;
	double value;
	uint64_t key;
	uint64_t place;
};

struct work {
	const struct flame_source *source;
	struct keymap *order;
	struct child *children;
	size_t cap;
};

static double value_of(const struct flame_source *s, const void *node)
{
	double v = s->value(s->ctx, node);

	return v > 0 && isfinite(v) ? v : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static int edge_column(double edge)
{
	return (int)floor(edge + 0.5);
}

/* Children in the order to draw them. */
static size_t read_children(struct work *w, const void *node)
{
	size_t n;
	const void *const *nodes = w->source->children(w->source->ctx, node, &n);
	bool known = false;

	if (n > w->cap) {
		w->children = xreallocarray(w->children, n, sizeof(*w->children));
		w->cap = n;
	}
	for (size_t i = 0; i < n; i++) {
		struct child *c = &w->children[i];
		c->node = nodes[i];
		c->value = value_of(w->source, nodes[i]);
		c->key = w->source->key(w->source->ctx, nodes[i]);
		c->place = (UINT64_C(1) << 32) + i;	/* new ones: behind, by size */
		if (w->order && keymap_get(w->order, c->key, &c->place))
			known = true;
	}
	if (known) {
		qsort(w->children, n, sizeof(*w->children), by_place);
		/* insertion with a tolerance; nearly in order, so nearly linear */
		for (size_t i = 1; i < n; i++) {
			struct child c = w->children[i];
			size_t k = i;
			while (k > 0 && c.value > w->children[k - 1].value * OVERTAKE) {
				w->children[k] = w->children[k - 1];
				k--;
			}
			w->children[k] = c;
		}
	}
	return n;
}

static struct flame_frame *add(struct flame_layout *l)
{
	VEC_GROW(l->frames, l->n, l->cap);
	struct flame_frame *f = &l->frames[l->n++];
	memset(f, 0, sizeof(*f));
	return f;
}

static void begin_level(struct flame_layout *l)
{
	VEC_GROW(l->levels, l->nlevels, l->cap_levels);
	l->levels[l->nlevels++] = l->n;
}

/* The run of narrow children [a, b) ends: a frame for it if it has a column. */
static bool end_gap(struct flame_layout *l, struct flame_frame *gap, struct edge *e)
{
	if (!gap->count)
		return false;
	gap->x0 = edge_column(e->a);
	gap->x1 = edge_column(e->b);
	bool visible = gap->x1 > gap->x0;
	if (visible)
		*add(l) = *gap;
	return visible;
}

struct edges {
	struct edge *list;
	size_t n, cap;
};

static void push_edge(struct edges *edges, struct edge e)
{
	VEC_GROW(edges->list, edges->n, edges->cap);
	edges->list[edges->n++] = e;
}

/* The children of frame `parent`, whose exact interval is `whole`, onto the level being built. */
static void split(struct flame_layout *l, struct work *w, size_t parent, struct edge whole,
		  struct edges *out)
{
	size_t n = read_children(w, l->frames[parent].node);
	double total = l->frames[parent].value, sum = 0, cum = 0;
	int level = l->frames[parent].level + 1;
	uint64_t ngaps = 0, place = 0;
	struct flame_frame gap = { 0 };
	struct edge gap_edge = { 0, 0 };

	for (size_t i = 0; i < n; i++)
		sum += w->children[i].value;
	/* estimated rates may not add up to the last digit */
	if (sum > total)
		total = sum;
	if (!(total > 0))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct child *c = &w->children[i];
		if (!(c->value > 0))
			continue;
		double span = whole.b - whole.a;
		struct edge e = { whole.a + span * (cum / total), 0 };
		cum += c->value;
		e.b = whole.a + span * (cum < total ? cum / total : 1);
		if (e.b - e.a < 1) {
			if (!gap.count) {
				gap = (struct flame_frame){
					.node = c->node, .level = level, .parent = parent, .gap = true,
					.key = keymap_mix(l->frames[parent].key, GAP_SALT + ngaps++),
				};
				gap_edge = e;
			}
			gap.count++;
			gap.value += c->value;
			gap_edge.b = e.b;
			continue;
		}
		if (end_gap(l, &gap, &gap_edge))
			push_edge(out, gap_edge);
		gap.count = 0;
		gap.value = 0;
		if (w->order)
			keymap_put(w->order, c->key, place++);
		*add(l) = (struct flame_frame){
			.node = c->node, .key = c->key, .level = level, .parent = parent,
			.x0 = edge_column(e.a), .x1 = edge_column(e.b), .count = 1, .value = c->value,
		};
		push_edge(out, e);
	}
	if (end_gap(l, &gap, &gap_edge))
		push_edge(out, gap_edge);
}

void flame_layout(struct flame_layout *l, const struct flame_source *source,
		  const void *const *zoom, size_t nzoom, int width, struct keymap *order)
{
	struct work w = { .source = source, .order = order };
	struct edges now = { 0 }, next = { 0 };

	l->n = l->nlevels = 0;
	l->cut = false;
	if (width < 1 || !nzoom)
		goto done;
	for (size_t i = 0; i < nzoom && i < FLAME_LEVELS; i++) {
		begin_level(l);
		*add(l) = (struct flame_frame){
			.node = zoom[i], .key = source->key(source->ctx, zoom[i]), .level = (int)i,
			.parent = i ? i - 1 : SIZE_MAX, .x0 = 0, .x1 = width, .count = 1,
			.ancestor = i + 1 < nzoom, .value = value_of(source, zoom[i]),
		};
	}
	push_edge(&now, (struct edge){ 0, width });
	size_t from = l->n - 1;
	while (from < l->n && l->nlevels < FLAME_LEVELS) {
		size_t end = l->n;
		begin_level(l);
		for (size_t i = from; i < end; i++) {
			if (l->frames[i].gap)
				continue;
			if (l->n >= FLAME_FRAMES) {
				l->cut = true;
				break;
			}
			split(l, &w, i, now.list[i - from], &next);
		}
		struct edges swap = now;
		now = next;
		next = swap;
		next.n = 0;
		from = end;
	}
	if (from < l->n)
		l->cut = true;
	/* the last level begun is empty unless the bound was met */
	if (l->nlevels && l->levels[l->nlevels - 1] == l->n)
		l->nlevels--;
done:
	begin_level(l);
	l->nlevels--;
	free(w.children);
	free(now.list);
	free(next.list);
}

size_t flame_at(const struct flame_layout *l, int level, int x)
{
	if (level < 0 || (size_t)level >= l->nlevels)
		return SIZE_MAX;
	size_t lo = l->levels[level], hi = l->levels[level + 1];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (l->frames[mid].x1 <= x)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < l->levels[level + 1] && l->frames[lo].x0 <= x)
		return lo;
	return SIZE_MAX;
}

size_t flame_find(const struct flame_layout *l, uint64_t key)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->frames[i].key == key)
			return i;
	return SIZE_MAX;
}
