/* What can be done here and to a process; see facts.h. */
#include "target/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/proc.h"
#include "target/procmap.h"

/* A number in a file of /proc/sys, -1: none there. */
static int sysctl_number(const char *path)
{
	char text[16] = "", *end;
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	long n = strtol(text, &end, 10);
	/* perf_event_paranoid may be -1, "no restrictions" */
	return end == text ? -1 : n < 0 ? 0 : n > 99 ? 99 : (int)n;
}

static bool have_capability(unsigned number)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	return syscall(SYS_capget, &head, data) == 0 && data[number / 32].effective >> number % 32 & 1;
}

/* ---- trying it on a child ---- */

static uint64_t tried;	/* a word that the child has at the same address */

static int try_reading(pid_t child)
{
	uint64_t word = 1;
	struct iovec here = { &word, sizeof(word) }, there = { &tried, sizeof(tried) };

	return process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof(word) ? 0 : errno;
}

/* Text is patched through this file: it must get past page protection. */
static int try_writing(pid_t child)
{
	static const uint64_t guarded = 0x6865617074ull;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	return pwrite(fd, &guarded, sizeof(guarded), (off_t)(uintptr_t)&guarded) == sizeof(guarded) ? 0 : errno;
}

static void try_child(struct machine_facts *ret)
{
	int status;
	pid_t child = fork();

	if (child < 0) {
		ret->trace = ret->write = ret->read = errno;
		return;
	}
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ret->trace = ptrace(PTRACE_SEIZE, child, 0, 0L) || ptrace(PTRACE_INTERRUPT, child, 0, 0L) ? errno : 0;
	if (!ret->trace)
		waitpid(child, &status, __WALL);
	ret->read = try_reading(child);
	ret->write = try_writing(child);
	kill(child, SIGKILL);
	waitpid(child, &status, __WALL);
}

static int try_memfd(void)
{
	CLEANUP_CLOSE int fd = memfd_create("heaptop", MFD_CLOEXEC);

	return fd < 0 ? errno : 0;
}

static int try_procmap(void)
{
	CLEANUP_FREE char *path = xmalloc(PROCMAP_PATH);
	struct mapping mapping;
	CLEANUP_CLOSE int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : procmap_query(fd, (uintptr_t)&tried, path, &mapping);
}

static int try_priority(void)
{
	struct rlimit limit;
	int nice = getpriority(PRIO_PROCESS, 0);

	if (have_capability(CAP_SYS_NICE))
		return 0;
	/* RLIMIT_NICE counts from 20 downwards: see getrlimit(2) */
	if (getrlimit(RLIMIT_NICE, &limit) || (int64_t)limit.rlim_cur <= 20 - nice)
		return EPERM;
	return 0;
}

/* ---- the machine ---- */

/* The numbers the kernel gives the first user and PID namespace (include/linux/proc_ns.h). */
#define FIRST_USER_NAMESPACE 0xeffffffdul
#define FIRST_PID_NAMESPACE 0xeffffffcul

static bool is_namespace(const char *path, ino_t first)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_ino != first;
}

static bool has_steady_clock(void)
{
	char text[8192];
	CLEANUP_CLOSE int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return true;	/* nothing is known against it */
	text[n] = '\0';
	return strstr(text, "constant_tsc") && strstr(text, "nonstop_tsc");
}

void machine_facts(struct machine_facts *ret)
{
	struct utsname name;
	struct proc_status self, first;

	memset(ret, 0, sizeof(*ret));
	if (uname(&name) == 0) {
		snprintf(ret->kernel, sizeof(ret->kernel), "%s", name.release);
		snprintf(ret->machine, sizeof(ret->machine), "%s", name.machine);
	}
	try_child(ret);
	ret->memfd = try_memfd();
	ret->procmap = try_procmap();
	ret->priority = try_priority();
	ret->yama = sysctl_number("/proc/sys/kernel/yama/ptrace_scope");
	ret->memfd_noexec = sysctl_number("/proc/sys/vm/memfd_noexec");
	ret->paranoid = sysctl_number("/proc/sys/kernel/perf_event_paranoid");
	ret->seccomp = proc_status(getpid(), 0, &self) ? self.seccomp : 0;
	ret->ptrace_capability = have_capability(CAP_SYS_PTRACE);
	ret->user_namespace = is_namespace("/proc/self/ns/user", FIRST_USER_NAMESPACE);
	ret->pid_namespace = is_namespace("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
	ret->sees_others = proc_status(1, 0, &first);
	ret->steady_clock = has_steady_clock();
}

/* ---- a process ---- */

/* Links such as /proc/PID/ns/mnt, "mnt:[4026531841]": different texts, different namespaces. */
static void compare_namespaces(pid_t pid, char *ret, size_t size)
{
	static const char *const kinds[] = { "mnt", "pid", "user", "net", "cgroup", "ipc" };
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char path[48], theirs[64] = "", ours[64] = "";
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		if (readlink(path, theirs, sizeof(theirs) - 1) < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		if (readlink(path, ours, sizeof(ours) - 1) < 0 || !strcmp(ours, theirs) || len >= size)
			continue;
		len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? " " : "", kinds[i]);
	}
}

static uint64_t address_room(pid_t pid)
{
	struct rlimit limit;
	char *end;
	CLEANUP_FREE char *statm = proc_read(pid, 0, "statm", 4096, NULL);

	if (!statm || prlimit(pid, RLIMIT_AS, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	uint64_t used = strtoull(statm, &end, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

bool process_facts(pid_t pid, struct process_facts *ret)
{
	struct proc_status status;
	CLEANUP_FREE pid_t *tids = NULL;

	memset(ret, 0, sizeof(*ret));
	if (!proc_status(pid, 0, &status))
		return false;
	ret->uid = status.uid[0];
	target_user_name(ret->uid, ret->user, sizeof(ret->user));
	snprintf(ret->name, sizeof(ret->name), "%s", status.name);
	ret->state = status.state;
	ret->threads = status.threads;
	ret->tracer = status.tracer;
	ret->shadow_stack = status.shadow_stack;
	ret->protected = target_is_protected(pid, &status);
	ret->seccomp = status.seccomp;
	size_t n = proc_tasks(pid, &tids);
	for (size_t i = 0; i < n; i++)
		if (proc_status(pid, tids[i], &status) && status.seccomp > ret->seccomp)
			ret->seccomp = status.seccomp;
	compare_namespaces(pid, ret->namespaces, sizeof(ret->namespaces));
	ret->room = address_room(pid);
	return true;
}

uint64_t target_image(const struct target *t)
{
	char path[32];
	struct stat st;
	unsigned long long code = 0, stack = 0;
	CLEANUP_FREE char *text = proc_read(t->pid, 0, "stat", 4096, NULL);
	const char *at = text ? strrchr(text, ')') : NULL;

	snprintf(path, sizeof(path), "/proc/%d/exe", t->pid);
	/* fields 26 and 28 of proc(5), startcode and startstack; the one behind ')' is number 3 */
	for (int field = 2; at && field < 28; field++) {
		at = strchr(at + 1, ' ');
		if (at && field == 25)
			code = strtoull(at, NULL, 10);
		else if (at && field == 27)
			stack = strtoull(at, NULL, 10);
	}
	if (!at || !code || stat(path, &st))
		return 0;
	return (code * 0x9e3779b97f4a7c15ull ^ stack) * 0x9e3779b97f4a7c15ull ^ st.st_ino ^ (uint64_t)st.st_dev << 32;
}

struct err *target_observe(pid_t pid, struct target **ret)
{
	struct proc_status status;
	struct err *err = target_check_look(pid);

	*ret = NULL;
	if (err)
		return err;
	struct target *t = target_new(pid);
	t->command = proc_command(pid);
	if (!proc_status(pid, pid, &status) || !status.has_mm)
		target_find_live(t);	/* its first thread has left */
	*ret = t;
	return NULL;
}
