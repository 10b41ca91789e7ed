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

enum { CTL, CPUS, RING, MAPS };
static const char *const map_names[MAPS] = { [CTL] = "ctl", [CPUS] = "cpus", [RING] = "ring" };

struct faults_code {
	bool tried;
	int error;		/* 0, or a negative errno: why there is none */
	struct bpf_insn *insns;	/* as the kernel takes them; where it names a map, that one's index instead */
	size_t n;
	size_t ncpus;
	struct faults_kernel *spare;	/* one made beforehand, or NULL */
};

struct faults_kernel {
	struct ring_buffer *ring;
	struct faults_cpu *cpus;	/* mapped */
	size_t ncpus, mapped;		/* mapped: bytes */
	int maps[MAPS], program;	/* descriptors, or -1 */
	/* while reading */
	faults_record_fn fn;
	void *ctx;
};

struct faults_code *faults_code_create(void)
{
	return xcalloc(1, sizeof(struct faults_code));
}

void faults_code_destroy(struct faults_code *code)
{
	if (!code)
		return;
	faults_kernel_close(code->spare);
	free(code->insns);
	free(code);
}

/* Maps by their indices. */
static bool name_maps(struct faults_code *code, const int fds[MAPS])
{
	for (size_t i = 0; i < code->n; i++) {
		struct bpf_insn *insn = &code->insns[i];
		int map = 0;
		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insn->src_reg == BPF_PSEUDO_MAP_FD) {
			while (map < MAPS && fds[map] != insn->imm)
				map++;
			if (map == MAPS)
				return false;
			insn->imm = map;
		}
		i++;		/* it takes two */
	}
	return true;
}

/* The object's program as it is once libbpf has found all offsets in this kernel. */
static int take_code(struct faults_code *code, struct bpf_object *object)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, "at_fault");
	int fds[MAPS], cpus = libbpf_num_possible_cpus();

	if (cpus < 1)
		return cpus;
	code->ncpus = (size_t)cpus;
	/* only for the way */
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "ring"), (uint32_t)sysconf(_SC_PAGESIZE));
	int error = bpf_object__load(object);
	if (error)
		return error;
	for (int i = 0; i < MAPS; i++)
		fds[i] = bpf_object__find_map_fd_by_name(object, map_names[i]);
	code->n = bpf_program__insn_cnt(program);
	code->insns = xmalloc(code->n * sizeof(*code->insns));
	memcpy(code->insns, bpf_program__insns(program), code->n * sizeof(*code->insns));
	return name_maps(code, fds) ? 0 : -EINVAL;
}

/* 0 or a negative errno. What libbpf does for it takes a tenth of a second, so once does. */
static int make_code(struct faults_code *code)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "heaptop");

	if (code->tried)
		return code->error;
	code->tried = true;
	bpf_say_to_log();
	struct bpf_object *object = bpf_object__open_mem(faults_bpf_start, (size_t)(faults_bpf_end - faults_bpf_start), &opts);
	code->error = object ? take_code(code, object) : -errno;
	bpf_object__close(object);
	return code->error;
}

void faults_kernel_close(struct faults_kernel *k)
{
	if (!k)
		return;
	ring_buffer__free(k->ring);
	if (k->mapped)
		munmap(k->cpus, k->mapped);
	if (k->program >= 0)
		close(k->program);
	for (int i = 0; i < MAPS; i++)
		if (k->maps[i] >= 0)
			close(k->maps[i]);
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
static int make_maps(struct faults_kernel *k)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	uint32_t bytes = FAULTS_RING_BYTES;

	/* 1 MiB each: a sixteenth of a second of samples as large as can be */
	while (bytes < FAULTS_RING_MAX && bytes >> 20 < k->ncpus)
		bytes *= 2;
	k->maps[CTL] = bpf_map_create(BPF_MAP_TYPE_ARRAY, map_names[CTL], 4, sizeof(struct faults_ctl), 1, NULL);
	if (k->maps[CTL] < 0)
		return -errno;
	k->maps[CPUS] = bpf_map_create(BPF_MAP_TYPE_ARRAY, map_names[CPUS], 4, sizeof(struct faults_cpu), (uint32_t)k->ncpus, &mapped);
	if (k->maps[CPUS] < 0)
		return -errno;
	k->maps[RING] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, map_names[RING], 0, 0, bytes, NULL);
	return k->maps[RING] < 0 ? -errno : 0;
}

static int load(struct faults_kernel *k, const struct faults_code *code)
{
	CLEANUP_FREE struct bpf_insn *insns = xmalloc(code->n * sizeof(*insns));

	memcpy(insns, code->insns, code->n * sizeof(*insns));
	for (size_t i = 0; i < code->n; i++) {
		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insns[i].src_reg == BPF_PSEUDO_MAP_FD)
			insns[i].imm = k->maps[insns[i].imm];
		i++;
	}
	k->program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "at_fault", "Dual BSD/GPL", insns, code->n, NULL);
	return k->program < 0 ? -errno : 0;
}

static int map(struct faults_kernel *k)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (k->ncpus * sizeof(*k->cpus) + page - 1) & ~(page - 1);
	struct faults_ctl init = { 0 };
	uint32_t zero = 0;
	struct stat ns;

	if (stat("/proc/self/ns/pid", &ns))
		return -errno;
	init.ns_dev = ns.st_dev;
	init.ns_ino = ns.st_ino;
	if (bpf_map_update_elem(k->maps[CTL], &zero, &init, BPF_ANY))
		return -errno;
	k->cpus = mmap(NULL, bytes, PROT_READ, MAP_SHARED, k->maps[CPUS], 0);
	if (k->cpus == MAP_FAILED)
		return -errno;
	k->mapped = bytes;
	k->ring = ring_buffer__new(k->maps[RING], on_record, k, NULL);
	return k->ring ? 0 : -errno;
}

/* The kernel tells ids of the first namespace, and of the one a thread is in; is ours one of them? */
static bool has_our_ids(pid_t pid)
{
	char path[32];
	struct stat ours, its;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat("/proc/self/ns/pid", &ours))
		return false;
	return ours.st_ino == FIRST_PID_NS ||
	       (!stat(path, &its) && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino);
}

/* 0 or a negative errno. */
static int make(struct faults_code *code, struct faults_kernel **ret)
{
	struct faults_kernel *k = xcalloc(1, sizeof(*k));

	k->program = k->maps[CTL] = k->maps[CPUS] = k->maps[RING] = -1;
	int error = make_code(code);
	k->ncpus = code->ncpus;
	if (!error)
		error = make_maps(k);
	if (!error)
		error = load(k, code);
	if (!error)
		error = map(k);
	if (error)
		faults_kernel_close(k);
	else
		*ret = k;
	return error;
}

void faults_code_prepare(struct faults_code *code)
{
	/* why it can't be is said when it is asked for */
	if (!code->spare)
		make(code, &code->spare);
}

struct err *faults_kernel_open(struct faults_code *code, pid_t pid, struct faults_kernel **ret)
{
	int error = 0;

	*ret = NULL;
	if (!has_our_ids(pid))
		return err_new(ERR_UNSUPPORTED, "the process is in another PID namespace");
	if (code->spare)
		*ret = code->spare;
	else
		error = make(code, ret);
	code->spare = NULL;
	if (error == -EPERM)
		return err_new(ERR_DENIED, "BPF takes CAP_BPF and CAP_PERFMON");
	if (error)
		return err_new(ERR_UNSUPPORTED, "the kernel doesn't take the BPF program, which takes Linux 6.2 with BTF: %s",
			       strerror(-error));
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
