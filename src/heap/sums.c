/* Exact sums; see sums.h. */
#include "heap/sums.h"

#include <string.h>

#define VAR_ONE 0x1p16
#define VAR_MAX 0x1p90
#define RATE_ONE 0x1p20
#define RATE_MAX 0x1p40

/* Most are 0 where every call is counted, and most rates are: then nothing is converted. */
static inline unsigned __int128 var_of(double v)
{
	if (!(v > 0))
		return 0;
	return (unsigned __int128)((v < VAR_MAX ? v : VAR_MAX) * VAR_ONE + 0.5);
}

static inline uint64_t rate_of(float rate)
{
	double v = rate;

	if (!(v > 0))
		return 0;
	return (uint64_t)((v < RATE_MAX ? v : RATE_MAX) * RATE_ONE + 0.5);
}

void sums_add(struct sums *sums, const struct trace_stats *s)
{
	uint64_t counts[SUMS_COUNTS];

	memcpy(counts, s, sizeof(counts));
	for (int i = 0; i < SUMS_COUNTS; i++)
		sums->counts[i] += counts[i];
	sums->vars[0] += var_of(s->live_var);
	sums->vars[1] += var_of(s->alloc_var);
	sums->vars[2] += var_of(s->fault_var);
	sums->rates[0] += rate_of(s->alloc_bps);
	sums->rates[1] += rate_of(s->alloc_cps);
	sums->rates[2] += rate_of(s->free_bps);
	sums->rates[3] += rate_of(s->free_cps);
}

void sums_sub(struct sums *sums, const struct trace_stats *s)
{
	uint64_t counts[SUMS_COUNTS];

	memcpy(counts, s, sizeof(counts));
	for (int i = 0; i < SUMS_COUNTS; i++)
		sums->counts[i] -= counts[i];
	sums->vars[0] -= var_of(s->live_var);
	sums->vars[1] -= var_of(s->alloc_var);
	sums->vars[2] -= var_of(s->fault_var);
	sums->rates[0] -= rate_of(s->alloc_bps);
	sums->rates[1] -= rate_of(s->alloc_cps);
	sums->rates[2] -= rate_of(s->free_bps);
	sums->rates[3] -= rate_of(s->free_cps);
}

void sums_merge(struct sums *dst, const struct sums *src)
{
	for (int i = 0; i < SUMS_COUNTS; i++)
		dst->counts[i] += src->counts[i];
	for (int i = 0; i < SUMS_VARS; i++)
		dst->vars[i] += src->vars[i];
	for (int i = 0; i < 4; i++)
		dst->rates[i] += src->rates[i];
}

struct trace_stats sums_get(const struct sums *sums)
{
	struct trace_stats ret = {
		.live_var = (double)sums->vars[0] / VAR_ONE,
		.alloc_var = (double)sums->vars[1] / VAR_ONE,
		.fault_var = (double)sums->vars[2] / VAR_ONE,
		.alloc_bps = (float)((double)sums->rates[0] / RATE_ONE),
		.alloc_cps = (float)((double)sums->rates[1] / RATE_ONE),
		.free_bps = (float)((double)sums->rates[2] / RATE_ONE),
		.free_cps = (float)((double)sums->rates[3] / RATE_ONE),
	};

	memcpy(&ret, sums->counts, sizeof(sums->counts));
	return ret;
}
