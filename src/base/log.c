/* The in-memory log; see log.h. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

#define LOG_LINES 1000

static struct {
	pthread_mutex_t lock;
	char *lines[LOG_LINES];	/* ring: line k at k % LOG_LINES */
	uint64_t count;
	bool to_stderr;
} log_state = { .lock = PTHREAD_MUTEX_INITIALIZER };

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *line = xvasprintf(fmt, ap);
	va_end(ap);
	text_sanitize(line);

	pthread_mutex_lock(&log_state.lock);
	char **place = &log_state.lines[log_state.count % LOG_LINES];
	free(*place);
	*place = line;
	log_state.count++;
	if (log_state.to_stderr)
		fprintf(stderr, "heaptop: %s\n", line);
	pthread_mutex_unlock(&log_state.lock);
}

void log_to_stderr(bool on)
{
	pthread_mutex_lock(&log_state.lock);
	log_state.to_stderr = on;
	pthread_mutex_unlock(&log_state.lock);
}

char **log_tail(size_t max, size_t *ret_n)
{
	pthread_mutex_lock(&log_state.lock);
	uint64_t n = log_state.count < LOG_LINES ? log_state.count : LOG_LINES;
	if (n > max)
		n = max;
	char **lines = xcalloc(n, sizeof(*lines));
	for (uint64_t i = 0; i < n; i++)
		lines[i] = xstrdup(log_state.lines[(log_state.count - n + i) % LOG_LINES]);
	pthread_mutex_unlock(&log_state.lock);
	*ret_n = n;
	return lines;
}
