/*
 * How much more memory the target may have: what is mapped into it is taken from that. Limits of its
 * address space (RLIMIT_AS) and of its memory cgroups up to the root.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

#define CGROUPS "/sys/fs/cgroup"

/* A number in a file of a cgroup; false for "max", and where there is none. */
static bool read_number(const char *dir, const char *name, uint64_t *ret)
{
	char text[32];
	CLEANUP_FREE char *path = xasprintf("%s/%s", dir, name);
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return false;
	text[n] = '\0';
	*ret = strtoull(text, NULL, 10);
	return true;
}

/* The least that a cgroup and those above it, up to `root`, still have. */
static uint64_t least_room(const char *root, const char *group, const char *limit, const char *usage)
{
	uint64_t least = UINT64_MAX, max, current;

	if (strstr(group, "/.."))	/* it lies outside of our own view */
		return least;
	CLEANUP_FREE char *dir = xasprintf("%s%s", root, group);
	for (char *slash; (slash = strrchr(dir, '/')) >= dir + strlen(root); *slash = '\0') {
		if (!read_number(dir, limit, &max) || !read_number(dir, usage, &current))
			continue;
		uint64_t room = max > current ? max - current : 0;
		least = room < least ? room : least;
	}
	return least;
}

/* Lines "0::/user.slice/app.scope" (version 2) or "4:memory:/app" (version 1). */
static uint64_t cgroup_room(struct target *t)
{
	uint64_t least = UINT64_MAX;
	CLEANUP_FREE char *text = proc_read(t->pid, 0, "cgroup", 1 << 16, NULL);
	char *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t room = UINT64_MAX;
		char *v1 = strstr(line, ":memory:/");
		if (!strncmp(line, "0::/", 4))
			room = least_room(CGROUPS, line + 3, "memory.max", "memory.current");
		else if (v1)
			room = least_room(CGROUPS "/memory", v1 + strlen(":memory:"), "memory.limit_in_bytes",
					  "memory.usage_in_bytes");
		least = room < least ? room : least;
	}
	return least;
}

static uint64_t address_room(struct target *t)
{
	struct rlimit limit;
	unsigned long long pages;
	CLEANUP_FREE char *text = proc_read(t->pid, 0, "statm", 4096, NULL);

	if (prlimit(t->pid, RLIMIT_AS, NULL, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || !text ||
	    sscanf(text, "%llu", &pages) != 1)
		return UINT64_MAX;
	uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

void target_room(struct target *t, uint64_t *ret_addresses, uint64_t *ret_memory)
{
	*ret_addresses = address_room(t);
	*ret_memory = cgroup_room(t);
}
