/*
 * Reading pprof profiles, ours and other tools', from anybody; see pprof.h.
 *
 * protobuf-c checks the encoding; here every index, id and number is checked that a message holds.
 * A location becomes a frame (module = its mapping, vaddr = where in it), so that the view is like
 * one of a live process; locations that would coincide (or have no address: Python, Node) get an
 * address of their own in the upper half, which no program uses.
 */
#include "export/pprof.h"
#include "export/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "export/cells.h"
#include "export/pairs.h"
#include "export/inflate.h"
#include "export/meta.h"
#include "export/profile.pb-c.h"
#include "heap/view.h"
#include "report/arena.h"
#include "report/report.h"
#include "symbol/names.h"

#define MAX_VALUE (1ll << 50)		/* a sample's: sums and q10 stay far from 2^64 */
#define MAX_TYPES 256
#define OWN_VADDR (1ull << 47)		/* addresses given out by us */

enum column { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, PEAK_OBJECTS, PEAK_SPACE,
	      TEMP_OBJECTS, TEMP_SPACE, RESIDENT_SPACE, SWAPPED_SPACE, TOUCHED_SPACE, COLUMNS };

/* Message ids -> index; ids are arbitrary 64-bit numbers. */
struct id_map {
	struct { uint64_t id; uint32_t index; } *slots;	/* index + 1, 0: empty */
	size_t cap;
};

struct reader {
	const Pprof__Profile *profile;
	struct view *view;
	struct names *names;
	struct tree *tree;
	int columns[COLUMNS];		/* index of the sample type, -1: not there */
	struct id_map functions, locations, mappings;
	struct id_map frames_used;
	uint64_t *frames;		/* by location */
	struct trace_stats *stats;	/* by sample */
	struct cells cells;
	struct touch_table pairs;
	struct steps steps, thread_steps;
};

/* ---- ids ---- */

static void map_init(struct id_map *map, size_t n)
{
	map->cap = 64;
	while (map->cap < n * 2)
		map->cap *= 2;
	map->slots = xcalloc(map->cap, sizeof(*map->slots));
}

static size_t map_slot(const struct id_map *map, uint64_t id)
{
	/* the finalizer of MurmurHash3: ids are chosen by others, so all bits must count */
	uint64_t h = id;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	size_t i = (h ^ h >> 33) & (map->cap - 1);

	while (map->slots[i].index && map->slots[i].id != id)
		i = (i + 1) & (map->cap - 1);
	return i;
}

/* False if the id is there already. */
static bool map_put(struct id_map *map, uint64_t id, size_t index)
{
	size_t i = map_slot(map, id);

	if (map->slots[i].index)
		return false;
	map->slots[i].id = id;
	map->slots[i].index = (uint32_t)index + 1;
	return true;
}

/* Index or -1. */
static int64_t map_get(const struct id_map *map, uint64_t id)
{
	return (int64_t)map->slots[map_slot(map, id)].index - 1;
}

/* ---- strings and numbers ---- */

static const char *string(const struct reader *r, int64_t i)
{
	if (i < 0 || (uint64_t)i >= r->profile->n_string_table || !r->profile->string_table[i])
		return "";
	return r->profile->string_table[i];
}

static bool string_ok(const struct reader *r, int64_t i)
{
	return i >= 0 && (uint64_t)i < r->profile->n_string_table;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* ---- structure ---- */

static struct err *index_messages(struct reader *r)
{
	const Pprof__Profile *p = r->profile;

	/* map_put fails for an id that comes twice; id 0 means "none" */
	map_init(&r->functions, p->n_function);
	for (size_t i = 0; i < p->n_function; i++) {
		const Pprof__Function *f = p->function[i];
		if (!f->id || !map_put(&r->functions, f->id, i))
			return err_new(ERR_BAD_INPUT, "function ids are not unique");
		if (!string_ok(r, f->name) || !string_ok(r, f->system_name)
		    || !string_ok(r, f->filename))
			return err_new(ERR_BAD_INPUT, "function %zu has no such string", i);
	}
	map_init(&r->mappings, p->n_mapping);
	for (size_t i = 0; i < p->n_mapping; i++) {
		const Pprof__Mapping *m = p->mapping[i];
		if (!m->id || !map_put(&r->mappings, m->id, i))
			return err_new(ERR_BAD_INPUT, "mapping ids are not unique");
		if (!string_ok(r, m->filename) || !string_ok(r, m->build_id))
			return err_new(ERR_BAD_INPUT, "mapping %zu has no such string", i);
	}
	map_init(&r->locations, p->n_location);
	for (size_t i = 0; i < p->n_location; i++) {
		const Pprof__Location *l = p->location[i];
		if (!l->id || !map_put(&r->locations, l->id, i))
			return err_new(ERR_BAD_INPUT, "location ids are not unique");
		if (l->mapping_id && map_get(&r->mappings, l->mapping_id) < 0)
			return err_new(ERR_BAD_INPUT, "location %zu has no such mapping", i);
		for (size_t k = 0; k < l->n_line; k++)
			if (l->line[k]->function_id
			    && map_get(&r->functions, l->line[k]->function_id) < 0)
				return err_new(ERR_BAD_INPUT, "location %zu has no such function", i);
	}
	for (size_t i = 0; i < p->n_comment; i++)
		if (!string_ok(r, p->comment[i]))
			return err_new(ERR_BAD_INPUT, "comment %zu has no such string", i);
	return NULL;
}

static int type_index(const struct reader *r, const char *name)
{
	const Pprof__Profile *p = r->profile;

	for (size_t i = 0; i < p->n_sample_type; i++)
		if (!strcmp(string(r, p->sample_type[i]->type), name))
			return (int)i;
	return -1;
}

/*
 * Which values mean what. Profiles without heap types (CPU, mutexes, old heap profiles that say
 * "objects" and "space"): the default type, else the last in bytes, else the last, is shown as live
 * bytes, and the first count as live blocks.
 */
static struct err *find_columns(struct reader *r)
{
	static const char *const names[COLUMNS] = {
		"alloc_objects", "alloc_space", "inuse_objects", "inuse_space",
		"peak_objects", "peak_space", "temp_objects", "temp_space",
		"resident_space", "swapped_space", "touched_space",
	};
	const Pprof__Profile *p = r->profile;

	if (!p->n_sample_type || p->n_sample_type > MAX_TYPES)
		return err_new(ERR_BAD_INPUT, "it has no sample types");
	for (size_t i = 0; i < p->n_sample_type; i++)
		if (!string_ok(r, p->sample_type[i]->type) || !string_ok(r, p->sample_type[i]->unit))
			return err_new(ERR_BAD_INPUT, "sample type %zu has no such string", i);
	for (int c = 0; c < COLUMNS; c++)
		r->columns[c] = type_index(r, names[c]);
	if (r->columns[INUSE_SPACE] >= 0 || r->columns[ALLOC_SPACE] >= 0)
		return NULL;
	int found = -1;
	if (string_ok(r, p->default_sample_type) && p->default_sample_type)
		found = type_index(r, string(r, p->default_sample_type));
	for (size_t i = p->n_sample_type; found < 0 && i-- > 0; )
		if (!strcmp(string(r, p->sample_type[i]->unit), "bytes"))
			found = (int)i;
	if (found < 0)
		found = (int)p->n_sample_type - 1;
	r->columns[INUSE_SPACE] = found;
	for (size_t i = p->n_sample_type; r->columns[INUSE_OBJECTS] < 0 && i-- > 0; )
		if ((int)i != found && !strcmp(string(r, p->sample_type[i]->unit), "count"))
			r->columns[INUSE_OBJECTS] = (int)i;
	return NULL;
}

/* ---- frames and names ---- */

static uint64_t pick_frame(struct reader *r, size_t i, uint64_t *ret_vaddr)
{
	const Pprof__Location *l = r->profile->location[i];
	int64_t mapping = l->mapping_id ? map_get(&r->mappings, l->mapping_id) : -1;
	uint32_t module = mapping >= 0 && mapping < 0xffff ? (uint32_t)mapping + 1 : 0;
	uint64_t vaddr = l->address + 1;	/* return address: see pprof_write.c */

	if (module)
		vaddr += r->profile->mapping[mapping]->file_offset
			- r->profile->mapping[mapping]->memory_start;
	*ret_vaddr = vaddr;
	if (l->n_line == 1 && !module) {
		const Pprof__Function *f = NULL;
		int64_t k = map_get(&r->functions, l->line[0]->function_id);
		if (k >= 0)
			f = r->profile->function[k];
		uint64_t pseudo = f ? report_pseudo_parse(string(r, f->name)) : 0;
		if (pseudo)
			return pseudo;
	}
	uint64_t frame = frame_addr(module, vaddr);
	if (!l->address || vaddr >= OWN_VADDR || frame <= FRAME_PSEUDO_MAX
	    || !map_put(&r->frames_used, frame, i))
		frame = frame_addr(module, OWN_VADDR | i);
	return frame;
}

static bool is_unknown(const char *function, const char *module, uint64_t vaddr)
{
	char text[32];
	size_t n = strlen(module);

	snprintf(text, sizeof(text), "%s0x%llx", n ? "+" : "", (unsigned long long)vaddr);
	return !strncmp(function, module, n) && !strcmp(function + n, text);
}

static void put_name(struct reader *r, uint64_t frame, uint64_t vaddr, const Pprof__Location *l)
{
	const Pprof__Profile *p = r->profile;
	int64_t mapping = l->mapping_id ? map_get(&r->mappings, l->mapping_id) : -1;
	const char *module = mapping >= 0 ? base_name(string(r, p->mapping[mapping]->filename)) : "";
	struct name_func funcs[PPROF_MAX_LINES] = { 0 };
	char *owned[PPROF_MAX_LINES];
	size_t n = 0, nowned = 0;

	for (size_t k = 0; k < l->n_line && n < PPROF_MAX_LINES; k++) {
		int64_t i = map_get(&r->functions, l->line[k]->function_id);
		if (i < 0)
			continue;
		const Pprof__Function *f = p->function[i];
		const char *name = string(r, f->name), *linkage = string(r, f->system_name);
		const char *file = string(r, f->filename);
		if (!*name)
			name = linkage;
		if (!*name)
			continue;
		if (!*linkage)
			linkage = name;
		/* some tools leave demangling to the viewer */
		if ((name[0] == '_' && (name[1] == 'Z' || name[1] == 'R')) && !strcmp(name, linkage)) {
			owned[nowned] = demangle(name);
			name = owned[nowned++];
		}
		int64_t line = l->line[k]->line;
		if (n)
			funcs[n - 1].inlined = true;
		funcs[n++] = (struct name_func){
			.function = name,
			.linkage = linkage,
			.file = *file ? file : NULL,
			.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0,
			.unknown = is_unknown(name, module, vaddr),
		};
	}
	char *text = NULL;
	if (!n) {
		text = xasprintf("%s%s0x%llx", module, *module ? "+" : "",
				 (unsigned long long)vaddr);
		funcs[n++] = (struct name_func){ .function = text, .linkage = text, .unknown = true };
	}
	names_put(r->names, frame_module(frame), frame_vaddr(frame), false, module, funcs, n);
	free(text);
	while (nowned)
		free(owned[--nowned]);
}

static void make_frames(struct reader *r)
{
	size_t n = r->profile->n_location;

	map_init(&r->frames_used, n);
	r->frames = xcalloc(n, sizeof(*r->frames));
	for (size_t i = 0; i < n; i++) {
		uint64_t vaddr;
		r->frames[i] = pick_frame(r, i, &vaddr);
		if (r->frames[i] > FRAME_PSEUDO_MAX)
			put_name(r, r->frames[i], vaddr, r->profile->location[i]);
	}
}

/* ---- samples ---- */

static uint64_t value(const struct reader *r, const Pprof__Sample *sample, enum column c)
{
	int64_t v = r->columns[c] < 0 ? 0 : sample->value[r->columns[c]];

	/* differences of profiles have negative values; there is no negative memory */
	return v < 0 ? 0 : v > MAX_VALUE ? (uint64_t)MAX_VALUE : (uint64_t)v;
}

static void take_values(const struct reader *r, const Pprof__Sample *sample, struct trace_stats *s)
{
	uint64_t live = value(r, sample, INUSE_OBJECTS);
	uint64_t alloc = value(r, sample, ALLOC_OBJECTS);
	uint64_t peak = value(r, sample, PEAK_OBJECTS);

	s->live_bytes = value(r, sample, INUSE_SPACE);
	s->alloc_bytes = value(r, sample, ALLOC_SPACE);
	s->peak_bytes = value(r, sample, PEAK_SPACE);
	s->temp_bytes = value(r, sample, TEMP_SPACE);
	/* what is live was allocated, also where a profile doesn't say so */
	if (s->alloc_bytes < s->live_bytes)
		s->alloc_bytes = s->live_bytes;
	if (alloc < live)
		alloc = live;
	if (r->columns[PEAK_SPACE] < 0) {
		s->peak_bytes = s->live_bytes;
		peak = live;
	}
	/* of what is live, a part is in memory, another swapped out */
	s->res_bytes = value(r, sample, RESIDENT_SPACE);
	if (s->res_bytes > s->live_bytes)
		s->res_bytes = s->live_bytes;
	s->swap_bytes = value(r, sample, SWAPPED_SPACE);
	if (s->swap_bytes > s->live_bytes - s->res_bytes)
		s->swap_bytes = s->live_bytes - s->res_bytes;
	s->fault_bytes = value(r, sample, TOUCHED_SPACE);
	meta_defaults(s, alloc, live, value(r, sample, TEMP_OBJECTS), peak);
}

static struct err *read_values(struct reader *r)
{
	const Pprof__Profile *p = r->profile;

	r->stats = xcalloc(p->n_sample, sizeof(*r->stats));
	for (size_t i = 0; i < p->n_sample; i++) {
		if (p->sample[i]->n_value != p->n_sample_type)
			return err_new(ERR_BAD_INPUT, "sample %zu has %zu values, not %zu", i,
				       p->sample[i]->n_value, p->n_sample_type);
		take_values(r, p->sample[i], &r->stats[i]);
	}
	return NULL;
}

/* Samples of the same stack (told apart by labels elsewhere) are one trace here. */
static struct err *build_traces(struct reader *r)
{
	const Pprof__Profile *p = r->profile;
	CLEANUP_FREE uint32_t *nodes = xcalloc(p->n_sample, sizeof(*nodes));
	CLEANUP_FREE uint64_t *stack = xcalloc(TREE_MAX_DEPTH, sizeof(*stack));

	for (size_t i = 0; i < p->n_sample; i++) {
		const Pprof__Sample *sample = p->sample[i];
		size_t n = 0;
		for (size_t k = 0; k < sample->n_location_id; k++) {
			int64_t l = map_get(&r->locations, sample->location_id[k]);
			if (l < 0)
				return err_new(ERR_BAD_INPUT, "sample %zu has no such location", i);
			if (n < TREE_MAX_DEPTH)
				stack[n++] = r->frames[l];
		}
		nodes[i] = tree_insert(r->tree, NULL, 0, stack, n);
		if (tree_count(r->tree) > PPROF_MAX_NODES)
			return err_new(ERR_BAD_INPUT, "more than %u different frames",
				       PPROF_MAX_NODES);
	}
	struct view *view = r->view;
	view->nnodes = tree_count(r->tree);
	CLEANUP_FREE uint32_t *first = xcalloc(view->nnodes, sizeof(*first));
	CLEANUP_FREE uint32_t *next = xcalloc(p->n_sample, sizeof(*next));
	size_t ntraces = 0;
	for (size_t i = p->n_sample; i-- > 0; ) {
		ntraces += !first[nodes[i]];
		next[i] = first[nodes[i]];
		first[nodes[i]] = (uint32_t)i + 1;
	}
	CLEANUP_FREE struct view_trace *traces = xcalloc(ntraces, sizeof(*traces));
	ntraces = 0;
	for (uint32_t node = 0; node < view->nnodes; node++) {
		if (!first[node])
			continue;
		struct view_trace *t = &traces[ntraces++];
		t->node = node;
		for (uint32_t i = first[node]; i; i = next[i - 1])
			trace_stats_add(&t->s, &r->stats[i - 1]);
		/* last, since comments may have corrected the other two */
		t->s.free_bytes = t->s.alloc_bytes - t->s.live_bytes;
		t->s.free_q10 = t->s.alloc_q10 > t->s.live_q10 ? t->s.alloc_q10 - t->s.live_q10 : 0;
	}
	cells_finish(&r->cells, nodes, view, traces, ntraces);
	steps_finish(&r->steps, nodes, r->stats, p->n_sample, traces, ntraces, view);
	steps_finish_threads(&r->thread_steps, view);
	view_set_traces(view, traces, ntraces);
	pairs_finish(&r->pairs, nodes, view);
	return NULL;
}

static bool read_comment(struct reader *r, const char *text)
{
	size_t n = strlen(META_PREFIX), nsamples = r->profile->n_sample;

	if (!strncmp(text, META_PREFIX, n) && (cells_read(&r->cells, r->view, nsamples, text + n) ||
					       pairs_read(&r->pairs, nsamples, text + n) ||
					       steps_read(&r->steps, nsamples, text + n) ||
					       steps_read_threads(&r->thread_steps, r->view->nthreads, text + n)))
		return true;
	return meta_read(r->view, r->stats, r->profile->n_sample, text);
}

static void take_header(struct reader *r)
{
	const Pprof__Profile *p = r->profile;
	struct view *view = r->view;
	bool ours = false;

	view->seq = 1;
	view->wall_ns = p->time_nanos;
	view->time = p->duration_nanos > 0 ? (double)p->duration_nanos / 1e9 : 0;
	for (size_t i = 0; i < p->n_comment; i++)
		ours |= read_comment(r, string(r, p->comment[i]));
	bool per_bytes = p->period_type && !strcmp(string(r, p->period_type->unit), "bytes");
	if (!ours && per_bytes && p->period > 1)
		view->info.rate = (uint64_t)p->period;
	if (!view->info.command) {
		const char *path = p->n_mapping ? string(r, p->mapping[0]->filename) : "";
		view->info.command = xstrdup(*path ? base_name(path) : "profile");
		text_sanitize(view->info.command);
	}
	if (!(view->time >= 0 && view->time < 1e12))
		view->time = 0;
	view->info.state = VIEW_SNAPSHOT;
}

static struct err *read_profile(struct reader *r)
{
	const Pprof__Profile *p = r->profile;
	struct err *err;

	if (!p->n_string_table || *string(r, 0))
		return err_new(ERR_BAD_INPUT, "it is no pprof profile");
	if (p->n_sample > PPROF_MAX_MESSAGES || p->n_location > PPROF_MAX_MESSAGES
	    || p->n_function > PPROF_MAX_MESSAGES || p->n_mapping > PPROF_MAX_MESSAGES)
		return err_new(ERR_BAD_INPUT, "it is too large");
	if ((err = find_columns(r)) || (err = index_messages(r)) || (err = read_values(r)))
		return err;
	take_header(r);
	make_frames(r);
	return build_traces(r);
}

/* ---- unpacking ---- */

/* protobuf-c's allocations, counted: an empty message is 2 bytes in a file and 100 in memory. */
struct budget {
	uint64_t left;
	struct arena arena;	/* all of it: a million messages that die together */
};

static void *budget_alloc(void *ctx, size_t size)
{
	struct budget *budget = ctx;

	if (size + 16 < size || size + 16 > budget->left)
		return NULL;
	budget->left -= size + 16;	/* never given back: bounds the sum, which is enough */
	return arena_take(&budget->arena, size ? size : 1);
}

static void budget_free(void *ctx, void *p)
{
	(void)ctx;
	(void)p;
}

static struct err *read_packed(struct reader *r, const uint8_t *bytes, size_t len)
{
	struct budget budget = { .left = PPROF_MAX_MEMORY };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };
	struct err *err;

	r->profile = pprof__profile__unpack(&allocator, len, bytes);
	if (r->profile)
		err = read_profile(r);
	else
		err = err_new(ERR_BAD_INPUT, budget.left < 1u << 20 ? "it is too large"
			      : "it is no pprof profile, or damaged");
	r->profile = NULL;
	arena_free(&budget.arena);
	return err;
}

struct err *pprof_read_into(const void *bytes, size_t len, const char *what, struct names *names,
			    struct view **ret_view)
{
	struct reader r = { .names = names, .view = view_create(), .tree = tree_create() };
	CLEANUP_FREE uint8_t *unpacked = NULL;
	struct err *err = NULL;

	cells_init(&r.cells);
	if (inflate_is_gzip(bytes, len)) {
		size_t max = len < PPROF_MAX_BYTES / PPROF_MAX_RATIO ? (len + 1) * PPROF_MAX_RATIO
			: PPROF_MAX_BYTES;
		err = inflate_gzip(bytes, len, max, &unpacked, &len);
		bytes = unpacked;
	}
	if (!err)
		err = read_packed(&r, bytes, len);
	r.view->tree = r.tree;	/* the creator's reference goes with the view */
	free(r.functions.slots);
	free(r.locations.slots);
	free(r.mappings.slots);
	free(r.frames_used.slots);
	free(r.frames);
	free(r.stats);
	cells_deinit(&r.cells);
	touch_table_deinit(&r.pairs);
	steps_deinit(&r.steps);
	steps_deinit(&r.thread_steps);
	if (err) {
		view_unref(r.view);
		return err_prefix(err, "%s", what);
	}
	*ret_view = r.view;
	return NULL;
}

struct err *pprof_read(const void *bytes, size_t len, const char *what, struct view **ret_view,
		       struct names **ret_names)
{
	struct names *names = names_create(NULL);
	struct err *err = pprof_read_into(bytes, len, what, names, ret_view);

	if (err)
		names_destroy(names);
	else
		*ret_names = names;
	return err;
}
