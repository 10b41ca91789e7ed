/* The program for page faults through libbpf; see faults_kernel.h. */
#include "target/faults_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/bpf.h"

/* The object file, in the binary: faults_bpf.S. */
extern const char faults_bpf_start[], faults_bpf_end[];

#define FIRST_PID_NS 0xeffffffcu	/* include/linux/proc_ns.h: PROC_PID_INIT_INO */

struct faults_kernel {
	struct bpf_object *object;
	struct ring_buffer *ring;
	struct faults_cpu *cpus;	/* mapped */
	size_t ncpus, mapped;		/* mapped: bytes */
	int program;
	/* while reading */
	faults_record_fn fn;
	void *ctx;
};

void faults_kernel_close(struct faults_kernel *k)
{
	if (!k)
		return;
	ring_buffer__free(k->ring);
	if (k->mapped)
		munmap(k->cpus, k->mapped);
	bpf_object__close(k->object);
	free(k);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct faults_kernel *k = ctx;
	const struct faults_record *r = data;

	if (size >= sizeof(*r) && r->bytes <= size - sizeof(*r) && r->cpu < k->ncpus)
		k->fn(k->ctx, r);
	return 0;
}

/* 0 or a negative errno. */
static int load(struct faults_kernel *k)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "heaptop");
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 1)
		return cpus;
	k->ncpus = (size_t)cpus;
	k->object = bpf_object__open_mem(faults_bpf_start, (size_t)(faults_bpf_end - faults_bpf_start), &opts);
	if (!k->object)
		return -errno;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(k->object, "cpus"), (uint32_t)cpus);
	return bpf_object__load(k->object);
}

static int open_maps(struct faults_kernel *k, const struct stat *ns)
{
	int ctl = bpf_object__find_map_fd_by_name(k->object, "ctl"), cpus = bpf_object__find_map_fd_by_name(k->object, "cpus");
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (k->ncpus * sizeof(*k->cpus) + page - 1) & ~(page - 1);
	const struct faults_ctl init = { ns->st_dev, ns->st_ino };
	uint32_t zero = 0;

	if (bpf_map_update_elem(ctl, &zero, &init, BPF_ANY))
		return -errno;
	k->cpus = mmap(NULL, bytes, PROT_READ, MAP_SHARED, cpus, 0);
	if (k->cpus == MAP_FAILED)
		return -errno;
	k->mapped = bytes;
	k->ring = ring_buffer__new(bpf_object__find_map_fd_by_name(k->object, "ring"), on_record, k, NULL);
	return k->ring ? 0 : -errno;
}

/* The kernel tells ids of the first namespace, and of the one a thread is in; is ours one of them? */
static bool has_our_ids(pid_t pid, struct stat *ret_ours)
{
	char path[32];
	struct stat its;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat("/proc/self/ns/pid", ret_ours))
		return false;
	return ret_ours->st_ino == FIRST_PID_NS ||
	       (!stat(path, &its) && its.st_dev == ret_ours->st_dev && its.st_ino == ret_ours->st_ino);
}

struct err *faults_kernel_open(pid_t pid, struct faults_kernel **ret)
{
	struct stat ns;

	*ret = NULL;
	if (!has_our_ids(pid, &ns))
		return err_new(ERR_UNSUPPORTED, "the process is in another PID namespace");
	struct faults_kernel *k = xcalloc(1, sizeof(*k));
	bpf_say_to_log();
	int error = load(k);
	if (!error)
		error = open_maps(k, &ns);
	if (error) {
		faults_kernel_close(k);
		if (error == -EPERM)
			return err_new(ERR_DENIED, "BPF takes CAP_BPF and CAP_PERFMON");
		return err_new(ERR_UNSUPPORTED, "the kernel doesn't take the BPF program, which takes Linux 6.2 with BTF: %s",
			       strerror(-error));
	}
	k->program = bpf_program__fd(bpf_object__find_program_by_name(k->object, "at_fault"));
	*ret = k;
	return NULL;
}

int faults_kernel_program(const struct faults_kernel *k)
{
	return k->program;
}

void faults_kernel_read(struct faults_kernel *k, faults_record_fn fn, void *ctx)
{
	k->fn = fn;
	k->ctx = ctx;
	ring_buffer__consume(k->ring);
}

struct faults_seen faults_kernel_seen(const struct faults_kernel *k)
{
	struct faults_seen sum = { 0 };

	for (size_t i = 0; i < k->ncpus; i++) {
		const struct faults_seen *seen = &k->cpus[i].seen;
		sum.small += __atomic_load_n(&seen->small, __ATOMIC_RELAXED);
		sum.large += __atomic_load_n(&seen->large, __ATOMIC_RELAXED);
		sum.large_pages += __atomic_load_n(&seen->large_pages, __ATOMIC_RELAXED);
	}
	return sum;
}

size_t faults_kernel_cpus(const struct faults_kernel *k)
{
	return k->ncpus;
}
