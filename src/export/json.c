/* Snapshots as JSON; see json.h. */
#include "export/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "export/paths.h"
#include "heap/classes.h"
#include "heap/view.h"
#include "report/rss.h"

#define JSON_VERSION 1		/* of the names and their meaning; more names don't change it */

/* ---- the syntax ---- */

struct json {
	FILE *out;
	int depth;
	bool first;		/* nothing yet in the innermost object or array */
};

/* What isn't UTF-8 becomes U+FFFD, a byte each; control characters, also DEL and C1, are escaped. */
static void put_string(FILE *out, const char *s)
{
	size_t left = strlen(s);

	putc('"', out);
	while (left) {
		uint32_t c;
		size_t n = text_utf8_decode(s, left, &c);
		if (!n)
			fputs("\\ufffd", out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (int)c);
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			fprintf(out, "\\u%04x", (unsigned)c);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
	putc('"', out);
}

/* Begin a value; key NULL: an element of an array. */
static void item(struct json *j, const char *key)
{
	if (!j->first)
		putc(',', j->out);
	j->first = false;
	/* the top's members and their elements have a line each */
	if (j->depth <= 2)
		putc('\n', j->out);
	if (key) {
		put_string(j->out, key);
		putc(':', j->out);
	}
}

static void begin(struct json *j, const char *key, char bracket)
{
	if (j->depth)
		item(j, key);
	putc(bracket, j->out);
	j->depth++;
	j->first = true;
}

static void end(struct json *j, char bracket)
{
	j->depth--;
	if (!j->first && j->depth <= 1)
		putc('\n', j->out);
	putc(bracket, j->out);
	j->first = false;
}

static void text(struct json *j, const char *key, const char *s)
{
	item(j, key);
	if (s)
		put_string(j->out, s);
	else
		fputs("null", j->out);
}

static void integer(struct json *j, const char *key, uint64_t n)
{
	item(j, key);
	fprintf(j->out, "%" PRIu64, n);
}

/* A snapshot that was read may say anything, and JSON has no infinity. */
static void number(struct json *j, const char *key, double v, int decimals)
{
	item(j, key);
	if (isfinite(v))
		fprintf(j->out, "%.*f", decimals, v);
	else
		fputs("null", j->out);
}

static void percent(struct json *j, const char *key, double part, double whole, double of_nothing)
{
	number(j, key, whole > 0 ? 100.0 * part / whole : of_nothing, 2);
}

/* ---- what is in it ---- */

/* What isn't known is null; 0 would be a figure. */
static void figure(struct json *j, const char *key, bool known, uint64_t n)
{
	if (known)
		integer(j, key, n);
	else
		text(j, key, NULL);
}

/* `by_stack`: else of a thread, by which not all is counted. */
static void put_stats(struct json *j, const struct view *v, bool by_stack, const struct trace_stats *s)
{
	bool res = by_stack && report_value_known(v, REPORT_RES_BYTES);

	integer(j, "live_bytes", s->live_bytes);
	integer(j, "live_blocks", q10_round(s->live_q10));
	integer(j, "alloc_bytes", s->alloc_bytes);
	integer(j, "alloc_blocks", q10_round(s->alloc_q10));
	integer(j, "free_bytes", s->free_bytes);
	integer(j, "free_blocks", q10_round(s->free_q10));
	figure(j, "peak_bytes", by_stack, s->peak_bytes);
	figure(j, "temp_blocks", by_stack, q10_round(s->temp_q10));
	number(j, "alloc_bps", (double)s->alloc_bps, 0);
	number(j, "alloc_cps", (double)s->alloc_cps, 0);
	integer(j, "samples", s->samples);
	figure(j, "res_bytes", res, s->res_bytes);
	figure(j, "swap_bytes", res, s->swap_bytes);
	figure(j, "touched_bytes", by_stack && report_value_known(v, REPORT_FAULT_BYTES), s->fault_bytes);
}

static void put_header(struct json *j, const struct view *v)
{
	const struct view_info *i = &v->info;
	const struct trace_stats *s = &v->totals.s;
	struct rss rss;
	char key[40];

	text(j, "format", "heaptop");
	integer(j, "version", JSON_VERSION);
	text(j, "command", i->command);
	number(j, "pid", i->pid, 0);
	text(j, "state", view_state_name(i->state));
	if (i->state == VIEW_EXITED)
		number(j, "exit_code", i->exit_code, 0);
	integer(j, "processes", i->processes > 1 ? i->processes : 1);
	number(j, "time_s", v->time, 3);
	text(j, "mode", i->rate <= 1 ? "exact" : "sampled");
	integer(j, "rate", i->rate);
	if (i->probe)
		text(j, "probe", i->probe);
	if (i->thread)
		text(j, "only_threads", i->thread);
	if (i->min_size)
		integer(j, "only_min_size", i->min_size);
	text(j, "since", i->attached ? "attach" : "start");
	number(j, "overhead_pct", (double)i->overhead * 100, 2);
	integer(j, "events", i->events);
	integer(j, "dropped", i->dropped);
	integer(j, "gap", i->gap);
	integer(j, "lost_frees", v->totals.lost_frees);
	integer(j, "untracked", i->untracked);
	percent(j, "stacks_complete_pct", (double)i->stacks_complete, (double)i->stacks, 100);
	put_stats(j, v, true, s);
	percent(j, "live_error_pct", sqrt(s->live_var), (double)s->live_bytes, 0);
	if (report_value_known(v, REPORT_FAULT_BYTES))
		percent(j, "touched_error_pct", sqrt(s->fault_var), (double)s->fault_bytes, 0);
	else
		text(j, "touched_error_pct", NULL);
	percent(j, "alloc_error_pct", sqrt(s->alloc_var), (double)s->alloc_bytes, 0);
	number(j, "peak_time_s", (double)v->totals.peak_time, 3);
	integer(j, "rss_bytes", i->rss);
	rss_split(v, &rss);
	for (enum rss_part part = 0; rss.total && part < RSS_PARTS; part++) {
		snprintf(key, sizeof(key), "rss_%s", rss_part_name(part));
		integer(j, key, rss.part[part]);
	}
	begin(j, "not_hooked", '[');
	for (size_t k = 0; k < i->nunhooked; k++) {
		begin(j, NULL, '{');
		text(j, "name", i->unhooked[k].name);
		text(j, "module", i->unhooked[k].module);
		text(j, "reason", i->unhooked[k].reason);
		end(j, '}');
	}
	end(j, ']');
}

static void put_graph(struct json *j, const struct view *v)
{
	begin(j, "graph", '[');
	for (size_t i = 0; i < v->npoints; i++) {
		begin(j, NULL, '{');
		number(j, "time_s", (double)v->points[i].time, 3);
		integer(j, "live_bytes", v->points[i].live_bytes);
		integer(j, "rss_bytes", v->points[i].rss);
		number(j, "alloc_bps", (double)v->points[i].alloc_bps, 0);
		end(j, '}');
	}
	end(j, ']');
}

static void put_threads(struct json *j, const struct view *v)
{
	begin(j, "threads", '[');
	for (size_t i = 0; i < v->nthreads; i++) {
		const struct view_thread *t = &v->threads[i];
		begin(j, NULL, '{');
		text(j, "name", t->name);
		integer(j, "tid", t->tid);
		text(j, "state", t->ended ? "ended" : "running");
		integer(j, "threads", t->merged ? t->merged : 1);
		put_stats(j, v, false, &t->s);
		end(j, '}');
	}
	end(j, ']');
}

static void put_sites(struct json *j, struct report *report, enum report_value value)
{
	size_t n;

	report_set_held(report, true);
	const struct report_site *sites = report_sites(report, value, false, &n);

	begin(j, "sites", '[');
	for (size_t i = 0; i < n; i++) {
		const struct report_site *s = &sites[i];
		begin(j, NULL, '{');
		text(j, "site", s->function);
		text(j, "file", s->file);
		figure(j, "line", s->line != 0, s->line);
		text(j, "module", s->module);
		put_stats(j, report_view(report), true, &s->s);
		percent(j, "se_pct", s->se, (double)s->s.live_bytes, 0);
		if (report_value_known(report_view(report), REPORT_FAULT_BYTES))
			percent(j, "touched_se_pct", sqrt(s->s.fault_var), (double)s->s.fault_bytes, 0);
		else
			text(j, "touched_se_pct", NULL);
		if (s->held.known)
			number(j, "age_p50_s", s->held.age ? (double)class_age_until(s->held.age - 1u) / 1e9 : 0, 3);
		else
			text(j, "age_p50_s", NULL);
		figure(j, "live_threads", s->held.known, s->held.threads);
		end(j, '}');
	}
	end(j, ']');
}

static bool anything(const struct trace_stats *s)
{
	return s->alloc_q10 || s->live_q10 || s->live_bytes || s->alloc_bytes || s->peak_bytes || s->fault_bytes;
}

struct stacks {
	struct json *j;
	const struct view *view;
};

static bool put_stack(void *ctx, const struct report_cell *const *path, size_t n)
{
	struct stacks *to = ctx;
	struct json *j = to->j;

	if (anything(&path[n - 1]->self)) {
		begin(j, NULL, '{');
		begin(j, "frames", '[');
		for (size_t i = 0; i < n; i++)
			text(j, NULL, path[i]->function);
		end(j, ']');
		put_stats(j, to->view, true, &path[n - 1]->self);
		end(j, '}');
	}
	return !ferror(j->out);
}

struct err *json_write(FILE *out, struct report *report, enum report_value value)
{
	struct json j = { .out = out, .first = true };
	const struct view *view = report_view(report);

	errno = 0;
	begin(&j, NULL, '{');
	put_header(&j, view);
	put_graph(&j, view);
	put_threads(&j, view);
	put_sites(&j, report, value);
	begin(&j, "stacks", '[');
	paths_walk(report, value, put_stack, &(struct stacks){ &j, view });
	end(&j, ']');
	end(&j, '}');
	putc('\n', out);
	if (fflush(out) || ferror(out))
		return err_errno(errno ? errno : EIO, "writing JSON");
	return NULL;
}
