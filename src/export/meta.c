/* View fields as profile comments and back; see meta.h. */
#include "export/meta.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define MAX_POINTS 1000
#define MAX_UNHOOKED 10000
#define SAMPLE_NUMBERS 13
#define SAMPLE_NUMBERS_FIRST 12	/* those that all have; files of before end there */

enum kind { U64, U32, INT, BOOL, FLOAT, DOUBLE };

#define FIELD(name, member, kind_) { name, offsetof(struct view, member), kind_ }
static const struct {
	const char *name;
	size_t offset;
	enum kind kind;
} fields[] = {
	FIELD("time", time, DOUBLE),
	FIELD("pid", info.pid, INT),
	FIELD("state", info.state, INT),
	FIELD("exit_code", info.exit_code, INT),
	FIELD("attached", info.attached, BOOL),
	FIELD("exact", info.exact, BOOL),
	FIELD("auto_rate", info.auto_rate, BOOL),
	FIELD("rate", info.rate, U64),
	FIELD("min_size", info.min_size, U64),
	FIELD("overhead", info.overhead, FLOAT),
	FIELD("events", info.events, U64),
	FIELD("dropped", info.dropped, U64),
	FIELD("gap", info.gap, U64),
	FIELD("stacks", info.stacks, U64),
	FIELD("stacks_complete", info.stacks_complete, U64),
	FIELD("ends0", info.ends[0], U64),
	FIELD("ends1", info.ends[1], U64),
	FIELD("ends2", info.ends[2], U64),
	FIELD("ends3", info.ends[3], U64),
	FIELD("ends4", info.ends[4], U64),
	FIELD("ends5", info.ends[5], U64),
	FIELD("ends6", info.ends[6], U64),
	FIELD("ends7", info.ends[7], U64),
	FIELD("walked", info.walked, U64),
	FIELD("copied", info.copied, U64),
	FIELD("untracked", info.untracked, U64),
	FIELD("rss", info.rss, U64),
	FIELD("rss_anon", info.memory.anon, U64),
	FIELD("rss_file", info.memory.file, U64),
	FIELD("rss_shmem", info.memory.shmem, U64),
	FIELD("swap", info.memory.swap, U64),
	FIELD("stacks_anon", info.memory.stacks, U64),
	FIELD("data_anon", info.memory.data, U64),
	FIELD("agent_anon", info.memory.agent_anon, U64),
	FIELD("agent_shmem", info.memory.agent_shmem, U64),
	FIELD("older_anon", info.memory.older, U64),
	FIELD("tracked_anon", info.memory.tracked_anon, U64),
	FIELD("tracked_file", info.memory.tracked_file, U64),
	FIELD("tracked_var", info.memory.tracked_var, DOUBLE),
	FIELD("scan_share", info.memory.scan_share, FLOAT),
	FIELD("faults", info.faults, BOOL),
	FIELD("threads", info.threads, U32),
	FIELD("pause", info.pause, FLOAT),
	FIELD("processes", info.processes, U32),
	FIELD("hooks", info.nhooks, U32),
	FIELD("lost_frees", totals.lost_frees, U64),
	FIELD("peak_time", totals.peak_time, FLOAT),
	FIELD("trend", totals.trend_bps, FLOAT),
	FIELD("merged", totals.merged, U32),
	FIELD("tree_steps", totals.tree.steps, U64),
	FIELD("tree_last_hits", totals.tree.last_hits, U64),
	FIELD("tree_hash_hits", totals.tree.hash_hits, U64),
	FIELD("tree_added", totals.tree.added, U64),
	FIELD("tree_bytes", totals.tree.bytes, U64),
};

uint32_t meta_float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

uint64_t meta_double_bits(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

/* Not a number and infinity come from nobody honest; they would spoil every sum and sort. */
float meta_bits_float(uint64_t bits64)
{
	uint32_t bits = (uint32_t)bits64;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return isfinite(f) ? f : 0;
}

double meta_bits_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return isfinite(d) && fabs(d) < 1e60 ? d : 0;
}

static uint64_t field_get(const struct view *view, size_t i)
{
	const char *at = (const char *)view + fields[i].offset;

	switch (fields[i].kind) {
	case U64:
		return *(const uint64_t *)at;
	case U32:
		return *(const uint32_t *)at;
	case INT:
		return (uint32_t)*(const int *)at;
	case BOOL:
		return *(const bool *)at;
	case FLOAT:
		return meta_float_bits(*(const float *)at);
	case DOUBLE:
		return meta_double_bits(*(const double *)at);
	}
	return 0;
}

static void field_set(struct view *view, size_t i, uint64_t value)
{
	char *at = (char *)view + fields[i].offset;

	switch (fields[i].kind) {
	case U64:
		*(uint64_t *)at = value;
		break;
	case U32:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case INT:
		*(int *)at = (int)(uint32_t)value;
		break;
	case BOOL:
		*(bool *)at = value != 0;
		break;
	case FLOAT:
		*(float *)at = meta_bits_float(value);
		break;
	case DOUBLE:
		*(double *)at = meta_bits_double(value);
		break;
	}
}

static void emit_free(meta_emit_fn emit, void *ctx, char *text)
{
	emit(ctx, text);
	free(text);
}

void meta_write(const struct view *view, meta_emit_fn emit, void *ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		emit_free(emit, ctx, xasprintf(META_PREFIX "%s %" PRIx64, fields[i].name,
					       field_get(view, i)));
	emit_free(emit, ctx, xasprintf(META_PREFIX "command=%s", view->info.command));
	if (view->info.thread)
		emit_free(emit, ctx, xasprintf(META_PREFIX "thread=%s", view->info.thread));
	if (view->info.probe)
		emit_free(emit, ctx, xasprintf(META_PREFIX "probe=%s", view->info.probe));
	for (size_t i = 0; i < view->info.nunhooked; i++) {
		const struct view_unhooked *u = &view->info.unhooked[i];
		emit_free(emit, ctx, xasprintf(META_PREFIX "unhooked=%s|%s|%s", u->name, u->module,
					       u->reason));
	}
	for (size_t i = 0; i < view->npoints; i++) {
		const struct view_point *p = &view->points[i];
		emit_free(emit, ctx, xasprintf(META_PREFIX "point %" PRIx32 " %" PRIx64 " %" PRIx64
					       " %" PRIx32, meta_float_bits(p->time), p->live_bytes,
					       p->rss, meta_float_bits(p->alloc_bps)));
	}
}

void meta_defaults(struct trace_stats *s, uint64_t alloc, uint64_t live, uint64_t temp,
		   uint64_t peak)
{
	s->alloc_q10 = alloc << 10;
	s->live_q10 = live << 10;
	s->temp_q10 = temp << 10;
	s->peak_q10 = peak << 10;
	s->samples = alloc;
	s->live_samples = live;
}

/* The numbers of a sample's comment, in their order there. */
static void sample_numbers(const struct trace_stats *s, uint64_t out[SAMPLE_NUMBERS])
{
	const uint64_t numbers[SAMPLE_NUMBERS] = {
		s->alloc_q10, s->live_q10, s->temp_q10, s->peak_q10, s->samples, s->live_samples,
		meta_double_bits(s->live_var), meta_double_bits(s->alloc_var), meta_float_bits(s->alloc_bps),
		meta_float_bits(s->alloc_cps), meta_float_bits(s->free_bps), meta_float_bits(s->free_cps),
		meta_double_bits(s->fault_var),
	};
	memcpy(out, numbers, sizeof(numbers));
}

void meta_write_sample(const struct trace_stats *s, size_t index, meta_emit_fn emit, void *ctx)
{
	struct trace_stats plain = { 0 };
	uint64_t a[SAMPLE_NUMBERS], b[SAMPLE_NUMBERS];
	char text[64 + SAMPLE_NUMBERS * 17];

	meta_defaults(&plain, q10_round(s->alloc_q10), q10_round(s->live_q10),
		      q10_round(s->temp_q10), q10_round(s->peak_q10));
	sample_numbers(s, a);
	sample_numbers(&plain, b);
	if (!memcmp(a, b, sizeof(a)))
		return;
	int n = snprintf(text, sizeof(text), META_PREFIX "sample %zx", index);
	for (size_t i = 0; i < SAMPLE_NUMBERS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIx64, a[i]);
	emit(ctx, text);
}

/* ---- reading ---- */

bool meta_take_hex(const char **text, uint64_t *ret)
{
	const char *s = *text;
	uint64_t value = 0;
	int digits = 0;

	if (*s != ' ')
		return false;
	for (s++; digits < 16; s++, digits++) {
		unsigned char c = (unsigned char)*s;
		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	*text = s;
	*ret = value;
	return digits > 0;
}

static void read_sample(struct trace_stats *samples, size_t n, const char *text)
{
	uint64_t index, v[SAMPLE_NUMBERS] = { 0 };

	if (!meta_take_hex(&text, &index) || index >= n)
		return;
	for (size_t i = 0; i < SAMPLE_NUMBERS; i++)
		if (!meta_take_hex(&text, &v[i]) && i < SAMPLE_NUMBERS_FIRST)
			return;
	struct trace_stats *s = &samples[index];
	/* another tool may have changed the values and kept the comments */
	if (q10_round(v[0]) != q10_round(s->alloc_q10) || q10_round(v[1]) != q10_round(s->live_q10)
	    || q10_round(v[2]) != q10_round(s->temp_q10)
	    || q10_round(v[3]) != q10_round(s->peak_q10))
		return;
	s->alloc_q10 = v[0];
	s->live_q10 = v[1];
	s->temp_q10 = v[2];
	s->peak_q10 = v[3];
	s->samples = v[4];
	s->live_samples = v[5];
	s->live_var = fabs(meta_bits_double(v[6]));
	s->alloc_var = fabs(meta_bits_double(v[7]));
	s->alloc_bps = fabsf(meta_bits_float(v[8]));
	s->alloc_cps = fabsf(meta_bits_float(v[9]));
	s->free_bps = fabsf(meta_bits_float(v[10]));
	s->free_cps = fabsf(meta_bits_float(v[11]));
	s->fault_var = fabs(meta_bits_double(v[12]));
}

static void read_point(struct view *view, const char *text)
{
	uint64_t time, live, rss, rate;

	if (view->npoints >= MAX_POINTS || !meta_take_hex(&text, &time) || !meta_take_hex(&text, &live)
	    || !meta_take_hex(&text, &rss) || !meta_take_hex(&text, &rate))
		return;
	struct view_point point = { meta_bits_float(time), live, rss, meta_bits_float(rate) };
	if (view->npoints && point.time < view->points[view->npoints - 1].time)
		return;
	view->points = xreallocarray(view->points, view->npoints + 1, sizeof(*view->points));
	view->points[view->npoints++] = point;
}

static char *clean_copy(const char *s, size_t n)
{
	char *copy = xstrndup(s, n);

	text_sanitize(copy);
	return copy;
}

static void read_unhooked(struct view *view, const char *text)
{
	const char *module = strchr(text, '|');
	const char *reason = module ? strchr(module + 1, '|') : NULL;

	if (!reason || view->info.nunhooked >= MAX_UNHOOKED)
		return;
	view->info.unhooked = xreallocarray(view->info.unhooked, view->info.nunhooked + 1,
					    sizeof(*view->info.unhooked));
	view->info.unhooked[view->info.nunhooked++] = (struct view_unhooked){
		.name = clean_copy(text, (size_t)(module - text)),
		.module = clean_copy(module + 1, (size_t)(reason - module - 1)),
		.reason = clean_copy(reason + 1, strlen(reason + 1)),
	};
}

static const char *after(const char *text, const char *word)
{
	size_t n = strlen(word);

	return strncmp(text, word, n) ? NULL : text + n;
}

bool meta_read(struct view *view, struct trace_stats *samples, size_t n, const char *text)
{
	const char *rest;

	text = after(text, META_PREFIX);
	if (!text)
		return false;
	if ((rest = after(text, "sample"))) {
		read_sample(samples, n, rest);
	} else if ((rest = after(text, "point"))) {
		read_point(view, rest);
	} else if ((rest = after(text, "thread="))) {
		free(view->info.thread);
		view->info.thread = clean_copy(rest, strlen(rest));
	} else if ((rest = after(text, "probe="))) {
		free(view->info.probe);
		view->info.probe = clean_copy(rest, strlen(rest));
	} else if ((rest = after(text, "command="))) {
		free(view->info.command);
		view->info.command = clean_copy(rest, strlen(rest));
	} else if ((rest = after(text, "unhooked="))) {
		read_unhooked(view, rest);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			uint64_t value;
			rest = after(text, fields[i].name);
			if (rest && *rest == ' ' && meta_take_hex(&rest, &value))
				field_set(view, i, value);
		}
	}
	return true;
}
