/*
 * A program that comes under a strict seccomp filter at a moment of the test's choosing: any system call but the few it makes
 * itself from then on, and the end of a signal handler, kills it.
 *
 *	victim_sealed all	the filter is for all of its threads
 *	victim_sealed one	for one of its threads, which sleeps then like the others
 *
 * Forty threads, most of which sleep for a long time with a time-out; some allocate. Prints "ready", at a line on its
 * standard input "sealed" once the filter is there, and at the next one it leaves with 7.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 40
#define THE_ONE 23
#define WORKERS 2

#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static atomic_int wanted, sealed;

static void seal(unsigned long flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_clock_nanosleep), ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_exit), ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog))
		_exit(99);
	sealed = 1;
}

static void rest(long ms)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void *work(void *arg)
{
	size_t n = (size_t)arg;

	if (n < WORKERS)
		for (;;) {
			for (int i = 0; i < 100; i++)
				free(malloc(100 + (size_t)i));
			rest(2);
		}
	while (n == THE_ONE && !wanted)
		rest(1);
	if (n == THE_ONE)
		seal(0);
	for (;;)
		rest(1000000);
	return NULL;
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(98);
}

int main(int argc, char **argv)
{
	pthread_t th;
	char c;

	free(malloc(100));
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&th, NULL, work, (void *)i))
			return 97;
	say("ready\n");
	if (read(0, &c, 1) != 1)
		return 96;
	if (argc > 1 && !strcmp(argv[1], "all"))
		seal(SECCOMP_FILTER_FLAG_TSYNC);
	wanted = argc > 1 && !strcmp(argv[1], "one");
	while (!sealed)
		rest(1);
	rest(1);	/* the one sleeps by then, most often */
	say("sealed\n");
	if (read(0, &c, 1) != 1)
		return 95;
	_exit(7);
}
