/*
 * What differs between processors in controlling a process: registers, system calls, signal
 * frames, breakpoints. One file a processor, regs-x86_64.c, implements it; nothing else in
 * this folder knows a register's name or an instruction. arm64 goes into regs-arm64.c.
 *
 * Every tid is a thread in a ptrace-stop of ours. Errors carry ERR_GONE if it was killed.
 */
#ifndef HEAPTOP_TARGET_CPU_H
#define HEAPTOP_TARGET_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;

struct cpu_regs {
	struct user_regs_struct r;
};

/* ELF e_machine of programs this build can control, and that machine's usual name. */
extern const int cpu_elf_machine;
extern const char cpu_name[];

struct err *cpu_regs_get(pid_t tid, struct cpu_regs *ret);
struct err *cpu_regs_set(pid_t tid, const struct cpu_regs *regs);
uint64_t cpu_pc(const struct cpu_regs *regs);
uint64_t cpu_sp(const struct cpu_regs *regs);
uint64_t cpu_tp(const struct cpu_regs *regs);
/* As the unwinder takes them: callee-saved ones; ip is the pc itself. */
struct wire_regs;
void cpu_wire_regs(const struct cpu_regs *regs, struct wire_regs *ret);
/* The same ones as perf_event takes them with a sample: the mask to ask for them by, and what comes. */
extern const uint64_t cpu_perf_regs;
void cpu_perf_wire_regs(const uint64_t *values, struct wire_regs *ret);
void cpu_set_pc(struct cpu_regs *regs, uint64_t pc);

/* Number of the system call the thread is in, -1 if it is in none; its result at its exit. */
long cpu_syscall_number(const struct cpu_regs *regs);
int64_t cpu_syscall_result(const struct cpu_regs *regs);

/*
 * Registers with which the thread can be set going from somewhere else than the place it was
 * interrupted at: if a system call was interrupted and the kernel was about to restart it, they
 * restart it. `fresh`: always from the beginning (a remaining time starts anew); otherwise
 * through restart_syscall(2), which is right as long as nothing replaced the kernel's record
 * of it (a sigreturn does).
 */
void cpu_leave_syscall(struct cpu_regs *regs, bool fresh);
/* Does the kernel hold such a record for the thread? */
bool cpu_has_restart(const struct cpu_regs *regs);
/* Is the call one that the kernel went on with before? Its number is restart_syscall(2)'s then. */
bool cpu_is_restarted(const struct cpu_regs *regs);

/*
 * Are they those of a system call that the kernel is about to restart or to let fail with EINTR, which it
 * decides when the thread leaves its stop: by whether a signal is handled then, and how?
 */
bool cpu_restarts(const struct cpu_regs *regs);

/*
 * signal(7), "Interruption of system calls ... by stop signals": some system calls fail with
 * EINTR when their thread is merely stopped. cpu_may_retry: are regs at such a failure? The last
 * kind only if descriptor *ret_fd is a socket. cpu_retry_syscall turns it into one that the
 * kernel restarts from its beginning unless a signal is handled first; only in a
 * PTRACE_EVENT_STOP. cpu_begin_anew does that to one that would be restarted by restart_syscall(2), and was call `nr`.
 */
enum cpu_retry {
	CPU_RETRY_NEVER,
	CPU_RETRY,
	CPU_RETRY_SOCKET,
};
enum cpu_retry cpu_may_retry(const struct cpu_regs *regs, int *ret_fd);
void cpu_retry_syscall(struct cpu_regs *regs);
void cpu_begin_anew(struct cpu_regs *regs, long nr);

/*
 * Code that the target already has, through which one of its threads can be made to call the kernel
 * (remote.h tells how): a system call instruction, and instructions that load sigreturn's number and get
 * to one. Found byte by byte: a way may begin in the middle of an instruction.
 */
#define CPU_WAY_MAX 32		/* bytes of `back` */
struct cpu_way {
	uint64_t trap;		/* a system call instruction; 0: none found yet */
	uint64_t back;		/* sigreturn from any registers cpu_way_call leaves; 0: none found yet */
	bool direct;		/* `back` has its own system call instruction and takes nothing off the stack */
	uint8_t words;		/* else: of the stack, before its return address, which is `trap` */
	uint8_t len;		/* what lies at `back`, to see whether it still does */
	uint8_t bytes[CPU_WAY_MAX];
};
/* A direct one, as the C library's signal trampoline is, in `code`, which lies at addr; *way is changed
 * only if there is one. */
bool cpu_way_find_direct(const uint8_t *code, size_t len, uint64_t addr, struct cpu_way *way);
/* Another one: add what *way still lacks and `code` has. True: it is complete. */
bool cpu_way_find(const uint8_t *code, size_t len, uint64_t addr, struct cpu_way *way);
/* Is there a system call instruction in the first bytes of `code`? */
#define CPU_TRAP_LEN 2
bool cpu_is_trap(const uint8_t code[CPU_TRAP_LEN]);

/* Offset in `code` of a system call instruction with a return behind it; len: there is none. */
size_t cpu_find_call_return(const uint8_t *code, size_t len);
/* Registers that make the thread call nr(args) there, with its return address at sp. */
void cpu_call_enter(struct cpu_regs *regs, uint64_t at, uint64_t sp, long nr, const uint64_t args[6]);

/* Bytes below the stack pointer that belong to the running function all the same. */
extern const size_t cpu_red_zone;

/*
 * The frame that a signal handler's entry would have left on the stack, for a thread with
 * registers `regs`: sigreturn from it gives the thread those registers, its vector state and
 * `sigmask`. Below it lie the words that the way takes. All ends at or below `top`.
 */
struct cpu_frame {
	uint64_t addr;		/* where bytes[0] belongs */
	uint64_t frame;		/* struct rt_sigframe */
	uint8_t *bytes;		/* the caller frees them */
	size_t len;
};
struct err *cpu_frame_build(pid_t tid, const struct cpu_regs *regs, uint64_t sigmask,
			    const struct cpu_way *way, uint64_t top, struct cpu_frame *ret);

/* Registers that make the system call sigreturn from the frame. */
void cpu_way_enter(struct cpu_regs *regs, const struct cpu_way *way, const struct cpu_frame *frame);
/* At its entry stop: is it the one of cpu_way_enter? */
bool cpu_way_entered(const struct cpu_regs *regs, const struct cpu_way *way);
/* There: make it system call nr(args) instead, and let the thread go on `back` after it. */
void cpu_way_call(struct cpu_regs *regs, const struct cpu_way *way, const struct cpu_frame *frame,
		  long nr, const uint64_t args[6]);

/*
 * A marker to be put in place of an empty function (ld.so's debug hook), `old` being its
 * CPU_MARKER_LEN first bytes: code that does nothing but a harmless system call, seen by
 * PTRACE_SYSCALL, and returns. Unlike a breakpoint it hurts nobody when no tracer is left.
 * False if the function isn't empty or too short.
 */
#define CPU_MARKER_LEN 16
bool cpu_marker_build(const uint8_t old[CPU_MARKER_LEN], uint8_t ret[CPU_MARKER_LEN]);
/* In a syscall stop: is it the marker at addr? */
bool cpu_marker_hit(const struct cpu_regs *regs, uint64_t addr);
/* At the entry stop: make the kernel skip the call. At the exit stop: registers as they were at
 * the function's entry; saved[] is what lies at the stack pointer. */
void cpu_marker_skip(struct cpu_regs *regs);
#define CPU_MARKER_SAVED 3
void cpu_marker_undo(struct cpu_regs *regs, uint64_t addr, const uint64_t saved[CPU_MARKER_SAVED]);

/* A hardware breakpoint on execution at addr, in this thread alone; 0 removes it. */
struct err *cpu_breakpoint(pid_t tid, uint64_t addr);

/*
 * Restartable sequences: were the thread at pc, inside the sequence whose descriptor is these
 * bytes (struct rseq_cs), it would have to go on at *ret. False if pc isn't inside.
 */
bool cpu_rseq_abort(const uint8_t desc[32], uint64_t pc, uint64_t *ret);

#endif
