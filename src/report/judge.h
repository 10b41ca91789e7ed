/*
 * One plain sentence on a row, with its reason: leak, growth, churn, steady. The marks in front of sites follow the
 * same rules, and all rules are here. Pure functions.
 *
 * In this order, the first that fits:
 *  few		an estimate from fewer than 10 samples: no judgement
 *  leak	growing (judge_growing; with less than 4 values of a trend by the rates), and at least half is older than a minute, or not a tenth was ever freed
 *  growing	growing otherwise: part of it gets freed, a cache or a queue that fills would look like that
 *  churn	of 10 blocks and more over 90% were freed within 10 ms
 *  nothing	nothing is held: never was, or all has been freed
 *  left	the program has ended, or of several those that held it: it was never freed
 *  held	a snapshot, which has no trend: how old it is and how much of it was ever freed
 *  shrinking	growing the other way round
 *  steady	nothing has been allocated for a second at least, or (not known) for as long as rates look back
 *  turnover	allocates and frees, about as much of the one as of the other
 */
#ifndef HEAPTOP_REPORT_JUDGE_H
#define HEAPTOP_REPORT_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

struct report_parts;

enum verdict {
	VERDICT_FEW, VERDICT_LEAK, VERDICT_GROWING, VERDICT_CHURN, VERDICT_NOTHING, VERDICT_LEFT, VERDICT_HELD,
	VERDICT_SHRINKING, VERDICT_STEADY, VERDICT_TURNOVER
};

struct judge_facts {
	const struct trace_stats *s;
	double se;			/* standard error of live_bytes; 0: exact */
	const uint64_t *trend;		/* live bytes at even steps, oldest first */
	size_t ntrend;
	double seconds;			/* from the first to the last of them */
	const struct report_parts *parts;	/* or NULL, or not known */
	enum view_state state;
};

#define JUDGE_TEXT 160
/* The sentence into `buf`, without a full stop. */
enum verdict judge(const struct judge_facts *facts, char buf[JUDGE_TEXT]);

/* Live bytes rose most of the time and by more than noise: at least 2% and 4 KiB, and two standard errors. */
bool judge_growing(const uint64_t *trend, size_t n, double se);
/* Whatever the trend was: nothing of it goes on, or of the part that does nothing is allocated just now. */
bool judge_over(const struct trace_stats *s);
/* More than 90% of 10 blocks or more were freed within 10 ms. */
bool judge_temporary(const struct trace_stats *s);
/* An estimate from fewer than 10 samples; exact sums are sure however few. */
bool judge_unsure(const struct trace_stats *s);

#endif
