/* System calls made by the target; see remote.h for the idea. */
#include "target/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/proc.h"

/* What a frame needs at most: with AMX state in it, 11 KiB. */
#define FRAME_ROOM (16u << 10)
#define RSEQ_CS 8	/* offset of struct rseq's rseq_cs */

void remote_forget_threads(struct target *t)
{
	t->caller = 0;
}

void remote_forget_code(struct target *t)
{
	t->caller = 0;
	t->gadget = t->sigreturn = 0;
}

/* ---- the code to call through ---- */

#define SCAN_PIECE (256u << 10)

static uint64_t scan(struct target *t, const struct mapping *m, struct cpu_pattern pattern,
		     uint8_t *piece)
{
	for (uint64_t at = m->start; at < m->end; at += SCAN_PIECE - 16) {
		size_t len = m->end - at < SCAN_PIECE ? m->end - at : SCAN_PIECE;
		len = target_read_some(t, at, piece, len);
		const uint8_t *hit = memmem(piece, len, pattern.bytes, pattern.len);
		if (hit)
			return at + (uint64_t)(hit - piece);
		if (len < SCAN_PIECE)
			break;
	}
	return 0;
}

struct code_search {
	struct target *t;
	uint8_t *piece;
	bool libc_only;	/* first the files that are bound to have it */
};

static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strncmp(name, "/libc.", 6) == 0 || strncmp(name, "/libc-", 6) == 0 ||
			strncmp(name, "/ld-", 4) == 0 || strncmp(name, "/libpthread", 11) == 0);
}

/* Only code from files: it stays, and no heaptop has put it there. */
static bool search_mapping(void *ctx, const struct mapping *m)
{
	struct code_search *s = ctx;
	struct target *t = s->t;

	if (!m->inode || !(m->prot & PROT_EXEC) || m->prot & PROT_WRITE ||
	    s->libc_only != is_libc(m->path))
		return true;
	if (!t->gadget)
		t->gadget = scan(t, m, cpu_syscall_return, s->piece);
	for (size_t i = 0; cpu_sigreturn[i].len && !t->sigreturn; i++)
		t->sigreturn = scan(t, m, cpu_sigreturn[i], s->piece);
	return !t->gadget || !t->sigreturn;
}

static bool holds(struct target *t, uint64_t addr, struct cpu_pattern pattern)
{
	uint8_t bytes[16];

	return addr && pattern.len <= sizeof(bytes) &&
	       target_read_some(t, addr, bytes, pattern.len) == pattern.len &&
	       memcmp(bytes, pattern.bytes, pattern.len) == 0;
}

static struct err *find_code(struct target *t)
{
	bool sigreturn_holds = false;

	/* The library may have been unmapped since, or its text changed. */
	for (size_t i = 0; cpu_sigreturn[i].len; i++)
		sigreturn_holds |= holds(t, t->sigreturn, cpu_sigreturn[i]);
	if (sigreturn_holds && holds(t, t->gadget, cpu_syscall_return))
		return NULL;

	t->gadget = t->sigreturn = 0;
	CLEANUP_FREE uint8_t *piece = xmalloc(SCAN_PIECE);
	struct code_search s = { .t = t, .piece = piece, .libc_only = true };
	struct err *err = target_each_mapping(t, search_mapping, &s);
	if (!err && !(t->gadget && t->sigreturn)) {
		s.libc_only = false;
		err = target_each_mapping(t, search_mapping, &s);
	}
	if (!err && !(t->gadget && t->sigreturn))
		err = err_new(ERR_UNSUPPORTED, "process %d: no code to make a system call through was "
			      "found in it", t->pid);
	return err;
}

uint64_t remote_find_syscall(struct target *t)
{
	err_free(find_code(t));	/* it may have no sigreturn */
	return t->gadget;
}

/* ---- the thread ---- */

struct stack_fact {
	uint64_t sp, tp;
	pid_t tid;
	uint64_t lo;	/* its mapping's start; 0: not found */
	bool sure;	/* surely a stack, and not something that another object may lie below in */
	bool restarts;	/* the kernel holds the rest of an interrupted call: rather another one */
};

struct stack_search {
	struct stack_fact *facts;
	size_t n;
	size_t next;	/* facts are by sp, mappings by address: one pass */
};

static int compare_facts(const void *a, const void *b)
{
	const struct stack_fact *x = a, *y = b;

	return (x->sp > y->sp) - (x->sp < y->sp);
}

static bool match_stacks(void *ctx, const struct mapping *m)
{
	struct stack_search *s = ctx;

	for (; s->next < s->n && s->facts[s->next].sp < m->end; s->next++) {
		struct stack_fact *f = &s->facts[s->next];
		if (f->sp < m->start || !(m->prot & PROT_WRITE) || m->shared)
			continue;
		f->lo = m->start;
		/*
		 * A thread's stack and its thread control block are one mapping in glibc and
		 * musl, the block at its upper end. What else a stack pointer may point into (a
		 * fiber's stack from malloc, a Go arena) may hold other objects right below.
		 */
		f->sure = strcmp(m->path, "[stack]") == 0 ||
			  (!m->inode && f->tp > f->sp && f->tp < m->end && m->path[0] == '\0');
	}
	return s->next < s->n;
}

static bool has_seccomp(struct target *t, pid_t tid)
{
	struct proc_status status;

	return proc_status(t->pid, tid, &status) && status.seccomp != 0;
}

bool target_has_seccomp(struct target *t)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);

	for (size_t i = 0; i < n; i++) {
		if (has_seccomp(t, tids[i]))
			return true;
	}
	return false;
}

static struct err *choose_thread(struct target *t)
{
	size_t n, filtered = 0, shadowed = 0;
	const struct target_thread *threads = target_threads(t, &n);

	if (t->caller)
		return NULL;
	if (!n)
		return target_gone(t);
	CLEANUP_FREE struct stack_fact *facts = xcalloc(n, sizeof(*facts));
	for (size_t i = 0; i < n; i++)
		facts[i] = (struct stack_fact){ .tid = threads[i].tid,
						.sp = threads[i].sp, .tp = threads[i].tp };
	for (size_t i = 0; i < n; i++) {
		struct cpu_regs regs;
		struct err *err = cpu_regs_get(facts[i].tid, &regs);
		facts[i].restarts = err || cpu_has_restart(&regs);
		err_free(err);
	}
	qsort(facts, n, sizeof(*facts), compare_facts);
	struct stack_search s = { .facts = facts, .n = n };
	struct err *err = target_each_mapping(t, match_stacks, &s);
	if (err)
		return err;

	for (int pass = 0; pass < 3 && !t->caller; pass++) {
		for (size_t i = 0; i < n && !t->caller; i++) {
			const struct stack_fact *f = &facts[i];
			struct proc_status status;
			if (!f->lo || pass != (f->sure ? f->restarts : 2) ||
			    f->sp - f->lo < FRAME_ROOM + cpu_red_zone ||
			    !proc_status(t->pid, f->tid, &status))
				continue;
			if (status.seccomp) {
				filtered++;
			} else if (status.shadow_stack) {
				shadowed++;
			} else {
				t->caller = f->tid;
				t->caller_lo = f->lo;
			}
		}
	}
	if (t->caller)
		return NULL;
	if (filtered)
		return err_new(ERR_DENIED, "process %d runs under a seccomp filter: heaptop can't make "
			       "it map memory", t->pid);
	if (shadowed)
		return err_new(ERR_UNSUPPORTED, "process %d uses shadow stacks: heaptop can't make it "
			       "call the kernel", t->pid);
	return err_new(ERR_BUSY, "process %d: no thread has room on its stack right now: try again",
		       t->pid);
}

/*
 * A thread stopped within a restartable sequence (rseq(2); per-CPU caches of tcmalloc) must not
 * simply go on there: the kernel would have aborted it, but sees the pc only of our call.
 */
static void abort_rseq(struct target *t, pid_t tid, struct cpu_regs *regs)
{
	struct __ptrace_rseq_configuration config = { 0 };
	uint64_t desc = 0, abort_at;
	uint8_t bytes[32];

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(config), &config) < 0 ||
	    !config.rseq_abi_pointer)
		return;
	if (target_read_some(t, config.rseq_abi_pointer + RSEQ_CS, &desc, sizeof(desc)) !=
		    sizeof(desc) ||
	    !desc || target_read_some(t, desc, bytes, sizeof(bytes)) != sizeof(bytes))
		return;
	if (cpu_rseq_abort(bytes, cpu_pc(regs), &abort_at))
		cpu_set_pc(regs, abort_at);
}

/* ---- the call ---- */

struct call {
	struct target *t;
	pid_t tid;
	struct cpu_regs regs;		/* as found, rseq aborted */
	uint64_t mask;
	uint64_t frame;
	uint8_t *bytes, *under;		/* the frame, and what lay there before */
	size_t len;
	uint64_t kept;			/* signals that came meanwhile: bit n-1 */
};

/* Wait for the next stop of the calling thread. True: it is a stop at a system call. */
static struct err *next_stop(struct call *c, bool *ret_syscall)
{
	int status, sig;

	while (waitpid(c->tid, &status, __WALL) != c->tid) {
		if (errno != EINTR) {
			if (c->t->launched && c->tid == c->t->pid)
				target_set_exited(c->t, -1);
			return target_gone(c->t);
		}
	}
	*ret_syscall = false;
	switch (target_stop_kind(status, &sig)) {
	case STOP_SYSCALL:
		*ret_syscall = true;
		return NULL;
	case STOP_SIGNAL:
		/*
		 * All that can be blocked is; SIGSTOP can't: it is sent again afterwards. A
		 * fault would be ours (the frame or the code isn't what we thought): the
		 * registers go back.
		 */
		if (sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP ||
		    sig == SIGSYS)
			return err_new(ERR_OTHER, "process %d: signal %d during a system call made for "
				       "heaptop", c->t->pid, sig);
		if (sig >= 1 && sig <= 64)
			c->kept |= 1ull << (sig - 1);
		return NULL;
	case STOP_EXIT:
		if (target_thread(c->t, c->tid) && target_thread(c->t, c->tid)->watched)
			c->t->exit_held = c->tid;
		else
			ptrace(PTRACE_CONT, c->tid, 0, 0L);
		return target_gone(c->t);
	case STOP_DEAD:
		if (c->t->launched && c->tid == c->t->pid)
			target_set_exited(c->t, status);
		else
			target_drop_thread(c->t, c->tid);
		return target_gone(c->t);
	default:
		return NULL;
	}
}

static struct err *run_to_syscall_stop(struct call *c)
{
	for (int i = 0; i < 1000; i++) {
		bool at_syscall;
		if (ptrace(PTRACE_SYSCALL, c->tid, 0, 0L) < 0)
			return err_errno(errno, "thread %d can't go on", c->tid);
		struct err *err = next_stop(c, &at_syscall);
		if (err || at_syscall)
			return err;
	}
	return err_new(ERR_BUSY, "thread %d is flooded with signals", c->tid);
}

static struct err *prepare(struct call *c)
{
	if (ptrace(PTRACE_GETSIGMASK, c->tid, sizeof(c->mask), &c->mask) < 0)
		return err_errno(errno, "can't read the signal mask of thread %d", c->tid);
	struct err *err = cpu_regs_get(c->tid, &c->regs);
	if (err)
		return err;
	abort_rseq(c->t, c->tid, &c->regs);
	err = cpu_frame_build(c->tid, &c->regs, c->mask, c->t->sigreturn,
			      cpu_sp(&c->regs) - cpu_red_zone, &c->frame, &c->bytes, &c->len);
	if (err)
		return err;
	if (c->frame < c->t->caller_lo || c->frame >= cpu_sp(&c->regs))
		return err_new(ERR_BUSY, "thread %d has no room on its stack", c->tid);
	c->under = xmalloc(c->len);
	err = target_read(c->t, c->frame, c->under, c->len);
	if (!err)
		err = target_write(c->t, c->frame, c->bytes, c->len);
	return err;
}

/* From here on the thread is away, and comes back whatever happens. */
static struct err *make_call(struct call *c, long nr, const uint64_t args[6], int64_t *ret)
{
	const uint64_t all = ~0ull;
	struct cpu_regs regs = c->regs;

	cpu_call_prepare(&regs, c->t->gadget, c->frame, nr, args);
	struct err *err = cpu_regs_set(c->tid, &regs);
	if (err)
		return err;
	if (ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(all), &all) < 0)
		return err_errno(errno, "can't block the signals of thread %d", c->tid);
	err = run_to_syscall_stop(c);		/* its entry */
	if (!err)
		err = run_to_syscall_stop(c);	/* and its exit */
	if (!err)
		err = cpu_regs_get(c->tid, &regs);
	if (!err)
		*ret = cpu_syscall_result(&regs);
	return err;
}

static struct err *undo(struct call *c)
{
	struct cpu_regs back = c->regs;

	if (c->t->exited || c->t->exit_held || !target_thread(c->t, c->tid))
		return NULL;
	cpu_leave_syscall(&back, false);
	if (ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(c->mask), &c->mask) < 0)
		return err_errno(errno, "can't restore the signal mask of thread %d", c->tid);
	struct err *err = cpu_regs_set(c->tid, &back);
	if (!err)
		err = target_write(c->t, c->frame, c->under, c->len);
	for (int sig = 1; sig <= 64; sig++) {
		if (c->kept >> (sig - 1) & 1)
			syscall(SYS_tgkill, c->t->pid, c->tid, sig);
	}
	return err;
}

struct err *target_syscall(struct target *t, long nr, const uint64_t args[6], int64_t *ret)
{
	*ret = -ENOSYS;
	if (!t->stopped)
		return err_new(ERR_OTHER, "process %d isn't stopped", t->pid);
	struct err *err = choose_thread(t);
	if (!err)
		err = find_code(t);
	if (err)
		return err;

	struct call c = { .t = t, .tid = t->caller };
	err = prepare(&c);
	if (!err) {
		t->view_valid = false;
		err = make_call(&c, nr, args, ret);
		struct err *undo_err = undo(&c);
		if (!err)
			err = undo_err;
		else
			err_free(undo_err);
	}
	free(c.bytes);
	free(c.under);
	return err;
}
