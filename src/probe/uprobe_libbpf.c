/* uprobes by BPF: maps, programs and links. Through libbpf, but for attaching, which libbpf 1.1 has no word for. */
#include "probe/uprobe_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/mem.h"
#include "probe/uprobe_ring.h"
#include "target/bpf.h"

/* The object file, in the binary: bpf.S. */
extern const char uprobe_bpf_start[], uprobe_bpf_end[];

/* include/uapi/linux/bpf.h; Debian 12's doesn't have them yet. */
enum {
	ATTACH_UPROBE_MULTI = 48,	/* BPF_TRACE_UPROBE_MULTI, Linux 6.6 */
	ATTACH_UPROBE_SESSION = 57,	/* BPF_TRACE_UPROBE_SESSION, Linux 6.13 */
	FLAG_RETURN = 1,		/* BPF_F_UPROBE_MULTI_RETURN */
};
struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

struct bpf_kernel {
	struct uprobe_kernel base;	/* first; its ctl is mapped */
	struct bpf_object *object;
	struct uprobe_ring ring;
	int counts_fd, live_fd;
	bool filled;		/* addresses may have gone into `live` */
	int entry, back, session;	/* programs; -1: not loaded. Belong to `object` */
	int *links;
	size_t nlinks, links_cap;
	bool sessions;
	struct uprobe_counts *each;	/* one a processor */
	int ncpus;
};

static struct bpf_kernel *bpf_of(struct uprobe_kernel *k)
{
	return (struct bpf_kernel *)k;
}

static int program_fd(struct bpf_object *object, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, name);

	return p && bpf_program__autoload(p) ? bpf_program__fd(p) : -1;
}

static void choose(struct bpf_object *object, const char *name, bool wanted, int attach_type)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, name);

	bpf_program__set_autoload(p, wanted);
	bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)attach_type);
}

static int load(struct bpf_kernel *k)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "heaptop");

	k->object = bpf_object__open_mem(uprobe_bpf_start, (size_t)(uprobe_bpf_end - uprobe_bpf_start), &opts);
	if (!k->object)
		return -errno;
	choose(k->object, "at_session", k->sessions, ATTACH_UPROBE_SESSION);
	choose(k->object, "at_entry", true, ATTACH_UPROBE_MULTI);
	choose(k->object, "at_return", !k->sessions, ATTACH_UPROBE_MULTI);
	int error = bpf_object__load(k->object);
	if (error) {
		bpf_object__close(k->object);
		k->object = NULL;
	}
	return error;
}

static struct err *refused(enum uprobe_way way, int error)
{
	if (error == -EPERM || error == -EACCES)
		return err_new(ERR_DENIED, "--probe=uprobe takes CAP_BPF and CAP_PERFMON: run heaptop as root, or: "
			       "sudo setcap cap_bpf,cap_perfmon+ep heaptop");
	return err_new(ERR_UNSUPPORTED, "no %s, which take Linux %s: %s", uprobe_way_name(way),
		       way == UPROBE_WAY_SESSION ? "6.13" : "6.6 with BTF", strerror(-error));
}

static void bpf_begin(struct uprobe_kernel *base, const struct uprobe_ctl *init)
{
	struct bpf_kernel *k = bpf_of(base);
	unsigned use = base->ctl->use + 1;

	*base->ctl = *init;
	base->ctl->use = use;
	k->filled = !init->free_all;
}

static struct err *open_maps(struct bpf_kernel *k, const struct uprobe_ctl *init)
{
	int ctl = bpf_object__find_map_fd_by_name(k->object, "ctl");
	int ring = bpf_object__find_map_fd_by_name(k->object, "ring");
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, ctl, 0);

	if (page == MAP_FAILED)
		return err_errno(errno, "the kernel doesn't lend its control block");
	k->base.ctl = page;
	bpf_begin(&k->base, init);
	k->live_fd = bpf_object__find_map_fd_by_name(k->object, "live");
	k->counts_fd = bpf_object__find_map_fd_by_name(k->object, "counts");
	k->ncpus = libbpf_num_possible_cpus();
	if (k->ncpus < 1)
		return err_errno(-k->ncpus, "the number of processors isn't known");
	k->each = xcalloc((size_t)k->ncpus, sizeof(*k->each));
	int errnum = uprobe_ring_map(&k->ring, ring, UPROBE_RING_BYTES);
	return errnum ? err_errno(errnum, "the kernel's ring of records can't be mapped") : NULL;
}

static void bpf_detach(struct uprobe_kernel *base)
{
	struct bpf_kernel *k = bpf_of(base);

	for (size_t i = 0; i < k->nlinks; i++)
		close(k->links[i]);
	k->nlinks = 0;
}

static void bpf_close(struct uprobe_kernel *base)
{
	struct bpf_kernel *k = bpf_of(base);

	bpf_detach(base);
	uprobe_ring_unmap(&k->ring);
	if (base->ctl)
		munmap(base->ctl, (size_t)sysconf(_SC_PAGESIZE));
	bpf_object__close(k->object);
	free(k->each);
	free(k->links);
	free(k);
}

static struct err *bpf_open(const struct uprobe_ctl *init, enum uprobe_way way, struct uprobe_kernel **ret)
{
	struct bpf_kernel *k = xcalloc(1, sizeof(*k));

	bpf_say_to_log();
	k->sessions = way == UPROBE_WAY_SESSION;
	int error = load(k);
	if (error) {
		bpf_close(&k->base);
		return refused(way, error);
	}
	k->session = program_fd(k->object, "at_session");
	k->entry = program_fd(k->object, "at_entry");
	k->back = program_fd(k->object, "at_return");
	struct err *err = open_maps(k, init);
	if (err) {
		bpf_close(&k->base);
		return err;
	}
	*ret = &k->base;
	return NULL;
}

static struct err *attach(struct bpf_kernel *k, int program, int type, unsigned flags, pid_t pid, int fd,
			  const uint64_t *offsets, const uint64_t *cookies, size_t n)
{
	char path[32];
	struct link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)program, .attach_type = (uint32_t)type,
		.path = (uintptr_t)path, .offsets = (uintptr_t)offsets, .cookies = (uintptr_t)cookies,
		.cnt = (uint32_t)n, .multi_flags = flags, .pid = (uint32_t)pid,
	};

	/* the file itself, whatever its name leads to by now */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (link < 0)
		return err_errno(errno, "the kernel takes no uprobes there");
	VEC_GROW(k->links, k->nlinks, k->links_cap);
	k->links[k->nlinks++] = link;
	return NULL;
}

static struct err *bpf_attach(struct uprobe_kernel *base, pid_t pid, int fd, const struct uprobe_point *points, size_t nfrees,
			      size_t n)
{
	struct bpf_kernel *k = bpf_of(base);
	CLEANUP_FREE uint64_t *offsets = xcalloc(n + 1, sizeof(*offsets));
	CLEANUP_FREE uint64_t *cookies = xcalloc(n + 1, sizeof(*cookies));
	struct err *err = NULL;

	for (size_t i = 0; i < n; i++) {
		offsets[i] = points[i].offset;
		cookies[i] = points[i].cookie;
	}
	/* of a free it skips the return, too */
	if (n > nfrees && k->sessions)
		return attach(k, k->session, ATTACH_UPROBE_SESSION, 0, pid, fd, offsets, cookies, n);
	/* returns first: an entry without one would wait for it */
	if (n > nfrees)
		err = attach(k, k->back, ATTACH_UPROBE_MULTI, FLAG_RETURN, pid, fd, offsets + nfrees, cookies + nfrees, n - nfrees);
	if (!err)
		err = attach(k, k->entry, ATTACH_UPROBE_MULTI, 0, pid, fd, offsets, cookies, n);
	return err;
}

static size_t bpf_read(struct uprobe_kernel *base, size_t max, uprobe_record_fn fn, void *ctx)
{
	struct bpf_kernel *k = bpf_of(base);
	const struct uprobe_record *r;
	size_t n = 0, size;
	bool more = true;

	/* those of the last time: whoever has them has looked at them by now */
	uprobe_ring_done(&k->ring);
	while (more && n < max && (r = uprobe_ring_next(&k->ring, &size))) {
		more = size < sizeof(*r) || fn(ctx, r, size);
		n++;	/* the last one counts as read all the same */
	}
	return n;
}

/* False: they can't be read. */
static bool sum_counts(struct bpf_kernel *k, struct uprobe_counts *ret)
{
	uint32_t zero = 0;

	memset(ret, 0, sizeof(*ret));
	if (bpf_map_lookup_elem(k->counts_fd, &zero, k->each))
		return false;
	for (int i = 0; i < k->ncpus; i++) {
		const struct uprobe_counts *c = &k->each[i];

		ret->hits += c->hits;
		ret->stepped += c->stepped;
		ret->returns += c->returns;
		ret->recorded += c->recorded;
		ret->dropped += c->dropped;
		ret->lost += c->lost;
		ret->nested += c->nested;
	}
	return true;
}

static void bpf_counts(struct uprobe_kernel *base, struct uprobe_counts *ret)
{
	sum_counts(bpf_of(base), ret);
}

/* Looks at a quarter of a million buckets, a third of a millisecond. */
static bool empty_live(struct bpf_kernel *k)
{
	enum { BATCH = 4096 };	/* addresses of one bucket fit in */
	uint64_t keys[BATCH];
	uint8_t values[BATCH];
	uint32_t at, n;
	int error = 0;

	for (bool first = true; !error; first = false) {
		n = BATCH;
		error = bpf_map_lookup_and_delete_batch(k->live_fd, first ? NULL : &at, &at, keys, values, &n, NULL);
	}
	return error == -ENOENT;	/* that was all */
}

static bool bpf_recycle(struct uprobe_kernel *base)
{
	struct bpf_kernel *k = bpf_of(base);
	struct uprobe_counts counts;
	uint32_t zero = 0;

	/* once a link is closed its program doesn't run any more, anywhere */
	bpf_detach(base);
	uprobe_ring_skip(&k->ring);
	if (!sum_counts(k, &counts) || (k->filled && counts.recorded && !empty_live(k)))
		return false;
	memset(k->each, 0, (size_t)k->ncpus * sizeof(*k->each));
	return !bpf_map_update_elem(k->counts_fd, &zero, k->each, BPF_ANY);
}

const struct uprobe_ops uprobe_bpf_ops = {
	.open = bpf_open,
	.attach = bpf_attach,
	.detach = bpf_detach,
	.read = bpf_read,
	.counts = bpf_counts,
	.close = bpf_close,
	.recycle = bpf_recycle,
	.begin = bpf_begin,
	.hit_ns = 1000,
	.stepped_ns = 13000,
	.return_ns = 750,
};
