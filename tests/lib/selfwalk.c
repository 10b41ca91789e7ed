/*
 * See selfwalk.h. self_regs() is written in assembly, since only that sees the callee-saved
 * registers as they are.
 */
#include "selfwalk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__x86_64__)
__asm__(".text\n"
	".globl self_regs\n"
	".type self_regs,@function\n"
	"self_regs:\n"
	"	mov	(%rsp), %rax\n"
	"	mov	%rax, 0(%rdi)\n"
	"	lea	8(%rsp), %rax\n"
	"	mov	%rax, 8(%rdi)\n"
	"	mov	%rbp, 16(%rdi)\n"
	"	mov	%rbx, 24(%rdi)\n"
	"	mov	%r12, 32(%rdi)\n"
	"	mov	%r13, 40(%rdi)\n"
	"	mov	%r14, 48(%rdi)\n"
	"	mov	%r15, 56(%rdi)\n"
	"	ret\n"
	".size self_regs,.-self_regs\n");
#else
#error "self_regs() is missing for this CPU"
#endif

struct line {
	struct mapping map;
	char path[512];
};

static size_t read_maps(struct line **ret)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct line *lines = NULL;
	size_t n = 0, cap = 0;
	char buf[1024];

	if (!f)
		abort();
	while (fgets(buf, sizeof(buf), f)) {
		char perms[8];
		unsigned major, minor;
		int at = 0;

		VEC_GROW(lines, n, cap);
		struct line *l = &lines[n++];
		memset(l, 0, sizeof(*l));
		if (sscanf(buf, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
			   &l->map.start, &l->map.end, perms, &l->map.offset, &major, &minor,
			   &l->map.inode, &at) < 7)
			abort();
		l->map.dev = (uint64_t)major << 32 | minor;
		l->map.prot = (uint8_t)((perms[0] == 'r' ? PROT_READ : 0) |
					(perms[1] == 'w' ? PROT_WRITE : 0) |
					(perms[2] == 'x' ? PROT_EXEC : 0));
		l->map.shared = perms[3] == 's';
		buf[strcspn(buf, "\n")] = 0;
		snprintf(l->path, sizeof(l->path), "%.500s", buf + at);
	}
	fclose(f);
	*ret = lines;
	return n;
}

/* Files by their path; the vdso's bytes through a memfd. */
static int open_mapping(void *ctx, const struct mapping *map)
{
	(void)ctx;
	if (strcmp(map->path, "[vdso]") == 0) {
		int fd = memfd_create("vdso", MFD_CLOEXEC);
		size_t len = map->end - map->start;
		if (fd >= 0 && write(fd, (void *)map->start, len) != (ssize_t)len)
			abort();
		return fd;
	}
	return map->path[0] == '/' ? open(map->path, O_RDONLY | O_CLOEXEC) : -1;
}

void self_modules(struct modules *mods)
{
	self_modules_open(mods, open_mapping, NULL);
}

void self_modules_open(struct modules *mods, modules_open_fn open_fn, void *ctx)
{
	struct line *lines;
	size_t n = read_maps(&lines);
	struct mapping *maps = xcalloc(n, sizeof(*maps));

	for (size_t i = 0; i < n; i++) {
		maps[i] = lines[i].map;
		maps[i].path = lines[i].path;
	}
	modules_update(mods, maps, n, open_fn, ctx);
	free(maps);
	free(lines);
}

void snapshot_init(struct snapshot *s)
{
	memset(s, 0, sizeof(*s));
	s->bytes = xmalloc(SELF_STACK);
}

void snapshot_deinit(struct snapshot *s)
{
	free(s->bytes);
}

/* Not an ordinary memcpy: the sanitiser's guard zones lie between the frames. */
static __attribute__((noinline, no_sanitize("address", "undefined"))) void
copy_words(uint8_t *to, uint64_t from, size_t len)
{
	const volatile uint64_t *src = (const volatile uint64_t *)from;
	uint64_t *dst = (uint64_t *)(void *)to;

	for (size_t i = 0; i < len / 8; i++)
		dst[i] = src[i];
}

static uint64_t mapping_end(uint64_t addr)
{
	struct line *lines;
	size_t n = read_maps(&lines);
	uint64_t end = addr;

	for (size_t i = 0; i < n; i++)
		if (lines[i].map.start <= addr && addr < lines[i].map.end)
			end = lines[i].map.end;
	free(lines);
	return end;
}

__attribute__((noinline)) void self_snapshot(struct snapshot *s, int trace)
{
	self_regs(&s->regs);
	s->ntrace = trace ? self_backtrace(s->trace) : 0;

	size_t len = mapping_end(s->regs.sp) - s->regs.sp;
	s->stack.addr = s->regs.sp;
	s->stack.len = len < SELF_STACK ? len : SELF_STACK;
	s->stack.bytes = s->bytes;
	copy_words(s->bytes, s->stack.addr, s->stack.len);
}
