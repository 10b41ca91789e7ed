/*
 * Threads that work as soon as they are there (tests/target/births.sh): each allocates from deep within its stack,
 * kilobytes below its thread pointer.
 *
 *	victim_births N		N threads, one after the other, each on a stack of its own address, kept mapped
 *	victim_births N kill	and a filter from the start on that kills for what only an agent would call
 *	victim_births N again	each on the same stack
 *
 * Allocations are made by the function deep() alone: CALLS a thread, DEPTH frames below another function.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK (128u << 10)
#define DEPTH 40
#define CALLS 5

static void *volatile keep;

static __attribute__((noinline)) void deep(void)
{
	for (int i = 0; i < CALLS; i++) {
		keep = malloc(24);
		free(keep);
	}
}

static __attribute__((noinline)) void down(int depth)
{
	volatile char room[500];

	room[0] = (char)depth;
	if (depth)
		down(depth - 1);
	else
		deep();
	room[1] = room[0];
}

static void *body(void *arg)
{
	down(DEPTH);
	return arg;
}

#define DIE(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DIE(SYS_gettid), DIE(SYS_tgkill), DIE(SYS_prctl), DIE(SYS_process_vm_readv), DIE(SYS_sched_yield),
		DIE(SYS_ppoll),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		perror("prctl");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;
	const char *how = argc > 2 ? argv[2] : "";
	char *stack = NULL;

	if (!strcmp(how, "kill"))
		filter();
	for (int i = 0; i < n; i++) {
		pthread_attr_t attr;
		pthread_t t;

		if (!stack || strcmp(how, "again"))
			stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stack == MAP_FAILED)
			return 2;
		pthread_attr_init(&attr);
		if (pthread_attr_setstack(&attr, stack, STACK) || pthread_create(&t, &attr, body, NULL))
			return 2;
		pthread_join(t, NULL);
		pthread_attr_destroy(&attr);
	}
	return 7;
}
