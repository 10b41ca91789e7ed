/* See columns.h. */
#include "ui/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "heap/classes.h"
#include "ui/format.h"
#include "ui/graph.h"

#define FLAG_WIDTH 2	/* cursor or flag, and a blank */

static const struct {
	const char *title;
	int width;
	int value;		/* report value it shows, -1: none */
} defs[COLUMN_IDS] = {
	[COLUMN_VALUE] = { "", 7, -1 },
	[COLUMN_TID] = { "TID", 7, -1 },
	[COLUMN_LIVE] = { "LIVE", 7, REPORT_LIVE_BYTES },
	[COLUMN_RES] = { "RES", 7, REPORT_RES_BYTES },
	[COLUMN_SELF] = { "SELF", 7, -1 },
	[COLUMN_ERROR] = { "ERR", 4, -1 },
	[COLUMN_PERCENT] = { "%", 5, -1 },
	[COLUMN_TOTAL] = { "TOTAL", 7, -1 },
	[COLUMN_DELTA] = { "Δ LIVE", 8, REPORT_DELTA_BYTES },
	[COLUMN_RATE] = { "B/s", 7, REPORT_ALLOC_BPS },
	[COLUMN_BLOCKS] = { "BLOCKS", 7, REPORT_LIVE_BLOCKS },
	[COLUMN_AVERAGE] = { "AVG", 6, -1 },
	[COLUMN_PEAK] = { "PEAK", 7, REPORT_PEAK_BYTES },
	[COLUMN_ALLOC_BYTES] = { "ALLOC", 7, REPORT_ALLOC_BYTES },
	[COLUMN_FREED] = { "FREED", 7, -1 },
	[COLUMN_ALLOCS] = { "ALLOCS", 7, REPORT_ALLOC_BLOCKS },
	[COLUMN_TEMP] = { "TEMP%", 6, REPORT_TEMP_BLOCKS },
	[COLUMN_AGE] = { "AGE p50", 7, REPORT_OLD_BYTES },
	[COLUMN_THREADS] = { "THREADS", 7, -1 },
	[COLUMN_SITES] = { "SITES", 5, -1 },
	[COLUMN_TREND] = { "TREND", 5, -1 },
};

static const char *value_title(enum report_value v)
{
	static const char *const titles[REPORT_VALUES] = {
		[REPORT_LIVE_BYTES] = "LIVE", [REPORT_LIVE_BLOCKS] = "BLOCKS",
		[REPORT_ALLOC_BPS] = "B/s", [REPORT_ALLOC_CPS] = "CALL/s",
		[REPORT_ALLOC_BYTES] = "ALLOC", [REPORT_ALLOC_BLOCKS] = "ALLOCS",
		[REPORT_TEMP_BLOCKS] = "TEMP", [REPORT_PEAK_BYTES] = "PEAK",
		[REPORT_RES_BYTES] = "RES", [REPORT_UNTOUCHED_BYTES] = "UNUSED",
		[REPORT_SWAP_BYTES] = "SWAP", [REPORT_FAULT_BYTES] = "TOUCHED",
		[REPORT_OLD_BYTES] = "OLD", [REPORT_DELTA_BYTES] = "Δ LIVE",
	};

	return v < REPORT_VALUES ? titles[v] : "";
}

static const struct { const char *name, *help; } choices[COLUMN_IDS] = {
	[COLUMN_RES] = { "res", "what of LIVE is in memory" },
	[COLUMN_SELF] = { "self", "Tree: of the function itself" },
	[COLUMN_ERROR] = { "error", "how sure an estimate is" },
	[COLUMN_PERCENT] = { "percent", "share of all" },
	[COLUMN_DELTA] = { "delta", "since the mark" },
	[COLUMN_RATE] = { "rate", "bytes allocated a second" },
	[COLUMN_BLOCKS] = { "blocks", "live blocks" },
	[COLUMN_AVERAGE] = { "average", "bytes of a live block" },
	[COLUMN_PEAK] = { "peak", "held at the program's peak" },
	[COLUMN_ALLOCS] = { "allocs", "allocations so far" },
	[COLUMN_TEMP] = { "temp", "share freed within 10 ms" },
	[COLUMN_AGE] = { "age", "half of the live bytes are older" },
	[COLUMN_THREADS] = { "threads", "so many allocated what is live" },
	[COLUMN_TREND] = { "trend", "live bytes over the last seconds" },
};

const char *columns_name(enum column_id id)
{
	return id < COLUMN_IDS ? choices[id].name : NULL;
}

const char *columns_help(enum column_id id)
{
	return id < COLUMN_IDS ? choices[id].help : NULL;
}

char *columns_list(uint32_t hidden)
{
	char *list = xstrdup("");

	for (enum column_id id = 0; id < COLUMN_IDS; id++) {
		if (!choices[id].name || hidden >> id & 1)
			continue;
		char *longer = xasprintf("%s%s%s", list, *list ? "," : "", choices[id].name);
		free(list);
		list = longer;
	}
	return list;
}

struct err *columns_parse(const char *list, uint32_t *ret_hidden)
{
	CLEANUP_FREE char *copy = xstrdup(list);
	uint32_t hidden = 0;
	char *save = NULL;

	for (enum column_id id = 0; id < COLUMN_IDS; id++)
		hidden |= choices[id].name ? 1u << id : 0;
	for (char *name = strtok_r(copy, ", ", &save); name; name = strtok_r(NULL, ", ", &save)) {
		enum column_id id = 0;
		while (id < COLUMN_IDS && !(choices[id].name && !strcmp(choices[id].name, name)))
			id++;
		if (id == COLUMN_IDS) {
			CLEANUP_FREE char *all = columns_list(0);
			return err_new(ERR_BAD_INPUT, "no column is called '%.40s'; there are %s", name, all);
		}
		hidden &= ~(1u << id);
	}
	*ret_hidden = hidden;
	return NULL;
}

int columns_value(enum column_id id)
{
	return id < COLUMN_IDS ? defs[id].value : -1;
}

void columns_layout(struct columns *l, int cols, enum report_value value, enum columns_set set,
		    bool sampled, bool base, bool res)
{
	/* In the order in which they are given room, and the width the name keeps at least. Shown in
	 * the order of the ids. */
	static const struct {
		enum column_id id;
		int name_min;
		unsigned sets;		/* 0: all */
	} wishes[] = {
		{ COLUMN_PERCENT, 18, 0 }, { COLUMN_DELTA, 20, 0 },
		{ COLUMN_TOTAL, 18, 1 << COLUMNS_MODULES }, { COLUMN_TID, 12, 1 << COLUMNS_THREADS },
		{ COLUMN_SELF, 24, 1 << COLUMNS_TREE }, { COLUMN_BLOCKS, 24, 0 }, { COLUMN_RATE, 24, 0 },
		{ COLUMN_ERROR, 24, 0 }, { COLUMN_TREND, 24, ~(1u << COLUMNS_TREE) },
		{ COLUMN_ALLOC_BYTES, 18, 1 << COLUMNS_THREADS }, { COLUMN_FREED, 18, 1 << COLUMNS_THREADS },
		{ COLUMN_RES, 40, 1 << COLUMNS_SITES | 1 << COLUMNS_TREE },
		{ COLUMN_SITES, 40, 1 << COLUMNS_MODULES },
		{ COLUMN_PEAK, 56, ~(1u << COLUMNS_THREADS) }, { COLUMN_ALLOCS, 56, 0 },
		{ COLUMN_TEMP, 56, ~(1u << COLUMNS_THREADS) }, { COLUMN_AVERAGE, 60, 0 },
		{ COLUMN_AGE, 40, 1 << COLUMNS_SITES | 1 << COLUMNS_MODULES | 1 << COLUMNS_TREE },
		{ COLUMN_THREADS, 40, 1 << COLUMNS_SITES | 1 << COLUMNS_MODULES },
	};
	bool shown[COLUMN_IDS] = { false };
	int room = cols - FLAG_WIDTH - 2;

	/* the value itself is always there, in front */
	if (value == REPORT_LIVE_BYTES)
		shown[COLUMN_LIVE] = true;
	else
		shown[COLUMN_VALUE] = true;
	room -= defs[COLUMN_VALUE].width + 1;
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
		enum column_id id = wishes[i].id;
		if (wishes[i].sets && !(wishes[i].sets >> set & 1))
			continue;
		if ((id == COLUMN_AGE || id == COLUMN_THREADS) && !l->held)
			continue;
		if ((id == COLUMN_RES && !res) || (id == COLUMN_ERROR && !sampled) || (id == COLUMN_DELTA && !base))
			continue;
		if (l->hidden >> id & 1)
			continue;
		if (defs[id].value == (int)value && id != COLUMN_TEMP && id != COLUMN_AGE)
			continue;	/* it is the first column already */
		if (id == COLUMN_PERCENT && value != REPORT_LIVE_BYTES && !shown[COLUMN_LIVE] &&
		    room - (defs[COLUMN_LIVE].width + 1) - (defs[id].width + 1) >= 24) {
			shown[COLUMN_LIVE] = true;	/* what is held is always worth knowing */
			room -= defs[COLUMN_LIVE].width + 1;
		}
		if (room - (defs[id].width + 1) < wishes[i].name_min)
			break;
		shown[id] = true;
		room -= defs[id].width + 1;
	}
	l->n = 0;
	int x = FLAG_WIDTH;
	for (enum column_id id = 0; id < COLUMN_IDS; id++) {
		if (!shown[id])
			continue;
		l->list[l->n].id = id;
		l->list[l->n].x = x;
		l->list[l->n].width = defs[id].width;
		l->n++;
		x += defs[id].width + 1;
	}
	l->name_x = x + 1;
}

void columns_heading(const struct columns *l, struct canvas *c, int y, int x, int cols,
		     enum report_value value, bool reverse, const char *name_title)
{
	char text[24];

	canvas_fill(c, y, x, cols, STYLE_HEADING, ' ');
	for (size_t i = 0; i < l->n; i++) {
		enum column_id id = l->list[i].id;
		bool sorted = id == COLUMN_VALUE || (id == COLUMN_LIVE && value == REPORT_LIVE_BYTES);
		const char *title = id == COLUMN_VALUE ? value_title(value) : defs[id].title;
		snprintf(text, sizeof(text), "%s%s", title, !sorted ? "" : reverse ? "▲" : "▼");
		int w = canvas_width(c, text);
		/* the mark stands beyond the numbers' right edge, like a unit */
		canvas_put(c, y, x + l->list[i].x + l->list[i].width - w + (sorted ? 1 : 0),
			   sorted ? STYLE_HEADING_SORT : STYLE_HEADING, text);
	}
	canvas_put_max(c, y, x + l->name_x, cols - l->name_x, STYLE_HEADING, name_title);
}

/* The youngest that the half may be: what is known of an age is its class (heap/classes.h). */
static const char *age_text(unsigned age_class)
{
	static const char *const labels[CLASS_AGES] = {
		"<1ms", "1ms+", "10ms+", "100ms+", "1s+", "10s+", "1m+", "10m+", "1h+",
	};

	return age_class < CLASS_AGES ? labels[age_class] : "";
}

static double average(const struct trace_stats *s)
{
	return s->live_q10 ? (double)s->live_bytes / (double)s->live_q10 * 1024 : 0;
}

/* Red grew, blue shrank, and the sign says so, too. */
static style_t delta_style(double delta, style_t style)
{
	style_t extra = style & ~(style_t)STYLE_ID_MASK;

	return delta ? (delta > 0 ? STYLE_GREW : STYLE_SHRANK) | extra : style;
}

void columns_draw(const struct columns *l, struct canvas *c, int y, int x, style_t style,
		  enum report_value value, const struct column_row *row, double whole)
{
	char buf[FORMAT_BUF];
	const struct trace_stats *s = row->s;

	for (size_t i = 0; i < l->n; i++) {
		const char *text = "";
		double se, of;
		int w = l->list[i].width, cx = x + l->list[i].x;
		style_t st = style;
		switch (l->list[i].id) {
		case COLUMN_VALUE:
			if (value == REPORT_DELTA_BYTES) {
				text = format_delta(buf, row->delta, w, true);
				st = delta_style(row->delta, style);
			} else {
				text = format_value(buf, report_value_of(s, value), value, w);
			}
			st |= STYLE_STRONG;
			break;
		case COLUMN_LIVE:
			text = format_bytes(buf, s->live_bytes, w);
			if (value == REPORT_LIVE_BYTES)
				st |= STYLE_STRONG;
			break;
		case COLUMN_RES:
			text = format_bytes(buf, s->res_bytes, w);
			break;
		case COLUMN_TID:
			if (row->more && row->more->merged)
				snprintf(buf, sizeof(buf), "%ux", row->more->merged);
			else if (row->more && row->more->tid)
				snprintf(buf, sizeof(buf), "%u", row->more->tid);
			else
				break;
			text = buf;
			st = STYLE_DIM;
			break;
		case COLUMN_TOTAL:
			if (row->more && report_value_of(&row->more->total, value) > 0)
				text = format_value(buf, report_value_of(&row->more->total, value), value, w);
			break;
		case COLUMN_SITES:
			if (row->more && row->more->nsites)
				text = format_count(buf, row->more->nsites, w);
			break;
		case COLUMN_ALLOC_BYTES:
			text = format_bytes(buf, s->alloc_bytes, w);
			break;
		case COLUMN_FREED:
			text = format_bytes(buf, s->free_bytes, w);
			break;
		case COLUMN_SELF:
			if (row->self && report_value_of(row->self, value) > 0)
				text = format_value(buf, report_value_of(row->self, value), value, w);
			break;
		case COLUMN_ERROR:
			se = report_error(s, value, &of);
			text = format_error(buf, se, of, c->unicode);
			st = STYLE_DIM;
			break;
		case COLUMN_PERCENT:
			text = format_percent(buf, value == REPORT_DELTA_BYTES ? fabs(row->delta) : report_value_of(s, value),
					      whole, w);
			break;
		case COLUMN_DELTA:
			text = format_delta(buf, row->delta, w, true);
			st = delta_style(row->delta, style);
			break;
		case COLUMN_RATE:
			if (s->alloc_bps >= 0.5f)
				text = format_bytes(buf, format_clamp(s->alloc_bps + 0.5), w);
			break;
		case COLUMN_BLOCKS:
			text = format_count(buf, q10_round(s->live_q10), w);
			break;
		case COLUMN_AVERAGE:
			text = format_bytes(buf, format_clamp(average(s) + 0.5), w);
			break;
		case COLUMN_PEAK:
			text = format_bytes(buf, s->peak_bytes, w);
			break;
		case COLUMN_ALLOCS:
			text = format_count(buf, q10_round(s->alloc_q10), w);
			break;
		case COLUMN_TEMP:
			if (s->temp_q10)
				text = format_percent(buf, (double)s->temp_q10, (double)s->alloc_q10, w);
			break;
		case COLUMN_AGE:
			text = row->held.known ? age_text(row->held.age) : "";
			break;
		case COLUMN_THREADS:
			if (row->held.known && row->held.threads)
				text = format_count(buf, row->held.threads, w);
			break;
		case COLUMN_TREND: {
			uint64_t max = 0;
			if (row->ntrend < 2)
				continue;	/* one point is no trend */
			enum graph_kind kind = graph_kind_for(c);
			for (size_t k = 0; k < row->ntrend; k++)
				if (row->trend[k] > max)
					max = row->trend[k];
			graph_draw(c, y, cx, 1, w, kind, style == STYLE_TEXT ? STYLE_GRAPH : style,
				   row->trend, row->ntrend, max);
			continue;
		}
		default:
			break;
		}
		canvas_put_right(c, y, cx, w, st, text);
	}
}

bool columns_has(const struct columns *l, enum column_id id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].id == id)
			return true;
	return false;
}

int columns_at(const struct columns *l, int x)
{
	for (size_t i = 0; i < l->n; i++)
		if (x >= l->list[i].x - 1 && x <= l->list[i].x + l->list[i].width)
			return l->list[i].id;
	return -1;
}
