/*
 * Which page faults are sampled, decided in the kernel where each of them is seen, once the page is there and its size is
 * known. A page larger than the smallest is always told of: it is hundreds of these, and has taken the kernel as long to
 * clear. Small ones are told off by `every`, and of those one is sampled, at a place drawn by chance before they come: each is
 * sampled with the probability 1 / every, and stands for so many. (A draw for each by itself would do, too; but so a run of n
 * faults has n / every samples but for one or two, and not but for the root of that.)
 *
 * every: so that at most FAULTS_HZ samples a second come from a processor, looked at each WINDOW; within one it doubles where
 * more come, since many thousands may. It changes with the next that are told off: what has been sampled of these must not
 * decide how likely the others are. Only a new window may break off, which knows nothing of the place.
 */
#include <stdbool.h>

#include "target/faults_wire.h"
#include "target/kernel_regs.h"
#include "target/stack.bpf.h"

#define WINDOW 4000000ull	/* ns, or longer: the kernel's tick */
#define WINDOW_ROOM 32u		/* samples of a window before `every` is doubled, */
#define AGAIN_ROOM 16u		/* and again after so many more */
#define EVERY_MAX (1ull << 20)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As the program gets it; the kernel's own, behind it, by names. */
struct fault_event {
	struct kernel_regs regs;
	__u64 period, addr;
};
struct perf_sample_data {
	__u64 data_page_size;
} __attribute__((preserve_access_index));
struct bpf_perf_event_data_kern {
	struct perf_sample_data *data;
} __attribute__((preserve_access_index));
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct faults_ctl);
} ctl SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);		/* as many as processors: heaptop says */
	__type(key, __u32);
	__type(value, struct faults_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FAULTS_RING_BYTES);
} ring SEC(".maps");

/* A new window, if this one is over. */
static __always_inline void look_at_window(struct faults_cpu *c)
{
	__u64 jiffy = bpf_jiffies64(), now, took;

	if (jiffy == c->jiffy)
		return;
	c->jiffy = jiffy;
	now = bpf_ktime_get_ns();
	took = now - c->since;
	if (took < WINDOW)
		return;
	c->next = (c->seen.small - c->before) * (1000000000u / FAULTS_HZ) / took + 1;
	if (c->next > EVERY_MAX)
		c->next = EVERY_MAX;
	if (c->next < c->every)
		c->left = 0;
	c->since = now;
	c->before = c->seen.small;
	c->room = WINDOW_ROOM;
}

/* Is a small fault sampled? */
static __always_inline bool is_sampled(struct faults_cpu *c)
{
	if (!c->left) {
		c->every = c->next;
		c->left = c->every;
		c->at = c->every * bpf_get_prandom_u32() >> 32;
	}
	if (--c->left != c->at)
		return false;
	if (!--c->room) {
		if (c->next < c->every * 2 && c->every < EVERY_MAX)
			c->next = c->every * 2;
		c->room = AGAIN_ROOM;
	}
	return true;
}

#define SEND(CAP) do { \
	struct faults_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r) + (CAP), 0); \
	if (!r) \
		return; \
	r->time = bpf_ktime_get_ns(); \
	r->addr = e->addr; \
	r->every = every; \
	r->seen = c->seen; \
	r->cpu = cpu; \
	r->tid = stack_tid(task, k->ns_dev, k->ns_ino); \
	r->pages = pages; \
	KERNEL_REGS_WIRE(r->regs, &e->regs); \
	r->bytes = stack_copy(r->stack, sp, want, CAP); \
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP); \
} while (0)

static __always_inline void tell(struct fault_event *e, const struct faults_ctl *k, struct faults_cpu *c, __u32 cpu, __u32 pages,
				 __u64 every)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 sp = e->regs.sp, hi = stack_end(task, sp), want = hi ? hi - sp : FAULTS_STACK;

	if (want <= 1024)
		SEND(1024);
	else if (want <= 4096)
		SEND(4096);
	else
		SEND(FAULTS_STACK);
}

SEC("perf_event")
int at_fault(struct fault_event *e)
{
	struct bpf_perf_event_data_kern *kern = bpf_cast_to_kern_ctx(e);
	__u64 bytes = kern->data->data_page_size, every = 1;
	__u32 zero = 0, cpu = bpf_get_smp_processor_id(), pages = bytes / FAULTS_PAGE;
	struct faults_ctl *k = bpf_map_lookup_elem(&ctl, &zero);
	struct faults_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	bool large = pages > 1;

	if (!k || !c)
		return 0;
	if (large) {
		c->seen.large++;
		c->seen.large_pages += pages;
	} else {
		pages = 1;	/* also one that has gone again */
		c->seen.small++;
		look_at_window(c);
		if (!is_sampled(c))
			return 0;
		every = c->every;
	}
	tell(e, k, c, cpu, pages, every);
	return 0;	/* perf_event itself has no ring to write to */
}
