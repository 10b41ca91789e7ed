/* A child with many mappings; see manymaps.h. */
#include "tests/lib/manymaps.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static const char odd_name[] = "a\nb\\c (deleted) d";

static void path_of(const struct manymaps *m, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", m->dir, name);
}

/* One page: headers, then nothing. The number makes each file another one. */
static bool make_file(const struct manymaps *m, const char *name, bool elf, unsigned number)
{
	static union {
		struct {
			Elf64_Ehdr eh;
			Elf64_Phdr ph;
			unsigned number;
		};
		char bytes[PAGE];
	} image;
	char path[256];

	memset(&image, 0, sizeof(image));
	image.number = number;
	if (elf) {
		memcpy(image.eh.e_ident, ELFMAG, SELFMAG);
		image.eh.e_ident[EI_CLASS] = ELFCLASS64;
		image.eh.e_ident[EI_DATA] = ELFDATA2LSB;
		image.eh.e_ident[EI_VERSION] = EV_CURRENT;
		image.eh.e_type = ET_DYN;
		image.eh.e_machine = EM_X86_64;
		image.eh.e_version = EV_CURRENT;
		image.eh.e_ehsize = sizeof(Elf64_Ehdr);
		image.eh.e_phoff = sizeof(Elf64_Ehdr);
		image.eh.e_phentsize = sizeof(Elf64_Phdr);
		image.eh.e_phnum = 1;
		image.ph = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = PAGE,
					 .p_filesz = PAGE, .p_memsz = PAGE };
	}
	path_of(m, name, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && write(fd, &image, sizeof(image)) == sizeof(image);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool map(const struct manymaps *m, const char *name, int prot)
{
	char path[256];

	path_of(m, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, PAGE, prot, MAP_PRIVATE, fd, 0);
	close(fd);
	return p != MAP_FAILED;
}

static bool do_one(const struct manymaps *m, char what)
{
	switch (what) {
	case 'd':
		return map(m, "0", PROT_READ);
	case 'x':
		return map(m, "more", PROT_READ | PROT_EXEC);
	case 'l':
		return map(m, odd_name, PROT_READ | PROT_EXEC);
	case 'e':
		execlp("sleep", "sleep", "1000", (char *)NULL);
		return false;
	}
	return false;
}

static void child(const struct manymaps *m, size_t nelf, int in, int out)
{
	char name[32], what;
	bool ok = true;

	for (size_t i = 0; i < m->nfiles && ok; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		ok = map(m, name, i < nelf ? PROT_READ | PROT_EXEC : PROT_NONE) &&
		     map(m, name, PROT_READ) && map(m, name, PROT_READ | PROT_WRITE);
	}
	while (write(out, ok ? "+" : "-", 1) == 1 && read(in, &what, 1) == 1)
		ok = do_one(m, what);
	_exit(0);
}

static bool told(const struct manymaps *m)
{
	char c;

	return read(m->told, &c, 1) == 1 && c == '+';
}

bool manymaps_start(struct manymaps *m, size_t nelf, size_t nfiles)
{
	const char *tmp = getenv("TMPDIR");
	int in[2], out[2];
	char name[32];

	*m = (struct manymaps){ .nfiles = nfiles, .ask = -1, .told = -1 };
	snprintf(m->dir, sizeof(m->dir), "%s/manymaps.XXXXXX",
		 tmp && strlen(tmp) < sizeof(m->dir) - 20 ? tmp : "/tmp");
	if (!mkdtemp(m->dir))
		return false;
	bool ok = make_file(m, "more", true, 0) && make_file(m, odd_name, true, 1);
	for (size_t i = 0; i < nfiles && ok; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		ok = make_file(m, name, i < nelf, (unsigned)i + 2);
	}
	if (!ok || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	m->pid = fork();
	if (m->pid == 0) {
		close(in[1]);
		child(m, nelf, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	m->ask = in[1];
	m->told = out[0];
	return m->pid > 0 && told(m);
}

bool manymaps_do(struct manymaps *m, char what)
{
	char path[64], comm[16] = "";

	if (write(m->ask, &what, 1) != 1)
		return false;
	if (what != 'e')
		return told(m);
	/* The other program closes the pipes by being started. */
	if (told(m))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", m->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
	if (fd >= 0)
		close(fd);
	return n > 0 && !strcmp(comm, "sleep\n");
}

void manymaps_end(struct manymaps *m)
{
	char path[256], name[32];

	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		waitpid(m->pid, NULL, 0);
	}
	close(m->ask);
	close(m->told);
	for (size_t i = 0; i < m->nfiles; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		path_of(m, name, path);
		unlink(path);
	}
	path_of(m, "more", path);
	unlink(path);
	path_of(m, odd_name, path);
	unlink(path);
	rmdir(m->dir);
}
