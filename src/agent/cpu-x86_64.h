/*
 * The few x86-64 instructions the agent needs that C has no word for. Freestanding.
 */
#ifndef HEAPTOP_AGENT_CPU_X86_64_H
#define HEAPTOP_AGENT_CPU_X86_64_H

#include <stdint.h>

/* x86-64 ABI, TLS variants: the word at fs:0 is the thread pointer itself. */
static inline uint64_t cpu_thread_pointer(void)
{
	uint64_t tp;
	__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline uint64_t cpu_ticks(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* Not before everything ahead of it in the program is done: for the order of events. */
static inline uint64_t cpu_ticks_ordered(void)
{
	__asm__ volatile("lfence" ::: "memory");
	return cpu_ticks();
}

/* Compare and swap that only signal handlers of this thread may come between. */
static inline int cpu_swap_own(uint64_t *at, uint64_t *from, uint64_t to)
{
	uint8_t ok;
	__asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(ok), "+m"(*at), "+a"(*from) : "r"(to) : "memory");
	return ok;
}

/* The line will be written to: take it from the reader's cache meanwhile. A hint, never a fault. */
static inline void cpu_prefetch_write(const void *at)
{
	__asm__ volatile("prefetchw %0" :: "m"(*(const char *)at));
}

static inline void cpu_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}

static inline void cpu_copy_words(void *dst, uint64_t src, uint64_t words)
{
	__asm__ volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) :: "memory");
}

/* Raw system call: leaves the program's errno alone. -errno on failure. */
static inline int64_t cpu_syscall(int64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
				  uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t ret;
	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define CPU_NR_BRK 12
#define CPU_NR_SCHED_YIELD 24
#define CPU_NR_PRCTL 157
#define CPU_NR_GETTID 186
#define CPU_NR_TGKILL 234
#define CPU_NR_PPOLL 271
#define CPU_NR_PROCESS_VM_READV 310
#define CPU_PR_GET_NAME 16
#define CPU_PAGE 4096u

/* Callee-saved registers an event carries: bp, bx, r12..r15, as wire_regs.saved has them. */
#define CPU_SAVED 6

#endif
