/* See judge.h. */
#include "report/judge.h"

#include <stdio.h>

#include "base/text.h"
#include "report/parts.h"

#define SAMPLES 10u
#define OLD 0.5			/* of what grows, older than a minute: a leak */
#define PLAIN 1024		/* bytes a second, and more than half of what it allocates */
#define FREED 0.1		/* or less than this of it was ever freed */

/* Went that way most of the time, and by more than noise. */
static bool goes(bool upwards, const uint64_t *trend, size_t n, double se)
{
	size_t with = 0, against = 0;

	if (n < 4)
		return false;
	uint64_t first = trend[0], last = trend[n - 1];
	for (size_t i = 1; i < n; i++) {
		with += upwards ? trend[i] > trend[i - 1] : trend[i] < trend[i - 1];
		against += upwards ? trend[i] < trend[i - 1] : trend[i] > trend[i - 1];
	}
	if (upwards ? last <= first : last >= first)
		return false;
	uint64_t by = upwards ? last - first : first - last;
	return by >= 4096 && by >= first / 50 && with >= 3 * against && with * 2 >= n && (double)by > 2 * se;
}

bool judge_growing(const uint64_t *trend, size_t n, double se)
{
	return goes(true, trend, n, se);
}

bool judge_over(const struct trace_stats *s)
{
	return s->over_bytes && (s->over_bytes >= s->live_bytes || s->alloc_bps <= 0);
}

bool judge_temporary(const struct trace_stats *s)
{
	return s->alloc_q10 >= 10 * 1024 && s->temp_q10 > s->alloc_q10 / 10 * 9;
}

bool judge_unsure(const struct trace_stats *s)
{
	return s->samples < SAMPLES && s->live_samples < SAMPLES && (s->alloc_var > 0 || s->live_var > 0);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static unsigned percent(double part)
{
	return (unsigned)(part * 100 + 0.5);
}

/* How a second's change is said: "890.0K/s". */
static const char *rate(char buf[TEXT_NUMBER + 2], double bytes)
{
	char number[TEXT_NUMBER];

	snprintf(buf, TEXT_NUMBER + 2, "%s/s", text_bytes(number, bytes > 0 ? (uint64_t)(bytes + 0.5) : 0));
	return buf;
}

static const char *age_text(unsigned age_class)
{
	static const char *const texts[CLASS_AGES] = {
		"1 ms", "10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "",
	};

	return texts[age_class];
}

/* "60% older than 1 min", or of younger ones how young most of it is; "" if nobody has looked. */
static void age_reason(const struct report_parts *parts, char *buf, size_t len)
{
	*buf = '\0';
	if (!parts || !parts->known || !parts->total.bytes)
		return;
	double old = report_parts_older(parts, CLASS_AGE_MINUTE);
	unsigned k = CLASS_AGE_MINUTE - 1;
	if (old >= OLD) {
		snprintf(buf, len, "%u%% older than 1 min", percent(old));
		return;
	}
	while (k > 0 && 1 - report_parts_older(parts, k) >= 0.9)
		k--;
	snprintf(buf, len, "%u%% younger than %s", percent(1 - report_parts_older(parts, k + 1)), age_text(k));
}

static void freed_reason(const struct trace_stats *s, char *buf, size_t len)
{
	double freed = share(s->free_bytes, s->alloc_bytes);

	if (!s->free_bytes)
		snprintf(buf, len, "nothing of it ever freed");
	else if (percent(freed) < 1)
		snprintf(buf, len, "less than 1%% ever freed");
	else
		snprintf(buf, len, "%u%% of what it allocated freed", percent(freed));
}

/* Bytes a second by which it is growing; 0: it isn't. */
static double growing_by(const struct judge_facts *f)
{
	/* seen for too short a time: by what it allocated and freed in the last two seconds, if that is plain */
	if (f->ntrend < 4) {
		double net = (double)f->s->alloc_bps - (double)f->s->free_bps;
		return net >= PLAIN && net > (double)f->s->alloc_bps / 2 ? net : 0;
	}
	if (!judge_growing(f->trend, f->ntrend, f->se))
		return 0;
	return (double)(f->trend[f->ntrend - 1] - f->trend[0]) / (f->seconds > 0 ? f->seconds : 1);
}

static enum verdict growth(const struct judge_facts *f, double grew, char buf[JUDGE_TEXT])
{
	const struct trace_stats *s = f->s;
	char per_second[TEXT_NUMBER + 2], why[64];
	bool old = f->parts && f->parts->known && report_parts_older(f->parts, CLASS_AGE_MINUTE) >= OLD;

	rate(per_second, grew);
	if (old)
		age_reason(f->parts, why, sizeof(why));
	else
		freed_reason(s, why, sizeof(why));
	if (old || share(s->free_bytes, s->alloc_bytes) < FREED) {
		snprintf(buf, JUDGE_TEXT, "growing %s, %s: looks like a leak", per_second, why);
		return VERDICT_LEAK;
	}
	snprintf(buf, JUDGE_TEXT, "growing %s, but %s: may be a cache or a queue that fills", per_second, why);
	return VERDICT_GROWING;
}

static bool is_over(enum view_state state)
{
	return state == VIEW_SNAPSHOT || view_state_over(state);
}

/* The youngest class with anything in it; 0 also if nobody has looked. */
static unsigned youngest(const struct report_parts *parts)
{
	unsigned k = 0;

	if (!parts || !parts->known || !parts->fresh)
		return 0;
	while (k + 1 < CLASS_AGES && !parts->ages[k].samples)
		k++;
	return k;
}

static enum verdict held(const struct judge_facts *f, char buf[JUDGE_TEXT])
{
	char age[64], freed[64];

	age_reason(f->parts, age, sizeof(age));
	freed_reason(f->s, freed, sizeof(freed));
	snprintf(buf, JUDGE_TEXT, "%s%s%s", age, *age ? ", " : "", freed);
	return VERDICT_HELD;
}

enum verdict judge(const struct judge_facts *f, char buf[JUDGE_TEXT])
{
	const struct trace_stats *s = f->s;
	char a[TEXT_NUMBER + 2], b[TEXT_NUMBER + 2];
	unsigned since = youngest(f->parts);

	if (judge_unsure(s)) {
		unsigned n = (unsigned)s->samples;
		snprintf(buf, JUDGE_TEXT, "%u sample%s only: too few to judge by", n, n == 1 ? "" : "s");
		return VERDICT_FEW;
	}
	double grew = is_over(f->state) || judge_over(s) ? 0 : growing_by(f);
	if (grew > 0)
		return growth(f, grew, buf);
	if (judge_temporary(s)) {
		double temp = share(s->temp_q10, s->alloc_q10);
		snprintf(buf, JUDGE_TEXT, "%u%% of its blocks freed within 10 ms%s%s: churn", percent(temp),
			 s->alloc_bps >= 1 ? ", " : "", s->alloc_bps >= 1 ? rate(a, s->alloc_bps) : "");
		return VERDICT_CHURN;
	}
	if (!s->live_bytes) {
		if (!s->alloc_q10 && s->fault_bytes)
			snprintf(buf, JUDGE_TEXT, "was the first to touch %s of memory, allocates none itself", text_bytes(b, s->fault_bytes));
		else
			snprintf(buf, JUDGE_TEXT, "%s", s->alloc_q10 ? "all of it has been freed" : "nothing allocated here");
		return VERDICT_NOTHING;
	}
	if (f->state == VIEW_EXITED) {
		snprintf(buf, JUDGE_TEXT, "%s still held when the program ended", text_bytes(b, s->live_bytes));
		return VERDICT_LEFT;
	}
	if (is_over(f->state))
		return held(f, buf);
	if (s->over_bytes >= s->live_bytes) {
		snprintf(buf, JUDGE_TEXT, "%s still held when its process ended or was let go", text_bytes(b, s->live_bytes));
		return VERDICT_LEFT;
	}
	if (goes(false, f->trend, f->ntrend, f->se)) {
		double shrank = (double)(f->trend[0] - f->trend[f->ntrend - 1]);
		snprintf(buf, JUDGE_TEXT, "shrinking %s", rate(a, shrank / (f->seconds > 0 ? f->seconds : 1)));
		return VERDICT_SHRINKING;
	}
	if (since > 3 || s->alloc_cps <= 0) {
		if (since > 3)
			snprintf(buf, JUDGE_TEXT, "steady: nothing new for %s", age_text(since - 1));
		else
			snprintf(buf, JUDGE_TEXT, "steady: nothing allocated just now");
		return VERDICT_STEADY;
	}
	snprintf(buf, JUDGE_TEXT, "turns over: allocates %s, frees %s", rate(a, s->alloc_bps), rate(b, s->free_bps));
	return VERDICT_TURNOVER;
}
