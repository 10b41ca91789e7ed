/*
 * heaptop killed by SIGKILL at a random instant must leave its target right: while it attaches,
 * makes remote system calls, lets go, or brings a launched program to its start. ROUNDS (40) of
 * each; and before each request to the kernel that a remote call consists of. TAP.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "spawn.h"
#include "target/impl.h"
#include "target/target.h"

static int failures, tests;

static void report(bool ok, const char *what)
{
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++tests, what);
	fflush(stdout);
	failures += !ok;
}

/* Never returns: whatever heaptop does to a target, over and over. `direct`: see struct cpu_way. */
static void harass(pid_t pid, bool direct)
{
	for (;;) {
		struct target *t;
		struct err *err = target_attach(pid, &t);
		if (err) {
			fprintf(stderr, "%s\n", err->text);
			_exit(1);
		}
		t->no_direct = !direct;
		for (int i = 0; i < 20; i++) {
			int64_t addr = 0, ret = 0;
			err = target_syscall(t, SYS_mmap,
					     (uint64_t[6]){ 0, 8192, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0 },
					     &addr);
			if (!err)
				err = target_syscall(t, SYS_munmap, (uint64_t[6]){ (uint64_t)addr, 8192 }, &ret);
			if (err || addr <= 0 || ret) {
				fprintf(stderr, "%s\n", err ? err->text : "the call failed");
				_exit(1);
			}
		}
		err_free(target_resume(t));
		target_destroy(t);
	}
}

static bool kill_after(pid_t helper, long us)
{
	struct timespec ts = { 0, us * 1000 };
	int status;

	nanosleep(&ts, NULL);
	kill(helper, SIGKILL);
	waitpid(helper, &status, 0);
	return WIFSIGNALED(status);
}

/* With each job's thread as the one that makes the calls. */
#define JOBS 15

static void test_attached(int rounds)
{
	int killed = 0, failed = 0;

	for (int job = 0, i = 0; job < JOBS; job++) {
		struct victim v = { 0 };
		char arg[16];
		/* EINTR where a mere stop gives it can't be hidden by the dead: "stops". */
		snprintf(arg, sizeof(arg), "stops%d", job);
		bool ok = victim_start(&v, "victim_threads", arg);
		for (; ok && i < rounds * (job + 1) / JOBS; i++) {
			pid_t helper = fork();
			if (helper == 0)
				harass(v.pid, i % 2);
			killed += kill_after(helper, rand() % 12000);
			if (i % 3 == 2)
				ok = victim_ok(&v);
		}
		ok = ok && victim_ok(&v);
		if (!ok && v.pid > 0)
			kill(v.pid, SIGTERM);
		int status = v.pid > 0 ? victim_end(&v) : -1;
		if (!ok || status != 0) {
			printf("# calls by job %d: wait status %#x\n", job, status);
			failed++;
		}
		i = rounds * (job + 1) / JOBS;
	}
	char what[128];
	snprintf(what, sizeof(what), "the victim survives %d of %d kills of its tracer", killed, rounds);
	report(!failed && killed == rounds, what);
}

/* Requests until this process kills itself; 0: it doesn't. */
static int requests_left;

/* In place of the C library's, which this program's own comes before. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list args;

	if (requests_left && --requests_left == 0)
		kill(getpid(), SIGKILL);
	va_start(args, request);
	pid_t pid = va_arg(args, pid_t);
	void *addr = va_arg(args, void *), *data = va_arg(args, void *);
	va_end(args);
	return syscall(SYS_ptrace, request, pid, addr, data);
}

/* A helper that dies at its nth request of a call, or with 0 if it takes fewer. */
static pid_t start_dying_at(pid_t pid, bool direct, int n)
{
	pid_t helper = fork();

	if (helper)
		return helper;
	struct target *t;
	struct err *err = target_attach(pid, &t);
	int64_t addr = 0, ret = -1;
	if (err)
		_exit(1);
	t->no_direct = !direct;
	err = target_syscall(t, SYS_mmap, (uint64_t[6]){ 0, 8192, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0 }, &addr);
	requests_left = n;	/* a thread and the way are chosen */
	if (!err)
		err = target_syscall(t, SYS_munmap, (uint64_t[6]){ (uint64_t)addr, 8192 }, &ret);
	requests_left = 0;
	if (err || ret)
		_exit(2);
	target_resume(t);
	_exit(0);
}

static void test_each_request(void)
{
	int killed = 0, most = 0, status = 0;
	bool ok = true;

	for (int direct = 0; direct < 2 && ok; direct++) {
		struct victim v = { 0 };
		bool more = true;
		ok = victim_start(&v, "victim_threads", "stops0");
		for (int n = 1; ok && more; n++) {
			waitpid(start_dying_at(v.pid, direct, n), &status, 0);
			more = WIFSIGNALED(status);
			killed += more;
			most = n > most ? n : most;
			ok = (more || status == 0) && victim_ok(&v);
			if (!ok)
				printf("# direct %d, request %d: helper's wait status %#x\n", direct, n,
				       status);
		}
		if (!ok && v.pid > 0)
			kill(v.pid, SIGTERM);
		if (victim_end(&v) != 0)
			ok = false;
	}
	char what[128];
	snprintf(what, sizeof(what), "killed before each request of a call: %d kills", killed);
	report(ok && most > 8, what);
}

/* The orphaned program becomes our child, and its end tells. */
static void test_launched(int rounds)
{
	int finished = 0, unstarted = 0, harmed = 0, absent = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < rounds; i++) {
		pid_t helper = fork();
		if (helper == 0) {
			const char *path = victim_path("victim_ends");
			char *argv[] = { (char *)path, "exit", "42", NULL };
			const struct launch_spec spec = { .argv = argv, .fd = { -1, -1, -1 } };
			struct target *t;
			int code;
			err_free(target_launch(&spec, &t, &code));
			pause();
		}
		kill_after(helper, rand() % 12000);
		int status, seen = finished + unstarted + harmed;
		while (waitpid(-1, &status, __WALL) > 0) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == 42)
				finished++;
			else if (WIFEXITED(status) && WEXITSTATUS(status) == LAUNCH_FAILED)
				unstarted++;
			else
				harmed++;
		}
		absent += seen == finished + unstarted + harmed;
	}
	char what[128];
	snprintf(what, sizeof(what), "launched programs: %d finished, %d not yet started, "
		 "%d not yet forked, %d harmed", finished, unstarted, absent, harmed);
	report(!harmed && finished, what);
}

int main(void)
{
	const char *s = getenv("ROUNDS");
	int rounds = s ? atoi(s) : 40;

	if (!may_ptrace()) {
		printf("1..0 # SKIP PTRACE_SEIZE of an own child is refused\n");
		return 77;
	}
	if (rounds < 1)
		rounds = 40;
	signal(SIGPIPE, SIG_IGN);
	srand((unsigned)time(NULL));
	alarm(60 + (unsigned)rounds);
	printf("1..3\n");
	test_each_request();
	test_attached(rounds);
	test_launched(rounds);
	return failures != 0;
}
