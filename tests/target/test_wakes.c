/*
 * A stop is no signal, and hides none: a system call the target waits in goes on as if nobody had
 * been there, and one that a signal ought to end, end it does, also if the signal comes while the
 * target is stopped. For each way to wait that tests/victims/victim_wakes.c knows. TAP.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/err.h"
#include "spawn.h"
#include "target/target.h"

static int tests, failures;

static void report(bool ok, const char *way, const char *what)
{
	printf("%s %d - %s: %s\n", ok ? "ok" : "not ok", ++tests, way, what);
	fflush(stdout);
	failures += !ok;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* In which system call is it? "running" or -1 are none. */
static bool waits(pid_t pid)
{
	char path[64], text[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	for (int i = 0; i < 2000; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n < 0 ? 0 : n] = '\0';
		if (text[0] >= '0' && text[0] <= '9' && victim_state(pid) == 'S')
			return true;
		nap(1);
	}
	printf("# in no system call: %s\n", text);
	return false;
}

static bool start(struct victim *v, const char *way, const char *option)
{
	int out[2];
	const char *path = victim_path("victim_wakes");

	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	v->in = -1;
	v->pid = fork();
	if (v->pid == 0) {
		/* by itself the children go as well */
		setpgid(0, 0);
		dup2(out[1], 1);
		execl(path, path, way, option, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	v->out = out[0];
	return strcmp(victim_line(v, 10000), "ready") == 0 && waits(v->pid);
}

static void end(struct victim *v)
{
	kill(-v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	close(v->out);
}

/* Stop it, with `calls` system calls made by it and perhaps a signal sent to it meanwhile, and let it go. */
static bool visit(pid_t pid, int calls, bool signal_it)
{
	struct target *t;
	int64_t ret = 0;
	struct err *err = target_attach(pid, &t);

	for (int i = 0; i < calls && !err; i++)
		err = target_syscall(t, SYS_getppid, (uint64_t[6]){ 0 }, &ret);
	if (signal_it)
		kill(pid, SIGUSR1);
	if (!err)
		err = target_resume(t);
	target_destroy(t);
	if (!err)
		return true;
	printf("# %s\n", err->text);
	err_free(err);
	return false;
}

static bool quiet(struct victim *v)
{
	struct pollfd p = { .fd = v->out, .events = POLLIN };

	if (poll(&p, 1, 0) == 0)
		return true;
	printf("# it said: %s\n", victim_line(v, 0));
	return false;
}

static void try_way(const char *way)
{
	struct victim v = { 0 };

	for (int calls = 0; calls < 3; calls += 2) {
		char what[128];
		bool ok = start(&v, way, NULL);
		for (int i = 0; i < 3 && ok; i++)
			ok = visit(v.pid, calls, false) && waits(v.pid) && quiet(&v);
		snprintf(what, sizeof(what), "goes on after three stops with %d calls", calls);
		report(ok, way, what);
		ok = ok && visit(v.pid, calls, true);
		const char *line = ok ? victim_line(&v, 10000) : "";
		ok = strcmp(line, "woken") == 0;
		if (!ok)
			printf("# it said: %s\n", line);
		snprintf(what, sizeof(what), "a signal during a stop with %d calls wakes it", calls);
		report(ok, way, what);
		end(&v);
	}
}

/* With SA_RESTART the same call goes on when the handler is through. */
static void try_restart(const char *way)
{
	struct victim v = { 0 };

	for (int calls = 0; calls < 3; calls += 2) {
		bool ok = start(&v, way, "restart") && visit(v.pid, calls, true);
		ok = ok && strcmp(victim_line(&v, 10000), "handled") == 0 && waits(v.pid) && quiet(&v);
		report(ok, way, "a signal with SA_RESTART lets it go on");
		end(&v);
	}
}

int main(void)
{
	char ways[64][32];
	int n = 0;
	FILE *list;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!may_ptrace()) {
		printf("1..0 # SKIP PTRACE_SEIZE of an own child is refused\n");
		return 77;
	}
	alarm(300);
	char command[4200];
	snprintf(command, sizeof(command), "'%s'", victim_path("victim_wakes"));
	list = popen(command, "r");
	while (list && n < 64 && fscanf(list, "%31s", ways[n]) == 1)
		n++;
	if (list)
		pclose(list);
	for (int i = 0; i < n; i++)
		try_way(ways[i]);
	static const char *const restarting[] = { "read", "write", "futex_forever", "wait4" };
	for (size_t i = 0; i < sizeof(restarting) / sizeof(restarting[0]); i++)
		try_restart(restarting[i]);
	report(n > 35, "all", "ways were tried");
	printf("1..%d\n", tests);
	return failures != 0;
}
