/* See stderr.h. */
#include "ui/stderr.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

struct stderr_log {
	int saved, fd;
	char line[512];		/* begun, not ended yet */
	size_t len;
};

struct stderr_log *stderr_log_begin(void)
{
	int pipe[2];

	/* only a terminal is spoilt; a file is where the user wants it */
	if (!isatty(2) || pipe2(pipe, O_CLOEXEC | O_NONBLOCK))
		return NULL;
	int saved = fcntl(2, F_DUPFD_CLOEXEC, 3);
	fflush(stderr);
	if (saved < 0 || dup2(pipe[1], 2) < 0) {
		if (saved >= 0)
			close(saved);
		close(pipe[0]);
		close(pipe[1]);
		return NULL;
	}
	close(pipe[1]);
	struct stderr_log *s = xcalloc(1, sizeof(*s));
	s->saved = saved;
	s->fd = pipe[0];
	return s;
}

static void end_line(struct stderr_log *s)
{
	if (s->len)
		log_line("%.*s", (int)s->len, s->line);
	s->len = 0;
}

void stderr_log_read(struct stderr_log *s)
{
	char buf[4096];

	if (!s)
		return;
	/* bounded: a library gone mad must not keep the screen from its work */
	for (int i = 0; i < 16; i++) {
		ssize_t n = read(s->fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		for (ssize_t k = 0; k < n; k++) {
			if (buf[k] == '\n' || s->len == sizeof(s->line))
				end_line(s);
			if (buf[k] != '\n')
				s->line[s->len++] = buf[k] ? buf[k] : '?';
		}
	}
}

void stderr_log_end(struct stderr_log *s)
{
	if (!s)
		return;
	fflush(stderr);
	stderr_log_read(s);
	end_line(s);
	dup2(s->saved, 2);
	close(s->saved);
	close(s->fd);
	free(s);
}

int stderr_log_fd(const struct stderr_log *s)
{
	return s ? s->fd : -1;
}
