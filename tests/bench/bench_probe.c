/*
 * Kernel objects of the second probe: what an operation on them costs heaptop, one key at a time and batched. The map is
 * one like `live` (uprobe_wire.h), with 1,000 entries; the array one like `ctl`, mapped. Beside them what heaptop does in
 * a round: all counters, and a record out of the ring. Medians of interleaved runs, CPU time of the thread; a getppid for
 * what the kernel's door alone costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "line.h"
#include "probe/uprobe_kernel.h"
#include "tests/lib/ownpoint.h"

#define ENTRIES 1000u
#define RUNS 31
#define RECORDS ENTRIES

static uint64_t keys[ENTRIES], told[ENTRIES];
static uint8_t values[ENTRIES];
static int map;
static volatile struct uprobe_ctl *mapped;
static struct uprobe_kernel *kernel;
static bool failed;

static void check(int error)
{
	failed |= error != 0;
}

static void getppids(void)
{
	for (size_t i = 0; i < ENTRIES; i++)
		syscall(SYS_getppid);
}

static void updates(void)
{
	for (size_t i = 0; i < ENTRIES; i++)
		check(bpf_map_update_elem(map, &keys[i], &values[i], BPF_ANY));
}

static void look_ups(void)
{
	uint8_t value;

	for (size_t i = 0; i < ENTRIES; i++)
		check(bpf_map_lookup_elem(map, &keys[i * 7919 % ENTRIES], &value));
}

static void next_keys(void)
{
	uint64_t key;
	size_t n = 0;

	for (void *last = NULL; bpf_map_get_next_key(map, last, &key) == 0; last = &key)
		n++;
	check(n != ENTRIES);
}

static void iteration(void)
{
	uint64_t key;
	uint8_t value;
	size_t n = 0;

	for (void *last = NULL; bpf_map_get_next_key(map, last, &key) == 0; last = &key, n++)
		check(bpf_map_lookup_elem(map, &key, &value));
	check(n != ENTRIES);
}

static void look_up_batch(void)
{
	uint32_t n = ENTRIES, batch;

	/* -ENOENT: that was the last batch */
	check(bpf_map_lookup_batch(map, NULL, &batch, told, values, &n, NULL) != -ENOENT || n != ENTRIES);
}

static void deletes(void)
{
	for (size_t i = 0; i < ENTRIES; i++)
		check(bpf_map_delete_elem(map, &keys[i]));
}

static void update_batch(void)
{
	uint32_t n = ENTRIES;

	check(bpf_map_update_batch(map, keys, values, &n, NULL) || n != ENTRIES);
}

static void delete_batch(void)
{
	uint32_t n = ENTRIES;

	check(bpf_map_delete_batch(map, keys, &n, NULL) || n != ENTRIES);
}

static void mapped_reads(void)
{
	for (size_t i = 0; i < ENTRIES; i++)
		(void)mapped->rate;
}

static void all_counts(void)
{
	struct uprobe_counts counts;

	for (size_t i = 0; i < ENTRIES; i++)
		uprobe_kernel_counts(kernel, &counts);
}

/* Two functions to probe: one begins with a nop, which the kernel emulates, the other with what it steps over. */
static __attribute__((noipa, patchable_function_entry(1))) void give(void *block)
{
	__asm__ volatile("" :: "r"(block) : "memory");
}

static __attribute__((noipa)) uintptr_t give_stepped(void *block)
{
	return (uintptr_t)block + 1;
}

static bool ignore(void *ctx, const struct uprobe_record *r, size_t size)
{
	(void)ctx;
	(void)r;
	(void)size;
	return true;
}

static void write_records(void)
{
	for (size_t i = 0; i < RECORDS; i++)
		give((void *)(0x100000 + 16 * i));
}

static void write_stepped(void)
{
	for (size_t i = 0; i < RECORDS; i++)
		give_stepped((void *)(0x100000 + 16 * i));
}

/* What these two have written. */

static void read_records(void)
{
	size_t n = 0;

	for (size_t k; (k = uprobe_kernel_read(kernel, 10 * RECORDS, ignore, NULL)); )
		n += k;
	check(n < 2 * RECORDS);
}

/* In this order: each leaves what the next one takes. */
static const struct op {
	const char *name, *what;
	void (*run)(void);
	const char *than;	/* judged: cheaper than that one, */
	double times;		/* so many times */
} ops[] = {
	{ "door", "getppid", getppids, NULL, 0 },
	{ "update", "bpf_map_update_elem of 1,000", updates, NULL, 0 },
	{ "look-up", "bpf_map_lookup_elem of 1,000", look_ups, NULL, 0 },
	{ "next-key", "bpf_map_get_next_key over 1,000", next_keys, NULL, 0 },
	{ "iteration", "next key and look-up over 1,000", iteration, NULL, 0 },
	{ "look-up, batched", "bpf_map_lookup_batch of 1,000", look_up_batch, "iteration", 4 },
	{ "delete", "bpf_map_delete_elem of 1,000", deletes, NULL, 0 },
	{ "update, batched", "bpf_map_update_batch of 1,000", update_batch, "update", 1.5 },
	{ "delete, batched", "bpf_map_delete_batch of 1,000", delete_batch, "delete", 1.5 },
	{ "mapped", "the control block, mapped: 1,000 reads", mapped_reads, "door", 20 },
	{ "counters", "uprobe_kernel_counts", all_counts, NULL, 0 },
	{ "hit", "a probed and recorded call, emulated place", write_records, "hit, stepped", 3 },
	{ "hit, stepped", "the same, single-stepped place", write_stepped, NULL, 0 },
	{ "record", "uprobe_kernel_read of 2,000", read_records, "look-up", 1 },
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct err *open_kernel(void)
{
	const struct uprobe_ctl init = { .rate = 1, .active = 1, .free_all = 1, .max_stack = 1024 };
	struct uprobe_point points[2] = {
		{ .cookie = 1 << UPROBE_POINTER | 1ull << UPROBE_IS_FREE },
		{ .cookie = 1 << UPROBE_POINTER | 1ull << UPROBE_IS_FREE | 1ull << UPROBE_STEPPED },
	};
	struct err *err = uprobe_kernel_open(&init, UPROBE_WAY_SESSION, &kernel);

	if (err)
		return err;
	mapped = uprobe_kernel_ctl(kernel);
	map = bpf_map_create(BPF_MAP_TYPE_HASH, "heaptop_bench", sizeof(keys[0]), sizeof(values[0]), 1u << 18, NULL);
	if (map < 0)
		return err_errno(errno, "no map");
	if (!ownpoint_offset((uintptr_t)give, &points[0].offset) ||
	    !ownpoint_offset((uintptr_t)give_stepped, &points[1].offset))
		return err_new(ERR_OTHER, "its own functions aren't found");
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	err = uprobe_kernel_attach(kernel, getpid(), fd, points, 2, 2);
	close(fd);
	return err;
}

int main(void)
{
	static double ns[ARRAY_SIZE(ops)][RUNS];
	int missed = 0;
	struct err *err = open_kernel();

	if (err) {
		missed = bench_line("kernel objects", "uprobe_kernel_open", "it opens", false, "%s", err->text);
		err_free(err);
		return missed;
	}
	for (size_t i = 0; i < ENTRIES; i++)
		keys[i] = 0x7f0000000000 + 2654435761u * i % (1u << 28) * 16;
	for (int r = 0; r < RUNS; r++)
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
			double began = thread_cpu_seconds();
			ops[i].run();
			ns[i][r] = (thread_cpu_seconds() - began) * 1e9 / (ops[i].run == read_records ? 2 * RECORDS : ENTRIES);
		}
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		qsort(ns[i], RUNS, sizeof(ns[i][0]), by_value);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		double mine = ns[i][RUNS / 2], other = 0;
		char name[64], target[64] = "printed";

		for (size_t k = 0; ops[i].than && k < ARRAY_SIZE(ops); k++)
			if (!strcmp(ops[k].name, ops[i].than))
				other = ns[k][RUNS / 2];
		if (ops[i].than)
			snprintf(target, sizeof(target), "%g times less than %s", ops[i].times, ops[i].than);
		snprintf(name, sizeof(name), "kernel objects: %s", ops[i].name);
		missed |= bench_line(name, ops[i].what, target, !failed && (!ops[i].than || mine * ops[i].times <= other),
				     "%.1f ns each, %.3f ms per 1,000%s", mine, mine / 1e3, failed ? " (some FAILED)" : "");
	}
	uprobe_kernel_close(kernel);
	close(map);
	return missed;
}
