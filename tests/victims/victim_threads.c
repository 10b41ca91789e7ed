/*
 * A program that notices what is done to it. Each thread does one thing over and over (waits in
 * a system call, holds values in registers, handles signals, makes threads) and checks that it
 * comes out right: no EINTR, no register, mask or alternate stack changed. A line on stdin is
 * answered by "ok" once every thread has gone on since; anything wrong is told on stdout and
 * ends the program with code 1. "quit" or the end of stdin ends it with code 0. With the
 * argument "stops" it doesn't mind EINTR where SIGSTOP and SIGCONT give it, see signal(7).
 * "stopsN": the thread of job N is started last and so has the lowest stack, which heaptop
 * takes for its calls.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define JOBS 15
static atomic_ulong progress[JOBS];
static int pipe_fd[2], event_fd, sock_fd[2];
static pthread_t suspended;
static bool stops;
static atomic_ulong handled;

__attribute__((format(printf, 1, 2), noreturn))
static void wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("wrong: ");
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
	va_end(ap);
	_exit(1);
}

/* Values in all the vector registers the compiler may use, over many loop turns. */
static void job_vector(void)
{
#ifdef __x86_64__
	uint64_t in[16][2], out[16][2];
	uint32_t mxcsr;

	for (int i = 0; i < 16; i++) {
		in[i][0] = 0x0123456789abcdefull * (uint64_t)(i + 1);
		in[i][1] = ~in[i][0] ^ (uint64_t)i;
	}
	memset(out, 0, sizeof(out));
	__asm__ volatile(
		"movdqu 0x00(%0), %%xmm0\n movdqu 0x10(%0), %%xmm1\n movdqu 0x20(%0), %%xmm2\n"
		"movdqu 0x30(%0), %%xmm3\n movdqu 0x40(%0), %%xmm4\n movdqu 0x50(%0), %%xmm5\n"
		"movdqu 0x60(%0), %%xmm6\n movdqu 0x70(%0), %%xmm7\n movdqu 0x80(%0), %%xmm8\n"
		"movdqu 0x90(%0), %%xmm9\n movdqu 0xa0(%0), %%xmm10\n movdqu 0xb0(%0), %%xmm11\n"
		"movdqu 0xc0(%0), %%xmm12\n movdqu 0xd0(%0), %%xmm13\n movdqu 0xe0(%0), %%xmm14\n"
		"movdqu 0xf0(%0), %%xmm15\n"
		"mov $30000, %%ecx\n1: imul $3, %%eax, %%eax\n imul $5, %%eax, %%eax\n"
		"imul $7, %%eax, %%eax\n imul $9, %%eax, %%eax\n dec %%ecx\n jnz 1b\n"
		"movdqu %%xmm0, 0x00(%1)\n movdqu %%xmm1, 0x10(%1)\n movdqu %%xmm2, 0x20(%1)\n"
		"movdqu %%xmm3, 0x30(%1)\n movdqu %%xmm4, 0x40(%1)\n movdqu %%xmm5, 0x50(%1)\n"
		"movdqu %%xmm6, 0x60(%1)\n movdqu %%xmm7, 0x70(%1)\n movdqu %%xmm8, 0x80(%1)\n"
		"movdqu %%xmm9, 0x90(%1)\n movdqu %%xmm10, 0xa0(%1)\n movdqu %%xmm11, 0xb0(%1)\n"
		"movdqu %%xmm12, 0xc0(%1)\n movdqu %%xmm13, 0xd0(%1)\n movdqu %%xmm14, 0xe0(%1)\n"
		"movdqu %%xmm15, 0xf0(%1)\n stmxcsr %2\n"
		: : "r"(in), "r"(out), "m"(mxcsr)
		: "memory", "eax", "ecx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
		  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	if (memcmp(in, out, sizeof(in)) != 0)
		wrong("a vector register changed");
	if ((mxcsr & 0xffc0) != 0x1f80)
		wrong("mxcsr is %x", mxcsr);
#endif
}

/* Values in all general registers, and below the stack pointer (the red zone). */
static void job_general(void)
{
#ifdef __x86_64__
	uint64_t bad;

	__asm__ volatile(
		"mov %%rsp, %%rbx\n"
		"mov $0x1111111111111111, %%rax\n mov %%rax, -8(%%rsp)\n mov %%rax, -128(%%rsp)\n"
		"lea 1(%%rax), %%rcx\n lea 2(%%rax), %%rdx\n lea 3(%%rax), %%rsi\n"
		"lea 4(%%rax), %%rdi\n lea 5(%%rax), %%r8\n lea 6(%%rax), %%r9\n"
		"lea 7(%%rax), %%r10\n lea 8(%%rax), %%r11\n lea 9(%%rax), %%r12\n"
		"lea 10(%%rax), %%r13\n lea 11(%%rax), %%r14\n"
		"mov $100000, %%r15d\n1: bswap %%rbx\n bswap %%rbx\n bswap %%rbx\n bswap %%rbx\n"
		"dec %%r15d\n jnz 1b\n"
		"xor %%rsp, %%rbx\n"
		"lea 1(%%rax), %%r15\n xor %%r15, %%rcx\n or %%rcx, %%rbx\n"
		"lea 2(%%rax), %%r15\n xor %%r15, %%rdx\n or %%rdx, %%rbx\n"
		"lea 3(%%rax), %%r15\n xor %%r15, %%rsi\n or %%rsi, %%rbx\n"
		"lea 4(%%rax), %%r15\n xor %%r15, %%rdi\n or %%rdi, %%rbx\n"
		"lea 5(%%rax), %%r15\n xor %%r15, %%r8\n or %%r8, %%rbx\n"
		"lea 6(%%rax), %%r15\n xor %%r15, %%r9\n or %%r9, %%rbx\n"
		"lea 7(%%rax), %%r15\n xor %%r15, %%r10\n or %%r10, %%rbx\n"
		"lea 8(%%rax), %%r15\n xor %%r15, %%r11\n or %%r11, %%rbx\n"
		"lea 9(%%rax), %%r15\n xor %%r15, %%r12\n or %%r12, %%rbx\n"
		"lea 10(%%rax), %%r15\n xor %%r15, %%r13\n or %%r13, %%rbx\n"
		"lea 11(%%rax), %%r15\n xor %%r15, %%r14\n or %%r14, %%rbx\n"
		"mov -8(%%rsp), %%rcx\n xor %%rax, %%rcx\n or %%rcx, %%rbx\n"
		"mov -128(%%rsp), %%rcx\n xor %%rax, %%rcx\n or %%rcx, %%rbx\n"
		"mov $0x1111111111111111, %%rcx\n xor %%rax, %%rcx\n or %%rcx, %%rbx\n"
		"mov %%rbx, %%rax\n"
		: "=a"(bad) : : "memory", "cc", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
		  "r11", "r12", "r13", "r14", "r15");
	if (bad)
		wrong("a general register or the red zone changed");
#endif
}

static void nap(long us)
{
	struct timespec ts = { 0, us * 1000 };

	if (nanosleep(&ts, NULL) < 0)
		wrong("nanosleep: %s", strerror(errno));
}

static void job_sleep(void)
{
	nap(700);
}

static void job_read(void)
{
	char c;

	if (read(pipe_fd[0], &c, 1) != 1 || c != 'x')
		wrong("read: %s", strerror(errno));
}

static void job_feed(void)
{
	uint64_t one = 1;

	if (write(pipe_fd[1], "x", 1) != 1 || write(event_fd, &one, 8) != 8)
		wrong("write: %s", strerror(errno));
	pthread_kill(suspended, SIGUSR2);
	nap(1000);
}

static void job_epoll(int timeout)
{
	static __thread int ep = -1;
	struct epoll_event e = { .events = EPOLLIN };

	if (ep < 0) {
		ep = epoll_create1(0);
		if (timeout < 0)
			epoll_ctl(ep, EPOLL_CTL_ADD, event_fd, &e);
	}
	int n = epoll_wait(ep, &e, 1, timeout);
	if (n < 0 && errno == EINTR && stops)
		return;
	if (n < 0 || n != (timeout < 0))
		wrong("epoll_wait(%d): %d, %s", timeout, n, strerror(errno));
	uint64_t value;
	if (timeout < 0 && read(event_fd, &value, 8) != 8)
		wrong("eventfd: %s", strerror(errno));
}

static void job_epoll_forever(void)
{
	job_epoll(-1);
}

static void job_epoll_timeout(void)
{
	job_epoll(2);
}

static void job_poll(void)
{
	if (poll(NULL, 0, 2) != 0)
		wrong("poll: %s", strerror(errno));
}

static bool timed_out(void)
{
	return errno == EAGAIN || (errno == EINTR && stops);
}

static void job_sigwait(void)
{
	struct timespec ts = { 0, 2000000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	if (sigtimedwait(&set, NULL, &ts) >= 0 || !timed_out())
		wrong("sigtimedwait: %s", strerror(errno));
}

static void job_recv(void)
{
	char c;

	if (recv(sock_fd[0], &c, 1, 0) >= 0 || !timed_out())
		wrong("recv: %s", strerror(errno));
}

static void *short_life(void *arg)
{
	return arg;
}

static void job_create(void)
{
	pthread_t th;

	if (pthread_create(&th, NULL, short_life, NULL) || pthread_join(th, NULL))
		wrong("pthread_create");
	nap(200);
}

static void job_malloc(void)
{
	static __thread char *blocks[64];
	static __thread unsigned at;
	unsigned i = at++ % 64;

	if (blocks[i]) {
		for (unsigned k = 0; k < 100; k++) {
			if (blocks[i][k] != (char)(i * 7 + k))
				wrong("a block's content changed");
		}
		free(blocks[i]);
	}
	blocks[i] = malloc(100 + at % 1000);
	for (unsigned k = 0; k < 100; k++)
		blocks[i][k] = (char)(i * 7 + k);
	if (at % 64 == 0)
		sched_yield();
}

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

/* Timer signals, on the alternate stack. */
static void job_signal(void)
{
	static bool ready;
	sigset_t set;

	if (!ready) {
		ready = true;
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
		setitimer(ITIMER_REAL, &every, NULL);
	}
	unsigned long before = atomic_load(&handled);
	for (int i = 0; i < 1000000 && atomic_load(&handled) == before; i++) {
		if (i % 1000 == 0)
			sched_yield();
	}
}

static atomic_ulong suspend_handled;
static void on_usr2(int sig)
{
	(void)sig;
	atomic_fetch_add(&suspend_handled, 1);
}

/* A wait with a mask of its own: the usual one must be back afterwards. */
static void job_suspend(void)
{
	sigset_t open, now;
	unsigned long before = atomic_load(&suspend_handled);

	suspended = pthread_self();
	sigfillset(&open);
	sigdelset(&open, SIGUSR2);
	if (sigsuspend(&open) != -1 || errno != EINTR)
		wrong("sigsuspend");
	if (atomic_load(&suspend_handled) == before)
		wrong("sigsuspend returned without its signal");
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	if (!sigismember(&now, SIGUSR2))
		wrong("sigsuspend left its mask");
}

static void job_futex(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1500000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&lock);
	int ret = pthread_cond_timedwait(&cond, &lock, &until);
	pthread_mutex_unlock(&lock);
	if (ret != ETIMEDOUT && ret != 0)
		wrong("pthread_cond_timedwait: %s", strerror(ret));
}

static void (*const jobs[])(void) = {
	job_vector, job_general, job_sleep, job_read, job_feed, job_epoll_forever,
	job_epoll_timeout, job_poll, job_sigwait, job_recv, job_create, job_malloc, job_signal,
	job_suspend, job_futex,
};
_Static_assert(sizeof(jobs) / sizeof(jobs[0]) == JOBS, "one counter each");

/* One job over and over; the thread's mask and alternate stack must stay what they are. */
static void *run(void *arg)
{
	size_t i = (size_t)arg;
	stack_t mine = { .ss_sp = malloc(65536), .ss_size = 65536 }, old;
	sigset_t mask, now;

	sigaltstack(&mine, NULL);
	jobs[i]();
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (;;) {
		jobs[i]();
		atomic_fetch_add(&progress[i], 1);
		sigaltstack(NULL, &old);
		if (old.ss_sp != mine.ss_sp || old.ss_size != mine.ss_size || old.ss_flags)
			wrong("the alternate stack changed");
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		for (int sig = 1; sig < NSIG; sig++) {
			if (sigismember(&now, sig) != sigismember(&mask, sig))
				wrong("the signal mask changed: signal %d", sig);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char line[64];
	unsigned long last[JOBS];
	sigset_t all;
	struct timeval tv = { 0, 2000 };
	unsigned last_job = 0;

	if (argc > 1 && strncmp(argv[1], "stops", 5) == 0) {
		stops = true;
		last_job = (unsigned)atoi(argv[1] + 5);
	}
	if (pipe(pipe_fd) < 0 || (event_fd = eventfd(0, 0)) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, sock_fd) < 0)
		wrong("can't start");
	setsockopt(sock_fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_usr2;
	action.sa_flags = 0;
	sigaction(SIGUSR2, &action, NULL);
	sigfillset(&all);
	sigdelset(&all, SIGTERM);
	sigdelset(&all, SIGINT);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	suspended = pthread_self();
	for (size_t i = 1; i <= JOBS; i++) {
		pthread_t th;
		if (pthread_create(&th, NULL, run, (void *)((last_job + i) % JOBS)))
			wrong("can't start a thread");
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n") != 0) {
		for (int i = 0; i < JOBS; i++)
			last[i] = atomic_load(&progress[i]);
		for (int i = 0; i < JOBS; i++) {
			int waits = 0;
			while (atomic_load(&progress[i]) - last[i] < 2) {
				if (++waits > 20000)
					wrong("job %d doesn't go on", i);
				nap(500);
			}
		}
		printf("ok\n");
		fflush(stdout);
	}
	if (ferror(stdin))
		wrong("stdin: %s", strerror(errno));
	return 0;
}
