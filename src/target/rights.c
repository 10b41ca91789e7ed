/*
 * Programs with rights of their own (setuid, setgid, file capabilities: sudo, ping). Executed by a traced
 * process they don't get them, unless the tracer may trace anything (CAP_SYS_PTRACE), and a script that calls
 * sudo would fail under heaptop. The kernel tells of an execve(2) only when it is done. So such a program is
 * executed once more: it stands before its first instruction with everything an execve needs on its stack, the
 * registers are set for that call, and it is let go at the same moment. Untraced, it gets what it would have
 * got; and it can't be watched, as it couldn't be attached to.
 *
 * If heaptop is killed in between, either nothing has been done, or the kernel lets it go with the registers
 * set, which is the same as if we had. If the second execve fails, the program begins without its rights.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

#define ARGS_MAX (1u << 22)	/* pointers on the stack: more than the kernel lets through */

static bool no_new_privileges(pid_t pid)
{
	CLEANUP_FREE char *text = proc_read(pid, 0, "status", 1 << 16, NULL);
	const char *at = text ? strstr(text, "\nNoNewPrivs:") : NULL;

	return at && strtol(at + 12, NULL, 10) != 0;
}

bool target_has_lost_rights(struct target *t)
{
	struct proc_status status;
	struct statvfs fs;
	struct stat st;
	char exe[32];

	if (target_may_trace_all())
		return false;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", t->pid);
	if (stat(exe, &st) < 0)
		return false;
	bool own = st.st_mode & (S_ISUID | S_ISGID) || getxattr(exe, "security.capability", NULL, 0) > 0;
	if (!own || statvfs(exe, &fs) < 0 || fs.f_flag & ST_NOSUID || no_new_privileges(t->pid) ||
	    !proc_status(t->pid, 0, &status))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != status.uid[1]) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != status.gid[1]) ||
	       getxattr(exe, "security.capability", NULL, 0) > 0;
}

/* What the kernel put on the stack: argc, argv, NULL, envp, NULL, auxv. */
struct start {
	uint64_t argv, envp, name;	/* name: AT_EXECFN, 0: none */
};

static bool read_start(struct target *t, uint64_t sp, struct start *ret)
{
	uint64_t word, at;

	memset(ret, 0, sizeof(*ret));
	if (target_read_some(t, sp, &word, sizeof(word)) != sizeof(word) || word > ARGS_MAX)
		return false;
	ret->argv = sp + 8;
	ret->envp = at = ret->argv + (word + 1) * 8;
	do {
		if (at - sp > ARGS_MAX * 8ull || target_read_some(t, at, &word, sizeof(word)) != sizeof(word))
			return false;
		at += 8;
	} while (word);
	for (int i = 0; i < 64; i++, at += 16) {
		uint64_t pair[2];
		if (target_read_some(t, at, pair, sizeof(pair)) != sizeof(pair) || pair[0] == AT_NULL)
			break;
		if (pair[0] == AT_EXECFN)
			ret->name = pair[1];
	}
	return true;
}

/* The name it was executed by, if that still names the file (of a script it is the script's). */
static bool names_it(struct target *t, uint64_t name)
{
	char path[PATH_MAX], place[PATH_MAX + 32], exe[32];
	struct stat a, b;

	size_t n = name ? target_read_some(t, name, path, sizeof(path) - 1) : 0;
	path[n] = 0;
	if (!*path || strlen(path) == n)
		return false;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", t->pid);
	snprintf(place, sizeof(place), "/proc/%d/%s/%s", t->pid, path[0] == '/' ? "root" : "cwd", path);
	return stat(exe, &a) == 0 && stat(place, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Else its file's, written below the stack. */
static struct err *write_name(struct target *t, uint64_t sp, uint64_t *ret)
{
	char exe[32], path[PATH_MAX];

	snprintf(exe, sizeof(exe), "/proc/%d/exe", t->pid);
	ssize_t n = readlink(exe, path, sizeof(path) - 1);
	if (n <= 0)
		return err_errno(errno, "process %d: its program can't be named", t->pid);
	path[n] = 0;
	*ret = (sp - 64 - (uint64_t)n - 1) & ~15ull;
	return target_write(t, *ret, path, (size_t)n + 1);
}

struct err *target_execute_untraced(struct target *t)
{
	struct cpu_regs regs;
	struct start start;
	struct err *err = cpu_regs_get(t->pid, &regs);

	if (err)
		return err;
	uint64_t sp = cpu_sp(&regs), entry = cpu_pc(&regs), gadget = remote_find_call(t);
	if (!gadget || !read_start(t, sp, &start))
		return err_new(ERR_UNSUPPORTED, "process %d: its start isn't as expected", t->pid);
	if (!names_it(t, start.name))
		err = write_name(t, sp, &start.name);
	/* where a failed call returns to */
	if (!err)
		err = target_write(t, sp - 8, &entry, sizeof(entry));
	if (err)
		return err;
	const uint64_t args[6] = { start.name, start.argv, start.envp };
	cpu_call_enter(&regs, gadget, sp - 8, SYS_execve, args);
	err = cpu_regs_set(t->pid, &regs);
	if (err)
		return err;
	if (ptrace(PTRACE_DETACH, t->pid, 0, 0L) < 0)
		return err_errno(errno, "process %d: can't be let go", t->pid);
	t->nthreads = 0;
	t->left = true;
	t->stopped = false;
	return NULL;
}
