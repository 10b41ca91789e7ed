/* A heaptop that was built without BPF: uprobe_kernel.h's functions, none of which gets that far but the first. */
#include "probe/uprobe_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char *uprobe_way_name(enum uprobe_way way)
{
	(void)way;
	return "uprobes";
}

struct err *uprobe_kernel_open(const struct uprobe_ctl *init, enum uprobe_way best, struct uprobe_kernel **ret)
{
	(void)init;
	(void)best;
	*ret = NULL;
	return err_new(ERR_UNSUPPORTED, "this heaptop was built without BPF: --probe=uprobe takes one that was built with "
		       "libbpf and clang (configure --with-bpf=yes)");
}

void uprobe_kernel_close(struct uprobe_kernel *k)
{
	(void)k;
}

enum uprobe_way uprobe_kernel_way(const struct uprobe_kernel *k)
{
	(void)k;
	return UPROBE_WAY_MULTI;
}

const char *uprobe_kernel_why(const struct uprobe_kernel *k)
{
	(void)k;
	return "";
}

struct uprobe_ctl *uprobe_kernel_ctl(struct uprobe_kernel *k)
{
	(void)k;
	abort();	/* there is no uprobe_kernel */
}

struct err *uprobe_kernel_attach(struct uprobe_kernel *k, pid_t pid, int fd, const struct uprobe_point *points, size_t n,
				 bool frees)
{
	(void)k;
	(void)pid;
	(void)fd;
	(void)points;
	(void)n;
	(void)frees;
	return NULL;
}

void uprobe_kernel_detach(struct uprobe_kernel *k)
{
	(void)k;
}

size_t uprobe_kernel_read(struct uprobe_kernel *k, size_t max, uprobe_record_fn fn, void *ctx)
{
	(void)k;
	(void)max;
	(void)fn;
	(void)ctx;
	return 0;
}

void uprobe_kernel_counts(struct uprobe_kernel *k, struct uprobe_counts *ret)
{
	(void)k;
	memset(ret, 0, sizeof(*ret));
}
