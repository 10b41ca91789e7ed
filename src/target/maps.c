/*
 * The target's mappings: /proc/PID/maps line by line, the files behind them.
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
#include "base/log.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/proc.h"

#define MAPS_MAX (256u << 20)	/* bytes of text we are willing to read */

/* The kernel escapes nothing but newlines in paths ("\012", show_map_vma). */
static void unescape(char *s)
{
	char *to = s;

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

static bool parse_hex(char **s, char end, uint64_t *ret)
{
	char *stop;

	/* Digits only: strtoull() would take blanks, signs and "0x", too. */
	if (!strspn(*s, "0123456789abcdef") || (*s)[1] == 'x')
		return false;
	errno = 0;
	*ret = strtoull(*s, &stop, 16);
	if (errno || *stop != end)
		return false;
	*s = stop + 1;
	return true;
}

/* 7f0c1a200000-7f0c1a228000 r-xp 00001000 fe:01 131204      /usr/lib/libfoo.so (deleted) */
bool maps_parse_line(char *line, struct mapping *ret)
{
	static const char deleted[] = " (deleted)";
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
	size_t len = strlen(s), cut = strlen(deleted);
	if (ret->inode && len > cut && strcmp(s + len - cut, deleted) == 0) {
		s[len - cut] = '\0';
		ret->deleted = true;
	}
	unescape(s);
	ret->path = s;
	return true;
}

struct err *target_each_mapping(struct target *t, bool (*fn)(void *ctx, const struct mapping *m),
				void *ctx)
{
	size_t len;

	if (t->exited)
		return target_gone(t);
	char *text = proc_read(t->pid, t->live, "maps", MAPS_MAX, &len);
	/* A thread that has left has an empty one. */
	if ((!text && (errno == ENOENT || errno == ESRCH)) || (text && !len)) {
		free(text);
		if (!target_find_live(t))
			return target_gone(t);
		text = proc_read(t->pid, t->live, "maps", MAPS_MAX, &len);
		if (text && !len) {
			free(text);
			return target_gone(t);
		}
	}
	if (!text)
		return err_errno(errno, "process %d: can't read its mappings", t->pid);

	char *next;
	for (char *line = text; *line; line = next) {
		struct mapping m;
		char *eol = strchrnul(line, '\n');
		next = *eol ? eol + 1 : eol;
		*eol = '\0';
		if (maps_parse_line(line, &m) && !fn(ctx, &m))
			break;
	}
	free(text);
	return NULL;
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

struct map_list {
	struct mapping *maps;
	size_t n, cap;
};

static bool collect(void *ctx, const struct mapping *m)
{
	struct map_list *list = ctx;

	VEC_GROW(list->maps, list->n, list->cap);
	list->maps[list->n] = *m;
	list->maps[list->n++].path = xstrdup(m->path);
	return true;
}

static void map_list_deinit(struct map_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free((char *)list->maps[i].path);
	free(list->maps);
}

struct file_id {
	uint64_t dev, inode;
};

static int compare_ids(const void *a, const void *b)
{
	const struct file_id *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->inode > y->inode) - (x->inode < y->inode);
}

/*
 * Keep what can be code or belongs to a file that has code: of a program with thousands of
 * mapped data files none is opened.
 */
static void keep_modules(struct map_list *list)
{
	CLEANUP_FREE struct file_id *ids = xcalloc(list->n + 1, sizeof(*ids));
	size_t nids = 0, kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct mapping *m = &list->maps[i];
		if (m->inode && m->prot & PROT_EXEC)
			ids[nids++] = (struct file_id){ m->dev, m->inode };
	}
	qsort(ids, nids, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < list->n; i++) {
		struct mapping m = list->maps[i];
		const struct file_id id = { m.dev, m.inode };
		/* [vsyscall] lies in the kernel's half. */
		if ((m.prot & PROT_EXEC && m.end <= INT64_MAX) ||
		    (m.inode && bsearch(&id, ids, nids, sizeof(*ids), compare_ids)))
			list->maps[kept++] = m;
		else
			free((char *)m.path);
	}
	list->n = kept;
}

struct err *target_refresh_modules(struct target *t, struct modules *mods, bool *ret_changed)
{
	struct map_list list = { 0 };

	*ret_changed = false;
	struct err *err = target_each_mapping(t, collect, &list);
	if (!err) {
		keep_modules(&list);
		*ret_changed = modules_update(mods, list.maps, list.n, target_open_mapping, t);
	}
	map_list_deinit(&list);
	return err;
}

/* ---- stacks ---- */

struct bounds_query {
	uint64_t addr, lo, hi;
	bool found;
};

static bool match_bounds(void *ctx, const struct mapping *m)
{
	struct bounds_query *q = ctx;

	if (q->addr ? m->start <= q->addr && q->addr < m->end : strcmp(m->path, "[stack]") == 0) {
		q->lo = m->start;
		q->hi = m->end;
		q->found = true;
	}
	return !q->found;
}

bool target_stack_bounds(struct target *t, uint64_t addr, uint64_t *ret_lo, uint64_t *ret_hi)
{
	struct bounds_query q = { .addr = addr };

	err_free(target_each_mapping(t, match_bounds, &q));
	*ret_lo = q.lo;
	*ret_hi = q.hi;
	return q.found;
}
