/* /proc/PID as plain values; see proc.h. */
#include "target/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

static int proc_open(pid_t pid, pid_t tid, const char *name)
{
	char path[96];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

char *proc_read(pid_t pid, pid_t tid, const char *name, size_t max, size_t *ret_len)
{
	CLEANUP_CLOSE int fd = proc_open(pid, tid, name);
	if (fd < 0)
		return NULL;

	size_t cap = 4096, len = 0;
	char *buf = xmalloc(cap);
	for (;;) {
		ssize_t n = read(fd, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || len + (size_t)n > max) {
			int saved = n < 0 ? errno : EFBIG;
			free(buf);
			errno = saved;
			return NULL;
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (cap - len < 2048) {
			buf = xreallocarray(buf, 2, cap);
			cap *= 2;
		}
	}
	buf[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return buf;
}

/*
 * The value behind "\nKey:\t", or NULL. Name: comes first and has its newlines escaped by the
 * kernel, so no name can fake another field.
 */
static const char *status_field(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			line += len + 1;
			return line + strspn(line, " \t");
		}
	}
	return NULL;
}

static long status_number(const char *text, const char *key, int base)
{
	const char *s = status_field(text, key);

	return s ? strtol(s, NULL, base) : 0;
}

static uint64_t status_mask(const char *text, const char *key)
{
	const char *s = status_field(text, key);

	return s ? strtoull(s, NULL, 16) : 0;
}

static void status_ids(const char *text, const char *key, uint32_t ids[4])
{
	const char *s = status_field(text, key);

	for (int i = 0; i < 4; i++) {
		char *end = NULL;
		ids[i] = s ? (uint32_t)strtoul(s, &end, 10) : UINT32_MAX;
		s = end;
	}
}

static bool status_lists(const char *text, const char *key, const char *word)
{
	const char *s = status_field(text, key);
	if (!s)
		return false;
	const char *at = strstr(s, word);
	const char *eol = strchrnul(s, '\n');
	return at && at < eol;
}

bool proc_status(pid_t pid, pid_t tid, struct proc_status *ret)
{
	CLEANUP_FREE char *text = proc_read(pid, tid, "status", 1 << 20, NULL);
	const char *s;

	memset(ret, 0, sizeof(*ret));
	if (!text)
		return false;
	s = status_field(text, "Name");
	if (s) {
		size_t len = strcspn(s, "\n");
		if (len >= sizeof(ret->name))
			len = sizeof(ret->name) - 1;
		memcpy(ret->name, s, len);
		text_sanitize(ret->name);
	}
	s = status_field(text, "State");
	ret->state = s ? *s : '?';
	ret->tgid = (pid_t)status_number(text, "Tgid", 10);
	ret->ppid = (pid_t)status_number(text, "PPid", 10);
	ret->tracer = (pid_t)status_number(text, "TracerPid", 10);
	ret->threads = (uint32_t)status_number(text, "Threads", 10);
	ret->seccomp = (int)status_number(text, "Seccomp", 10);
	ret->kthread = status_number(text, "Kthread", 10) == 1;
	ret->has_mm = status_field(text, "VmSize") != NULL;
	ret->shadow_stack = status_lists(text, "x86_Thread_features", "shstk");
	ret->signals = status_mask(text, "SigPnd");
	ret->shared_signals = status_mask(text, "ShdPnd");
	ret->blocked = status_mask(text, "SigBlk");
	status_ids(text, "Uid", ret->uid);
	status_ids(text, "Gid", ret->gid);

	/* NSpid:	5304	17	1: from our namespace inwards */
	ret->ns_pid = tid ? tid : pid;
	s = status_field(text, "NSpid");
	while (s && *s && *s != '\n') {
		char *end;
		long n = strtol(s, &end, 10);
		if (end == s)
			break;
		ret->ns_pid = (pid_t)n;
		s = end + strspn(end, " \t");
	}
	return true;
}

bool proc_stat(pid_t pid, pid_t tid, struct proc_stat *ret)
{
	CLEANUP_FREE char *text = proc_read(pid, tid, "stat", 1 << 16, NULL);

	memset(ret, 0, sizeof(*ret));
	/* "4711 (a) b) S 1 ...": the name may hold anything, so look for the last parenthesis. */
	char *s = text ? strrchr(text, ')') : NULL;
	if (!s || s[1] != ' ')
		return false;
	s += 2;
	/* Fields numbered as in proc(5); state is number 3. */
	for (int field = 3; *s && field <= 47; field++) {
		if (field == 3)
			ret->state = *s;
		else if (field == 9)
			ret->flags = (uint32_t)strtoul(s, NULL, 10);
		else if (field == 14 || field == 15)
			ret->ticks += strtoull(s, NULL, 10);
		else if (field == 20)
			ret->threads = (uint32_t)strtoul(s, NULL, 10);
		else if (field == 22)
			ret->start = strtoull(s, NULL, 10);
		else if (field == 28)
			ret->start_stack = strtoull(s, NULL, 10);
		else if (field == 47)
			ret->start_brk = strtoull(s, NULL, 10);
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	return true;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

size_t proc_tasks(pid_t pid, pid_t **ret)
{
	char path[32];
	pid_t *tids = NULL;
	size_t n = 0, cap = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	if (dir) {
		struct dirent *entry;
		while ((entry = readdir(dir))) {
			long tid = strtol(entry->d_name, NULL, 10);
			if (tid <= 0)
				continue;
			VEC_GROW(tids, n, cap);
			tids[n++] = (pid_t)tid;
		}
		closedir(dir);
	}
	if (n)
		qsort(tids, n, sizeof(*tids), compare_tids);
	*ret = tids;
	return n;
}

char *proc_command(pid_t pid)
{
	size_t len = 0;
	char *text = proc_read(pid, 0, "cmdline", 4 << 20, &len);

	if (text) {
		/*
		 * Arguments are separated and ended by NULs. Who writes a title of its own there fills what is left of
		 * the room with blanks (redis) or NULs (postgres, nginx).
		 */
		while (len && (text[len - 1] == '\0' || text[len - 1] == ' '))
			len--;
		for (size_t i = 0; i < len; i++) {
			if (text[i] == '\0')
				text[i] = ' ';
		}
		text[len] = '\0';
	}
	if (!text || !len) {
		struct proc_status status;
		free(text);
		if (!proc_status(pid, 0, &status))
			return xstrdup("?");
		return xasprintf("[%s]", status.name);
	}
	text_sanitize(text);
	return text;
}
