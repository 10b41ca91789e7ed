/*
 * A program that ends, or becomes another one, in the way its first argument names:
 *	exit N | signal N | thread-exit N | leader-exit N | exec PROGRAM ARG... |
 *	thread-exec PROGRAM ARG... | stop | wait | seccomp | mask
 * `thread-*`: another thread does it. `leader-exit`: the first thread leaves, another one ends
 * the process later. `stop`: stops itself by SIGSTOP, then exits with 3. `wait`: until stdin
 * ends. `mask`: prints what it inherited. `constructed` tells whether its constructors have
 * run.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

volatile int constructed = 11;
static char **args;

__attribute__((constructor)) static void construct(void)
{
	constructed = 22;
}

static void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static void *worker(void *arg)
{
	(void)arg;
	nap(args[1][0] == 'l' ? 300 : 30);
	if (strcmp(args[1], "thread-exec") == 0)
		execvp(args[2], args + 2);
	exit(atoi(args[2]));
}

static void allow_everything(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		exit(99);
}

static void print_inherited(void)
{
	sigset_t mask;
	struct sigaction action;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigismember(&mask, sig) == 1)
			printf("blocked %d\n", sig);
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			printf("ignored %d\n", sig);
	}
	printf("hidden %s\n", getenv("HEAPTOP_TEST_HIDDEN") ? "seen" : "gone");
	printf("session %s\n", getsid(0) == getpid() ? "own" : "shared");
}

int main(int argc, char **argv)
{
	pthread_t th;
	char c;

	args = argv;
	if (argc < 2)
		return 98;
	if (strcmp(argv[1], "exit") == 0)
		return atoi(argv[2]);
	if (strcmp(argv[1], "signal") == 0)
		raise(atoi(argv[2]));
	if (strcmp(argv[1], "exec") == 0)
		execvp(argv[2], argv + 2);
	if (strncmp(argv[1], "thread-", 7) == 0 || strcmp(argv[1], "leader-exit") == 0) {
		pthread_create(&th, NULL, worker, NULL);
		if (argv[1][0] == 'l')
			pthread_exit(NULL);
		pthread_join(th, NULL);
	}
	if (strcmp(argv[1], "stop") == 0) {
		raise(SIGSTOP);
		return 3;
	}
	if (strcmp(argv[1], "mask") == 0) {
		print_inherited();
		return 0;
	}
	if (strcmp(argv[1], "seccomp") == 0)
		allow_everything();
	if (strcmp(argv[1], "wait") == 0 || strcmp(argv[1], "seccomp") == 0) {
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		return read(0, &c, 1) < 0 ? 97 : 0;
	}
	return 96;
}
