/* The processes of this machine; see proclist.h. */
#include "target/proclist.h"

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "target/impl.h"
#include "target/proc.h"

static uint64_t read_rss(pid_t pid)
{
	unsigned long long size = 0, resident = 0;
	CLEANUP_FREE char *text = proc_read(pid, 0, "statm", 4096, NULL);

	if (!text || sscanf(text, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Names by uid: the same few users over and over, and each look-up may ask a server. */
struct user_cache {
	uid_t uid;
	bool valid;
	char name[32];
};

static void look_up_user(struct user_cache *cache, uid_t uid)
{
	struct passwd pw, *found = NULL;
	char space[2048];

	if (cache->valid && cache->uid == uid)
		return;
	if (getpwuid_r(uid, &pw, space, sizeof(space), &found) == 0 && found) {
		snprintf(cache->name, sizeof(cache->name), "%s", found->pw_name);
		text_sanitize(cache->name);
	} else {
		snprintf(cache->name, sizeof(cache->name), "%u", uid);
	}
	cache->uid = uid;
	cache->valid = true;
}

static bool read_row(pid_t pid, struct user_cache users[64], struct proc_row *row)
{
	struct proc_status status;
	struct proc_stat stat;
	struct timespec boot;

	if (!proc_status(pid, 0, &status) || !proc_stat(pid, 0, &stat))
		return false;
	if (status.kthread || stat.flags & PROC_PF_KTHREAD)
		return false;

	memset(row, 0, sizeof(*row));
	row->pid = pid;
	row->uid = status.uid[0];
	struct user_cache *user = &users[row->uid % 64];
	look_up_user(user, row->uid);
	memcpy(row->user, user->name, sizeof(row->user));
	row->rss = read_rss(pid);
	row->threads = stat.threads;
	row->start = stat.start;
	/* Start times count from boot and include suspended time. */
	clock_gettime(CLOCK_BOOTTIME, &boot);
	row->age = (double)boot.tv_sec + (double)boot.tv_nsec * 1e-9 -
		   (double)stat.start / (double)sysconf(_SC_CLK_TCK);
	if (row->age < 0)
		row->age = 0;
	row->command = proc_command(pid);
	struct err *err = target_check_quiet(pid);
	if (err) {
		row->refusal = xstrdup(err->text);
		err_free(err);
	}
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct proc_row *x = a, *y = b;

	if (x->rss != y->rss)
		return x->rss < y->rss ? 1 : -1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

struct proc_row *proclist_read(size_t *ret_n)
{
	struct proc_row *rows = NULL;
	size_t n = 0, cap = 0;
	struct user_cache users[64] = { 0 };

	DIR *dir = opendir("/proc");
	if (dir) {
		struct dirent *entry;
		while ((entry = readdir(dir))) {
			long pid = strtol(entry->d_name, NULL, 10);
			if (pid <= 0 || pid == getpid())
				continue;
			VEC_GROW(rows, n, cap);
			if (read_row((pid_t)pid, users, &rows[n]))
				n++;
		}
		closedir(dir);
	}
	if (n)
		qsort(rows, n, sizeof(*rows), compare_rows);
	*ret_n = n;
	return rows;
}

void proclist_free(struct proc_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rows[i].command);
		free(rows[i].refusal);
	}
	free(rows);
}

const char *proclist_brief(const char *command)
{
	const char *name = command;

	for (const char *s = command; *s && *s != ' '; s++)
		if (*s == '/' && s[1] && s[1] != ' ')
			name = s + 1;
	return name;
}

#define COMM_LEN 15	/* TASK_COMM_LEN - 1 */

size_t proclist_find(const char *name, pid_t *ret, size_t max)
{
	size_t found = 0;

	DIR *dir = opendir("/proc");
	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		long pid = strtol(entry->d_name, NULL, 10);
		CLEANUP_FREE char *comm = pid > 0 ? proc_read((pid_t)pid, 0, "comm", 64, NULL) : NULL;
		if (!comm)
			continue;
		comm[strcspn(comm, "\n")] = 0;
		if (strncmp(comm, name, COMM_LEN) || strlen(comm) != strnlen(name, COMM_LEN))
			continue;
		if (pid == getpid())
			continue;
		if (found < max)
			ret[found] = (pid_t)pid;
		found++;
	}
	closedir(dir);
	return found;
}
