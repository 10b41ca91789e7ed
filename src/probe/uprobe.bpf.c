/*
 * The probe in the kernel: runs at allocators' entry points and returns, on the thread that calls them. It decides
 * what is sampled as the agent does (agent/agent.c tells why that is unbiased), and writes records. Licence: some
 * helpers are for GPL-compatible programs only.
 */
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "probe/uprobe_wire.h"
#include "wire/wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As the kernel hands them over on x86-64. */
struct regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* Found in the running kernel by name, whatever lies before them there. */
struct mm_struct {
	unsigned long start_stack;
} __attribute__((preserve_access_index));
struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));
struct task_struct {
	struct mm_struct *mm;
	struct thread_struct thread;
	int pid, tgid;
} __attribute__((preserve_access_index));

extern bool bpf_session_is_return(void) __ksym __weak;

struct thread {
	__u64 countdown;	/* bytes to the next sample */
	__u64 generation;	/* ctl.generation when it was drawn, and 1 more: 0: never */
	__u64 rate;		/* that it was drawn with */
	__u64 rng;
	__u64 mark;		/* stack pointer at the entry of the call that is watched to its return, or 0 */
	__u64 size, cookie, pointer, out, sampled_rate;	/* of that call */
	__u32 sampled;
	__u32 freed;		/* its old block was told to be freed */
	__u32 told;		/* who it is */
	__u32 tid;
};

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
	__type(value, struct thread);
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

#define COUNT(field) do { if (c) c->field++; } while (0)
#define BITS(cookie, shift, n) ((cookie) >> (shift) & ((1u << (n)) - 1))

/* ---- sampling ---- */

/* Numbers of splitmix64 (Steele, Lea, Flood 2014). */
static __always_inline __u64 mix(__u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * floor(E) + 1 with E exponential of mean `rate` (< 2^37), as agent_gap(), in 64-bit arithmetic: -log2(u) of u = x / 2^64
 * with 26 bits behind the point, of which 20 go into the product.
 */
static __always_inline __u64 gap(__u64 x, __u64 rate)
{
	__u64 m, log = 0, bits;
	__u32 lz = 0;

	x |= 1;
	/* no such instruction here */
	for (int i = 32; i; i /= 2)
		if (!(x >> (64 - i))) {
			x <<= i;
			lz += i;
		}
	m = x >> 32;		/* in [1, 2), 31 bits behind the point */
	for (int i = 0; i < 26; i++) {
		__u64 square = m * m;	/* 62 */
		__u64 two = square >> 63;

		log = log << 1 | two;
		m = square >> (31 + two);
	}
	bits = (((__u64)lz + 1) << 26) - log;
	return ((bits >> 6) * 1488522236ull >> 31) * rate >> 20 | 0;	/* ln 2, 31 bits */
}

static __always_inline void draw(const struct uprobe_ctl *k, struct thread *t)
{
	t->generation = k->generation + 1;
	t->rate = k->rate;
	if (t->rate <= 1) {
		t->rate = 1;
		return;
	}
	t->rng += 0x9e3779b97f4a7c15ull;
	t->countdown = gap(mix(t->rng), t->rate) + 1;
}

/* Is a call for so many bytes sampled? t->rate: by which rate. */
static __always_inline bool is_sampled(const struct uprobe_ctl *k, struct thread *t, __u64 size, __u64 *ret_rate)
{
	/* before deciding: nothing about the old gap led here */
	if (t->generation != k->generation + 1)
		draw(k, t);
	*ret_rate = t->rate;
	if (t->rate <= 1)
		return true;
	if (t->countdown > size) {
		t->countdown -= size;
		return false;
	}
	draw(k, t);
	return true;
}

/* ---- records ---- */

/* Arguments in registers, counted from 1; [0] and [7] are zero. */
struct args {
	__u64 n[8];
};

static __always_inline __u64 request(const struct args *a, __u64 cookie)
{
	__u32 s = BITS(cookie, UPROBE_SIZE, 3), n = BITS(cookie, UPROBE_COUNT, 3);
	__u64 size = a->n[s], count, most;

	if (!s)
		return cookie >> UPROBE_BYTES;
	if (BITS(cookie, UPROBE_INT, 1))
		size = (__u32)size;
	if (!n)
		return size;
	count = a->n[n];
	if (BITS(cookie, UPROBE_INT, 1))
		count = (__u32)count;
	/* one that overflows fails in the allocator and is never recorded */
	if (!size)
		return 0;
	most = ~0ull / size;
	asm volatile("" : "+r"(most));	/* or clang makes a 128-bit product of it, which BPF doesn't have */
	return count > most ? ~0ull >> 1 : size * count;
}

static __always_inline void fill(struct uprobe_record *r, const struct thread *t, __u32 kind, __u32 flags, __u64 addr)
{
	r->kind = kind;
	r->flags = flags;
	r->tid = t->tid;
	r->bytes = 0;
	r->ns = bpf_ktime_get_ns();
	r->addr = addr;
}

/* Before a thread's first record: who it is. */
static __always_inline void tell_thread(struct thread *t, __u64 sp)
{
	struct uprobe_thread_record *r;

	if (t->told)
		return;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return;
	fill(&r->r, t, WIRE_THREAD, 0, sp);
	bpf_get_current_comm(r->name, sizeof(r->name));
	bpf_ringbuf_submit(r, 0);
	t->told = 1;
}

static __always_inline bool send_free(struct thread *t, struct uprobe_counts *c, __u64 sp, __u32 kind, __u32 flags,
				      __u64 addr)
{
	struct uprobe_record *r;

	tell_thread(t, sp);
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		COUNT(lost);
		return false;
	}
	fill(r, t, kind, flags, addr);
	bpf_ringbuf_submit(r, 0);
	COUNT(recorded);
	return true;
}

/* Where the thread's own stack ends; 0: not known, or it runs on another one. */
static __always_inline __u64 stack_end(struct task_struct *task, __u64 sp)
{
	__u64 hi = task->pid == task->tgid ? task->mm->start_stack : task->thread.fsbase;

	/* both libcs place the thread pointer on top of the stack it belongs to */
	return sp < hi && hi - sp < (1u << 30) ? hi : 0;
}

#define STEP 1024u	/* bytes read at once */

/* Of bytes at `from`, which may end within a page, as many as there are; 0: none. `to` has room for STEP. */
static __always_inline __u32 copy_step(void *to, __u64 from, __u64 want)
{
	__u64 n = want < STEP ? want : STEP, page = 4096 - (from & 4095);

	if (!n)
		return 0;
	if (n <= STEP && !bpf_probe_read_user(to, n, (void *)from))
		return n;
	/* behind the page's end there may be nothing */
	if (page < n && page <= STEP && !bpf_probe_read_user(to, page, (void *)from))
		return page;
	return 0;
}

#define SEND_ALLOC(CAP) do { \
	struct uprobe_alloc *r = bpf_ringbuf_reserve(&ring, sizeof(*r) + (CAP), 0); \
	__u32 off = 0; \
	if (!r) \
		return false; \
	fill(&r->r, t, WIRE_ALLOC, flags, addr); \
	r->size = t->size; \
	r->rate = t->sampled_rate; \
	r->regs[0] = g->ip, r->regs[1] = g->sp, r->regs[2] = g->bp, r->regs[3] = g->bx; \
	r->regs[4] = g->r12, r->regs[5] = g->r13, r->regs[6] = g->r14, r->regs[7] = g->r15; \
	r->regs[8] = r->regs[9] = r->regs[10] = r->regs[11] = r->regs[12] = r->regs[13] = 0; \
	for (__u32 i = 0; i < (CAP) / STEP; i++) { \
		__u32 n = want > i * STEP ? copy_step(r->stack + i * STEP, g->sp + i * STEP, want - i * STEP) : 0; \
		off += n; \
		if (n != STEP) \
			break; \
	} \
	r->r.bytes = off & ~7u; \
	bpf_ringbuf_submit(r, 0); \
	return true; \
} while (0)

static __always_inline bool send_alloc(const struct uprobe_ctl *k, struct thread *t, const struct regs *g,
				       struct task_struct *task, __u32 flags, __u64 addr)
{
	__u64 hi = stack_end(task, g->sp), max = k->max_stack, want;

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

static __always_inline struct thread *this_thread(const struct uprobe_ctl *k, struct task_struct *task)
{
	struct bpf_pidns_info ids = { 0 };
	struct thread *t = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t && !t->tid) {
		__u32 pid = task->pid;

		asm volatile("" : "+r"(pid));	/* as above */
		t->tid = bpf_get_ns_current_pid_tgid(k->ns_dev, k->ns_ino, &ids, sizeof(ids)) ? pid : ids.pid;
		t->rng = mix(k->seed + t->tid * 0x9e3779b97f4a7c15ull);
	}
	return t;
}

static __always_inline bool is_known(const struct uprobe_ctl *k, __u64 addr)
{
	return k->free_all || bpf_map_lookup_elem(&live, &addr);
}

/* A block is freed; before the allocator runs. */
static __always_inline bool release(const struct uprobe_ctl *k, struct thread *t, struct uprobe_counts *c, __u64 sp,
				    __u64 addr, __u32 flags)
{
	if (!addr || !is_known(k, addr) || !send_free(t, c, sp, WIRE_FREE, flags, addr))
		return false;
	bpf_map_delete_elem(&live, &addr);
	return true;
}

/* Is it called by the allocator itself, within a call that is watched to its return? */
static __always_inline bool is_nested(struct thread *t, __u64 sp)
{
	/* a mark deeper than this is left over from a longjmp */
	if (t->mark && t->mark <= sp)
		t->mark = 0;
	return t->mark;
}

/* Returns 1: no need to run at the function's return. */
static __always_inline int on_entry(const struct regs *g, __u64 cookie)
{
	const struct args a = { { 0, g->di, g->si, g->dx, g->cx, g->r8, g->r9 } };
	__u32 zero = 0;
	struct uprobe_ctl *k = bpf_map_lookup_elem(&ctl, &zero);
	struct uprobe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;
	__u64 rate = 1;

	if (BITS(cookie, UPROBE_STEPPED, 1))
		COUNT(stepped);
	else
		COUNT(hits);
	if (!k || !k->active || !(t = this_thread(k, task)))
		return 1;
	if (is_nested(t, g->sp)) {
		COUNT(nested);
		return 1;
	}
	if (BITS(cookie, UPROBE_IS_FREE, 1)) {
		release(k, t, c, g->sp, a.n[BITS(cookie, UPROBE_POINTER, 3)], 0);
		return 1;
	}
	t->size = request(&a, cookie);
	t->sampled = is_sampled(k, t, t->size, &rate);
	t->sampled_rate = rate;
	t->pointer = a.n[BITS(cookie, UPROBE_POINTER, 3)];
	t->freed = 0;
	if (t->pointer)
		t->freed = release(k, t, c, g->sp, t->pointer, WIRE_F_REALLOC);
	if (!t->sampled && !t->freed && !BITS(cookie, UPROBE_FRAME, 1))
		return 1;
	t->cookie = cookie;
	t->out = a.n[BITS(cookie, UPROBE_OUT, 3)];
	t->mark = g->sp;
	return 0;
}

static __always_inline __u64 block_of(__u64 result, const struct thread *t)
{
	__u64 addr = 0;

	switch (BITS(t->cookie, UPROBE_RETURNS, 2)) {
	case WIRE_RETURNS_STATUS:
		if ((__u32)result || bpf_probe_read_user(&addr, sizeof(addr), (void *)t->out))
			return 0;
		return addr;
	case WIRE_RETURNS_SIZE:
		return result < t->size ? 0 : t->pointer;
	}
	return result;
}

static __always_inline int on_return(const struct regs *g)
{
	__u32 zero = 0;
	__u8 yes = 1;
	struct uprobe_ctl *k = bpf_map_lookup_elem(&ctl, &zero);
	struct uprobe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, NULL, 0);
	__u64 addr, result = g->ax;
	__u32 flags;

	asm volatile("" : "+r"(result));	/* read here: what is in registers can't be read by a computed address */
	COUNT(returns);
	/* the return address has been taken off */
	if (!k || !t || !t->mark || t->mark + 8 != g->sp)
		return 0;
	t->mark = 0;
	addr = block_of(result, t);
	flags = t->pointer ? WIRE_F_REALLOC : 0;
	if (!addr) {
		/* realloc to nothing frees; else the old block lives on */
		if (t->freed && t->size && !BITS(t->cookie, UPROBE_FREES, 1) &&
		    send_free(t, c, g->sp, WIRE_UNFREE, WIRE_F_REALLOC, t->pointer))
			bpf_map_update_elem(&live, &t->pointer, &yes, BPF_ANY);
		return 0;
	}
	if (!t->sampled)
		return 0;
	if (!send_alloc(k, t, g, task, flags, addr)) {
		COUNT(dropped);
		return 0;
	}
	COUNT(recorded);
	if (!k->free_all && bpf_map_update_elem(&live, &addr, &yes, BPF_ANY))
		k->free_all = 1;
	return 0;
}

SEC("kprobe/session")
int at_session(struct regs *g)
{
	return bpf_session_is_return() ? on_return(g) : on_entry(g, bpf_get_attach_cookie(g));
}

SEC("kprobe/entry")
int at_entry(struct regs *g)
{
	on_entry(g, bpf_get_attach_cookie(g));
	return 0;
}

SEC("kprobe/return")
int at_return(struct regs *g)
{
	return on_return(g);
}
