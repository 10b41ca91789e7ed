/*
 * A program under seccomp. It is killed by any system call that heaptop or its agent might make
 * in it and it doesn't make itself.
 *
 *	victim_filter all		the whole process, from the start
 *	victim_filter late		the same, installed when it has allocated for a while
 *	victim_filter quiet		the same, after two seconds in which it has done nothing
 *	victim_filter forked		a child of it does that; its end is the program's
 *	victim_filter thread		one thread that allocates; the others are free
 *	victim_filter strict		mode 1: read, write, exit, sigreturn
 *
 * Prints "ready", allocates from new threads until there is something on its standard input or its end
 * (strict: just waits), and leaves with 0.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_ON(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL_ON(SYS_memfd_create), KILL_ON(SYS_ftruncate), KILL_ON(SYS_process_vm_readv),
		KILL_ON(SYS_process_vm_writev), KILL_ON(SYS_sched_yield), KILL_ON(SYS_getpid),
		KILL_ON(SYS_getppid), KILL_ON(SYS_fcntl), KILL_ON(SYS_restart_syscall), KILL_ON(SYS_ppoll),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		perror("victim_filter: prctl");
		exit(99);
	}
}

static void allocate(int depth)
{
	char room[700];		/* more than a page of stack, soon */

	memset(room, depth, sizeof(room));
	__asm__ volatile("" :: "r"(room) : "memory");
	if (depth) {
		allocate(depth - 1);
		return;
	}
	for (int i = 0; i < 50; i++)
		free(malloc(100 + (size_t)i));
}

static void *work(void *arg)
{
	if (arg)
		filter();
	for (int i = 0; i < (arg ? 100000 : 20); i++) {
		allocate(10);
		if (arg)
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return NULL;
}

static void some_threads(void)
{
	pthread_t th[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&th[i], NULL, work, NULL))
			exit(98);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	struct pollfd in = { .fd = 0, .events = POLLIN };
	pthread_t th;
	char c;

	if (strcmp(way, "strict") == 0) {
		ready();
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			return 99;
		(void)!read(0, &c, 1);
		syscall(SYS_exit, 0);	/* exit_group isn't allowed */
	}
	if (strcmp(way, "forked") == 0) {
		int status = 0;
		pid_t pid = fork();
		if (pid > 0)
			return waitpid(pid, &status, 0) == pid ? status != 0 : 97;
	}
	if (strcmp(way, "quiet") == 0 || strcmp(way, "forked") == 0)
		nanosleep(&(struct timespec){ 2, 0 }, NULL);
	if (strcmp(way, "late") == 0)
		some_threads();
	if (strcmp(way, "thread") == 0)
		pthread_create(&th, NULL, work, (void *)1);
	else
		filter();
	ready();
	while (poll(&in, 1, 2) == 0)
		some_threads();
	return 0;
}
