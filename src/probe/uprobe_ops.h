/*
 * What stands behind uprobe_kernel.h: one ops table a way of having the kernel tell of calls. Each function as its namesake
 * there. open() makes what begins with a struct uprobe_kernel, of which it sets `ctl`; uprobe_kernel.c sets the rest.
 */
#ifndef HEAPTOP_PROBE_UPROBE_OPS_H
#define HEAPTOP_PROBE_UPROBE_OPS_H

#include "probe/uprobe_kernel.h"

struct uprobe_ops {
	struct err *(*open)(const struct uprobe_ctl *init, enum uprobe_way way, struct uprobe_kernel **ret);
	struct err *(*attach)(struct uprobe_kernel *k, pid_t pid, int fd, const struct uprobe_point *points,
			      size_t nfrees, size_t n);
	void (*detach)(struct uprobe_kernel *k);
	size_t (*read)(struct uprobe_kernel *k, size_t max, uprobe_record_fn fn, void *ctx);
	void (*counts)(struct uprobe_kernel *k, struct uprobe_counts *ret);
	void (*close)(struct uprobe_kernel *k);		/* takes out all probes first */
	/*
	 * Take out all probes and all that the process has left, so that another can be served; false: that can't be done, it
	 * is to be closed. Then begin() is as open() was. NULL: never.
	 */
	bool (*recycle)(struct uprobe_kernel *k);
	void (*begin)(struct uprobe_kernel *k, const struct uprobe_ctl *init);
	bool passes;		/* records are there for their call only */
	/* ns that a hit costs the target at an instruction that the kernel emulates, at one that it steps over, at a return */
	unsigned hit_ns, stepped_ns, return_ns;
};

struct uprobe_kernel {
	const struct uprobe_ops *ops;
	enum uprobe_way way;
	struct uprobe_ctl *ctl;
	char why[128];		/* not a better way */
};

/* Two ways by BPF; in a heaptop that was built without, open() says so. And the one that needs none. */
extern const struct uprobe_ops uprobe_bpf_ops, uprobe_hits_ops;

#endif
