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
#define RESTART_LOOKS 32u	/* threads looked at for one that wouldn't start its sleep anew */

void remote_forget_code(struct target *t)
{
	t->caller = t->restarts = 0;
	t->way = (struct cpu_way){ 0 };
}

/* ---- the code to call through ---- */

#define SCAN_PIECE (256u << 10)

/* Where it is looked for, in turn. */
enum code_kind {
	CODE_LIBC,	/* the files that are bound to have a direct way, and nothing but that */
	CODE_VDSO,	/* in every process, and small: part of a way at least */
	CODE_FILES,	/* any: a static program */
	CODE_KINDS,
};

struct code_search {
	struct target *t;
	uint8_t *piece;
	enum code_kind kind;
	struct cpu_way way;
	bool found;
	uint64_t call_return;	/* see remote_find_call */
};

static bool scan(struct code_search *s, const struct mapping *m)
{
	for (uint64_t at = m->start; at < m->end; at += SCAN_PIECE - CPU_WAY_MAX) {
		size_t want = m->end - at < SCAN_PIECE ? m->end - at : SCAN_PIECE;
		size_t len = target_read_some(s->t, at, s->piece, want);
		if ((!s->t->no_direct && cpu_way_find_direct(s->piece, len, at, &s->way)) ||
		    (s->kind != CODE_LIBC && cpu_way_find(s->piece, len, at, &s->way)))
			return true;
		if (len < SCAN_PIECE)
			break;
	}
	return false;
}

static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strncmp(name, "/libc.", 6) == 0 || strncmp(name, "/libc-", 6) == 0 ||
			strncmp(name, "/ld-", 4) == 0 || strncmp(name, "/libpthread", 11) == 0);
}

/* Only code from files, and the vdso: it stays, and no heaptop has put it there. */
static bool search_mapping(void *ctx, const struct mapping *m)
{
	struct code_search *s = ctx;
	bool fits = s->kind == CODE_VDSO ? !m->inode && strcmp(m->path, "[vdso]") == 0
		  : m->inode && (s->kind == CODE_FILES || is_libc(m->path));

	if (!fits || !(m->prot & PROT_EXEC) || m->prot & PROT_WRITE)
		return true;
	s->found = scan(s, m);
	return !s->found;
}

/* The library may have been unmapped since, or its text changed. */
static bool way_holds(struct target *t)
{
	const struct cpu_way *way = &t->way;
	uint8_t bytes[CPU_WAY_MAX], trap[CPU_TRAP_LEN];

	return way->back && target_read_some(t, way->back, bytes, way->len) == way->len &&
	       memcmp(bytes, way->bytes, way->len) == 0 &&
	       target_read_some(t, way->trap, trap, sizeof(trap)) == sizeof(trap) && cpu_is_trap(trap);
}

struct err *target_find_way(struct target *t)
{
	if (way_holds(t))
		return NULL;
	t->way = (struct cpu_way){ 0 };
	CLEANUP_FREE uint8_t *piece = xmalloc(SCAN_PIECE);
	struct code_search s = { .t = t, .piece = piece, .kind = CODE_LIBC };
	for (; s.kind < CODE_KINDS && !s.found; s.kind++) {
		struct err *err = target_each_mapping(t, search_mapping, &s);
		if (err)
			return err;
	}
	if (!s.found)
		return err_new(ERR_UNSUPPORTED, "process %d: neither its program nor its libraries have code "
			       "through which it could be made to call the kernel; --probe=uprobe does without", t->pid);
	t->way = s.way;
	return NULL;
}

static bool search_call_return(void *ctx, const struct mapping *m)
{
	struct code_search *s = ctx;

	if (!m->inode || !(m->prot & PROT_EXEC) || m->prot & PROT_WRITE)
		return true;
	for (uint64_t at = m->start; at < m->end && !s->call_return; at += SCAN_PIECE - CPU_WAY_MAX) {
		size_t want = m->end - at < SCAN_PIECE ? m->end - at : SCAN_PIECE;
		size_t len = target_read_some(s->t, at, s->piece, want);
		size_t off = cpu_find_call_return(s->piece, len);
		if (off < len)
			s->call_return = at + off;
		if (len < SCAN_PIECE)
			break;
	}
	return !s->call_return;
}

uint64_t remote_find_call(struct target *t)
{
	CLEANUP_FREE uint8_t *piece = xmalloc(SCAN_PIECE);
	struct code_search s = { .t = t, .piece = piece };

	err_free(target_each_mapping(t, search_call_return, &s));
	return s.call_return;
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

/*
 * The mapping that its stack pointer lies in. A thread's stack and its thread control block are one mapping in
 * glibc and musl, the block at its upper end. What else a stack pointer may point into (a fiber's stack from
 * malloc, a Go arena) may hold other objects right below.
 */
static void set_stack(struct stack_fact *f, const struct mapping *m)
{
	if (f->sp < m->start || !(m->prot & PROT_WRITE) || m->shared)
		return;
	f->lo = m->start;
	f->sure = strcmp(m->path, "[stack]") == 0 ||
		  (!m->inode && f->tp > f->sp && f->tp < m->end && m->path[0] == '\0');
}

static bool match_stacks(void *ctx, const struct mapping *m)
{
	struct stack_search *s = ctx;

	for (; s->next < s->n && s->facts[s->next].sp < m->end; s->next++)
		set_stack(&s->facts[s->next], m);
	return s->next < s->n;
}

static bool thread_has_seccomp(const struct target *t, pid_t tid)
{
	struct proc_status status;

	return proc_status(t->pid, tid, &status) && status.seccomp != 0;
}

/* EINVAL says that there is no filter; mode 1 lets no call through that is restarted. Without the right /proc tells. */
bool target_stopped_has_seccomp(struct target *t, pid_t tid)
{
	if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, 0, NULL) >= 0)
		return true;
	return errno != EINVAL && thread_has_seccomp(t, tid);
}

bool target_has_seccomp(struct target *t, size_t looks)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids), from = 0;

	if (n && thread_has_seccomp(t, tids[0]))
		return true;
	while (from < n && tids[from] <= t->filter_look)
		from++;
	for (size_t i = 0; i < n && i < looks; i++) {
		t->filter_look = tids[(from + i) % n];
		if (thread_has_seccomp(t, t->filter_look))
			return true;
	}
	return false;
}

static bool restarts(const struct stack_fact *f)
{
	struct cpu_regs regs;
	struct err *err = cpu_regs_get(f->tid, &regs);
	bool yes = err || cpu_has_restart(&regs);

	err_free(err);
	return yes;
}

static bool has_room(const struct stack_fact *f)
{
	return f->sp - f->lo >= FRAME_ROOM + cpu_red_zone;
}

/*
 * Most threads stand on a stack of their own: one of a few will do, and the kernel is asked about those. To read
 * all maps takes milliseconds where there are thousands, and the target stands still.
 */
static bool choose_quickly(struct target *t, const struct target_thread *threads, size_t n)
{
	for (size_t i = n; i-- > 0 && n - i <= RESTART_LOOKS && target_has_query(t);) {
		struct stack_fact f = { .tid = threads[i].tid, .sp = threads[i].sp, .tp = threads[i].tp };
		struct proc_status status;
		struct mapping m;

		if (!target_mapping_at(t, f.sp, &m))
			continue;
		set_stack(&f, &m);
		if (!f.lo || !f.sure || !has_room(&f) || restarts(&f) || !proc_status(t->pid, f.tid, &status) ||
		    status.seccomp || status.shadow_stack)
			continue;
		t->caller = f.tid;
		t->caller_lo = f.lo;
		return true;
	}
	return false;
}

static struct err *choose_thread(struct target *t)
{
	size_t n, filtered = 0, shadowed = 0;

	if (t->caller)
		return NULL;
	const struct target_thread *threads = target_threads(t, &n);
	if (!n)
		return target_gone(t);
	if (choose_quickly(t, threads, n))
		return NULL;
	CLEANUP_FREE struct stack_fact *facts = xcalloc(n, sizeof(*facts));
	for (size_t i = 0; i < n; i++)
		facts[i] = (struct stack_fact){ .tid = threads[i].tid,
						.sp = threads[i].sp, .tp = threads[i].tp };
	qsort(facts, n, sizeof(*facts), compare_facts);
	struct stack_search s = { .facts = facts, .n = n };
	struct err *err = target_each_mapping(t, match_stacks, &s);
	if (err)
		return err;

	for (size_t i = 0, looks = 0; i < n && looks < RESTART_LOOKS; i++) {
		if (!facts[i].lo || !facts[i].sure)
			continue;
		looks++;
		facts[i].restarts = restarts(&facts[i]);
	}
	for (int pass = 0; pass < 3 && !t->caller; pass++) {
		for (size_t i = 0; i < n && !t->caller; i++) {
			const struct stack_fact *f = &facts[i];
			struct proc_status status;
			if (!f->lo || pass != (f->sure ? f->restarts : 2) ||
			    !has_room(f) ||
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
			       "it map memory; --probe=uprobe does without", t->pid);
	if (shadowed)
		return err_new(ERR_UNSUPPORTED, "process %d uses shadow stacks: heaptop can't make it "
			       "call the kernel; --probe=uprobe does without", t->pid);
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
	struct cpu_frame frame;
	uint8_t *under;			/* what lay there before */
	uint64_t kept;			/* signals that came meanwhile: bit n-1 */
};

/* Wait for the next stop of the calling thread. True: it is a stop at a system call. */
static struct err *next_stop(struct call *c, bool *ret_syscall)
{
	int status, sig;

	if (target_wait(c->t, c->tid, &status) < 0) {
		if (c->t->launched && c->tid == c->t->pid)
			target_set_exited(c->t, -1);
		return target_gone(c->t);
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
			target_thread_ended(c->t, c->tid);
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
	return err_new(ERR_BUSY, "thread %d is flooded with signals: try again", c->tid);
}

static struct err *prepare(struct call *c)
{
	if (ptrace(PTRACE_GETSIGMASK, c->tid, sizeof(c->mask), &c->mask) < 0)
		return err_errno(errno, "can't read the signal mask of thread %d", c->tid);
	struct err *err = cpu_regs_get(c->tid, &c->regs);
	if (err)
		return err;
	abort_rseq(c->t, c->tid, &c->regs);
	err = cpu_frame_build(c->tid, &c->regs, c->mask, &c->t->way, cpu_sp(&c->regs) - cpu_red_zone,
			      &c->frame);
	if (err)
		return err;
	if (c->frame.addr < c->t->caller_lo || c->frame.addr >= cpu_sp(&c->regs))
		return err_new(ERR_BUSY, "thread %d has no room on its stack right now: try again", c->tid);
	c->under = xmalloc(c->frame.len);
	err = target_read(c->t, c->frame.addr, c->under, c->frame.len);
	if (!err)
		err = target_write(c->t, c->frame.addr, c->frame.bytes, c->frame.len);
	return err;
}

/* To the entry of sigreturn, which nobody's death can keep the thread from. */
static struct err *enter(struct call *c, struct cpu_regs *regs)
{
	const uint64_t all = ~0ull;

	*regs = c->regs;
	cpu_way_enter(regs, &c->t->way, &c->frame);
	struct err *err = cpu_regs_set(c->tid, regs);
	if (err)
		return err;
	if (ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(all), &all) < 0)
		return err_errno(errno, "can't block the signals of thread %d", c->tid);
	err = run_to_syscall_stop(c);
	if (!err)
		err = cpu_regs_get(c->tid, regs);
	if (!err && !cpu_way_entered(regs, &c->t->way))
		err = err_new(ERR_OTHER, "thread %d made another system call than heaptop's", c->tid);
	return err;
}

/* From here on the thread is away, and comes back whatever happens. */
static struct err *make_call(struct call *c, long nr, const uint64_t args[6], int64_t *ret)
{
	struct cpu_regs regs;
	struct err *err = enter(c, &regs);

	if (err)
		return err;
	cpu_way_call(&regs, &c->t->way, &c->frame, nr, args);
	err = cpu_regs_set(c->tid, &regs);
	if (!err)
		err = run_to_syscall_stop(c);	/* its exit */
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
	if (cpu_restarts(&c->regs)) {
		c->t->restarts = c->tid;
		c->t->restart_regs = c->regs;
		c->t->restart_safe = back;
	}
	if (ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(c->mask), &c->mask) < 0)
		return err_errno(errno, "can't restore the signal mask of thread %d", c->tid);
	struct err *err = cpu_regs_set(c->tid, &back);
	if (!err)
		err = target_write(c->t, c->frame.addr, c->under, c->frame.len);
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
		err = target_find_way(t);
	if (err)
		return err;

	struct call c = { .t = t, .tid = t->caller };
	err = prepare(&c);
	if (!err) {
		err = make_call(&c, nr, args, ret);
		struct err *undo_err = undo(&c);
		if (!err)
			err = undo_err;
		else
			err_free(undo_err);
	}
	free(c.frame.bytes);
	free(c.under);
	return err;
}

/* ---- the end ---- */

/* The next stop of a thread that was interrupted while it was stopped: it makes no step in between. */
static bool to_event_stop(struct target *t, pid_t tid)
{
	struct thread *th = target_thread(t, tid);
	int status, sig;

	if (!th || th->state != THREAD_STOPPED || ptrace(PTRACE_INTERRUPT, tid, 0, 0L) < 0 ||
	    ptrace(PTRACE_CONT, tid, 0, 0L) < 0)
		return false;
	if (target_wait(t, tid, &status) < 0)
		return false;
	switch (target_stop_kind(status, &sig)) {
	case STOP_TRAP:
	case STOP_GROUP:
		th->group_stop = sig != SIGTRAP;
		return true;
	case STOP_DEAD:
		if (t->launched && tid == t->pid)
			target_set_exited(t, status);
		else
			target_thread_ended(t, tid);
		return false;
	case STOP_EXIT:
		if (th->watched && t->launched)
			t->exit_held = tid;
		return false;
	case STOP_SIGNAL:	/* it is about to be handled: back to where it wasn't */
		syscall(SYS_tgkill, t->pid, tid, sig);
		return false;
	default:
		return false;
	}
}

/*
 * A call made anew by setting its registers isn't what the kernel does: a signal that came while the thread
 * was stopped would be handled first, and the call begun as if there had been none. pause(2) would wait for
 * ever. So the thread gets the kernel's own mark back ("restart this, or fail with EINTR"), in
 * a stop where the kernel looks at it; elsewhere the program would see it.
 */
void remote_leave_threads(struct target *t)
{
	pid_t tid = t->restarts;
	struct cpu_regs now;

	t->caller = t->restarts = 0;
	if (!tid || t->exited || t->exit_held || t->exec_pending || !to_event_stop(t, tid))
		return;
	struct err *err = cpu_regs_get(tid, &now);
	if (!err && memcmp(&now, &t->restart_safe, sizeof(now)) == 0)
		err = cpu_regs_set(tid, &t->restart_regs);
	err_free(err);
}
