/* May a process be watched, and if not, the one line that says why and what to do. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <pwd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "target/cpu.h"
#include "target/impl.h"
#include "target/proc.h"

bool target_may_trace_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	return data[0].effective >> CAP_SYS_PTRACE & 1;
}

/* Outside of all user namespaces every id is mapped to itself: "0 0 4294967295". */
static bool in_user_namespace(void)
{
	CLEANUP_FREE char *text = proc_read(getpid(), 0, "uid_map", 1 << 16, NULL);
	unsigned inside, outside, count;

	return text && (sscanf(text, "%u %u %u", &inside, &outside, &count) != 3 || inside || outside ||
			count != UINT32_MAX);
}

/* kernel.yama.ptrace_scope; 0 where Yama isn't there. */
static int yama_scope(void)
{
	char digit = '0';
	CLEANUP_CLOSE int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &digit, 1) != 1 || digit < '0' || digit > '9')
		return 0;
	return digit - '0';
}

void target_user_name(uid_t uid, char *buf, size_t size)
{
	struct passwd pw, *found = NULL;
	char space[2048];

	if (getpwuid_r(uid, &pw, space, sizeof(space), &found) == 0 && found) {
		snprintf(buf, size, "%s", found->pw_name);
		text_sanitize(buf);
	} else {
		snprintf(buf, size, "uid %u", uid);
	}
}

static bool is_descendant(pid_t pid)
{
	struct proc_status status;
	pid_t self = getpid();

	for (int depth = 0; depth < 64 && pid > 1; depth++) {
		if (pid == self)
			return true;
		if (!proc_status(pid, 0, &status))
			return false;
		pid = status.ppid;
	}
	return false;
}

/*
 * The process's files belong to root when it is protected: proc(5), "dumpable". The folder itself
 * doesn't: it always belongs to the effective user.
 */
bool target_is_protected(pid_t pid, const struct proc_status *status)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return stat(path, &st) == 0 && st.st_uid != status->uid[1];
}

static struct err *no_such_process(pid_t pid)
{
	return err_new(ERR_NOT_FOUND, "process %d: no such process", pid);
}

static struct err *traced_already(pid_t pid, pid_t tracer)
{
	struct proc_status status;

	if (tracer == getpid())
		return err_new(ERR_BUSY, "process %d is watched by this heaptop already", pid);
	if (!proc_status(tracer, 0, &status) || !status.name[0])
		return err_new(ERR_BUSY, "process %d is already traced by pid %d: detach it first",
			       pid, tracer);
	/* The tracer may be a thread: name its process. */
	return err_new(ERR_BUSY, "process %d is already traced by %s (pid %d): detach it first", pid,
		       status.name, status.tgid ? status.tgid : tracer);
}

static struct err *yama_refusal(pid_t pid, int scope)
{
	if (scope >= 3)
		return err_new(ERR_DENIED, "process %d: attaching is switched off until the next boot "
			       "(kernel.yama.ptrace_scope=3)", pid);
	if (scope == 2)
		return err_new(ERR_DENIED, "process %d: ptrace is restricted to root "
			       "(kernel.yama.ptrace_scope=2): run heaptop as root "
			       "(sudo heaptop -p %d)", pid, pid);
	return err_new(ERR_DENIED, "process %d: ptrace is restricted (kernel.yama.ptrace_scope=1): "
		       "start the program with heaptop, or: sudo sysctl kernel.yama.ptrace_scope=0",
		       pid);
}

/* The rules of ptrace(2), "Ptrace access mode checking", in the order a user would ask. */
static struct err *missing_right(pid_t pid, const struct proc_status *status)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	bool capable = target_may_trace_all();
	int yama = yama_scope();
	char owner[64];

	if (yama >= 3)
		return yama_refusal(pid, yama);
	if (capable)
		return NULL;
	if (status->uid[0] != uid) {
		target_user_name(status->uid[0], owner, sizeof(owner));
		return err_new(ERR_DENIED, "process %d: owned by %s: run heaptop as root "
			       "(sudo heaptop -p %d)", pid, owner, pid);
	}
	if (status->uid[1] != uid || status->uid[2] != uid || status->gid[0] != gid ||
	    status->gid[1] != gid || status->gid[2] != gid)
		return err_new(ERR_DENIED, "process %d: %s runs with another user's or group's rights "
			       "(setuid): run heaptop as root (sudo heaptop -p %d)", pid,
			       status->name, pid);
	if (target_is_protected(pid, status))
		return err_new(ERR_DENIED, "process %d: %s is protected (setuid, capabilities or not "
			       "dumpable): run heaptop as root (sudo heaptop -p %d)", pid,
			       status->name, pid);
	if (yama == 2 || (yama == 1 && !is_descendant(pid)))
		return yama_refusal(pid, yama);
	return NULL;
}

/* Opening its memory takes the same right as PTRACE_ATTACH, all security modules included. */
static bool kernel_allows(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

static const char *machine_name(unsigned machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_AARCH64:
		return "arm64";
	case EM_RISCV:
		return "riscv64";
	default:
		return NULL;
	}
}

/* The program's ELF header: is it for us? Files we can't read are left to later. */
struct err *target_check_architecture(pid_t pid)
{
	char path[32];
	Elf64_Ehdr head;	/* e_machine lies at the same place in both classes */

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (head.e_ident[EI_CLASS] == ELFCLASS32)
		return err_new(ERR_UNSUPPORTED, "process %d is a 32-bit program: heaptop watches "
			       "64-bit programs only", pid);
	if (head.e_machine != cpu_elf_machine) {
		const char *name = machine_name(head.e_machine);
		if (!name)
			return err_new(ERR_UNSUPPORTED, "process %d is a program for another processor "
				       "(ELF machine %u): this heaptop watches %s programs", pid,
				       head.e_machine, cpu_name);
		return err_new(ERR_UNSUPPORTED, "process %d is a program for %s: this heaptop watches "
			       "%s programs", pid, name, cpu_name);
	}
	return NULL;
}

static struct err *check(pid_t pid, bool quiet, bool look_only)
{
	struct proc_status status;
	struct proc_stat stat;

	if (pid <= 0 || !proc_status(pid, 0, &status) || !proc_stat(pid, 0, &stat))
		return no_such_process(pid);
	/* /proc/TID exists for every thread, though it isn't listed. */
	if (status.tgid != pid)
		return err_new(ERR_NOT_FOUND, "%d is a thread of process %d: heaptop -p %d", pid,
			       status.tgid, status.tgid);
	if (pid == getpid())
		return err_new(ERR_UNSUPPORTED, "process %d is this heaptop itself", pid);
	if (status.kthread || stat.flags & PROC_PF_KTHREAD)
		return err_new(ERR_UNSUPPORTED, "process %d (%s) is a kernel thread: it has no heap",
			       pid, status.name);
	/* A first thread that has left while others go on is a zombie too. */
	if ((status.state == 'Z' || status.state == 'X') && status.threads <= 1)
		return err_new(ERR_NOT_FOUND, "process %d (%s) has ended and waits for its parent "
			       "(zombie)", pid, status.name);
	if (status.tracer && !look_only)
		return traced_already(pid, status.tracer);

	bool ask = !quiet || yama_scope() == 0;
	if (!ask || !kernel_allows(pid)) {
		struct err *err = missing_right(pid, &status);
		if (err)
			return err;
		if (ask && target_may_trace_all() && in_user_namespace())
			return err_new(ERR_DENIED, "process %d isn't in heaptop's user namespace, whose root "
				       "has no rights outside of it: run heaptop where the process was "
				       "started", pid);
		if (ask && target_may_trace_all())
			return err_new(ERR_DENIED, "process %d: the kernel forbids tracing it, even with "
				       "CAP_SYS_PTRACE (a security module, or another container)", pid);
		if (ask)
			return err_new(ERR_DENIED, "process %d: the kernel forbids tracing it (a security "
				       "module, or another container): run heaptop as root "
				       "(sudo heaptop -p %d)", pid, pid);
	}
	return target_check_architecture(pid);
}

struct err *target_check(pid_t pid)
{
	return check(pid, false, false);
}

struct err *target_check_look(pid_t pid)
{
	return check(pid, false, true);
}

struct err *target_check_quiet(pid_t pid)
{
	return check(pid, true, false);
}

struct err *target_seize_error(pid_t pid, pid_t tid, int errnum)
{
	struct proc_status status;

	if (errnum == ESRCH && !proc_status(pid, tid, &status))
		return err_new(ERR_GONE, "process %d has ended", pid);
	if (proc_status(pid, tid, &status) && status.tracer && status.tracer != getpid())
		return traced_already(pid, status.tracer);
	struct err *err = check(pid, false, false);
	/* what its memory's file didn't tell: a filter may know ptrace(2) alone */
	if (!err && errnum == EPERM && proc_status(pid, 0, &status))
		err = missing_right(pid, &status);
	if (err)
		return err;
	return err_errno(errnum, "process %d: the kernel refuses to trace it", pid);
}
