/* What our programs in the kernel have in common: the task they run on, and copies of its stack. */
#ifndef HEAPTOP_TARGET_STACK_BPF_H
#define HEAPTOP_TARGET_STACK_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

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

/* Where the thread's own stack ends; 0: not known, or it runs on another one. */
static __always_inline __u64 stack_end(struct task_struct *task, __u64 sp)
{
	__u64 hi = task->pid == task->tgid ? task->mm->start_stack : task->thread.fsbase;

	/* both libcs place the thread pointer on top of the stack it belongs to */
	return sp < hi && hi - sp < (1u << 30) ? hi : 0;
}

#define STACK_STEP 1024u	/* bytes read at once */

/* Of bytes at `from`, which may end within a page, as many as there are; 0: none. `to` has room for STACK_STEP. */
static __always_inline __u32 stack_step(void *to, __u64 from, __u64 want)
{
	__u64 n = want < STACK_STEP ? want : STACK_STEP, page = 4096 - (from & 4095);

	if (!n)
		return 0;
	if (n <= STACK_STEP && !bpf_probe_read_user(to, n, (void *)from))
		return n;
	/* behind the page's end there may be nothing */
	if (page < n && page <= STACK_STEP && !bpf_probe_read_user(to, page, (void *)from))
		return page;
	return 0;
}

/* The same of `want` bytes from sp on, in whole words; `to` has room for `cap`, a constant. */
static __always_inline __u32 stack_copy(__u8 *to, __u64 sp, __u64 want, __u32 cap)
{
	__u32 got = 0;

	for (__u32 at = 0; at < cap; at += STACK_STEP) {
		__u32 n = want > at ? stack_step(to + at, sp + at, want - at) : 0;
		got += n;
		if (n != STACK_STEP)
			break;
	}
	return got & ~7u;
}

/* The thread's id in the PID namespace `ino` on `dev`; that of the first namespace if it isn't in that one. */
static __always_inline __u32 stack_tid(struct task_struct *task, __u64 dev, __u64 ino)
{
	struct bpf_pidns_info ids = { 0 };
	__u32 pid = task->pid;

	asm volatile("" : "+r"(pid));	/* or clang makes of both ways one that the kernel doesn't take */
	return bpf_get_ns_current_pid_tgid(dev, ino, &ids, sizeof(ids)) ? pid : ids.pid;
}

#endif
