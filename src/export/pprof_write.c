/*
 * Writing pprof profiles; see pprof.h.
 *
 * One location a distinct frame address, with a line for each function inlined there. Addresses
 * in the heap model are return addresses; a location's is one less, inside the call, as in Go's
 * own profiles. Everything that a message points to lives in an arena until it is packed; packing
 * goes through deflate piece by piece.
 */
#include "export/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "export/cells.h"
#include "export/steps.h"
#include "export/pairs.h"
#include "export/meta.h"
#include "export/profile.pb-c.h"
#include "heap/view.h"
#include "report/arena.h"
#include "report/report.h"
#include "symbol/names.h"

/* (Number, text) -> index; open addressing, value 0 is empty. */
struct index_slot {
	uint64_t hash, key;
	const char *text;
	uint32_t value;
};

struct index {
	struct index_slot *slots;
	size_t n, cap;
};

struct list {
	void **items;
	size_t n, cap;
};

struct writer {
	struct report *report;
	struct names *names;
	const struct modules *mods;
	const struct view *view;
	struct arena arena;
	struct list strings, functions, locations, mappings, samples;
	size_t ntypes;			/* of sample_types, those that are written */
	struct index string_index, function_index, location_index, mapping_index;
	int64_t *comments;
	size_t ncomments, comments_cap;
};

static uint64_t hash_bytes(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;	/* FNV-1a */
	return h ^ h >> 29;
}

static void index_grow(struct index *index)
{
	struct index old = *index;

	index->cap = old.cap ? old.cap * 2 : 1024;
	index->slots = xcalloc(index->cap, sizeof(*index->slots));
	for (size_t k = 0; k < old.cap; k++) {
		if (!old.slots[k].value)
			continue;
		size_t i = old.slots[k].hash & (index->cap - 1);
		while (index->slots[i].value)
			i = (i + 1) & (index->cap - 1);
		index->slots[i] = old.slots[k];
	}
	free(old.slots);
}

/*
 * The slot of (key, text), its value 0 if it is new: then the caller sets one at once, and sees
 * to it that slot->text lives as long as the index. text may be NULL.
 */
static struct index_slot *index_find(struct index *index, uint64_t key, const char *text)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325ull ^ key * 0x9e3779b97f4a7c15ull,
				   text ? text : "");

	if (index->n >= index->cap / 2)
		index_grow(index);
	size_t i = hash & (index->cap - 1);
	for (; index->slots[i].value; i = (i + 1) & (index->cap - 1))
		if (index->slots[i].hash == hash && index->slots[i].key == key
		    && (!text || !strcmp(index->slots[i].text, text)))
			return &index->slots[i];
	index->slots[i].hash = hash;
	index->slots[i].key = key;
	index->slots[i].text = text;
	index->n++;
	return &index->slots[i];
}

static void list_add(struct list *list, void *item)
{
	VEC_GROW(list->items, list->n, list->cap);
	list->items[list->n++] = item;
}

static const char *arena_text(struct writer *w, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(arena_take(&w->arena, n), s, n);
}

/* The string's index in the table. The text is copied. */
static int64_t string(struct writer *w, const char *s)
{
	if (!s || !*s)
		return 0;
	struct index_slot *slot = index_find(&w->string_index, 0, s);
	if (!slot->value) {
		slot->text = arena_text(w, s);
		slot->value = (uint32_t)w->strings.n;
		list_add(&w->strings, (void *)slot->text);
	}
	return slot->value;
}

#define NEW(w, type, init) ({ \
	type *msg_ = arena_take(&(w)->arena, sizeof(type)); \
	init(msg_); \
	msg_; \
})

static uint64_t mapping_of(struct writer *w, uint32_t id, const char *module_name)
{
	if (!id)
		return 0;
	struct index_slot *slot = index_find(&w->mapping_index, id, NULL);
	if (slot->value)
		return slot->value;
	const struct module *mod = w->mods ? module_get(w->mods, id) : NULL;
	Pprof__Mapping *m = NEW(w, Pprof__Mapping, pprof__mapping__init);
	m->id = slot->value = (uint32_t)w->mappings.n + 1;
	m->memory_start = mod ? mod->bias : 0;
	m->filename = string(w, mod ? mod->path : module_name);
	if (mod && mod->file)
		m->build_id = string(w, elf_file_build_id(mod->file));
	/* symbols are inside: nobody should look for them elsewhere */
	m->has_functions = m->has_filenames = m->has_line_numbers = m->has_inline_frames = true;
	list_add(&w->mappings, m);
	return m->id;
}

static uint64_t function_of(struct writer *w, const char *name, const char *linkage, const char *file)
{
	int64_t name_s = string(w, name), link_s = string(w, linkage), file_s = string(w, file);
	/* three string indices below 2^32 don't fit 64 bits: two by number, the third by text */
	struct index_slot *slot = index_find(&w->function_index,
					     (uint64_t)name_s << 32 | (uint64_t)link_s,
					     w->strings.items[file_s]);

	if (!slot->value) {
		Pprof__Function *f = NEW(w, Pprof__Function, pprof__function__init);
		f->id = slot->value = (uint32_t)w->functions.n + 1;
		f->name = name_s;
		f->system_name = link_s;
		f->filename = file_s;
		list_add(&w->functions, f);
	}
	return slot->value;
}

static Pprof__Line *line_of(struct writer *w, uint64_t function, uint32_t number)
{
	Pprof__Line *line = NEW(w, Pprof__Line, pprof__line__init);

	line->function_id = function;
	line->line = number;
	return line;
}

static uint64_t location_of(struct writer *w, uint64_t addr)
{
	struct index_slot *slot = index_find(&w->location_index, addr, NULL);

	if (slot->value)
		return slot->value;
	uint32_t id = slot->value = (uint32_t)w->locations.n + 1;
	Pprof__Location *loc = NEW(w, Pprof__Location, pprof__location__init);
	list_add(&w->locations, loc);
	loc->id = id;
	uint32_t module = frame_module(addr);
	uint64_t vaddr = frame_vaddr(addr);
	if (!module && addr <= FRAME_PSEUDO_MAX) {
		const char *text = report_pseudo_text(addr);
		loc->line = arena_take(&w->arena, sizeof(*loc->line));
		loc->line[0] = line_of(w, function_of(w, text, text, NULL), 0);
		loc->n_line = 1;
		return id;
	}
	const struct name *name = w->names ? names_wait(w->names, module, vaddr, false) : NULL;
	loc->mapping_id = mapping_of(w, module, name ? name->module_name : NULL);
	uint64_t start = 0;
	if (loc->mapping_id)
		start = ((Pprof__Mapping *)w->mappings.items[loc->mapping_id - 1])->memory_start;
	loc->address = start + vaddr - 1;
	if (loc->mapping_id) {
		Pprof__Mapping *m = w->mappings.items[loc->mapping_id - 1];
		if (m->memory_limit <= loc->address)
			m->memory_limit = (loc->address | 4095) + 1;
	}
	if (!name)
		return id;
	loc->line = arena_take(&w->arena, name->nfuncs * sizeof(*loc->line));
	for (uint32_t i = 0; i < name->nfuncs; i++) {
		const struct name_func *f = &name->funcs[i];
		loc->line[i] = line_of(w, function_of(w, f->function, f->linkage, f->file), f->line);
	}
	loc->n_line = name->nfuncs;
	return id;
}

static void add_comment(void *ctx, const char *text)
{
	struct writer *w = ctx;

	VEC_GROW(w->comments, w->ncomments, w->comments_cap);
	w->comments[w->ncomments++] = string(w, text);
}

static const struct { const char *type, *unit; } sample_types[] = {
	{ "alloc_objects", "count" }, { "alloc_space", "bytes" },
	{ "inuse_objects", "count" }, { "inuse_space", "bytes" },
	{ "peak_objects", "count" }, { "peak_space", "bytes" },
	{ "temp_objects", "count" }, { "temp_space", "bytes" },
	/* only where there is something of them: they aren't known of every process */
	{ "resident_space", "bytes" }, { "swapped_space", "bytes" }, { "touched_space", "bytes" },
};
#define NTYPES ARRAY_SIZE(sample_types)
#define NTYPES_ALWAYS 8u

static size_t types_of(const struct view *view)
{
	return report_value_known(view, REPORT_RES_BYTES) || report_value_known(view, REPORT_FAULT_BYTES) ? NTYPES
		: NTYPES_ALWAYS;
}

static void add_sample(struct writer *w, size_t index)
{
	const struct view_trace *trace = view_trace(w->view, index);
	const struct trace_stats *s = &trace->s;
	Pprof__Sample *sample = NEW(w, Pprof__Sample, pprof__sample__init);
	const uint64_t values[NTYPES] = {
		q10_round(s->alloc_q10), s->alloc_bytes, q10_round(s->live_q10), s->live_bytes,
		q10_round(s->peak_q10), s->peak_bytes, q10_round(s->temp_q10), s->temp_bytes,
		s->res_bytes, s->swap_bytes, s->fault_bytes,
	};

	sample->n_value = w->ntypes;
	sample->value = arena_take(&w->arena, sizeof(values));
	memcpy(sample->value, values, sizeof(values));
	uint32_t depth = tree_get(w->view->tree, trace->node).depth;
	sample->location_id = arena_take(&w->arena, depth * sizeof(*sample->location_id));
	for (uint32_t node = trace->node; node; ) {
		struct tree_node n = tree_get(w->view->tree, node);
		sample->location_id[sample->n_location_id++] = location_of(w, n.addr);
		node = n.parent;
	}
	meta_write_sample(s, w->samples.n, add_comment, w);
	cells_write_sample(w->view, trace->node, w->samples.n, add_comment, w);
	steps_write_sample(w->view, index, w->samples.n, add_comment, w);
	list_add(&w->samples, sample);
}

static void add_pairs(struct writer *w)
{
	const struct view *view = w->view;
	CLEANUP_FREE uint32_t *sample_of = xcalloc(view->nnodes + 1, sizeof(*sample_of));
	uint32_t n = 0;

	for (size_t i = 0; view->touches && i < view->ntraces; i++)
		if (report_trace_passes(w->report, i))
			sample_of[view_trace(view, i)->node] = ++n;
	pairs_write(view, sample_of, add_comment, w);
}

/* Other tools take the first mapping for the program itself. */
static void main_mapping(struct writer *w)
{
	for (uint32_t id = 1; w->mods && id <= modules_count(w->mods); id++) {
		const struct module *mod = module_get(w->mods, id);
		if (mod && mod->is_main) {
			mapping_of(w, id, mod->name);
			return;
		}
	}
}

/* The one comment that pprof shows. */
static void headline(struct writer *w)
{
	const struct view *view = w->view;
	struct trace_stats total = report_total(w->report);
	char live[TEXT_NUMBER], blocks[TEXT_NUMBER], rate[TEXT_NUMBER], sum[64] = "";
	if (view->info.processes > 1)
		snprintf(sum, sizeof(sum), ", the sum of %u processes", view->info.processes);
	CLEANUP_FREE char *text = xasprintf(
		"heaptop: %s [%d]%s, %s live in %s blocks, %s%s", view->info.command, view->info.pid, sum,
		text_bytes(live, total.live_bytes), text_count(blocks, q10_round(total.live_q10)),
		view->info.rate > 1 ? "sampled every "
				    : view->totals.s.alloc_var > 0 ? "sampled before" : "exact",
		view->info.rate > 1 ? text_bytes(rate, view->info.rate) : "");

	add_comment(w, text);
}

/* ---- packing ---- */

struct deflater {
	ProtobufCBuffer base;
	FILE *out;
	bool gzip;
	bool failed;
	z_stream z;
};

static void deflate_piece(struct deflater *d, const uint8_t *data, size_t len, int flush)
{
	uint8_t buf[16384];

	d->z.next_in = (uint8_t *)data;
	d->z.avail_in = (uInt)len;
	do {
		d->z.next_out = buf;
		d->z.avail_out = sizeof(buf);
		deflate(&d->z, flush);
		size_t n = sizeof(buf) - d->z.avail_out;
		if (n && fwrite(buf, 1, n, d->out) != n)
			d->failed = true;
	} while (!d->z.avail_out && !d->failed);
}

static void append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct deflater *d = (struct deflater *)base;

	if (d->failed)
		return;
	if (!d->gzip) {
		if (fwrite(data, 1, len, d->out) != len)
			d->failed = true;
		return;
	}
	while (len) {
		size_t n = len < 1u << 30 ? len : 1u << 30;
		deflate_piece(d, data, n, Z_NO_FLUSH);
		data += n;
		len -= n;
	}
}

static struct err *pack(FILE *out, const Pprof__Profile *profile, bool gzip)
{
	struct deflater d = { .base.append = append, .out = out, .gzip = gzip };

	/* 15 + 16: a gzip header, largest window */
	if (gzip && deflateInit2(&d.z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_new(ERR_OTHER, "compressing: out of memory");
	errno = 0;
	pprof__profile__pack_to_buffer(profile, &d.base);
	if (gzip) {
		if (!d.failed)
			deflate_piece(&d, NULL, 0, Z_FINISH);
		deflateEnd(&d.z);
	}
	if (d.failed || fflush(out))
		return err_errno(errno ? errno : EIO, "writing the profile");
	return NULL;
}

static void writer_free(struct writer *w)
{
	struct list *lists[] = { &w->strings, &w->functions, &w->locations, &w->mappings,
				 &w->samples };
	struct index *indices[] = { &w->string_index, &w->function_index, &w->location_index,
				    &w->mapping_index };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		free(lists[i]->items);
	for (size_t i = 0; i < ARRAY_SIZE(indices); i++)
		free(indices[i]->slots);
	free(w->comments);
	arena_free(&w->arena);
}

struct err *pprof_write(FILE *out, struct report *report, struct names *names,
			const struct modules *mods, bool gzip)
{
	const struct view *view = report_view(report);
	struct writer w = { .report = report, .names = names, .mods = mods, .view = view };
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__ValueType types[NTYPES], *type_list[NTYPES];
	Pprof__ValueType period = PPROF__VALUE_TYPE__INIT;

	list_add(&w.strings, "");
	w.ntypes = types_of(view);
	for (size_t i = 0; i < w.ntypes; i++) {
		types[i] = (Pprof__ValueType)PPROF__VALUE_TYPE__INIT;
		types[i].type = string(&w, sample_types[i].type);
		types[i].unit = string(&w, sample_types[i].unit);
		type_list[i] = &types[i];
	}
	main_mapping(&w);
	headline(&w);
	meta_write(view, add_comment, &w);
	cells_write_threads(view, add_comment, &w);
	steps_write_threads(view, add_comment, &w);
	steps_write(view, add_comment, &w);
	for (size_t i = 0; i < view->ntraces; i++)
		if (report_trace_passes(report, i))
			add_sample(&w, i);
	add_pairs(&w);

	period.type = string(&w, "space");
	period.unit = string(&w, "bytes");
	profile.n_sample_type = w.ntypes;
	profile.sample_type = type_list;
	profile.default_sample_type = string(&w, "inuse_space");
	profile.period_type = &period;
	profile.period = view->info.rate > 1 ? (int64_t)view->info.rate : 1;
	profile.time_nanos = view->wall_ns;
	/* a file may say any time */
	profile.duration_nanos = view->time < 9.2e9 ? (int64_t)(view->time * 1e9) : INT64_MAX;
	profile.n_sample = w.samples.n;
	profile.sample = (Pprof__Sample **)w.samples.items;
	profile.n_mapping = w.mappings.n;
	profile.mapping = (Pprof__Mapping **)w.mappings.items;
	profile.n_location = w.locations.n;
	profile.location = (Pprof__Location **)w.locations.items;
	profile.n_function = w.functions.n;
	profile.function = (Pprof__Function **)w.functions.items;
	profile.n_comment = w.ncomments;
	profile.comment = w.comments;
	profile.n_string_table = w.strings.n;
	profile.string_table = (char **)w.strings.items;
	struct err *err = pack(out, &profile, gzip);
	writer_free(&w);
	return err;
}
