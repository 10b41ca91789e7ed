/*
 * The target's mappings: /proc/PID/maps line by line, the files behind them, one by its address.
 *
 * The text is never in memory as a whole. It passes through one buffer, kept from one reading to the
 * next, in which each line is parsed in place; what a refresh keeps of it (the executable mappings
 * with their paths) goes into arrays that are kept as well. So reading maps again allocates nothing,
 * and costs little besides the kernel's time to write the text.
 */
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/procmap.h"

/* The longest line: 73 bytes and a path of PATH_MAX with a newline, four bytes, in each place. */
#define TEXT_BYTES (32u << 10)
/* What a refresh keeps at most; the kernel's default allows 65530 mappings. */
#define KEPT_MAX (1u << 20)
#define PATHS_MAX (64u << 20)	/* bytes */

/* The kernel escapes nothing but newlines in paths ("\012", show_map_vma). */
static void unescape(char *s)
{
	char *to = s = strchrnul(s, '\\');

	for (; *s; s++) {
		if (strncmp(s, "\\012", 4) == 0) {
			*to++ = '\n';
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Digits up to `end`. By hand: strtoull() also takes blanks, signs and "0x", and longer. */
static bool parse_hex(char **s, char end, uint64_t *ret)
{
	uint64_t value = 0;
	char *at = *s;

	for (;; at++) {
		unsigned digit = (unsigned)*at - '0';
		if (digit > 9) {
			digit = (unsigned)*at - 'a' + 10;
			if (digit < 10 || digit > 15)
				break;
		}
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (at == *s || *at != end)
		return false;
	*ret = value;
	*s = at + 1;
	return true;
}

void maps_set_path(struct mapping *ret, char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), cut = strlen(deleted);

	if (ret->inode && len > cut && strcmp(path + len - cut, deleted) == 0) {
		path[len - cut] = '\0';
		ret->deleted = true;
	}
	ret->path = path;
}

/* 7f0c1a200000-7f0c1a228000 r-xp 00001000 fe:01 131204      /usr/lib/libfoo.so (deleted) */
bool maps_parse_line(char *line, struct mapping *ret)
{
	uint64_t major, minor;
	char *s = line, *stop;

	memset(ret, 0, sizeof(*ret));
	if (!parse_hex(&s, '-', &ret->start) || !parse_hex(&s, ' ', &ret->end) ||
	    ret->start >= ret->end)
		return false;
	if (strnlen(s, 5) < 5 || s[4] != ' ')
		return false;
	ret->prot = (uint8_t)((s[0] == 'r' ? PROT_READ : 0) | (s[1] == 'w' ? PROT_WRITE : 0) |
			      (s[2] == 'x' ? PROT_EXEC : 0));
	ret->shared = s[3] == 's';
	s += 5;
	if (!parse_hex(&s, ' ', &ret->offset) || !parse_hex(&s, ':', &major) ||
	    !parse_hex(&s, ' ', &minor))
		return false;
	ret->dev = makedev(major, minor);
	errno = 0;
	ret->inode = strtoull(s, &stop, 10);
	if (errno || stop == s || (*stop && *stop != ' '))
		return false;
	s = stop + strspn(stop, " ");
	unescape(s);
	maps_set_path(ret, s);
	return true;
}

/* ---- reading the text ---- */

typedef bool (*mapping_fn)(void *ctx, const struct mapping *m);

static int open_maps(const struct target *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", t->pid, t->live);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Hand over the complete lines in [text, *end), and move what follows them to the front. */
static bool parse_lines(char *text, char **end, mapping_fn fn, void *ctx)
{
	char *line = text, *eol;

	while ((eol = memchr(line, '\n', (size_t)(*end - line)))) {
		struct mapping m;
		*eol = '\0';
		if (maps_parse_line(line, &m) && !fn(ctx, &m))
			return false;
		line = eol + 1;
	}
	size_t rest = (size_t)(*end - line);
	memmove(text, line, rest);
	*end = text + rest;
	return true;
}

/*
 * 0 or an errno; ESRCH also for a text that is empty: a thread that has left has such. *any: some of
 * it was there, and fn may have seen it.
 */
static int read_text(int fd, char *text, mapping_fn fn, void *ctx, bool *any)
{
	char *end = text;

	for (;;) {
		size_t room = TEXT_BYTES - (size_t)(end - text);
		if (!room) {	/* no line is that long: whatever it is, it isn't one of ours */
			end = text;
			continue;
		}
		ssize_t n = read(fd, end, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return *any ? 0 : ESRCH;
		*any = true;
		end += n;
		if (!parse_lines(text, &end, fn, ctx))
			return 0;
	}
}

/* Its descriptor is kept for single look-ups. */
static int open_and_read(struct target *t, char *text, mapping_fn fn, void *ctx, bool *any)
{
	int fd = open_maps(t);

	if (fd < 0)
		return errno == ENOENT ? ESRCH : errno;
	int errnum = read_text(fd, text, fn, ctx, any);
	target_close_maps(t);
	t->maps.fd = fd;
	return errnum;
}

struct err *target_each_mapping(struct target *t, mapping_fn fn, void *ctx)
{
	if (t->exited)
		return target_gone(t);
	/* Taken out while in use: fn may read maps itself. */
	char *text = t->maps.text ? t->maps.text : xmalloc(TEXT_BYTES);
	t->maps.text = NULL;
	bool any = false;
	int errnum = open_and_read(t, text, fn, ctx, &any);
	if (errnum == ESRCH && !any && target_find_live(t))
		errnum = open_and_read(t, text, fn, ctx, &any);
	free(t->maps.text);
	t->maps.text = text;
	if (errnum == ESRCH)
		return target_gone(t);
	return errnum ? err_errno(errnum, "process %d: can't read its mappings", t->pid) : NULL;
}

void target_close_maps(struct target *t)
{
	if (t->maps.fd >= 0)
		close(t->maps.fd);
	t->maps.fd = -1;
}

void target_free_maps(struct target *t)
{
	target_close_maps(t);
	free(t->maps.text);
	free(t->maps.kept);
	free(t->maps.paths);
	free(t->maps.path);
}

/* ---- one mapping ---- */

/* 0, an errno of procmap_query, or why there is no asking. */
static int query(struct target *t, uint64_t addr, struct mapping *ret)
{
	int errnum = ENOTTY;

	for (int attempt = 0; attempt < 2 && !t->maps.no_query; attempt++) {
		if (t->maps.fd < 0)
			t->maps.fd = open_maps(t);
		if (t->maps.fd < 0)
			return errno;
		if (!t->maps.path)
			t->maps.path = xmalloc(PROCMAP_PATH);
		errnum = procmap_query(t->maps.fd, addr, t->maps.path, ret);
		if (errnum != ESRCH)
			break;
		/* the descriptor belongs to the memory of a program that has done an exec since */
		target_close_maps(t);
	}
	t->maps.no_query |= errnum == ENOTTY;
	return errnum;
}

bool target_has_query(struct target *t)
{
	struct mapping m;
	int errnum = t->exited ? ESRCH : query(t, 0, &m);

	return !errnum || errnum == ENOENT;
}

struct search {
	struct target *t;
	uint64_t addr;
	struct mapping *ret;
	bool found;
};

static bool match_address(void *ctx, const struct mapping *m)
{
	struct search *s = ctx;

	if (s->addr < m->start || s->addr >= m->end)
		return m->start <= s->addr;
	if (!s->t->maps.path)
		s->t->maps.path = xmalloc(PROCMAP_PATH);
	snprintf(s->t->maps.path, PROCMAP_PATH, "%s", m->path);
	*s->ret = *m;
	s->ret->path = s->t->maps.path;
	s->found = true;
	return false;
}

bool target_mapping_at(struct target *t, uint64_t addr, struct mapping *ret)
{
	struct search s = { .t = t, .addr = addr, .ret = ret };

	if (t->exited || addr > INT64_MAX)
		return false;
	int errnum = query(t, addr, ret);
	if (!errnum || errnum == ENOENT)
		return !errnum;
	err_free(target_each_mapping(t, match_address, &s));
	return s.found;
}

/* ---- the file behind a mapping ---- */

/*
 * Open a regular file and nothing else: opening a device or a FIFO can have effects or block, and
 * the path is the target's. `want`: only this device and inode.
 */
static int open_regular(const char *path, const struct mapping *want, bool same_dev)
{
	char self[40];
	struct stat st;

	CLEANUP_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	if (want && (st.st_ino != want->inode || (same_dev && st.st_dev != want->dev)))
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* The vdso is in no file: its bytes, in a memfd. */
static int open_vdso(struct target *t, const struct mapping *m)
{
	uint64_t len = m->end - m->start;

	if (len > 1 << 20)
		return -1;
	CLEANUP_FREE uint8_t *bytes = xmalloc(len);
	if (target_read_some(t, m->start, bytes, len) != len)
		return -1;
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, bytes, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}

int target_open_mapping(void *ctx, const struct mapping *m)
{
	struct target *t = ctx;
	char link[96];
	int fd;

	if (strcmp(m->path, "[vdso]") == 0)
		return open_vdso(t, m);
	if (m->path[0] != '/' || !m->inode)
		return -1;
	/* Its path as the target sees it; another file may lie there by now. */
	CLEANUP_FREE char *path = xasprintf("/proc/%d/task/%d/root%s", t->pid, t->live, m->path);
	fd = open_regular(path, m, true);
	if (fd >= 0)
		return fd;
	/* The very file; takes CAP_CHECKPOINT_RESTORE. */
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", t->pid,
		 (unsigned long long)m->start, (unsigned long long)m->end);
	fd = open_regular(link, NULL, false);
	if (fd >= 0)
		return fd;
	/* btrfs and overlayfs: stat(2) tells another device than maps does. */
	fd = open_regular(path, m, false);
	if (fd >= 0)
		return fd;
	/* The program itself can be opened even when it was deleted. */
	snprintf(link, sizeof(link), "/proc/%d/exe", t->pid);
	fd = open_regular(link, m, false);
	if (fd >= 0)
		return fd;
	/* overlayfs before 6.x: maps has the inode of the layer below. */
	return m->deleted ? -1 : open_regular(path, NULL, false);
}

/* ---- modules ---- */

struct keeping {
	struct maps *maps;
	size_t n, paths_len;
};

/* The path with those kept; the array moves when it grows, and the pointers to it with it. */
static const char *keep_path(struct keeping *k, const char *path)
{
	struct maps *maps = k->maps;
	size_t len = strlen(path) + 1;

	if (k->paths_len + len > maps->cap_paths) {
		size_t cap = (k->paths_len + len) * 2;
		char *paths = xmalloc(cap);
		if (k->paths_len)
			memcpy(paths, maps->paths, k->paths_len);
		for (size_t i = 0; i < k->n; i++)
			if (maps->kept[i].path[0])
				maps->kept[i].path = paths + (maps->kept[i].path - maps->paths);
		free(maps->paths);
		maps->paths = paths;
		maps->cap_paths = cap;
	}
	char *ret = memcpy(maps->paths + k->paths_len, path, len);
	k->paths_len += len;
	return ret;
}

/*
 * Only what can be code counts: of a program with thousands of mapped data files none is looked at
 * any further. [vsyscall] lies in the kernel's half.
 */
static bool keep(void *ctx, const struct mapping *m)
{
	struct keeping *k = ctx;
	struct maps *maps = k->maps;

	if (!(m->prot & PROT_EXEC) || m->end > INT64_MAX)
		return true;
	if (k->n == KEPT_MAX || k->paths_len > PATHS_MAX)
		return false;
	VEC_GROW(maps->kept, k->n, maps->cap_kept);
	struct mapping *last = k->n ? &maps->kept[k->n - 1] : NULL;
	maps->kept[k->n] = *m;
	maps->kept[k->n].path = "";
	if (last && !strcmp(last->path, m->path))	/* text in pieces */
		maps->kept[k->n].path = last->path;
	else if (m->path[0])
		maps->kept[k->n].path = keep_path(k, m->path);
	k->n++;
	return true;
}

struct err *target_refresh_modules(struct target *t, struct modules *mods, bool *ret_changed)
{
	struct keeping k = { .maps = &t->maps };

	*ret_changed = false;
	struct err *err = target_each_mapping(t, keep, &k);
	if (!err)
		*ret_changed = modules_update(mods, t->maps.kept, k.n, target_open_mapping, t);
	return err;
}

/* ---- stacks ---- */

static bool match_stack(void *ctx, const struct mapping *m)
{
	struct mapping *ret = ctx;

	if (strcmp(m->path, "[stack]"))
		return true;
	*ret = *m;
	return false;
}

bool target_stack_bounds(struct target *t, uint64_t addr, uint64_t *ret_lo, uint64_t *ret_hi)
{
	struct mapping m = { 0 };

	if (!addr)
		err_free(target_each_mapping(t, match_stack, &m));
	else if (!target_mapping_at(t, addr, &m))
		m = (struct mapping){ 0 };
	*ret_lo = m.start;
	*ret_hi = m.end;
	return m.end;
}
