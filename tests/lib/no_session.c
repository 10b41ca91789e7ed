/*
 * Preloaded into heaptop: a kernel before 6.13, which knows nothing of session uprobes and refuses a program for them
 * with EINVAL; with -DNO_PROGRAMS one before 6.6, which refuses programs for many uprobes, too. Everything else goes on to
 * the kernel there is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

#define MULTI 48u	/* BPF_TRACE_UPROBE_MULTI */
#define SESSION 57u	/* BPF_TRACE_UPROBE_SESSION */
#ifdef NO_PROGRAMS
#define IS_UNKNOWN(type) ((type) == SESSION || (type) == MULTI)
#else
#define IS_UNKNOWN(type) ((type) == SESSION)
#endif

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_bpf && a[0] == BPF_PROG_LOAD && IS_UNKNOWN(((const union bpf_attr *)a[1])->expected_attach_type)) {
		errno = EINVAL;
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
