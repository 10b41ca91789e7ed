/*
 * Stacks that are switched by hand, and signal handlers on stacks of their own (tests/target/switched.sh). Sites
 * are functions; each mode's figures are known:
 *
 *	coroutines	8 coroutines, switched as boost.context does (callee-saved registers pushed, the stack
 *			pointer exchanged), in turn with each other and main: coroutine_site 8 * 50 blocks of 24 bytes,
 *			main_site 50 of 40. Their first frame says by its CFI that it is the outermost.
 *	bare		the same; their first frame has no CFI at all
 *	handlers	a timer's signal interrupts busy(), whose caller is main, and the handler allocates on an
 *			alternate stack: handler_site 100 blocks of 56 bytes
 *	again		as handlers, but the handler's stack is mapped anew, elsewhere, for each of them
 *
 * Each ends with 7.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STACK (64u << 10)
#define COROUTINES 8
#define ROUNDS 50
#define SIGNALS 100
#define SITE static __attribute__((noinline, noclone))

static void *volatile keep;

/* ---- coroutines ---- */

/* Leaves the context it comes from in *from, and goes on with `to`: what the last switch away from that has left. */
void switch_to(void **from, void *to);
void first_frame(void);
void first_frame_bare(void);
__attribute__((used)) void coroutine_main(void);

__asm__(".text\n"
	".globl switch_to\n.type switch_to, @function\nswitch_to:\n"
	"\t.cfi_startproc\n"
	"\tpush %rbp\n\t.cfi_adjust_cfa_offset 8\n\tpush %rbx\n\t.cfi_adjust_cfa_offset 8\n"
	"\tpush %r12\n\t.cfi_adjust_cfa_offset 8\n\tpush %r13\n\t.cfi_adjust_cfa_offset 8\n"
	"\tpush %r14\n\t.cfi_adjust_cfa_offset 8\n\tpush %r15\n\t.cfi_adjust_cfa_offset 8\n"
	"\tmov %rsp, (%rdi)\n\tmov %rsi, %rsp\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
	"\t.cfi_endproc\n.size switch_to, . - switch_to\n"
	".globl first_frame\n.type first_frame, @function\nfirst_frame:\n"
	"\t.cfi_startproc\n\t.cfi_undefined rip\n\tcall coroutine_main\n\tud2\n\t.cfi_endproc\n"
	".size first_frame, . - first_frame\n"
	".globl first_frame_bare\n.type first_frame_bare, @function\nfirst_frame_bare:\n"
	"\tcall coroutine_main\n\tud2\n.size first_frame_bare, . - first_frame_bare\n");

static void *main_context, *contexts[COROUTINES];
static int current;

SITE void coroutine_site(void)
{
	keep = malloc(24);
}

SITE void deeper(int depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (depth)
		deeper(depth - 1);
	else
		coroutine_site();
	room[1] = room[0];
}

void coroutine_main(void)
{
	int self = current;

	for (;;) {
		deeper(self);
		switch_to(&contexts[self], main_context);
	}
}

SITE void main_site(void)
{
	keep = malloc(40);
}

static char *map_stack(void)
{
	char *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(2);
	return p;
}

static void coroutines(void (*first)(void))
{
	for (int i = 0; i < COROUTINES; i++) {
		uint64_t *top = (uint64_t *)(map_stack() + STACK) - 2;

		*--top = (uint64_t)first;	/* where the first switch returns to, behind six registers */
		top -= 6;
		memset(top, 0, 6 * sizeof(*top));
		contexts[i] = top;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (current = 0; current < COROUTINES; current++)
			switch_to(&main_context, contexts[current]);
		main_site();
	}
}

/* ---- handlers ---- */

static volatile sig_atomic_t handled;

SITE void handler_site(void)
{
	keep = malloc(56);
}

static void handler(int sig)
{
	(void)sig;
	handler_site();
	handled++;
}

/* A leaf, interrupted anywhere. */
SITE void busy(int until)
{
	while (handled < until)
		__asm__ volatile("" ::: "memory");
}

static void handlers(int anew)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	stack_t on = { .ss_sp = map_stack(), .ss_size = STACK };
	timer_t timer;

	sigaction(SIGUSR1, &act, NULL);
	if (sigaltstack(&on, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer))
		exit(2);
	for (int i = 1; i <= SIGNALS; i++) {
		if (timer_settime(timer, 0, &soon, NULL))
			exit(2);
		busy(i);
		if (!anew)
			continue;
		char *old = on.ss_sp;
		on.ss_sp = map_stack();
		if (sigaltstack(&on, NULL))
			exit(2);
		munmap(old, STACK);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "coroutines"))
		coroutines(first_frame);
	else if (!strcmp(mode, "bare"))
		coroutines(first_frame_bare);
	else
		handlers(!strcmp(mode, "again"));
	return 7;
}
