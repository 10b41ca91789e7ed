/*
 * System calls made by the target for us, target_syscall() of target.h, so that heaptop may be
 * killed at any instant of it without harm.
 *
 * Setting a thread's registers and stepping over a planted system call is not that: with the
 * tracer gone the thread runs on from there into nothing. Instead the thread gets what it has
 * after a signal handler's entry:
 *
 *	stack:  [its frames][red zone] ... [rt_sigframe: registers, signal mask, vector state]
 *	sp  ->  first word of the rt_sigframe = address of sigreturn's code (__restore_rt)
 *	pc  ->  a "syscall; ret" that the target's own files already have; arguments in registers
 *
 * If nobody is there any more, the thread does the system call, returns into sigreturn, and the
 * kernel puts back all that is in the frame. The frame is written before the registers are set,
 * the registers before the signal mask (all blocked, so that no handler runs in between), and
 * undone in the opposite order: at each instant either everything is as it was, or the frame
 * brings it back. While heaptop lives it drives the thread with PTRACE_SYSCALL to the exit of
 * the call and puts back registers, mask and the bytes under the frame itself.
 *
 * What sigreturn would lose is put into the frame: a system call that the kernel was going to
 * restart has to be restarted by its registers (cpu_leave_syscall), a restartable sequence
 * (rseq) the thread stood in has to be aborted, and the alternate signal stack must stay.
 *
 * Thread: one whose stack is surely a stack, preferably; without seccomp; room below it.
 */
#ifndef HEAPTOP_TARGET_REMOTE_H
#define HEAPTOP_TARGET_REMOTE_H

#include <stdint.h>

struct target;

/* Forget what was found out about threads (they ran) and about code (an exec). */
void remote_forget_threads(struct target *t);
void remote_forget_code(struct target *t);

/* Address of "syscall; ret" in one of the target's files, 0 if there is none. */
uint64_t remote_find_syscall(struct target *t);

#endif
