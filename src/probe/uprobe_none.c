/* A heaptop that was built without BPF. */
#include "probe/uprobe_ops.h"

#include "base/err.h"

static struct err *no_open(const struct uprobe_ctl *init, enum uprobe_way way, struct uprobe_kernel **ret)
{
	(void)init;
	(void)way;
	*ret = NULL;
	return err_new(ERR_UNSUPPORTED, "this heaptop was built without BPF");
}

const struct uprobe_ops uprobe_bpf_ops = {
	.open = no_open,
};
