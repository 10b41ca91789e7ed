/*
 * The place to hook at: libraries mapped and relocated, no constructor has run. That is ld.so's
 * call of its empty function _dl_debug_state with r_debug.r_state == RT_CONSISTENT, which debuggers
 * have a breakpoint on (r_brk). At the exec its address isn't published yet, but it is a symbol
 * of ld.so, in glibc and in musl.
 *
 * A breakpoint would kill the program by SIGTRAP if heaptop were killed before the hit;
 * hardware ones, too, outlive their tracer. So the empty function gets a marker written over
 * it, code that makes one harmless system call and returns, and the program runs under
 * PTRACE_SYSCALL until it makes that one. Breakpoints are used only where there is no room for
 * the marker or no such symbol; in the latter case the program stops at its entry point, when
 * its constructors have run.
 *
 * A static program is at its entry point right after the exec.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/proc.h"

#define START_PATIENCE 3.0	/* seconds from one stop to the next; less than others can be let wait for us */

/* ---- running it, one stop at a time ---- */

enum run_end {
	RUN_SYSCALL,	/* in a syscall stop */
	RUN_TRAP,	/* SIGTRAP is about to be delivered: a breakpoint, or a SIGTRAP of somebody */
	RUN_OVER,	/* the process ends or has ended: exited or exit_held is set */
	RUN_HELD,	/* it stood still for START_PATIENCE, and is in PTRACE_EVENT_STOP now */
};

/*
 * The next report of the first thread; false: none, nor will there be. One that stands still for too long is asked to
 * stop, and *asked set. In an uninterruptible wait it can't: then it is in the middle of something, and waited for.
 */
static bool next_report(struct target *t, bool *asked, int *ret_status)
{
	for (;;) {
		pid_t got = t->patient ? target_wait(t, t->pid, ret_status)
			: target_wait_until(t->pid, target_now() + START_PATIENCE, ret_status);
		if (got)
			return got > 0;
		ptrace(PTRACE_INTERRUPT, t->pid, 0, 0L);
		*asked = true;
	}
}

/* Let the first thread go on until there is something for us; all else is passed on. */
static enum run_end run(struct target *t, long request)
{
	int deliver = 0;
	bool asked = false;

	for (;;) {
		int status, sig;
		if (asked)	/* any other stop clears it */
			ptrace(PTRACE_INTERRUPT, t->pid, 0, 0L);
		ptrace(request, t->pid, 0, (long)deliver);
		deliver = 0;
		if (!next_report(t, &asked, &status)) {
			target_set_exited(t, -1);
			return RUN_OVER;
		}
		long next = request == PTRACE_LISTEN ? PTRACE_SYSCALL : request;
		switch (target_stop_kind(status, &sig)) {
		case STOP_DEAD:
			target_set_exited(t, status);
			return RUN_OVER;
		case STOP_EXIT:
			t->exit_held = t->pid;
			return RUN_OVER;
		case STOP_SYSCALL:
			if (!asked)
				return RUN_SYSCALL;
			break;		/* out of the call that it stood still in, which begins anew */
		case STOP_SIGNAL:
			if (sig == SIGTRAP)
				return RUN_TRAP;
			deliver = sig;
			break;
		case STOP_TRAP:
		case STOP_GROUP:
			if (asked) {
				target_thread(t, t->pid)->group_stop = sig != SIGTRAP;
				log_line("process %d stood still for %.0f s while it started: it is taken as it is now",
					 t->pid, START_PATIENCE);
				return RUN_HELD;
			}
			if (sig != SIGTRAP)
				next = PTRACE_LISTEN;
			break;
		default:
			break;
		}
		request = next;
	}
}

/* ---- what the kernel and the files say ---- */

struct auxv {
	uint64_t base, entry, phdr, phnum;
};

static struct err *read_auxv(struct target *t, struct auxv *ret)
{
	size_t len;
	CLEANUP_FREE char *text = proc_read(t->pid, 0, "auxv", 1 << 16, &len);

	memset(ret, 0, sizeof(*ret));
	if (!text)
		return err_errno(errno, "process %d: can't read its auxiliary vector", t->pid);
	for (size_t at = 0; at + 16 <= len; at += 16) {
		uint64_t pair[2];
		memcpy(pair, text + at, 16);
		switch (pair[0]) {
		case AT_BASE:
			ret->base = pair[1];
			break;
		case AT_ENTRY:
			ret->entry = pair[1];
			break;
		case AT_PHDR:
			ret->phdr = pair[1];
			break;
		case AT_PHNUM:
			ret->phnum = pair[1];
			break;
		}
	}
	return NULL;
}

struct file_search {
	struct target *t;
	uint64_t addr;
	struct elf_file *file;
};

static bool match_file(void *ctx, const struct mapping *m)
{
	struct file_search *s = ctx;

	if (s->addr < m->start || s->addr >= m->end)
		return true;
	int fd = target_open_mapping(s->t, m);
	if (fd >= 0)
		err_free(elf_file_open(fd, m->path, &s->file));
	return false;
}

static struct elf_file *file_at(struct target *t, uint64_t addr)
{
	struct file_search s = { .t = t, .addr = addr };

	err_free(target_each_mapping(t, match_file, &s));
	return s.file;
}

struct linker {
	uint64_t hook;		/* address of _dl_debug_state */
	uint64_t debug;		/* address of struct r_debug, 0: not known */
	uint64_t debug_ptr;	/* address of a pointer to it (musl), 0: not known */
};

static uint64_t symbol(struct elf_file *file, uint64_t bias, const char *name)
{
	uint64_t vaddr = elf_file_find_symbol(file, name);

	return vaddr ? bias + vaddr : 0;
}

/* The dynamic linker's addresses; false if there is none or it has no such hook. */
static bool find_linker(struct target *t, const struct auxv *aux, struct linker *ret)
{
	/* Run as a program of its own (ld.so PROGRAM), the linker is what the entry point is in. */
	struct elf_file *file = file_at(t, aux->base ? aux->base : aux->entry);
	uint64_t bias = aux->base;

	memset(ret, 0, sizeof(*ret));
	if (!file)
		return false;
	if (!bias)
		bias = aux->entry - elf_file_entry(file);
	ret->hook = symbol(file, bias, "_dl_debug_state");
	ret->debug = symbol(file, bias, "_r_debug");
	ret->debug_ptr = symbol(file, bias, "_dl_debug_addr");
	/* A static-pie of glibc has these symbols as well, and nobody to call the function in time. */
	if (!aux->base && (elf_file_type(file) != ET_DYN ||
			   !(ret->debug_ptr || elf_file_find_symbol(file, "_rtld_global"))))
		ret->hook = 0;
	elf_file_unref(file);
	return ret->hook && (ret->debug || ret->debug_ptr);
}

static bool is_consistent(struct target *t, const struct linker *linker)
{
	struct r_debug debug;
	uint64_t addr = linker->debug;

	if (!addr && target_read_some(t, linker->debug_ptr, &addr, sizeof(addr)) != sizeof(addr))
		return false;
	return target_read_some(t, addr, &debug, sizeof(debug)) == sizeof(debug) &&
	       debug.r_version > 0 && debug.r_map && debug.r_state == RT_CONSISTENT;
}

/* ---- three ways to stop at an address ---- */

/* Of one that is held before it got there. A thread within the marker stays there: it harms nobody. */
static struct err *take_marker_out(struct target *t, uint64_t hook, const uint8_t old[CPU_MARKER_LEN])
{
	struct cpu_regs regs;
	struct err *err = cpu_regs_get(t->pid, &regs);

	if (err || (cpu_pc(&regs) >= hook && cpu_pc(&regs) < hook + CPU_MARKER_LEN))
		return err;
	return target_write_text(t, hook, old, CPU_MARKER_LEN);
}

/* The marker. *ret_done: false, nothing was changed, if it doesn't fit. */
static struct err *run_to_marker(struct target *t, const struct linker *linker, bool *ret_done)
{
	uint8_t old[CPU_MARKER_LEN], code[CPU_MARKER_LEN];

	*ret_done = false;
	if (target_read_some(t, linker->hook, old, sizeof(old)) != sizeof(old) ||
	    !cpu_marker_build(old, code))
		return NULL;
	struct err *err = target_write_text(t, linker->hook, code, sizeof(code));
	if (err)
		return err;
	*ret_done = true;
	for (;;) {
		struct cpu_regs regs;
		uint64_t saved[CPU_MARKER_SAVED];

		enum run_end end = run(t, PTRACE_SYSCALL);
		if (end == RUN_OVER)
			return NULL;
		if (end == RUN_HELD)
			return take_marker_out(t, linker->hook, old);
		err = cpu_regs_get(t->pid, &regs);
		if (err)
			return err;
		if (!cpu_marker_hit(&regs, linker->hook))
			continue;
		if (is_consistent(t, linker)) {
			cpu_marker_skip(&regs);
			err = cpu_regs_set(t->pid, &regs);
			if (err)
				return err;
			if (run(t, PTRACE_SYSCALL) == RUN_OVER)
				return NULL;
			/* Out of the marker first, then the old text: right at each instant. */
			err = cpu_regs_get(t->pid, &regs);
			if (!err)
				err = target_read(t, cpu_sp(&regs), saved, sizeof(saved));
			if (err)
				return err;
			cpu_marker_undo(&regs, linker->hook, saved);
			err = cpu_regs_set(t->pid, &regs);
			if (!err)
				err = target_write_text(t, linker->hook, old, sizeof(old));
			return err;
		}
		/* Not yet: past the exit of this call, or it would be taken for another hit. */
		if (run(t, PTRACE_SYSCALL) == RUN_OVER)
			return NULL;
	}
}

/* A hardware breakpoint; `linker` NULL: the first hit is the right one. */
static struct err *run_to_breakpoint(struct target *t, uint64_t addr, const struct linker *linker)
{
	struct err *err = cpu_breakpoint(t->pid, addr);

	while (!err) {
		struct cpu_regs regs;
		enum run_end end = run(t, PTRACE_CONT);
		if (end == RUN_OVER)
			return NULL;
		if (end == RUN_HELD)
			break;
		err = cpu_regs_get(t->pid, &regs);
		if (err || (cpu_pc(&regs) == addr && (!linker || is_consistent(t, linker))))
			break;
	}
	struct err *clear_err = cpu_breakpoint(t->pid, 0);
	if (err) {
		err_free(clear_err);
		return err;
	}
	return clear_err;
}

static struct err *run_to_linker_hook(struct target *t, const struct linker *linker)
{
	bool done;
	struct err *err;

	if (is_consistent(t, linker)) {	/* its exec wasn't seen in time */
		log_line("process %d: its first constructors ran unseen", t->pid);
		return NULL;
	}
	err = run_to_marker(t, linker, &done);

	if (err || done)
		return err;
	log_line("process %d: the dynamic linker's hook has no room for a marker, using a breakpoint",
		 t->pid);
	err = run_to_breakpoint(t, linker->hook, linker);
	if (!err)
		return NULL;
	/* No debug registers (some virtual machines): the first system call after it then. */
	log_line("process %d: %s: the first constructors run unseen", t->pid, err->text);
	err_free(err);
	while (!is_consistent(t, linker) && run(t, PTRACE_SYSCALL) < RUN_OVER)
		;
	return NULL;
}

/* ---- the whole way ---- */

static void new_image(struct target *t)
{
	/* All other threads are gone, and with them all we knew. */
	t->nthreads = 0;
	struct thread *th = target_add_thread(t, t->pid);
	th->watched = true;
	th->state = THREAD_STOPPED;
	/* another thread may have had others, and has the first one's place now */
	ptrace(PTRACE_SETOPTIONS, t->pid, 0, target_options(t, t->pid));
	t->live = t->pid;
	t->exit_held = 0;
	t->first_left = false;
	t->shares = t->born = t->many_threads = false;
	t->view_valid = false;
	target_close_mem(t);
	target_close_maps(t);
	remote_forget_code(t);
	free(t->command);
	t->command = proc_command(t->pid);
}

struct err *target_run_to_start(struct target *t, bool patient)
{
	struct auxv aux;
	struct linker linker;

	new_image(t);
	t->patient = patient;
	t->stopped = true;
	t->stop_began = target_now();
	struct err *err = target_check_architecture(t->pid);
	/* Out of execve(2) first. */
	enum run_end end = err ? RUN_SYSCALL : run(t, PTRACE_SYSCALL);
	if (end == RUN_OVER)
		goto over;
	if (end == RUN_HELD)
		return NULL;
	if (!err && target_has_lost_rights(t)) {
		err = target_execute_untraced(t);
		if (!err)
			return NULL;
		log_line("%s: it runs without its rights", err->text);
		err_free(err);
		err = NULL;
	}
	if (!err)
		err = target_open_mem(t);
	if (!err)
		err = read_auxv(t, &aux);
	if (err)
		return err;
	if (find_linker(t, &aux, &linker)) {
		err = run_to_linker_hook(t, &linker);
	} else if (aux.base) {
		log_line("process %d: its dynamic linker has no debug hook: constructors run unseen",
			 t->pid);
		err = run_to_breakpoint(t, aux.entry, NULL);
	}
	if (err)
		return err;
	if (t->exited || t->exit_held)
		goto over;
	t->stop_began = target_now();
	return NULL;
over:
	t->stopped = false;
	return err;
}
