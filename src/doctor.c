/* The machine, the user's rights and the terminal; see doctor.h. */
#include "doctor.h"

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli.h"
#include "target/cpu.h"
#include "target/facts.h"
#include "ui/ui.h"

void doctor_say(struct doctor *d, enum doctor_level level, const char *topic, const char *remedy,
		const char *fmt, ...)
{
	static const char *const levels[DOCTOR_LEVELS] = { "ok", "limited", "no" };
	va_list ap;

	va_start(ap, fmt);
	CLEANUP_FREE char *text = xvasprintf(fmt, ap);
	va_end(ap);
	text_sanitize(text);
	printf("%-8s %-14s %s%s%s\n", levels[level], topic, text, remedy ? ": " : "", remedy ? remedy : "");
	d->said[level]++;
}

/* ---- the machine ---- */

static void say_kernel(struct doctor *d, const struct machine_facts *m)
{
	unsigned major = 0, minor = 0;

	sscanf(m->kernel, "%u.%u", &major, &minor);
	/* MADV_WIPEONFORK came with 4.14: without it a forked child would write into its parent's rings */
	if (major < 4 || (major == 4 && minor < 14))
		doctor_say(d, DOCTOR_NO, "kernel", "Linux 4.14 or later is needed", "Linux %s", m->kernel);
	else
		doctor_say(d, DOCTOR_OK, "kernel", NULL, "Linux %s", m->kernel);
	doctor_say(d, DOCTOR_OK, "processor", NULL, "%s; this heaptop watches 64-bit %s programs",
		   m->machine, cpu_name);
	if (m->steady_clock)
		doctor_say(d, DOCTOR_OK, "clock", NULL, "the time stamp counter is steady");
	else
		doctor_say(d, DOCTOR_LIMITED, "clock", NULL, "the time stamp counter isn't said to be steady "
			   "(constant_tsc, nonstop_tsc): ages and rates may be wrong");
}

static void say_tracing(struct doctor *d, const struct machine_facts *m)
{
	const char *container = m->seccomp ?
		"heaptop runs under a seccomp filter, as in a container: start that with "
		"--cap-add=SYS_PTRACE or --security-opt seccomp=unconfined" :
		m->yama >= 2 ? "run heaptop as root (kernel.yama.ptrace_scope)" :
		"a security module or container forbids it: run heaptop outside of it, or give it SYS_PTRACE";

	if (m->trace)
		doctor_say(d, DOCTOR_NO, "ptrace", container, "not even a child of heaptop's own may be traced (%s)",
			   strerror(m->trace));
	else
		doctor_say(d, DOCTOR_OK, "ptrace", NULL, "a child can be traced");
	if (m->trace)
		return;
	if (m->read)
		doctor_say(d, DOCTOR_NO, "memory", container, "process_vm_readv is refused (%s)", strerror(m->read));
	else if (m->write)
		doctor_say(d, DOCTOR_NO, "memory", "see proc_mem.force_override of the kernel's command line, and "
			   "CONFIG_PROC_MEM_*", "code can't be written through /proc/PID/mem (%s)", strerror(m->write));
	else
		doctor_say(d, DOCTOR_OK, "memory", NULL, "it can be read and patched");
}

static void say_yama(struct doctor *d, const struct machine_facts *m)
{
	static const char allow[] = "to attach to your other processes: sudo sysctl kernel.yama.ptrace_scope=0";

	if (m->yama <= 0)
		doctor_say(d, DOCTOR_OK, "ptrace_scope", NULL, "%s", m->yama < 0 ? "not restricted (no Yama)" :
			   "0: any process of the same user");
	else if (m->yama >= 3)
		doctor_say(d, DOCTOR_NO, "ptrace_scope", "set kernel.yama.ptrace_scope at the next boot",
			   "3: nothing may be traced until the next boot");
	else if (m->ptrace_capability)
		doctor_say(d, DOCTOR_OK, "ptrace_scope", NULL, "%d: restricted to CAP_SYS_PTRACE, which heaptop has",
			   m->yama);
	else if (m->yama == 2)
		doctor_say(d, DOCTOR_NO, "ptrace_scope", "run heaptop as root",
			   "2: only with CAP_SYS_PTRACE");
	else
		doctor_say(d, DOCTOR_LIMITED, "ptrace_scope", allow, "1: only what heaptop itself starts");
}

static void say_user(struct doctor *d, const struct machine_facts *m)
{
	if (m->ptrace_capability)
		doctor_say(d, DOCTOR_OK, "user", NULL, "uid %u with CAP_SYS_PTRACE: processes of all users%s",
			   (unsigned)getuid(), m->user_namespace ? " of this user namespace" : "");
	else
		doctor_say(d, DOCTOR_LIMITED, "user", "for those of others run it as root (sudo heaptop)",
			   "uid %u without CAP_SYS_PTRACE: only processes of your own", (unsigned)getuid());
	if (m->user_namespace || m->pid_namespace)
		doctor_say(d, DOCTOR_LIMITED, "namespaces", "for processes outside run it there",
			   "heaptop is in a %s%s%s namespace, as in a container: it sees what is inside",
			   m->user_namespace ? "user" : "", m->user_namespace && m->pid_namespace ? " and PID" : "",
			   m->user_namespace ? "" : "PID");
	else
		doctor_say(d, DOCTOR_OK, "namespaces", NULL, "heaptop is in none of its own");
	if (!m->sees_others)
		doctor_say(d, DOCTOR_LIMITED, "/proc", "run heaptop as root, or mount it without hidepid",
			   "processes of others are hidden");
	if (m->seccomp)
		doctor_say(d, m->trace || m->read ? DOCTOR_NO : DOCTOR_OK, "seccomp", NULL,
			   "a filter watches heaptop's system calls%s", m->trace || m->read ? "" : ", and lets through what it needs");
	else
		doctor_say(d, DOCTOR_OK, "seccomp", NULL, "no filter on heaptop");
}

static void say_calls(struct doctor *d, const struct machine_facts *m)
{
	if (m->memfd)
		doctor_say(d, DOCTOR_LIMITED, "memfd", m->memfd_noexec >= 2 ? "see the sysctl vm.memfd_noexec" : NULL,
			   "memfd_create is refused (%s): programs are read the slower way, and what one does last "
			   "may be lost", strerror(m->memfd));
	else
		doctor_say(d, DOCTOR_OK, "memfd", NULL, "shared memory without a file can be made");
	if (m->procmap)
		doctor_say(d, DOCTOR_LIMITED, "maps", NULL, "no PROCMAP_QUERY before Linux 6.11 (%s): attaching takes "
			   "longer with thousands of mappings", strerror(m->procmap));
	else
		doctor_say(d, DOCTOR_OK, "maps", NULL, "PROCMAP_QUERY works");
	if (m->priority)
		doctor_say(d, DOCTOR_LIMITED, "priority", "run heaptop as root, or raise RLIMIT_NICE",
			   "heaptop can't raise its own: stopping a busy program takes it longer");
	else
		doctor_say(d, DOCTOR_OK, "priority", NULL, "can be raised for the moment a program is stopped");
	if (m->paranoid < 0)
		doctor_say(d, DOCTOR_OK, "perf events", NULL, "there are none, none are needed");
	else
		doctor_say(d, DOCTOR_OK, "perf events", NULL, "perf_event_paranoid is %d; none are needed", m->paranoid);
}

static void say_debug_files(struct doctor *d)
{
	struct stat st;

	if (stat("/usr/lib/debug", &st) == 0)
		doctor_say(d, DOCTOR_OK, "debug files", NULL, "in /usr/lib/debug (no server is asked)");
	else
		doctor_say(d, DOCTOR_LIMITED, "debug files", "install the packages -dbgsym or -debuginfo of what you watch",
			   "none in /usr/lib/debug: stripped programs show names of exported functions only "
			   "(no server is asked)");
}

/* Without a screen there is still -b. */
static void say_terminal(struct doctor *d)
{
	struct ui_terminal t;
	struct err *err = ui_terminal(&t);

	if (err) {
		doctor_say(d, DOCTOR_LIMITED, "terminal", "-b and -o do without; else try another TERM", "%s",
			   err->text);
		err_free(err);
		return;
	}
	doctor_say(d, DOCTOR_OK, "terminal", NULL, "TERM=%s can place the cursor", t.name);
	if (t.height < 24 || t.width < 80)
		doctor_say(d, DOCTOR_LIMITED, "size", "80 by 24 shows all of it", "%d columns, %d rows", t.width, t.height);
	else
		doctor_say(d, DOCTOR_OK, "size", NULL, "%d columns, %d rows", t.width, t.height);
	if (t.colors >= 8)
		doctor_say(d, DOCTOR_OK, "colours", NULL, "%d%s", t.colors,
			   getenv("NO_COLOR") && *getenv("NO_COLOR") ? ", off by NO_COLOR" : "");
	else
		doctor_say(d, DOCTOR_LIMITED, "colours", "a TERM such as xterm-256color has more", "none");
	if (t.utf8)
		doctor_say(d, DOCTOR_OK, "characters", NULL, "UTF-8");
	else
		doctor_say(d, DOCTOR_LIMITED, "characters", "set LC_ALL or LANG to a UTF-8 locale",
			   "ASCII only");
}

int doctor_run(const struct cli *cli)
{
	struct doctor d = { { 0 } };
	struct machine_facts machine;

	machine_facts(&machine);
	printf("heaptop " PACKAGE_VERSION " on this machine\n");
	say_kernel(&d, &machine);
	say_tracing(&d, &machine);
	say_yama(&d, &machine);
	say_user(&d, &machine);
	say_calls(&d, &machine);
	say_debug_files(&d);
	say_terminal(&d);
	if (cli->mode == CLI_ATTACH)
		for (size_t i = 0; i < cli->npids; i++)
			doctor_process(&d, cli->pids[i], &machine);
	else if (cli->mode == CLI_RUN)
		doctor_program(&d, cli->argv[0]);

	const char *what = cli->mode == CLI_ATTACH ? "attach to it" : cli->mode == CLI_RUN ? "run it" : "work here";
	if (d.said[DOCTOR_NO])
		printf("\nheaptop can't %s: see the line%s that say%s no\n", what, d.said[DOCTOR_NO] > 1 ? "s" : "",
		       d.said[DOCTOR_NO] > 1 ? "" : "s");
	else
		printf("\nheaptop can %s\n", what);
	return d.said[DOCTOR_NO] ? EXIT_FAILED : 0;
}
