/* A process or a program file; see doctor.h. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "doctor.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "probe/probe.h"
#include "target/facts.h"
#include "target/target.h"

#define AGENT_ROOM (160ull << 20)	/* address space the agent maps, at most */

/* Names, lines and stacks of one file. */
static void say_file(struct doctor *d, struct elf_file *file, const char *name)
{
	struct elf_func func;
	bool lines = elf_file_dwarf(file) != NULL;
	bool unwinds = elf_file_eh_cfi(file, NULL) || elf_file_debug_cfi(file);

	if (lines)
		doctor_say(d, DOCTOR_OK, "names", NULL, "%s has debug info: functions, files and lines", name);
	else if (elf_file_find_symbol(file, "main") ||
		 (elf_file_entry(file) && elf_file_function_at(file, elf_file_entry(file), &func)))
		doctor_say(d, DOCTOR_OK, "names", "build it with -g, or install its debug file, to see files and lines",
			   "%s has symbols, but no debug info", name);
	else
		doctor_say(d, DOCTOR_LIMITED, "names", "take one that isn't stripped, or install its debug file",
			   "%s is stripped: functions that it doesn't export have no names", name);
	if (unwinds)
		doctor_say(d, DOCTOR_OK, "stacks", NULL, "%s says how to unwind it", name);
	else
		doctor_say(d, DOCTOR_LIMITED, "stacks", "build it with -fasynchronous-unwind-tables, or with "
			   "-fno-omit-frame-pointer", "%s has no unwinding info: stacks are guessed by frame pointers",
			   name);
}

/* ---- a process ---- */

static void say_owner(struct doctor *d, pid_t pid, const struct process_facts *p)
{
	struct err *err = target_check(pid);

	if (err)
		doctor_say(d, DOCTOR_NO, "attach", NULL, "%s", err->text);
	else
		doctor_say(d, DOCTOR_OK, "attach", NULL, "it may be traced");
	err_free(err);
	doctor_say(d, DOCTOR_OK, "owner", NULL, "%s; %u thread%s", p->user, p->threads, p->threads == 1 ? "" : "s");
	if (p->protected)
		doctor_say(d, DOCTOR_LIMITED, "dumpable", "only root, or CAP_SYS_PTRACE, gets in",
			   "it is protected (setuid, capabilities, or by prctl)");
	else
		doctor_say(d, DOCTOR_OK, "dumpable", NULL, "it isn't protected");
	if (p->tracer)
		doctor_say(d, DOCTOR_NO, "tracer", "let it detach first", "pid %d traces it", p->tracer);
	else
		doctor_say(d, DOCTOR_OK, "tracer", NULL, "nobody traces it");
	if (p->state == 'T')
		doctor_say(d, DOCTOR_LIMITED, "state", "continue it (SIGCONT) for anything to be seen", "it is stopped");
	else if (p->state == 'D')
		doctor_say(d, DOCTOR_LIMITED, "state", "try when it has come out of it",
			   "it is in an uninterruptible wait: it may not stop in time");
}

static void say_confinement(struct doctor *d, const struct process_facts *p)
{
	char room[TEXT_NUMBER];

	if (p->seccomp)
		doctor_say(d, DOCTOR_LIMITED, "its seccomp", "start it with heaptop: attaching may be refused",
			   "%s: a call that heaptop has it make might be punished",
			   p->seccomp == 1 ? "strict mode" : "a filter");
	else
		doctor_say(d, DOCTOR_OK, "its seccomp", NULL, "no filter");
	if (p->shadow_stack)
		doctor_say(d, DOCTOR_LIMITED, "shadow stack", "start it without (GLIBC_TUNABLES), should attaching be refused",
			   "it uses shadow stacks: heaptop may not be able to make it call the kernel");
	if (*p->namespaces)
		doctor_say(d, DOCTOR_OK, "its namespaces", NULL, "others than heaptop's: %s; files are read through "
			   "/proc/PID/root", p->namespaces);
	else
		doctor_say(d, DOCTOR_OK, "its namespaces", NULL, "the same as heaptop's");
	if (p->room < AGENT_ROOM)
		doctor_say(d, DOCTOR_NO, "address space", "raise it with prlimit --as", "RLIMIT_AS leaves it %s, "
			   "160M may be needed", text_bytes(room, p->room));
	else
		doctor_say(d, DOCTOR_OK, "address space", NULL, "%s", p->room == UINT64_MAX ? "no limit known" :
			   "its RLIMIT_AS leaves enough");
}

/* "9 in libc.so.6", and each that isn't hooked with the reason. */
static void say_hooks(struct doctor *d, const struct probe *probe, const struct modules *mods)
{
	size_t hooked = 0;

	for (uint32_t id = 1; id <= modules_count(mods); id++) {
		const struct module *m = module_get(mods, id);
		char names[160] = "";
		size_t n = 0, len = 0;
		for (size_t i = 0; i < probe->nhooks; i++) {
			const struct probe_hook *h = &probe->hooks[i];
			if (h->module != id || !h->hooked)
				continue;
			n++;
			if (len < sizeof(names) - 1)
				len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", n > 1 ? ", " : "",
							h->name);
		}
		hooked += n;
		if (n)
			doctor_say(d, DOCTOR_OK, "allocator", NULL, "%s: %s%s", m->name, names,
				   len >= sizeof(names) ? "..." : "");
	}
	for (size_t i = 0; i < probe->nhooks; i++) {
		const struct probe_hook *h = &probe->hooks[i];
		const struct module *m = module_get(mods, h->module);
		if (!h->hooked)
			doctor_say(d, hooked ? DOCTOR_LIMITED : DOCTOR_NO, "allocator", NULL, "%s in %s can't be hooked: %s",
				   h->name, m ? m->name : "?", h->reason);
	}
}

static void say_inside(struct doctor *d, struct target *t)
{
	struct modules *mods = modules_create();
	struct probe *probe = probe_agent_create(&(struct probe_config){ .rate = 1 });
	bool changed;

	struct err *err = target_refresh_modules(t, mods, &changed);
	struct err *none = err ? NULL : probe->ops->prepare(probe, t, mods);
	if (err) {
		doctor_say(d, DOCTOR_NO, "mappings", NULL, "%s", err->text);
	} else {
		say_hooks(d, probe, mods);
		if (none && !probe->nhooks)
			doctor_say(d, DOCTOR_NO, "allocator", "a static program that is stripped needs its separate debug file, "
				   "or to be built without -s", "%s", none->text);
		for (uint32_t id = 1; id <= modules_count(mods); id++) {
			const struct module *m = module_get(mods, id);
			if (m->is_main && m->file)
				say_file(d, m->file, m->name);
		}
	}
	err_free(err);
	err_free(none);
	probe->ops->destroy(probe);
	modules_destroy(mods);
}

void doctor_process(struct doctor *d, pid_t pid, const struct machine_facts *machine)
{
	struct process_facts p;
	struct target *t;

	if (!process_facts(pid, &p)) {
		printf("\nprocess %d\n", pid);
		doctor_say(d, DOCTOR_NO, "attach", machine->pid_namespace ? "or it isn't in this container" : NULL,
			   "there is no such process");
		return;
	}
	printf("\nprocess %d (%s)\n", pid, p.name);
	say_owner(d, pid, &p);
	say_confinement(d, &p);
	struct err *err = target_observe(pid, &t);
	if (!err) {
		say_inside(d, t);
		target_destroy(t);
	}
	err_free(err);	/* said already */
}

/* ---- a program file ---- */

/* As execvp looks for it; false: nowhere. */
static bool find_program(const char *name, char *ret, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(ret, size, "%s", name) < (int)size && access(ret, F_OK) == 0;
	for (path = path ? path : "/bin:/usr/bin"; ; path++) {
		size_t len = strcspn(path, ":");
		if (snprintf(ret, size, "%.*s%s%s", (int)len, path, len ? "/" : "", name) < (int)size &&
		    access(ret, X_OK) == 0)
			return true;
		path += len;
		if (!*path)
			return false;
	}
}

/* The dynamic loader it asks for: 1 and its path, 0 none (static), -1 no ELF file of ours. */
static int read_loader(int fd, char *ret, size_t size)
{
	Elf64_Ehdr head;
	Elf64_Phdr ph;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_phentsize != sizeof(ph))
		return -1;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(head.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return -1;
		if (ph.p_type != PT_INTERP)
			continue;
		if (!ph.p_filesz || ph.p_filesz >= size ||
		    pread(fd, ret, ph.p_filesz, (off_t)ph.p_offset) != (ssize_t)ph.p_filesz)
			return -1;
		ret[ph.p_filesz] = '\0';
		return 1;
	}
	return 0;
}

static void say_static(struct doctor *d, struct elf_file *file)
{
	static const char *const names[] = { "malloc", "free", "calloc", "realloc" };
	struct elf_func funcs[8];

	if (elf_file_find_functions(file, names, ARRAY_SIZE(names), funcs, ARRAY_SIZE(funcs)))
		doctor_say(d, DOCTOR_OK, "allocator", NULL, "linked in statically, and it has its names");
	else
		doctor_say(d, DOCTOR_NO, "allocator", "take one that isn't stripped, or install its debug file",
			   "a static program in which malloc has no name");
}

static void say_elf(struct doctor *d, int fd, const char *path)
{
	char loader[256];
	struct elf_file *file;
	int dynamic = read_loader(fd, loader, sizeof(loader));
	struct err *err = elf_file_open(fd, path, &file);

	if (err) {
		doctor_say(d, DOCTOR_NO, "program", NULL, "%s", err->text);
		err_free(err);
		return;
	}
	doctor_say(d, DOCTOR_OK, "program", NULL, "%s is a 64-bit program for this processor", path);
	if (dynamic > 0 && access(loader, X_OK))
		doctor_say(d, DOCTOR_NO, "loader", "install its C library", "%s isn't there", loader);
	else if (dynamic > 0)
		doctor_say(d, DOCTOR_OK, "allocator", NULL, "that of its libraries, found when they are loaded");
	else
		say_static(d, file);
	say_file(d, file, path);
	elf_file_unref(file);
}

void doctor_program(struct doctor *d, const char *name)
{
	char path[4096], start[2] = "";
	struct stat st;

	CLEANUP_FREE char *shown = xstrdup(name);
	text_sanitize(shown);
	printf("\nprogram %s\n", shown);
	if (!find_program(name, path, sizeof(path)) || stat(path, &st)) {
		doctor_say(d, DOCTOR_NO, "program", "give its path, or see PATH", "there is no such program");
		return;
	}
	if (!S_ISREG(st.st_mode) || access(path, X_OK)) {
		doctor_say(d, DOCTOR_NO, "program", S_ISREG(st.st_mode) ? "chmod +x" : NULL, "%s can't be executed", path);
		return;
	}
	if (st.st_mode & S_ISUID || (st.st_mode & S_ISGID && st.st_mode & S_IXGRP))
		doctor_say(d, geteuid() ? DOCTOR_LIMITED : DOCTOR_OK, "setuid", geteuid() ? "run heaptop as root" : NULL,
			   "%s takes another user's or group's rights%s", path,
			   geteuid() ? ", which the kernel withholds while it is traced" : "");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		doctor_say(d, DOCTOR_LIMITED, "program", NULL, "%s can be run, but not read (%s)", path,
			   strerror(errno));
	} else if (pread(fd, start, 2, 0) == 2 && !memcmp(start, "#!", 2)) {
		doctor_say(d, DOCTOR_OK, "program", NULL, "%s is a script: its interpreter is what is watched", path);
		close(fd);
	} else {
		say_elf(d, fd, path);
	}
}
