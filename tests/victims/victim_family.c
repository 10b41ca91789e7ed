/*
 * Processes that have children in every way there is, each with books of its own. What a process has
 * allocated and freed itself it writes to standard output, in one write, before it ends or executes
 * something else:
 *
 *	pid N allocs N alloc_bytes N frees N live_blocks N live_bytes N
 *
 * All of it comes from one function, site_block. Blocks that a forked child has inherited are its parent's: to free
 * them counts nowhere in the child.
 *
 *	victim_family MODE [ARG]
 *
 *	leaf [N]	N blocks, half of them freed
 *	fork		a child that goes on without exec: both allocate, both free, the child inherited ones too
 *	thread-fork	the same from a thread that isn't the first
 *	grand		a child with a child, both work
 *	vfork		a child that executes "leaf 6"
 *	spawn		posix_spawn of "leaf 8" from a thread
 *	chain N		executes itself N times, then is a leaf; blocks of each image
 *	daemon		forks twice with setsid; waits until the grandchild has ended
 *	outlive FILE	ends as soon as its child has worked; that goes on, works again and says so in FILE
 *	short N		N children after another, of 1 to 7 blocks each
 *	exec N PROGRAM	N children after another that execute PROGRAM
 *	tracer		forks a child that says "tracer N" of itself: its TracerPid, and works
 *	hold		says "ready", works at each SIGUSR1 and says "done", ends at SIGTERM
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX 1000

extern char **environ;

static struct {
	unsigned allocs, frees, bytes, live_bytes;
} books;
static struct {
	void *p;
	unsigned size;
	pid_t owner;
} blocks[MAX];
static const char *self;

__attribute__((noinline, noclone)) void *site_block(unsigned size)
{
	void *p = malloc(size);

	memset(p, 1, size);
	return p;
}

static void take(unsigned n, unsigned size)
{
	for (int i = 0; n && i < MAX; i++) {
		if (blocks[i].p)
			continue;
		blocks[i].p = site_block(size);
		blocks[i].size = size;
		blocks[i].owner = getpid();
		books.allocs++;
		books.bytes += size;
		books.live_bytes += size;
		n--;
	}
}

/* The oldest first. */
static void drop(unsigned n)
{
	for (int i = 0; n && i < MAX; i++) {
		if (!blocks[i].p)
			continue;
		if (blocks[i].owner == getpid()) {
			books.frees++;
			books.live_bytes -= blocks[i].size;
		}
		free(blocks[i].p);
		blocks[i].p = NULL;
		n--;
	}
}

static void say_to(int fd)
{
	char text[200];
	int n = snprintf(text, sizeof(text), "pid %d allocs %u alloc_bytes %u frees %u live_blocks %u live_bytes %u\n",
			 (int)getpid(), books.allocs, books.bytes, books.frees, books.allocs - books.frees,
			 books.live_bytes);

	if (write(fd, text, (size_t)n) != n)
		_exit(90);
}

static void say(void)
{
	say_to(1);
}

/* A child begins with empty books. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(91);
	if (!pid)
		memset(&books, 0, sizeof(books));
	return pid;
}

static void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		_exit(92);
}

static void *do_fork(void *arg)
{
	(void)arg;
	take(100, 10);
	pid_t pid = child();
	if (!pid) {
		drop(30);		/* inherited */
		take(50, 20);
		drop(75);		/* 70 inherited ones, 5 of its own */
		say();
		_exit(0);
	}
	take(7, 1000);
	drop(20);
	await(pid);
	return NULL;
}

static void do_grand(void)
{
	take(3, 30);
	pid_t pid = child();
	if (!pid) {
		take(5, 50);
		pid_t grand = child();
		if (!grand) {
			take(9, 90);
			drop(8);	/* inherited */
			drop(2);
			say();
			_exit(0);
		}
		take(1, 51);
		await(grand);
		say();
		_exit(0);
	}
	await(pid);
}

static void do_vfork(void)
{
	take(4, 40);
	pid_t pid = vfork();
	if (!pid) {
		execl(self, self, "leaf", "6", (char *)NULL);
		_exit(93);
	}
	await(pid);
}

static void *do_spawn(void *arg)
{
	char *argv[] = { (char *)self, (char *)"leaf", (char *)"8", NULL };
	pid_t pid;

	(void)arg;
	take(2, 20);
	if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
		_exit(94);
	await(pid);
	return NULL;
}

static void in_thread(void *(*fn)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, NULL) || pthread_join(thread, NULL))
		_exit(95);
}

static void do_daemon(void)
{
	int done[2];
	char byte;

	take(2, 22);
	if (pipe(done))
		_exit(96);
	pid_t pid = child();
	if (!pid) {
		setsid();
		take(3, 33);
		say();
		if (!child()) {
			take(4, 44);
			drop(6);
			say();
			_exit(0);
		}
		_exit(0);
	}
	close(done[1]);
	await(pid);
	if (read(done[0], &byte, 1) != 0)	/* until the last one has closed it */
		_exit(97);
}

static void do_outlive(const char *file)
{
	int worked[2];
	char byte;

	if (pipe(worked))
		_exit(96);
	if (!child()) {
		take(10, 100);
		say();
		if (write(worked[1], "", 1) != 1)
			_exit(97);
		while (getppid() != 1 && usleep(10000) == 0)
			;
		usleep(300000);		/* heaptop is gone by now, or nearly */
		take(10, 100);
		drop(20);
		int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		say_to(fd);
		_exit(0);
	}
	take(1, 11);
	if (read(worked[0], &byte, 1) != 1)
		_exit(97);
}

static void do_tracer(void)
{
	char text[4096];

	take(2, 20);
	pid_t pid = child();
	if (!pid) {
		take(5, 50);
		int fd = open("/proc/self/status", O_RDONLY);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
		char *at = strstr(text, "TracerPid:"), out[64];
		int len = snprintf(out, sizeof(out), "tracer %d\n", at ? atoi(at + 10) : -1);
		if (write(1, out, (size_t)len) != len)
			_exit(97);
		_exit(0);
	}
	await(pid);
}

static volatile sig_atomic_t work, over;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		work = 1;
	else
		over = 1;
}

static void do_hold(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGUSR1, on_signal);
	signal(SIGTERM, on_signal);
	if (write(1, "ready\n", 6) != 6)
		_exit(97);
	while (!over) {
		sigsuspend(&old);
		if (!work)
			continue;
		work = 0;
		take(getpid() % 50 + 1, 64);
		say();
	}
}

static void do_children(int n, char **argv)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = child();
		if (!pid) {
			if (argv) {
				execv(argv[0], argv);
				_exit(93);
			}
			take((unsigned)i % 7 + 1, 16);
			say();
			_exit(0);
		}
		await(pid);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "leaf";
	int n = argc > 2 ? atoi(argv[2]) : 10;

	self = argv[0];
	if (!strcmp(mode, "leaf")) {
		take((unsigned)n, 200);
		drop((unsigned)n / 2);
	} else if (!strcmp(mode, "fork")) {
		do_fork(NULL);
	} else if (!strcmp(mode, "thread-fork")) {
		in_thread(do_fork);
	} else if (!strcmp(mode, "grand")) {
		do_grand();
	} else if (!strcmp(mode, "vfork")) {
		do_vfork();
	} else if (!strcmp(mode, "spawn")) {
		in_thread(do_spawn);
	} else if (!strcmp(mode, "chain")) {
		char left[16];
		snprintf(left, sizeof(left), "%d", n - 1);
		take(11, 110);
		if (n > 0)
			execl(self, self, "chain", left, (char *)NULL);
	} else if (!strcmp(mode, "daemon")) {
		do_daemon();
	} else if (!strcmp(mode, "outlive")) {
		do_outlive(argv[2]);
	} else if (!strcmp(mode, "tracer")) {
		do_tracer();
	} else if (!strcmp(mode, "hold")) {
		do_hold();
	} else if (!strcmp(mode, "short")) {
		do_children(n, NULL);
	} else if (!strcmp(mode, "exec") && argc > 3) {
		do_children(n, argv + 3);
	} else {
		return 2;
	}
	say();
	return 0;
}
