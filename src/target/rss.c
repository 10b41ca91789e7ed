/* What RSS is made of; see rss.h. */
#include "target/rss.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/pagemap.h"
#include "target/proc.h"

#define THREADS_MAX 512u	/* whose stack pointers are asked for, at some microseconds each */
#define STACK_MAX (64ull << 20)	/* bytes; a larger mapping is one that a stack was put into */
#define GUARD_MAX (64u << 10)

struct look {
	struct pagemap map;
	struct target_rss *ret;
	const struct rss_range *own;
	size_t nown;
	uint64_t *sps;		/* ascending */
	size_t nsps;
	bool guards;		/* look for guards: some pointers aren't known */
	struct {
		uint64_t start, end;
		bool guard, data;
	} before;		/* the mapping before */
};

/* "RssAnon:	     512 kB" */
static uint64_t kilobytes(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static bool counters(struct target *t, struct target_rss *ret)
{
	CLEANUP_FREE char *text = proc_read(t->pid, t->live, "status", 1 << 20, NULL);

	/* the name comes first and may be anything, but for a newline */
	if (!text || !strstr(text, "\nRssAnon:"))
		return false;
	ret->anon = kilobytes(text, "\nRssAnon:");
	ret->file = kilobytes(text, "\nRssFile:");
	ret->shmem = kilobytes(text, "\nRssShmem:");
	ret->swap = kilobytes(text, "\nVmSwap:");
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* /proc/PID/task/TID/syscall of a thread that sleeps: number, six arguments, stack pointer, program counter:
 * "202 0x7f.. 0x189 0x0 0x0 0x0 0xffffffff 0x7f2b0e5fed00 0x7f2b0f089f16", or "-1 0x7ff.. 0x7f.." outside of a call. */
static bool stack_pointer(const char *text, uint64_t *ret)
{
	const char *last = strrchr(text, ' '), *at = last;

	if (!last || last == text)
		return false;
	do
		at--;
	while (at > text && *at != ' ');
	*ret = strtoull(at, NULL, 16);
	return *ret != 0;
}

static void stack_pointers(struct target *t, struct look *look)
{
	pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);

	look->guards = n > THREADS_MAX;
	if (n > THREADS_MAX)
		n = THREADS_MAX;
	look->sps = xcalloc(n + 1, sizeof(*look->sps));
	for (size_t i = 0; i < n; i++) {
		CLEANUP_FREE char *text = proc_read(t->pid, tids[i], "syscall", 512, NULL);
		if (text && stack_pointer(text, &look->sps[look->nsps]))
			look->nsps++;
		else
			look->guards = true;
	}
	free(tids);
	qsort(look->sps, look->nsps, sizeof(*look->sps), compare);
}

static bool holds_pointer(const struct look *look, const struct mapping *m)
{
	size_t low = 0, high = look->nsps;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (look->sps[mid] < m->start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < look->nsps && look->sps[low] < m->end;
}

static bool is_own(const struct look *look, const struct mapping *m)
{
	for (size_t i = 0; i < look->nown; i++)
		if (m->start < look->own[i].end && m->end > look->own[i].start)
			return true;
	return false;
}

static bool is_stack(const struct look *look, const struct mapping *m)
{
	if (!strcmp(m->path, "[stack]"))
		return true;
	/* malloc's arenas begin at multiples of their size, and the one before may end just below */
	bool arena = !(m->start & (STACK_MAX - 1));
	if (*m->path || m->shared || !(m->prot & PROT_WRITE) || m->end - m->start >= STACK_MAX || arena)
		return false;
	return holds_pointer(look, m) ||
	       (look->guards && look->before.guard && look->before.end == m->start);
}

static bool look_at(void *ctx, const struct mapping *m)
{
	struct look *look = ctx;
	bool file = m->inode && !m->shared;
	/* what a module has beyond its file's data */
	bool bss = !m->inode && !*m->path && look->before.data && look->before.end == m->start &&
		   m->prot & PROT_WRITE;

	if (is_own(look, m))
		;	/* counted by itself */
	else if (is_stack(look, m))
		look->ret->stacks += pagemap_bytes(&look->map, m->start, m->end, PAGE_RESIDENT, PAGE_FILE);
	else if (file && m->prot & PROT_EXEC)
		look->ret->own_anon += pagemap_bytes(&look->map, m->start, m->end, PAGE_RESIDENT, PAGE_FILE);
	else if (file || bss)
		look->ret->data += pagemap_bytes(&look->map, m->start, m->end, PAGE_RESIDENT, PAGE_FILE);
	look->before.start = m->start;
	look->before.end = m->end;
	look->before.guard = !m->prot && !m->inode && m->end - m->start <= GUARD_MAX;
	look->before.data = file && m->prot & PROT_WRITE;
	return true;
}

bool target_rss(struct target *t, const struct rss_range *own, size_t n, struct target_rss *ret)
{
	struct look look = { .ret = ret, .own = own, .nown = n };

	*ret = (struct target_rss){ 0 };
	if (t->exited || (!counters(t, ret) && !(target_find_live(t) && counters(t, ret))))
		return false;
	if (pagemap_open(&look.map, t->pid, t->live, PAGEMAP_BEST)) {
		pagemap_close(&look.map);
		return false;
	}
	stack_pointers(t, &look);
	struct err *err = target_each_mapping(t, look_at, &look);
	for (size_t i = 0; i < n && !err; i++) {
		ret->own_anon += pagemap_bytes(&look.map, own[i].start, own[i].end, PAGE_RESIDENT, PAGE_FILE);
		ret->own_shmem += pagemap_bytes(&look.map, own[i].start, own[i].end, PAGE_RESIDENT | PAGE_FILE, 0);
	}
	pagemap_close(&look.map);
	free(look.sps);
	bool read = !err;
	err_free(err);
	return read && target_has_memory(t);
}

int target_pagemap(struct target *t, struct pagemap *ret)
{
	int errnum = pagemap_open(ret, t->pid, t->live, PAGEMAP_BEST);

	if (errnum != ESRCH || !target_find_live(t))
		return errnum;
	pagemap_close(ret);
	return pagemap_open(ret, t->pid, t->live, PAGEMAP_BEST);
}

/* A thread has let go of the memory before the memory goes. */
static bool has_memory(const struct target *t)
{
	CLEANUP_FREE char *text = proc_read(t->pid, t->live, "statm", 4096, NULL);

	return text && strtoull(text, NULL, 10);
}

bool target_has_memory(struct target *t)
{
	return !t->exited && (has_memory(t) || (target_find_live(t) && has_memory(t)));
}
