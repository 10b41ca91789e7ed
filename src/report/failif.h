/*
 * Conditions for a build or test to fail on (--fail-if), judged on the last view of what was watched:
 *
 *	WHAT OP AMOUNT			"live>50M", "blocks >= 1000", "leaked>0", "growth>100K"
 *	WHAT(site~REGEX) OP AMOUNT	"live(site~parse)>1M": of the sites that match alone
 *	site~REGEX			there is such a site, and it holds memory
 *
 *	WHAT	live, blocks	bytes, blocks that are held at the end
 *		peak		bytes held at the process's peak
 *		leaked		bytes held at the end of a program that has ended: of one that runs it can't be said
 *		growth		bytes a second that live bytes grew by over the second half of the time watched: what
 *				is allocated once at the start doesn't count. Not by site
 *	OP	> >= < <=
 *	AMOUNT	50M, 1.5G, 4096: a size as everywhere; of blocks a plain count: 1000
 *	REGEX	an extended regular expression, case-sensitive, over a site's function, file and module
 */
#ifndef HEAPTOP_REPORT_FAILIF_H
#define HEAPTOP_REPORT_FAILIF_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct failif;
struct report;

/* ERR_BAD_INPUT names what is wrong. */
struct err *failif_parse(const char *text, struct failif **ret);
void failif_destroy(struct failif *f);	/* accepts NULL */

enum failif_verdict {
	FAILIF_FINE,
	FAILIF_TRUE,
	FAILIF_UNKNOWN,		/* it can't be judged: the program still runs, or there are no points */
};

/*
 * Is it true of the report's view? *ret_text, the caller's to free: one line, which condition and what the value
 * is ("live>50M: live is 61.2M"), or why it can't be said. The report's filter doesn't matter where no site is
 * named; else set none.
 */
enum failif_verdict failif_judge(const struct failif *f, struct report *report, char **ret_text);

#endif
