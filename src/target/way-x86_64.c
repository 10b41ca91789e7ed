/*
 * x86-64: ways into the kernel and back through code that a program has anyway; see cpu.h.
 *
 * Best is the C library's __restore_rt, `mov $15,%eax; syscall`. A static program has it only if it
 * handles signals. Then any system call instruction does for the way in, and for the way back the end of
 * any function that returns a register which a system call keeps,
 *
 *	mov %ebx,%eax; add $8,%rsp; pop %rbx; pop %rbp; ret
 *
 * with 15 in all of these registers and in each word it pops, and the system call instruction as its
 * return address. Each compiled program has dozens of them.
 */
#include "target/cpu.h"

#ifdef __x86_64__

#include <string.h>
#include <sys/syscall.h>

#define WORDS_MAX 32u
#define POP_RSP 0x5c

_Static_assert(SYS_rt_sigreturn == 15, "as in the code below");

/* mov $15,%rax; syscall: __restore_rt of glibc and musl. And the same with %eax. */
static const uint8_t restore_rt[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t restore_rt32[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

/* What puts 15 into %eax; each needs a return after it. */
static const struct load {
	uint8_t len, words, bytes[5];
} loads[] = {
	{ 2, 0, { 0x89, 0xd8 } },			/* mov %ebx,%eax */
	{ 2, 0, { 0x89, 0xe8 } },			/* mov %ebp,%eax */
	{ 3, 0, { 0x44, 0x89, 0xe0 } },			/* mov %r12d,%eax */
	{ 3, 0, { 0x44, 0x89, 0xe8 } },
	{ 3, 0, { 0x44, 0x89, 0xf0 } },
	{ 3, 0, { 0x44, 0x89, 0xf8 } },			/* mov %r15d,%eax */
	{ 1, 1, { 0x58 } },				/* pop %rax */
	{ 5, 0, { 0xb8, 0x0f, 0, 0, 0 } },		/* mov $15,%eax */
};

bool cpu_is_trap(const uint8_t code[CPU_TRAP_LEN])
{
	return code[0] == 0x0f && code[1] == 0x05;
}

/* Length of the instruction at p that takes *words words off the stack and does no more, else 0. */
static size_t pop_length(const uint8_t *p, size_t left, unsigned *words)
{
	*words = 1;
	if (left && p[0] >= 0x58 && p[0] <= 0x5f && p[0] != POP_RSP)
		return 1;
	if (left >= 2 && p[0] == 0x41 && p[1] >= 0x58 && p[1] <= 0x5f)
		return 2;
	if (left >= 4 && !memcmp(p, "\x48\x83\xc4", 3) && p[3] < 0x80 && p[3] % 8 == 0) {
		*words = p[3] / 8;	/* add $n,%rsp */
		return 4;
	}
	return 0;
}

/* A function's end at p, up to and with its return: length and words; 0 if there is none. */
static size_t end_length(const uint8_t *p, size_t left, unsigned *ret_words)
{
	size_t at = 0;

	if (left > CPU_WAY_MAX)
		left = CPU_WAY_MAX;
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads) && !at; i++) {
		if (left > loads[i].len && !memcmp(p, loads[i].bytes, loads[i].len)) {
			at = loads[i].len;
			*ret_words = loads[i].words;
		}
	}
	while (at && at < left && *ret_words <= WORDS_MAX) {
		unsigned words = 0;
		if (p[at] == 0xc3)
			return at + 1;
		size_t n = pop_length(p + at, left - at, &words);
		if (!n)
			break;
		at += n;
		*ret_words += words;
	}
	return 0;
}

static void set_back(struct cpu_way *way, const uint8_t *code, size_t len, uint64_t addr)
{
	way->back = addr;
	way->len = (uint8_t)len;
	memcpy(way->bytes, code, len);
}

bool cpu_way_find_direct(const uint8_t *code, size_t len, uint64_t addr, struct cpu_way *way)
{
	const uint8_t *hit = memmem(code, len, restore_rt, sizeof(restore_rt));
	size_t n = sizeof(restore_rt);

	if (!hit) {
		hit = memmem(code, len, restore_rt32, sizeof(restore_rt32));
		n = sizeof(restore_rt32);
	}
	if (!hit)
		return false;
	*way = (struct cpu_way){ .direct = true };
	set_back(way, hit, n, addr + (uint64_t)(hit - code));
	way->trap = way->back + n - CPU_TRAP_LEN;
	return true;
}

bool cpu_way_find(const uint8_t *code, size_t len, uint64_t addr, struct cpu_way *way)
{
	for (size_t i = 0; i + CPU_TRAP_LEN <= len && !(way->trap && way->back); i++) {
		unsigned words = 0;
		size_t n;
		if (!way->trap && cpu_is_trap(code + i)) {
			way->trap = addr + i;
		} else if (!way->back && (n = end_length(code + i, len - i, &words))) {
			set_back(way, code + i, n, addr + i);
			way->words = (uint8_t)words;
		}
	}
	return way->trap && way->back;
}

void cpu_way_enter(struct cpu_regs *regs, const struct cpu_way *way, const struct cpu_frame *frame)
{
	regs->r.rax = SYS_rt_sigreturn;
	regs->r.rip = way->trap;
	regs->r.rsp = frame->frame + 8;		/* as after its return address was taken */
	regs->r.orig_rax = (uint64_t)-1;
}

bool cpu_way_entered(const struct cpu_regs *regs, const struct cpu_way *way)
{
	return regs->r.rip == way->trap + CPU_TRAP_LEN &&
	       cpu_syscall_number(regs) == SYS_rt_sigreturn;
}

/* The kernel takes the number from orig_rax again after the stop, and returns to rip. */
void cpu_way_call(struct cpu_regs *regs, const struct cpu_way *way, const struct cpu_frame *frame,
		  long nr, const uint64_t args[6])
{
	regs->r.orig_rax = (uint64_t)nr;
	regs->r.rdi = args[0];
	regs->r.rsi = args[1];
	regs->r.rdx = args[2];
	regs->r.r10 = args[3];
	regs->r.r8 = args[4];
	regs->r.r9 = args[5];
	regs->r.rbx = regs->r.rbp = SYS_rt_sigreturn;
	regs->r.r12 = regs->r.r13 = regs->r.r14 = regs->r.r15 = SYS_rt_sigreturn;
	regs->r.rip = way->back;
	regs->r.rsp = way->direct ? frame->frame + 8 : frame->addr;
}

#endif

size_t cpu_find_call_return(const uint8_t *code, size_t len)
{
	static const uint8_t call_return[] = { 0x0f, 0x05, 0xc3 };
	const uint8_t *hit = memmem(code, len, call_return, sizeof(call_return));

	return hit ? (size_t)(hit - code) : len;
}

void cpu_call_enter(struct cpu_regs *regs, uint64_t at, uint64_t sp, long nr, const uint64_t args[6])
{
	regs->r.rax = (uint64_t)nr;
	regs->r.rdi = args[0];
	regs->r.rsi = args[1];
	regs->r.rdx = args[2];
	regs->r.r10 = args[3];
	regs->r.r8 = args[4];
	regs->r.r9 = args[5];
	regs->r.rip = at;
	regs->r.rsp = sp;
	regs->r.orig_rax = (uint64_t)-1;
}
