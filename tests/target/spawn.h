/*
 * Victims for the tests of target/: started with pipes on their stdin and stdout, asked and
 * ended through them. VICTIMS names the folder they are in.
 */
#ifndef HEAPTOP_TESTS_SPAWN_H
#define HEAPTOP_TESTS_SPAWN_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct victim {
	pid_t pid;
	int in, out;	/* its stdin and stdout */
};

static inline const char *victim_path(const char *name)
{
	static char path[4096];
	const char *dir = getenv("VICTIMS");

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "tests/victims", name);
	return path;
}

/* One line of its output without the newline; "" when there is none within the time. */
static inline const char *victim_line(struct victim *v, int timeout_ms)
{
	static char line[512];
	size_t len = 0;
	struct pollfd p = { .fd = v->out, .events = POLLIN };

	while (len + 1 < sizeof(line) && poll(&p, 1, timeout_ms) == 1 &&
	       read(v->out, line + len, 1) == 1 && line[len] != '\n')
		len++;
	line[len] = '\0';
	return line;
}

static inline bool victim_start(struct victim *v, const char *name, const char *arg)
{
	int in[2], out[2];
	const char *path = victim_path(name);

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return false;
	v->pid = fork();
	if (v->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, arg, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	v->in = in[1];
	v->out = out[0];
	return v->pid > 0 && strncmp(victim_line(v, 10000), "ready", 5) == 0;
}

/* Does it find everything in order, and do all its threads go on? */
static inline bool victim_ok(struct victim *v)
{
	if (write(v->in, "\n", 1) != 1)
		return false;
	const char *line = victim_line(v, 30000);
	if (strcmp(line, "ok") == 0)
		return true;
	fprintf(stderr, "victim: %s\n", line[0] ? line : "no answer");
	return false;
}

/* Its wait status. */
static inline int victim_end(struct victim *v)
{
	int status = -1;

	close(v->in);
	for (const char *line; *(line = victim_line(v, 10000));)
		fprintf(stderr, "victim: %s\n", line);
	waitpid(v->pid, &status, 0);
	close(v->out);
	return status;
}

static inline char victim_state(pid_t pid)
{
	char path[64], text[512], *s;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return '-';
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	s = strrchr(text, ')');
	return s && s[1] ? s[2] : '-';
}

static inline bool may_ptrace(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		pause();
		_exit(0);
	}
	bool ok = ptrace(PTRACE_SEIZE, child, 0, 0) == 0;
	kill(child, SIGKILL);
	waitpid(child, &status, __WALL);
	return ok;
}

#endif
