/*
 * The target's memory. Data is read through process_vm_readv, which needs no stop and names the process by a living
 * thread: the first one may have left. Text is written through /proc/PID/mem, which passes over page protection for
 * a tracer, and so is data while the process runs: a descriptor of that belongs to an address space, and not to a
 * process. An attached one isn't traced then, and when it has executed another program, that may have something
 * of its own where the old one had what we write to.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

bool target_find_live(struct target *t)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);

	for (size_t i = 0; i < n; i++) {
		struct proc_status status;
		if (tids[i] != t->live && proc_status(t->pid, tids[i], &status) && status.has_mm &&
		    status.state != 'Z' && status.state != 'X') {
			t->live = tids[i];
			return true;
		}
	}
	return false;
}

/* process_vm_readv or _writev of one piece: bytes moved, 0 at a fault, -1 with errno else. */
static ssize_t move_by_thread(struct target *t, uint64_t addr, void *buf, size_t len, bool write)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)addr, len };

	for (int attempt = 0;; attempt++) {
		ssize_t n = write ? process_vm_writev(t->live, &local, 1, &remote, 1, 0)
				  : process_vm_readv(t->live, &local, 1, &remote, 1, 0);
		if (n >= 0)
			return n;
		int errnum = errno;
		if (errnum == EFAULT)
			return 0;
		if (errnum == ESRCH && !attempt && target_find_live(t))
			continue;
		errno = errnum;	/* looking for another thread has changed it */
		return -1;
	}
}

/* The same of a write to the memory that the descriptor is of. */
static ssize_t write_image(struct target *t, uint64_t addr, void *buf, size_t len)
{
	char byte;
	ssize_t n = addr > INT64_MAX ? 0 : pwrite(t->mem, buf, len, (off_t)addr);

	if (n > 0)
		return n;
	/* nothing there, or the whole image is gone: for another one or with the process? */
	return move_by_thread(t, addr, &byte, 1, false) < 0 ? -1 : 0;
}

static ssize_t move_bytes(struct target *t, uint64_t addr, void *buf, size_t len, bool write)
{
	if (write && !t->stopped && t->mem < 0)	/* a child's isn't open before it is needed */
		err_free(target_open_mem(t));
	return write && !t->stopped && t->mem >= 0 ? write_image(t, addr, buf, len) : move_by_thread(t, addr, buf, len, write);
}

/* As many as possible. The kernel stops in mid-way at 2 GiB and at the first fault. */
static size_t move_some(struct target *t, uint64_t addr, void *buf, size_t len, bool write,
			int *ret_errno)
{
	size_t done = 0;

	*ret_errno = 0;
	while (done < len) {
		size_t piece = len - done > (1u << 30) ? 1u << 30 : len - done;
		ssize_t n = move_bytes(t, addr + done, (char *)buf + done, piece, write);
		if (n <= 0) {
			*ret_errno = n < 0 ? errno : EFAULT;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

struct err *target_gone(const struct target *t)
{
	return err_new(ERR_GONE, "process %d has ended", t->pid);
}

static struct err *move_error(struct target *t, uint64_t addr, size_t len, bool write, int errnum)
{
	if (errnum == ESRCH)
		return target_gone(t);
	return err_errno(errnum, "process %d: can't %s %zu bytes at %#llx", t->pid,
			 write ? "write" : "read", len, (unsigned long long)addr);
}

struct err *target_read(struct target *t, uint64_t addr, void *buf, size_t len)
{
	int errnum;

	if (t->exited)
		return target_gone(t);
	if (move_some(t, addr, buf, len, false, &errnum) == len)
		return NULL;
	return move_error(t, addr, len, false, errnum);
}

size_t target_read_some(struct target *t, uint64_t addr, void *buf, size_t len)
{
	int errnum;

	return t->exited ? 0 : move_some(t, addr, buf, len, false, &errnum);
}

struct err *target_write(struct target *t, uint64_t addr, const void *buf, size_t len)
{
	int errnum;

	if (t->exited)
		return target_gone(t);
	if (move_some(t, addr, (void *)buf, len, true, &errnum) == len)
		return NULL;
	return move_error(t, addr, len, true, errnum);
}

void target_close_mem(struct target *t)
{
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}

/* The descriptor belongs to the address space of now: after an exec it must be opened again. */
struct err *target_open_mem(struct target *t)
{
	char path[64];

	if (t->mem >= 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", t->pid, t->live);
	t->mem = open(path, O_RDWR | O_CLOEXEC);
	if (t->mem >= 0)
		return NULL;
	if (errno == ENOENT || errno == ESRCH)
		return target_gone(t);
	return err_errno(errno, "process %d: can't open its memory", t->pid);
}

struct err *target_write_text(struct target *t, uint64_t addr, const void *buf, size_t len)
{
	if (!t->stopped)
		return err_new(ERR_OTHER, "process %d: text can be changed only while it is stopped",
			       t->pid);
	if (addr > INT64_MAX)
		return err_new(ERR_BAD_INPUT, "process %d: no text at %#llx", t->pid,
			       (unsigned long long)addr);
	struct err *err = target_open_mem(t);
	if (err)
		return err;
	ssize_t n = pwrite(t->mem, buf, len, (off_t)addr);
	if (n == (ssize_t)len)
		return NULL;
	if (n == 0)	/* its memory is gone */
		return target_gone(t);
	return err_errno(n < 0 ? errno : EFAULT, "process %d: can't write %zu bytes of text at %#llx",
			 t->pid, len, (unsigned long long)addr);
}
