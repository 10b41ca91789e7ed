/* The values a row can be ordered and measured by; see report.h. */
#include <math.h>
#include <string.h>

#include "report/report.h"

static const struct {
	const char *name, *title;
	bool bytes;
} values[REPORT_VALUES] = {
	[REPORT_LIVE_BYTES] = { "live", "live bytes", true },
	[REPORT_LIVE_BLOCKS] = { "blocks", "live blocks", false },
	[REPORT_ALLOC_BPS] = { "rate", "bytes allocated a second", true },
	[REPORT_ALLOC_CPS] = { "calls", "allocations a second", false },
	[REPORT_ALLOC_BYTES] = { "alloc", "bytes allocated", true },
	[REPORT_ALLOC_BLOCKS] = { "allocs", "allocations", false },
	[REPORT_TEMP_BLOCKS] = { "temp", "temporary allocations", false },
	[REPORT_PEAK_BYTES] = { "peak", "bytes held at the peak", true },
	[REPORT_RES_BYTES] = { "res", "live bytes in memory", true },
	[REPORT_UNTOUCHED_BYTES] = { "untouched", "live bytes untouched", true },
	[REPORT_SWAP_BYTES] = { "swap", "live bytes swapped out", true },
	[REPORT_FAULT_BYTES] = { "faults", "bytes first touched", true },
	[REPORT_OLD_BYTES] = { "age", "live bytes over 1 min old", true },
	[REPORT_DELTA_BYTES] = { "delta", "live bytes since the mark", true },
};

const char *report_value_name(enum report_value v)
{
	return (unsigned)v < REPORT_VALUES ? values[v].name : NULL;
}

const char *report_value_title(enum report_value v)
{
	return (unsigned)v < REPORT_VALUES ? values[v].title : NULL;
}

int report_value_parse(const char *name)
{
	for (int v = 0; v < REPORT_VALUES; v++)
		if (!strcmp(values[v].name, name))
			return v;
	return -1;
}

double report_value_of(const struct trace_stats *s, enum report_value v)
{
	switch (v) {
	case REPORT_LIVE_BYTES:
		return (double)s->live_bytes;
	case REPORT_LIVE_BLOCKS:
		return (double)s->live_q10 / 1024;
	case REPORT_ALLOC_BPS:
		return s->alloc_bps;
	case REPORT_ALLOC_CPS:
		return s->alloc_cps;
	case REPORT_ALLOC_BYTES:
		return (double)s->alloc_bytes;
	case REPORT_ALLOC_BLOCKS:
		return (double)s->alloc_q10 / 1024;
	case REPORT_TEMP_BLOCKS:
		return (double)s->temp_q10 / 1024;
	case REPORT_PEAK_BYTES:
		return (double)s->peak_bytes;
	case REPORT_RES_BYTES:
		return (double)s->res_bytes;
	case REPORT_UNTOUCHED_BYTES:
		return (double)s->live_bytes - (double)s->res_bytes - (double)s->swap_bytes;
	case REPORT_SWAP_BYTES:
		return (double)s->swap_bytes;
	case REPORT_FAULT_BYTES:
		return (double)s->fault_bytes;
	case REPORT_OLD_BYTES:
		return (double)s->old_bytes;
	case REPORT_DELTA_BYTES:
	case REPORT_VALUES:
		break;
	}
	return 0;
}

double report_error(const struct trace_stats *s, enum report_value v, double *ret_of)
{
	bool faults = v == REPORT_FAULT_BYTES;
	double var = faults ? s->fault_var : s->live_var;

	*ret_of = (double)(faults ? s->fault_bytes : s->live_bytes);
	return var > 0 ? sqrt(var) : 0;
}

bool report_value_is_bytes(enum report_value v)
{
	return (unsigned)v < REPORT_VALUES && values[v].bytes;
}

bool report_value_known(const struct view *view, enum report_value v)
{
	const struct trace_stats *s = &view->totals.s;

	switch (v) {
	case REPORT_RES_BYTES:
	case REPORT_UNTOUCHED_BYTES:
		return s->res_bytes || s->swap_bytes;
	case REPORT_SWAP_BYTES:
		return s->swap_bytes;
	case REPORT_FAULT_BYTES:
		return s->fault_bytes || view->info.faults;
	case REPORT_OLD_BYTES:
		return view->classes != NULL;
	default:
		return v < REPORT_VALUES;
	}
}

double report_site_value(const struct report_site *site, enum report_value v)
{
	return v == REPORT_DELTA_BYTES ? (double)site->delta : report_value_of(&site->s, v);
}

double report_cell_value(const struct report_cell *cell, enum report_value v)
{
	return v == REPORT_DELTA_BYTES ? (double)cell->delta : report_value_of(&cell->total, v);
}
