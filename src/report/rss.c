/* The parts of RSS; see rss.h. */
#include "report/rss.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"

static const struct {
	const char *name, *title;
} parts[RSS_PARTS] = {
	[RSS_TRACKED] = { "tracked", "live blocks seen by heaptop" },
	[RSS_OLDER] = { "older", "older than the attach, at most" },
	[RSS_SLACK] = { "slack", "allocators' slack, unseen mappings" },
	[RSS_FILES] = { "files", "mapped files: code, libraries" },
	[RSS_SHARED] = { "shared", "shared memory" },
	[RSS_DATA] = { "data", "data of program and libraries" },
	[RSS_STACKS] = { "stacks", "threads' stacks" },
	[RSS_AGENT] = { "agent", "heaptop's own" },
};

const char *rss_part_name(enum rss_part part)
{
	return part < RSS_PARTS ? parts[part].name : NULL;
}

const char *rss_part_title(enum rss_part part)
{
	return part < RSS_PARTS ? parts[part].title : NULL;
}

/* As much of what is wanted as is left. */
static uint64_t take(uint64_t *left, uint64_t wanted)
{
	uint64_t got = wanted < *left ? wanted : *left;

	*left -= got;
	return got;
}

void rss_split(const struct view *view, struct rss *ret)
{
	const struct view_memory *m = &view->info.memory;
	const struct trace_stats *s = &view->totals.s;
	uint64_t anon = m->anon, file = m->file, shmem = m->shmem;

	*ret = (struct rss){
		.live = s->live_bytes,
		.swapped = s->swap_bytes,
	};
	if (s->live_bytes > s->res_bytes + s->swap_bytes)
		ret->untouched = s->live_bytes - s->res_bytes - s->swap_bytes;
	/* Counters may be anything in a snapshot: they must add up all the same. */
	if (anon > UINT64_MAX / 4 || file > UINT64_MAX / 4 || shmem > UINT64_MAX / 4)
		return;
	ret->total = anon + file + shmem;
	ret->part[RSS_STACKS] = take(&anon, m->stacks);
	ret->part[RSS_AGENT] = take(&anon, m->agent_anon) + take(&shmem, m->agent_shmem);
	ret->part[RSS_DATA] = take(&anon, m->data);
	/* shared mappings that the program asked for count as RssShmem, or as RssFile */
	uint64_t shared = take(&shmem, m->tracked_file);
	ret->part[RSS_TRACKED] = take(&anon, m->tracked_anon) + shared + take(&file, m->tracked_file - shared);
	ret->part[RSS_OLDER] = take(&anon, m->older);
	ret->part[RSS_SLACK] = anon;
	ret->part[RSS_FILES] = file;
	ret->part[RSS_SHARED] = shmem;
	ret->error = m->tracked_var > 0 ? sqrt(m->tracked_var) : 0;
}

static unsigned percent(uint64_t part, uint64_t all)
{
	return all ? (unsigned)((double)part * 100 / (double)all + 0.5) : 0;
}

bool rss_judge(const struct rss *rss, bool attached, char *buf, size_t len)
{
	static const uint64_t large = 1 << 20;	/* below that nothing is worth a sentence */
	char a[TEXT_NUMBER], b[TEXT_NUMBER];
	const uint64_t *part = rss->part;

	if (!rss->total)
		return false;
	if (attached && percent(part[RSS_OLDER], rss->total) >= 30)
		snprintf(buf, len, "%u%% of RSS may be older than the attach: start the program under heaptop to see it all",
			 percent(part[RSS_OLDER], rss->total));
	else if (rss->swapped > large && rss->swapped > rss->live / 10)
		snprintf(buf, len, "%s of live blocks is swapped out: RSS is smaller than what the program holds",
			 text_bytes(a, rss->swapped));
	else if (rss->untouched > large && rss->untouched > rss->live / 4)
		snprintf(buf, len, "%s of %s live bytes was never touched, and takes no memory",
			 text_bytes(a, rss->untouched), text_bytes(b, rss->live));
	else if (part[RSS_SLACK] > large && percent(part[RSS_SLACK], rss->total) >= 25)
		snprintf(buf, len, part[RSS_SLACK] > part[RSS_TRACKED]
			 ? "%u%% of RSS is heap without live blocks: freed and kept by the allocator, or mapped by hand (--mmap shows that)"
			 : "%u%% of RSS is the allocator's: free blocks it keeps, and what lies between blocks",
			 percent(part[RSS_SLACK], rss->total));
	else if (part[RSS_AGENT] > large && percent(part[RSS_AGENT], rss->total) >= 25)
		snprintf(buf, len, "%s of RSS is heaptop's own, and goes with it", text_bytes(a, part[RSS_AGENT]));
	else if (percent(part[RSS_FILES] + part[RSS_SHARED], rss->total) >= 60)
		snprintf(buf, len, "%u%% of RSS is files and shared memory, which no heap profile shows",
			 percent(part[RSS_FILES] + part[RSS_SHARED], rss->total));
	else
		return false;
	return true;
}
