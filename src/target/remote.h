/*
 * System calls made by the target for us, target_syscall() of target.h, so that heaptop may be
 * killed at any instant of it without harm.
 *
 * Setting a thread's registers and stepping over a planted system call is not that: with the
 * tracer gone the thread runs on from there into nothing. Instead the thread gets what it has
 * at a signal handler's end, and is about to leave it:
 *
 *	stack:  [its frames][red zone] ... [rt_sigframe: registers, signal mask, vector state]
 *	pc  ->  a system call instruction that the target's own code already has; number: sigreturn
 *
 * If nobody is there any more, the kernel puts back all that is in the frame. While heaptop lives it
 * drives the thread with PTRACE_SYSCALL to the entry of that call. There it sets, all at once, another
 * number with its arguments, and as the place where that one returns to, code of the target that
 * calls sigreturn: __restore_rt of the C library, or what cpu_way_find finds in its place. So it is
 * sigreturn before the change and the wanted call followed by sigreturn after it. At the exit of the
 * call heaptop puts back registers, mask and the bytes under the frame itself.
 *
 * The frame is written before the registers are set, the registers before the signal mask (all
 * blocked, so that no handler runs in between), and undone in the opposite order: at each instant
 * either everything is as it was, or the frame brings it back.
 *
 * What sigreturn would lose is put into the frame: a system call that the kernel was going to
 * restart has to be restarted by its registers (cpu_leave_syscall), a restartable sequence
 * (rseq) the thread stood in has to be aborted, and the alternate signal stack must stay.
 *
 * Restarting by registers has one flaw: with a signal that comes during the stop the call would have
 * failed with EINTR, and is made anew instead. So before the threads run again, the thread is led
 * back to where the kernel itself decides that, with the registers it was found with.
 *
 * Thread: one whose stack is surely a stack, preferably; without seccomp; room below it.
 */
#ifndef HEAPTOP_TARGET_REMOTE_H
#define HEAPTOP_TARGET_REMOTE_H

#include <stdint.h>

struct target;

/* Before threads are let go: a system call the calling thread was in is the kernel's to restart. Forgets what
 * was found out about threads. */
void remote_leave_threads(struct target *t);
/* Forget what was found out about code: an exec. */
void remote_forget_code(struct target *t);

/* Address of "syscall; ret" in one of the target's files, 0 if there is none. */
uint64_t remote_find_call(struct target *t);

#endif
