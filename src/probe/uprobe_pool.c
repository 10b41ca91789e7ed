/* What is open in the kernel, and serves one process after the other; see uprobe_pool.h. */
#include "probe/uprobe_pool.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "probe/uprobe_ops.h"

struct uprobe_pool {
	struct uprobe_kernel *spare[UPROBE_POOL_SPARE];
	size_t nspare, opened;
	enum uprobe_way way;	/* the best to be tried */
	bool known;		/* it is the best that there is, and why there is none better: */
	char why[sizeof(((struct uprobe_kernel *)0)->why)];
};

struct uprobe_pool *uprobe_pool_create(enum uprobe_way best)
{
	struct uprobe_pool *pool = xcalloc(1, sizeof(*pool));

	pool->way = best;
	return pool;
}

void uprobe_pool_destroy(struct uprobe_pool *pool)
{
	if (!pool)
		return;
	while (pool->nspare)
		uprobe_kernel_close(pool->spare[--pool->nspare]);
	free(pool);
}

static void note_way(struct uprobe_pool *pool, struct uprobe_kernel *k)
{
	/* where there is room for less now than there was, the next one tries again */
	if (pool->known && k->way == pool->way) {
		snprintf(k->why, sizeof(k->why), "%s", pool->why);
		return;
	}
	if (pool->known)
		return;
	pool->way = k->way;
	pool->known = true;
	snprintf(pool->why, sizeof(pool->why), "%s", k->why);
}

struct err *uprobe_pool_open(struct uprobe_pool *pool, const struct uprobe_ctl *init, struct uprobe_kernel **ret)
{
	if (pool->nspare) {
		*ret = pool->spare[--pool->nspare];
		(*ret)->ops->begin(*ret, init);
		return NULL;
	}
	double began = monotonic_seconds();
	struct err *err = uprobe_kernel_open(init, pool->way, ret);
	if (err)
		return err;
	log_line("%s: opened in the kernel in %.0f ms, number %zu", uprobe_way_name((*ret)->way),
		 (monotonic_seconds() - began) * 1e3, ++pool->opened);
	note_way(pool, *ret);
	return NULL;
}

void uprobe_pool_close(struct uprobe_pool *pool, struct uprobe_kernel *k)
{
	if (!k)
		return;
	/* one of a way that was taken for want of a better is closed: so the better is tried again */
	if (pool->nspare < UPROBE_POOL_SPARE && k->way == pool->way && k->ops->recycle && k->ops->recycle(k))
		pool->spare[pool->nspare++] = k;
	else
		uprobe_kernel_close(k);
}

size_t uprobe_pool_opened(const struct uprobe_pool *pool)
{
	return pool->opened;
}
