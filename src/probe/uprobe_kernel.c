/* Which way uprobes go, and that way's functions; see uprobe_kernel.h. */
#include "probe/uprobe_kernel.h"

#include <stdio.h>

#include "base/err.h"
#include "probe/uprobe_ops.h"

static const struct {
	const char *name;
	const struct uprobe_ops *ops;
} ways[UPROBE_WAYS] = {
	[UPROBE_WAY_SESSION] = { "BPF session uprobes", &uprobe_bpf_ops },
	[UPROBE_WAY_MULTI] = { "BPF uprobes at entries and returns", &uprobe_bpf_ops },
	[UPROBE_WAY_HITS] = { "uprobes, every hit told", &uprobe_hits_ops },
};

const char *uprobe_way_name(enum uprobe_way way)
{
	return ways[way].name;
}

struct err *uprobe_kernel_open(const struct uprobe_ctl *init, enum uprobe_way best, struct uprobe_kernel **ret)
{
	char why[sizeof((*ret)->why)] = "";
	struct err *refused = NULL;

	*ret = NULL;
	if (best > UPROBE_WAY_SESSION)
		snprintf(why, sizeof(why), "as asked, not %s", ways[best - 1].name);
	for (enum uprobe_way way = best; way < UPROBE_WAYS; way++) {
		struct uprobe_kernel *k;
		struct err *err = ways[way].ops->open(init, way, &k);

		if (!err) {
			k->ops = ways[way].ops;
			k->way = way;
			snprintf(k->why, sizeof(k->why), "%s", why);
			*ret = k;
			err_free(refused);
			return NULL;
		}
		snprintf(why, sizeof(why), "%s", err->code == ERR_DENIED ? "BPF isn't permitted" : err->text);
		/* a right that is missing for a better way can be had; what the kernel lacks can't */
		if (refused && refused->code == ERR_DENIED) {
			err_free(err);
		} else {
			err_free(refused);
			refused = err;
		}
	}
	return refused;
}

void uprobe_kernel_close(struct uprobe_kernel *k)
{
	if (k)
		k->ops->close(k);
}

enum uprobe_way uprobe_kernel_way(const struct uprobe_kernel *k)
{
	return k->way;
}

const char *uprobe_kernel_why(const struct uprobe_kernel *k)
{
	return k->why;
}

struct uprobe_ctl *uprobe_kernel_ctl(struct uprobe_kernel *k)
{
	return k->ctl;
}

struct err *uprobe_kernel_attach(struct uprobe_kernel *k, pid_t pid, int fd, const struct uprobe_point *points, size_t nfrees,
				 size_t n)
{
	return k->ops->attach(k, pid, fd, points, nfrees, n);
}

void uprobe_kernel_detach(struct uprobe_kernel *k)
{
	k->ops->detach(k);
}

size_t uprobe_kernel_read(struct uprobe_kernel *k, size_t max, uprobe_record_fn fn, void *ctx)
{
	return k->ops->read(k, max, fn, ctx);
}

bool uprobe_kernel_passes(const struct uprobe_kernel *k)
{
	return k->ops->passes;
}

void uprobe_kernel_counts(struct uprobe_kernel *k, struct uprobe_counts *ret)
{
	k->ops->counts(k, ret);
}

uint64_t uprobe_kernel_cost(const struct uprobe_kernel *k, const struct uprobe_counts *counts)
{
	return counts->hits * k->ops->hit_ns + counts->stepped * k->ops->stepped_ns + counts->returns * k->ops->return_ns;
}
