/* Events of tracefs and their guard; see uprobe_tracefs.h. */
#include "probe/uprobe_tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/proc.h"

#define PREFIX "heaptop_"	/* of all heaptops' groups: PREFIX heaptop's pid _ its start time _ one of its descriptors */
#define NAME_MAX_BYTES 128u	/* group/event: the kernel has 64 for each */
#define TRIES 100u		/* and 20 ms between them: events go a moment after their descriptors */

struct tracefs {
	int dir;		/* its root */
	int alive;		/* the guard's pipe: it ends with us */
	char group[64];		/* with the / behind it */
	unsigned events;	/* made so far, for their names */
};

/* ---- also in the guard, a fork of a process with threads: system calls only ---- */

struct lines {
	int fd;
	char text[512];
	size_t at, n;
};

static bool next_byte(struct lines *l, char *ret)
{
	if (l->at == l->n) {
		ssize_t n = read(l->fd, l->text, sizeof(l->text));
		if (n <= 0)
			return false;
		l->n = (size_t)n;
		l->at = 0;
	}
	*ret = l->text[l->at++];
	return true;
}

/* "p:heaptop_17_4711_42/p1 /usr/lib/libc.so.6:0x00000000000992a0": its group and event, cut at `size`; false: no more. */
static bool next_line(struct lines *l, char *ret, size_t size)
{
	size_t n = 0, fields = 0;
	char c = 0;
	bool any = false;

	while (next_byte(l, &c) && c != '\n') {
		any = true;
		if (fields == 0 && c == ':')
			fields = 1;
		else if (fields == 1 && c == ' ')
			fields = 2;
		else if (fields == 1 && n + 1 < size)
			ret[n++] = c;
	}
	ret[n] = '\0';
	return any || c == '\n';
}

/* The event after the first `skip` lines whose group begins so. */
static bool find_event(int dir, const char *group, size_t skip, char ret[NAME_MAX_BYTES])
{
	struct lines l = { .fd = openat(dir, "uprobe_events", O_RDONLY | O_CLOEXEC) };
	bool found = false;

	while (l.fd >= 0 && !found && next_line(&l, ret, NAME_MAX_BYTES))
		found = !strncmp(ret, group, strlen(group)) && !skip--;
	if (l.fd >= 0)
		close(l.fd);
	return found;
}

/* 0 or an errno; EBUSY: it is in use. */
static int take_out(int dir, const char *event)
{
	char line[NAME_MAX_BYTES + 3] = "-:";
	int fd = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return errno;
	memcpy(line + 2, event, strlen(event) + 1);
	int errnum = write(fd, line, strlen(line)) < 0 ? errno : 0;
	close(fd);
	return errnum;
}

/* All events of a group. */
static void clear(int dir, const char *group)
{
	const struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };
	char event[NAME_MAX_BYTES];

	for (unsigned busy = 0; busy < TRIES && find_event(dir, group, 0, event); ) {
		if (!take_out(dir, event))
			continue;
		busy++;
		nanosleep(&moment, NULL);
	}
}

/* Keeps nothing of heaptop's but two descriptors, and no signal meant for heaptop reaches it. */
static void guard(const struct tracefs *t, int pipe)
{
	unsigned low = (unsigned)(t->dir < pipe ? t->dir : pipe), high = (unsigned)(t->dir < pipe ? pipe : t->dir);
	sigset_t all;
	char c;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (low)
		close_range(0, low - 1, 0);
	if (high - low > 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
	if (chdir("/"))
		_exit(1);
	prctl(PR_SET_NAME, "heaptop-guard");
	while (read(pipe, &c, 1) < 0 && errno == EINTR)
		;
	clear(t->dir, t->group);
	_exit(0);
}

/* ---- */

/* 0 or an errno. Not a child of ours, which others who wait for children might meet. */
static int start_guard(struct tracefs *t)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	pid_t pid = fork();
	if (!pid) {
		pid = fork();
		if (!pid)
			guard(t, ends[0]);
		_exit(pid < 0);
	}
	int errnum = pid < 0 ? errno : 0, status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(ends[0]);
	t->alive = ends[1];
	return errnum ? errnum : status ? EAGAIN : 0;
}

/* Entries of heaptops that are no more, nor their guards. */
static void clear_left_over(int dir)
{
	char event[NAME_MAX_BYTES];
	size_t keep = 0;

	while (find_event(dir, PREFIX, keep, event)) {
		struct proc_stat stat;
		uint64_t start;
		int pid;
		bool known = sscanf(event, PREFIX "%d_%" SCNu64, &pid, &start) == 2;

		if (!known || (proc_stat(pid, 0, &stat) && stat.start == start) || take_out(dir, event))
			keep++;
	}
}

static bool has_events(int dir)
{
	return dir >= 0 && faccessat(dir, "uprobe_events", F_OK, 0) == 0;
}

/* Its root: where it is mounted, or of a mount that is nowhere. -1 and errno. */
static int open_root(void)
{
	static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int dir = -1;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		dir = open(usual[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (has_events(dir))
			return dir;
		if (dir >= 0)
			close(dir);
	}
	int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -1;
	dir = fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) ? -1 : fsmount(fs, FSMOUNT_CLOEXEC, 0);
	int errnum = errno;
	close(fs);
	if (dir >= 0 && !has_events(dir)) {
		close(dir);
		dir = -1;
		errnum = ENOENT;
	}
	errno = errnum;
	return dir;
}

static struct err *refused(int errnum)
{
	if (errnum == EPERM || errnum == EACCES)
		return err_new(ERR_DENIED, "--probe=uprobe without BPF takes root, for the kernel's tracefs");
	if (errnum == ENODEV || errnum == ENOENT || errnum == ENOSYS)
		return err_new(ERR_UNSUPPORTED, "--probe=uprobe: the kernel has neither BPF uprobes (Linux 6.6 with BTF) nor "
			       "uprobes in its tracefs; without this option heaptop needs none");
	return err_errno(errnum, "--probe=uprobe: the kernel's tracefs can't be used");
}

struct err *tracefs_open(struct tracefs **ret)
{
	struct tracefs *t = xcalloc(1, sizeof(*t));
	struct proc_stat stat;
	int errnum = 0;

	t->alive = -1;
	t->dir = open_root();
	if (t->dir < 0)
		errnum = errno;
	else if (faccessat(t->dir, "uprobe_events", W_OK, AT_EACCESS))
		errnum = errno;
	else if (!proc_stat(getpid(), 0, &stat))
		errnum = EAGAIN;
	if (!errnum) {
		snprintf(t->group, sizeof(t->group), PREFIX "%d_%" PRIu64 "_%d/", (int)getpid(), stat.start, t->dir);
		clear_left_over(t->dir);
		errnum = start_guard(t);
	}
	if (errnum) {
		tracefs_close(t);
		return refused(errnum);
	}
	*ret = t;
	return NULL;
}

void tracefs_clear(struct tracefs *t)
{
	if (t->events)
		clear(t->dir, t->group);
	t->events = 0;
}

void tracefs_close(struct tracefs *t)
{
	if (!t)
		return;
	tracefs_clear(t);
	if (t->dir >= 0)
		close(t->dir);
	if (t->alive >= 0)
		close(t->alive);
	free(t);
}

static struct err *event_id(const struct tracefs *t, const char *event, uint64_t *ret)
{
	CLEANUP_FREE char *path = xasprintf("events/%s%s/id", t->group, event);
	char text[32] = "";
	int fd = openat(t->dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int errnum = errno;

	if (fd >= 0)
		close(fd);
	*ret = strtoull(text, NULL, 10);
	return n > 0 && *ret ? NULL : err_errno(n < 0 ? errnum : EIO, "the kernel doesn't tell an event's number");
}

struct err *tracefs_event(struct tracefs *t, bool returns, int fd, const uint64_t *offsets, size_t n, uint64_t *ret)
{
	char event[16];
	int errnum = 0;
	int to = openat(t->dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (to < 0)
		return err_errno(errno, "the kernel's tracefs takes no uprobes");
	snprintf(event, sizeof(event), "%c%u", returns ? 'r' : 'p', ++t->events);
	for (size_t i = 0; i < n && !errnum; i++) {
		/* the file itself, whatever its name leads to by now */
		CLEANUP_FREE char *line = xasprintf("%c:%s%s /proc/self/fd/%d:0x%" PRIx64 "\n", returns ? 'r' : 'p', t->group,
						    event, fd, offsets[i]);
		if (write(to, line, strlen(line)) < 0)
			errnum = errno;
	}
	close(to);
	return errnum ? err_errno(errnum, "the kernel takes no uprobes there") : event_id(t, event, ret);
}
