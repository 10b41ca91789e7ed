/*
 * Why a program's RSS is larger than the profile's live bytes, in parts that add up to it exactly. Pure.
 *
 * The system's counters are the whole: RSS = RssAnon + RssFile + RssShmem. Of the anonymous memory the
 * stacks, the modules' data and heaptop's own are counted page by page; live blocks are an estimate where
 * there was sampling. What is left is memory of the heap that no live block covers: what was there before heaptop
 * attached and hasn't gone, what allocators keep for later or lose between blocks, and memory mapped by hand. As that
 * is a rest, it takes up the estimate's error, and whatever changed between the looks at one and the other.
 */
#ifndef HEAPTOP_REPORT_RSS_H
#define HEAPTOP_REPORT_RSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

enum rss_part {
	RSS_TRACKED,	/* resident bytes of live blocks */
	RSS_OLDER,	/* older than the attach, at most: what allocators have used again since is in it */
	RSS_SLACK,	/* allocators' own, free and lost between blocks; mapped by hand */
	RSS_FILES,	/* code and other files that are mapped */
	RSS_SHARED,	/* shared memory */
	RSS_DATA,	/* modules' data */
	RSS_STACKS,
	RSS_AGENT,	/* heaptop's own: agent, rings, patched code */
	RSS_PARTS
};

struct rss {
	uint64_t total;		/* the sum of the parts; 0: nothing is known */
	uint64_t part[RSS_PARTS];
	double error;		/* standard error of RSS_TRACKED, bytes, and so of the rest; 0: exact */
	uint64_t live;		/* tracked bytes live, of which */
	uint64_t swapped, untouched;	/* were swapped out; have never been touched */
};

/* `live`: of the whole view, without any filter. */
void rss_split(const struct view *view, struct rss *ret);

/* "tracked", for batch and keys; "live blocks that heaptop has seen", for people. */
const char *rss_part_name(enum rss_part part);
const char *rss_part_title(enum rss_part part);

/* The one thing to say about it, one sentence into buf; false: there is none. */
bool rss_judge(const struct rss *rss, bool attached, char *buf, size_t len);

#endif
