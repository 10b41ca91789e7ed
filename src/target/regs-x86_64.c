/* x86-64: registers, system calls, signal frames; see cpu.h. */
#include "target/cpu.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/mem.h"
#include "wire/wire.h"

const int cpu_elf_machine = EM_X86_64;
const char cpu_name[] = "x86-64";

struct err *cpu_regs_get(pid_t tid, struct cpu_regs *ret)
{
	struct iovec iov = { &ret->r, sizeof(ret->r) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return err_errno(errno, "can't read the registers of thread %d", tid);
	if (iov.iov_len != sizeof(ret->r))
		return err_new(ERR_UNSUPPORTED, "thread %d runs 32-bit code", tid);
	return NULL;
}

struct err *cpu_regs_set(pid_t tid, const struct cpu_regs *regs)
{
	struct iovec iov = { (void *)&regs->r, sizeof(regs->r) };

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return err_errno(errno, "can't set the registers of thread %d", tid);
	return NULL;
}

uint64_t cpu_pc(const struct cpu_regs *regs)
{
	return regs->r.rip;
}

uint64_t cpu_sp(const struct cpu_regs *regs)
{
	return regs->r.rsp;
}

uint64_t cpu_tp(const struct cpu_regs *regs)
{
	return regs->r.fs_base;
}

void cpu_wire_regs(const struct cpu_regs *regs, struct wire_regs *ret)
{
	*ret = (struct wire_regs){
		.ip = regs->r.rip,
		.sp = regs->r.rsp,
		.saved = { regs->r.rbp, regs->r.rbx, regs->r.r12, regs->r.r13, regs->r.r14, regs->r.r15 },
	};
}

/* Bits of asm/perf_regs.h; values come in the order of the bits. */
const uint64_t cpu_perf_regs = 1ull << 1 /* bx */ | 1ull << 6 /* bp */ | 1ull << 7 /* sp */ | 1ull << 8 /* ip */ |
			       0xfull << 20 /* r12 to r15 */;

void cpu_perf_wire_regs(const uint64_t *values, struct wire_regs *ret)
{
	*ret = (struct wire_regs){
		.ip = values[3],
		.sp = values[2],
		.saved = { values[1], values[0], values[4], values[5], values[6], values[7] },
	};
}

void cpu_set_pc(struct cpu_regs *regs, uint64_t pc)
{
	regs->r.rip = pc;
	regs->r.orig_rax = (uint64_t)-1;
}

long cpu_syscall_number(const struct cpu_regs *regs)
{
	return (int32_t)regs->r.orig_rax;
}

int64_t cpu_syscall_result(const struct cpu_regs *regs)
{
	return (int64_t)regs->r.rax;
}

/* The kernel's own codes, include/linux/errno.h; user space never sees them. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

bool cpu_has_restart(const struct cpu_regs *regs)
{
	return cpu_syscall_number(regs) >= 0 && (int64_t)regs->r.rax == -ERESTART_RESTARTBLOCK;
}

bool cpu_is_restarted(const struct cpu_regs *regs)
{
	return cpu_syscall_number(regs) == SYS_restart_syscall;
}

bool cpu_restarts(const struct cpu_regs *regs)
{
	int64_t result = (int64_t)regs->r.rax;

	return cpu_syscall_number(regs) >= 0 && (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
		result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
}

/* As arch_do_signal_or_restart() in arch/x86/kernel/signal.c when there is no handler to run. */
void cpu_leave_syscall(struct cpu_regs *regs, bool fresh)
{
	if (cpu_syscall_number(regs) >= 0) {
		switch ((int64_t)regs->r.rax) {
		case -ERESTARTSYS:
		case -ERESTARTNOINTR:
		case -ERESTARTNOHAND:
			regs->r.rax = regs->r.orig_rax;
			regs->r.rip -= 2;
			break;
		case -ERESTART_RESTARTBLOCK:
			regs->r.rax = fresh ? regs->r.orig_rax : SYS_restart_syscall;
			regs->r.rip -= 2;
			break;
		}
	}
	regs->r.orig_rax = (uint64_t)-1;
}

/*
 * epoll and semaphores and sigwait always, sockets when they have a time-out of their own. All of
 * them have done nothing yet when they fail so. Nor has connect(2): it goes on with the connection that
 * is being made, as it does where the kernel itself repeats it.
 */
static enum cpu_retry retry_kind(long nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_read:		/* of inotify, too */
		return CPU_RETRY;
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
		return CPU_RETRY_SOCKET;
	default:
		return CPU_RETRY_NEVER;
	}
}

enum cpu_retry cpu_may_retry(const struct cpu_regs *regs, int *ret_fd)
{
	long nr = cpu_syscall_number(regs);

	*ret_fd = (int)regs->r.rdi;
	return nr < 0 || (int64_t)regs->r.rax != -EINTR ? CPU_RETRY_NEVER : retry_kind(nr);
}

void cpu_retry_syscall(struct cpu_regs *regs)
{
	regs->r.rax = (uint64_t)-ERESTARTNOHAND;
}

/* Its arguments are where they were: the kernel keeps these registers. */
void cpu_begin_anew(struct cpu_regs *regs, long nr)
{
	regs->r.orig_rax = (uint64_t)nr;
	cpu_retry_syscall(regs);
}

const size_t cpu_red_zone = 128;

/*
 * struct rt_sigframe of the 64-bit kernel, arch/x86/include/asm/sigframe.h, with struct
 * ucontext and struct sigcontext_64 unrolled. The fpstate follows wherever it is 64-aligned.
 */
struct rt_frame {
	uint64_t pretcode;
	uint64_t uc_flags, uc_link;
	uint64_t ss_sp;
	int32_t ss_flags, pad;
	uint64_t ss_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
	uint64_t sigmask;
	uint8_t siginfo[128];
};
_Static_assert(sizeof(struct rt_frame) == 440, "the kernel's layout");
_Static_assert(offsetof(struct rt_frame, sigmask) == 304, "the kernel's layout");

#define UC_FP_XSTATE 1		/* arch/x86/include/uapi/asm/ucontext.h */
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4

/* The XSAVE image, Intel SDM vol. 1, 13.4: legacy area 512, header 64, then the components. */
#define XSAVE_LEGACY 512u
#define XSAVE_MIN 576u
#define XSAVE_SW 464u		/* struct _fpx_sw_bytes, where hardware leaves the bytes alone */
#define XSAVE_MAX (64u << 10)
#define FP_XSTATE_MAGIC1 0x46505853u
#define FP_XSTATE_MAGIC2 0x46505845u

struct fpx_sw {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size, padding[7];
};
_Static_assert(sizeof(struct fpx_sw) == 48, "the kernel's layout");

/*
 * Where the standard format of an image with these components ends. Components that are in
 * their initial state needn't be there: a frame without the room for AVX-512 saves 1.8 KiB of
 * stack. CPUID leaf 0xd tells each component's size and place.
 */
static uint32_t xsave_end(uint64_t components)
{
	uint32_t end = XSAVE_MIN;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, offset, ecx, edx;
		if (!(components >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, offset, ecx, edx);
		if (size + offset > end && size < XSAVE_MAX && offset < XSAVE_MAX)
			end = size + offset;
	}
	return end;
}

/* The thread's image made ready for a signal frame, FP_XSTATE_MAGIC2 at its end. */
static struct err *xsave_image(pid_t tid, uint8_t *image, size_t *ret_len)
{
	struct iovec iov = { image, XSAVE_MAX };
	struct fpx_sw sw = { .magic1 = FP_XSTATE_MAGIC1 };
	uint64_t enabled, present;

	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &iov) < 0)
		return err_errno(errno, "can't read the vector registers of thread %d", tid);
	if (iov.iov_len < XSAVE_MIN || iov.iov_len >= XSAVE_MAX)
		return err_new(ERR_UNSUPPORTED, "thread %d: vector registers of %zu bytes", tid,
			       iov.iov_len);
	/* The kernel leaves the mask of enabled components where the signal frame has its own
	 * record (xstate_fx_sw_bytes). */
	memcpy(&enabled, image + XSAVE_SW, sizeof(enabled));
	memcpy(&present, image + XSAVE_LEGACY, sizeof(present));
	uint32_t len = xsave_end(present & enabled);
	if (len > iov.iov_len)
		return err_new(ERR_UNSUPPORTED, "thread %d: vector registers in a layout we "
			       "don't know", tid);
	sw.xfeatures = 3;
	for (unsigned i = 2; i < 63; i++) {
		if (enabled >> i & 1 && xsave_end(1ull << i) <= len)
			sw.xfeatures |= 1ull << i;
	}
	sw.xstate_size = len;
	sw.extended_size = len + sizeof(uint32_t);
	memcpy(image + XSAVE_SW, &sw, sizeof(sw));
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	memcpy(image + len, &magic2, sizeof(magic2));
	*ret_len = len + sizeof(magic2);
	return NULL;
}

struct err *cpu_frame_build(pid_t tid, const struct cpu_regs *regs, uint64_t sigmask,
			    const struct cpu_way *way, uint64_t top, struct cpu_frame *ret)
{
	CLEANUP_FREE uint8_t *image = xmalloc(XSAVE_MAX + sizeof(uint32_t));
	size_t image_len = 0;
	struct err *err = xsave_image(tid, image, &image_len);
	if (err)
		return err;
	if (top < 2 * XSAVE_MAX)
		return err_new(ERR_UNSUPPORTED, "thread %d: no stack", tid);

	uint64_t fp = (top - image_len) & ~63ull;
	/* As at a handler's entry: 8 past a multiple of 16. */
	uint64_t at = ((fp - sizeof(struct rt_frame)) & ~15ull) - 8, addr = at - 8ull * way->words;
	struct cpu_regs to = *regs;
	cpu_leave_syscall(&to, true);
	const struct rt_frame frame = {
		.pretcode = way->trap,
		.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		/* sigreturn also sets the alternate stack, which nobody can ask another thread for.
		 * Flags it refuses make it leave the old one (do_sigaltstack, restore_altstack). */
		.ss_flags = 3,
		.r8 = to.r.r8, .r9 = to.r.r9, .r10 = to.r.r10, .r11 = to.r.r11,
		.r12 = to.r.r12, .r13 = to.r.r13, .r14 = to.r.r14, .r15 = to.r.r15,
		.di = to.r.rdi, .si = to.r.rsi, .bp = to.r.rbp, .bx = to.r.rbx,
		.dx = to.r.rdx, .ax = to.r.rax, .cx = to.r.rcx, .sp = to.r.rsp,
		.ip = to.r.rip, .flags = to.r.eflags,
		.cs = (uint16_t)to.r.cs, .gs = (uint16_t)to.r.gs, .fs = (uint16_t)to.r.fs,
		.ss = (uint16_t)to.r.ss,
		.fpstate = fp,
		.sigmask = sigmask,
	};
	size_t len = fp + image_len - addr;
	uint8_t *bytes = xcalloc(1, len);
	for (size_t i = 0; i < way->words; i++)
		memcpy(bytes + 8 * i, &(uint64_t){ SYS_rt_sigreturn }, 8);
	memcpy(bytes + (at - addr), &frame, sizeof(frame));
	memcpy(bytes + (fp - addr), image, image_len);
	*ret = (struct cpu_frame){ .addr = addr, .frame = at, .bytes = bytes, .len = len };
	return NULL;
}

/*
 * push %rax; push %rcx; push %r11; mov $39,%eax; syscall (getpid); pop %r11; pop %rcx; pop
 * %rax; ret. All registers survive: ld.so may have been compiled knowing that its empty
 * function changes none.
 */
static const uint8_t marker[CPU_MARKER_LEN] = {
	0x50, 0x51, 0x41, 0x53, 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x41, 0x5b, 0x59, 0x58, 0xc3,
};
#define MARKER_AFTER_SYSCALL 11

/* Length of the padding instruction at p (a nop of any width, or int3), 0 if it is none. */
static size_t padding_length(const uint8_t *p, size_t left)
{
	size_t n = 0;

	while (n < left && (p[n] == 0x66 || p[n] == 0x2e))
		n++;
	if (n >= left || p[n] == 0x90 || p[n] == 0xcc)
		return n + 1;
	if (p[n] != 0x0f)
		return 0;
	if (n + 2 >= left)
		return left;	/* cut off: what we see of it is a prefix of a nop */
	if (p[n + 1] != 0x1f)
		return 0;
	uint8_t mod = p[n + 2] >> 6, rm = p[n + 2] & 7;
	if (mod == 3)
		return n + 3;
	return n + 3 + (rm == 4) + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool cpu_marker_build(const uint8_t old[CPU_MARKER_LEN], uint8_t ret[CPU_MARKER_LEN])
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = memcmp(old, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;

	if (old[at] != 0xc3)
		return false;
	for (at++; at < CPU_MARKER_LEN;) {
		size_t n = padding_length(old + at, CPU_MARKER_LEN - at);
		if (!n)
			return false;
		at += n;
	}
	memcpy(ret, marker, CPU_MARKER_LEN);
	return true;
}

bool cpu_marker_hit(const struct cpu_regs *regs, uint64_t addr)
{
	return regs->r.rip == addr + MARKER_AFTER_SYSCALL;
}

void cpu_marker_skip(struct cpu_regs *regs)
{
	regs->r.orig_rax = (uint64_t)-1;
}

void cpu_marker_undo(struct cpu_regs *regs, uint64_t addr, const uint64_t saved[CPU_MARKER_SAVED])
{
	regs->r.r11 = saved[0];
	regs->r.rcx = saved[1];
	regs->r.rax = saved[2];
	regs->r.rsp += 24;
	regs->r.rip = addr;
	regs->r.orig_rax = (uint64_t)-1;
}

/* Debug registers, Intel SDM vol. 3, 18.2: DR7 bit 0 enables DR0 locally; kind 0 = execution. */
struct err *cpu_breakpoint(pid_t tid, uint64_t addr)
{
	const size_t dr = offsetof(struct user, u_debugreg);

	if (ptrace(PTRACE_POKEUSER, tid, dr + 7 * 8, 0) < 0 ||
	    ptrace(PTRACE_POKEUSER, tid, dr, addr) < 0 ||
	    (addr && ptrace(PTRACE_POKEUSER, tid, dr + 7 * 8, 1) < 0))
		return err_errno(errno, "can't set a hardware breakpoint");
	return NULL;
}

bool cpu_rseq_abort(const uint8_t desc[32], uint64_t pc, uint64_t *ret)
{
	uint64_t start, len, abort_ip;	/* after u32 version, u32 flags */

	memcpy(&start, desc + 8, 8);
	memcpy(&len, desc + 16, 8);
	memcpy(&abort_ip, desc + 24, 8);
	if (pc - start >= len)
		return false;
	*ret = abort_ip;
	return true;
}

#endif
