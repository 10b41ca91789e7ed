/*
 * The probe in the kernel: runs at allocators' entry points and returns, on the thread that calls them, decides
 * by uprobe_rules.h what is told of, and writes records. Licence: some helpers are for GPL-compatible programs only.
 */
#include "target/stack.bpf.h"	/* first: libbpf means more by __always_inline than linux/stddef.h does */

#include "probe/uprobe_rules.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct uprobe_ctl);
} ctl SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct uprobe_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct uprobe_caller);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UPROBE_LIVE_MAX);
	__type(key, __u64);
	__type(value, __u8);
} live SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, UPROBE_RING_BYTES);
} ring SEC(".maps");

/* ---- records ---- */

static __always_inline void fill(struct uprobe_record *r, const struct uprobe_caller *t, __u32 kind, __u32 flags, __u64 addr)
{
	r->kind = kind;
	r->flags = flags;
	r->tid = t->tid;
	r->bytes = 0;
	r->ns = bpf_ktime_get_ns();
	r->addr = addr;
}

/* Before a thread's first record: who it is. */
static __always_inline void tell_thread(struct uprobe_caller *t, __u64 sp)
{
	struct uprobe_thread_record *r;

	if (t->told)
		return;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return;
	fill(&r->r, t, WIRE_THREAD, 0, sp);
	bpf_get_current_comm(r->name, sizeof(r->name));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	t->told = 1;
}

static __always_inline bool uprobe_tell_free(void *env, struct uprobe_caller *t, struct uprobe_counts *c, __u64 sp,
					     __u32 kind, __u32 flags, __u64 addr)
{
	struct uprobe_record *r;

	(void)env;
	tell_thread(t, sp);
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		UPROBE_COUNT_UP(lost);
		return false;
	}
	fill(r, t, kind, flags, addr);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	UPROBE_COUNT_UP(recorded);
	return true;
}

#define SEND_ALLOC(CAP) do { \
	struct uprobe_alloc *r = bpf_ringbuf_reserve(&ring, sizeof(*r) + (CAP), 0); \
	if (!r) \
		return false; \
	fill(&r->r, t, WIRE_ALLOC, flags, addr); \
	r->size = t->size; \
	r->rate = t->sampled_rate; \
	KERNEL_REGS_WIRE(r->regs, g); \
	r->r.bytes = stack_copy(r->stack, g->sp, want, CAP); \
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP); \
	return true; \
} while (0)

/* `env`: the task. */
static __always_inline bool uprobe_tell_alloc(void *env, const struct uprobe_ctl *k, struct uprobe_caller *t,
					      const struct kernel_regs *g, __u32 flags, __u64 addr)
{
	__u64 hi = stack_end(env, g->sp), max = k->max_stack, want;

	if (max > UPROBE_STACK_MAX)
		max = UPROBE_STACK_MAX;
	want = hi ? hi - g->sp : max;
	if (want > max) {
		want = max;
		flags |= WIRE_F_CUT;
	}
	if (!hi)
		flags |= WIRE_F_NO_BOUNDS;
	tell_thread(t, g->sp);
	if (want <= 1024)
		SEND_ALLOC(1024);
	if (want <= 4096)
		SEND_ALLOC(4096);
	SEND_ALLOC(UPROBE_STACK_MAX);
}

/* ---- calls ---- */

static __always_inline struct uprobe_caller *this_thread(const struct uprobe_ctl *k, struct task_struct *task)
{
	struct uprobe_caller *t = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	/* made just now, or left from another program that was served */
	if (t && t->use != k->use) {
		__builtin_memset(t, 0, sizeof(*t));
		t->use = k->use;
		t->tid = stack_tid(task, k->ns_dev, k->ns_ino);
		t->rng = uprobe_mix(k->seed + t->tid * 0x9e3779b97f4a7c15ull);
	}
	return t;
}

static __always_inline bool uprobe_known(const struct uprobe_ctl *k, __u64 addr)
{
	return k->free_all || bpf_map_lookup_elem(&live, &addr);
}

static __always_inline void uprobe_remember(struct uprobe_ctl *k, __u64 addr)
{
	__u8 yes = 1;

	if (!k->free_all && bpf_map_update_elem(&live, &addr, &yes, BPF_ANY))
		k->free_all = 1;
}

static __always_inline void uprobe_forget(__u64 addr)
{
	bpf_map_delete_elem(&live, &addr);
}

static __always_inline bool uprobe_word(void *env, __u64 addr, __u64 *ret)
{
	(void)env;
	return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr);
}

/* Returns 1: no need to run at the function's return. */
static __always_inline int on_entry(const struct kernel_regs *g, __u64 cookie)
{
	__u32 zero = 0;
	struct uprobe_ctl *k = bpf_map_lookup_elem(&ctl, &zero);
	struct uprobe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	struct uprobe_caller *t;

	if (UPROBE_BITS(cookie, UPROBE_STEPPED, 1))
		UPROBE_COUNT_UP(stepped);
	else
		UPROBE_COUNT_UP(hits);
	if (!k || !k->active || !(t = this_thread(k, task)))
		return 1;
	return uprobe_entry(task, k, t, c, g, cookie);
}

static __always_inline int on_return(const struct kernel_regs *g)
{
	__u32 zero = 0;
	struct uprobe_ctl *k = bpf_map_lookup_elem(&ctl, &zero);
	struct uprobe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	struct uprobe_caller *t = bpf_task_storage_get(&threads, task, NULL, 0);
	__u64 result = g->ax;

	asm volatile("" : "+r"(result));	/* read here: what is in registers can't be read by a computed address */
	UPROBE_COUNT_UP(returns);
	if (k && t && t->use == k->use)
		uprobe_return(task, k, t, c, g, result);
	return 0;
}

SEC("kprobe/session")
int at_session(struct kernel_regs *g)
{
	return bpf_session_is_return() ? on_return(g) : on_entry(g, bpf_get_attach_cookie(g));
}

SEC("kprobe/entry")
int at_entry(struct kernel_regs *g)
{
	on_entry(g, bpf_get_attach_cookie(g));
	return 0;
}

SEC("kprobe/return")
int at_return(struct kernel_regs *g)
{
	return on_return(g);
}
