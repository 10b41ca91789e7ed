/*
 * Something worth looking at: a small pretend document server with four named threads.
 *
 *	parser     parses documents into trees and throws them away; the names it meets stay
 *	           interned: a cache that levels off after about a minute
 *	session    forgets what it logs: a leak of about 1 MB/s from audit_append
 *	render     scratch buffers, many and short-lived: churn
 *	compact    a history that grows by realloc and is cut back: a saw-tooth
 *
 *	demo [SECONDS]
 *
 * Runs until SIGINT or SIGTERM, or for SECONDS. Prints a line every two seconds.
 * Built with -fno-builtin -fno-inline, so that the calls and their chains are really there.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_NS 20000000L	/* every thread works in slices of 20 ms */
#define INTERN_MAX 60000
#define HISTORY_MAX (6u << 20)

static volatile sig_atomic_t stopping;
static atomic_ulong documents, sessions, frames;

static void on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

static void rest(void)
{
	struct timespec t = { .tv_nsec = TICK_NS };

	nanosleep(&t, NULL);
}

static void *need(void *p)
{
	if (!p) {
		fputs("demo: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static uint32_t next_random(uint32_t *state)
{
	/* xorshift32 (Marsaglia 2003) */
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* ---- parser: document trees, and the names that stay ---- */

struct node {
	struct node *children, *next;
	const char *name;
	char *text;
};

static char *interned[INTERN_MAX];

static const char *intern(uint32_t key)
{
	char **place = &interned[key % INTERN_MAX];

	if (!*place) {
		char name[160];
		snprintf(name, sizeof(name), "element-%05u-%0*u", key % INTERN_MAX, 40 + key % 80, key);
		*place = need(strdup(name));
	}
	return *place;
}

static char *parse_text(uint32_t *random)
{
	size_t len = 24 + next_random(random) % 200;
	char *text = need(malloc(len));

	memset(text, 'x', len - 1);
	text[len - 1] = '\0';
	return text;
}

static struct node *parse_node(uint32_t *random, int depth)
{
	struct node *node = need(calloc(1, sizeof(*node)));

	node->name = intern(next_random(random));
	if (depth == 0) {
		node->text = parse_text(random);
		return node;
	}
	for (int i = 0; i < 3; i++) {
		struct node *child = parse_node(random, depth - 1);
		child->next = node->children;
		node->children = child;
	}
	return node;
}

static void free_node(struct node *node)
{
	while (node->children) {
		struct node *child = node->children;
		node->children = child->next;
		free_node(child);
	}
	free(node->text);
	free(node);
}

static struct node *parse_document(uint32_t *random)
{
	struct node *root = parse_node(random, 4);

	documents++;
	return root;
}

static void *parser_thread(void *unused)
{
	uint32_t random = 2463534242u;
	struct node *recent[16] = { 0 };
	size_t at = 0;

	(void)unused;
	while (!stopping) {
		struct node **place = &recent[at++ % 16];
		if (*place)
			free_node(*place);
		*place = parse_document(&random);
		rest();
	}
	for (size_t i = 0; i < 16; i++)
		if (recent[i])
			free_node(recent[i]);
	return NULL;
}

/* ---- session: the leak ---- */

struct audit_entry {
	struct audit_entry *previous;
	char line[1000];
};

static struct audit_entry *audit_log;	/* only ever grows */

static void audit_append(unsigned long session, const char *what)
{
	struct audit_entry *entry = need(malloc(sizeof(*entry)));

	snprintf(entry->line, sizeof(entry->line), "session %lu: %s", session, what);
	entry->previous = audit_log;
	audit_log = entry;
}

static void close_session(unsigned long session)
{
	audit_append(session, "closed");
}

static void handle_session(unsigned long session)
{
	char *request = need(malloc(4096));

	snprintf(request, 4096, "GET /document/%lu", session);
	audit_append(session, request);
	close_session(session);
	free(request);
}

static void *session_thread(void *unused)
{
	(void)unused;
	while (!stopping) {
		for (int i = 0; i < 10; i++)	/* 50 slices x 10 x 2 entries of 1 KB: 1 MB/s */
			handle_session(++sessions);
		rest();
	}
	return NULL;
}

/* ---- render: churn ---- */

static unsigned blend_line(unsigned width)
{
	unsigned char *scratch = need(malloc(width)), *mask = need(malloc(width / 4 + 1));

	memset(scratch, (int)width & 0xff, width);
	memset(mask, 0, width / 4 + 1);
	unsigned sum = scratch[width / 2] + mask[0];
	free(mask);
	free(scratch);
	return sum;
}

static unsigned render_frame(unsigned lines)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < lines; i++)
		sum += blend_line(256 + i * 4);
	frames++;
	return sum;
}

static void *render_thread(void *unused)
{
	static atomic_uint sink;

	(void)unused;
	while (!stopping) {
		sink += render_frame(400);
		rest();
	}
	return NULL;
}

/* ---- compact: a saw-tooth ---- */

static char *extend_history(char *history, size_t size)
{
	return need(realloc(history, size));
}

static void *compact_thread(void *unused)
{
	char *history = NULL;
	size_t size = 0;

	(void)unused;
	while (!stopping) {
		size_t more = 12 << 10;
		history = extend_history(history, size + more);
		memset(history + size, 'h', more);
		size += more;
		if (size > HISTORY_MAX) {
			size = HISTORY_MAX / 4;
			history = extend_history(history, size);
		}
		rest();
	}
	free(history);
	return NULL;
}

static void start(pthread_t *thread, const char *name, void *(*fn)(void *))
{
	int rc = pthread_create(thread, NULL, fn, NULL);

	if (rc) {
		fprintf(stderr, "demo: no thread: %s\n", strerror(rc));
		exit(1);
	}
	pthread_setname_np(*thread, name);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec from, now;
	pthread_t threads[4];

	if (argc > 2 || (argc > 1 && !(seconds > 0))) {
		fprintf(stderr, "usage: demo [SECONDS]\n");
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	start(&threads[0], "parser", parser_thread);
	start(&threads[1], "session", session_thread);
	start(&threads[2], "render", render_thread);
	start(&threads[3], "compact", compact_thread);
	printf("demo: serving; Ctrl-C ends it\n");
	fflush(stdout);

	for (unsigned slice = 1; !stopping; slice++) {
		rest();
		clock_gettime(CLOCK_MONOTONIC, &now);
		double up = (double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9;
		if (seconds > 0 && up >= seconds)
			stopping = 1;
		if (slice % 100 == 0) {
			printf("demo: up %.0f s, %lu documents, %lu sessions, %lu frames\n", up,
			       documents, sessions, frames);
			fflush(stdout);
		}
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("demo: done after %lu documents\n", documents);
	return 0;
}
