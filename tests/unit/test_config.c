/* Files of settings, read and changed; and jobs for a thread of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/worker.h"

/* A text as "key=value;": what config_next makes of it. */
static char *read_as(const char *given)
{
	CLEANUP_FREE char *text = xstrdup(given);
	char *ret = NULL, *key, *value;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	for (char *at = text; (at = config_next(at, &key, &value)); )
		if (key)
			fprintf(out, value ? "%s=[%s];" : "%s!;", key, value);
	fclose(out);
	return ret;
}

static void test_read(void **state)
{
	(void)state;
	static const struct { const char *text, *read; } cases[] = {
		{ "", "" }, { "\n\n", "" }, { "# a = b\n  # c\n", "" },
		{ "a = b", "a=[b];" }, { "a=b\nc =d e # f\n", "a=[b];c=[d e # f];" },
		{ "  a\t=\t b \r\n", "a=[b];" }, { "a =\n", "a=[];" }, { "a", "a!;" },
		{ "a = \"  b \"\nc = \"\nd = \"\"", "a=[  b ];c=[\"];d=[];" },
		{ "source-path = /x=/y", "source-path=[/x=/y];" },
		{ "bind = = resort\nbind C-a = tree", "bind ==[resort];bind C-a=[tree];" },
		{ "= x", "=[x];" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *got = read_as(cases[i].text);
		assert_string_equal(got, cases[i].read);
	}
}

static void test_change(void **state)
{
	(void)state;
	static const char text[] =
		"# mine\n\ntheme = light\n  delay=2 \nbind x = tree\n# theme = old\nodd line\ntheme = mono\nmouse = no";
	const struct config_setting settings[] = {
		{ "theme", "contrast" }, { "mouse", NULL }, { "graph", "block" }, { "columns", NULL }, { "title", " a" },
	};

	CLEANUP_FREE char *got = config_change(text, settings, ARRAY_SIZE(settings));
	assert_string_equal(got, "# mine\n\n  delay=2 \nbind x = tree\n# theme = old\nodd line\ntheme = contrast\n"
			    "graph = block\ntitle = \" a\"\n");
	/* again: nothing more changes */
	CLEANUP_FREE char *again = config_change(got, settings, ARRAY_SIZE(settings));
	assert_string_equal(again, got);
	CLEANUP_FREE char *fresh = config_change("", settings, 1);
	assert_string_equal(fresh, "theme = contrast\n");
}

static void test_files(void **state)
{
	(void)state;
	char dir[] = "/tmp/heaptop-test.XXXXXX", *text;

	assert_non_null(mkdtemp(dir));
	CLEANUP_FREE char *path = xasprintf("%s/a/b/file", dir), *fifo = xasprintf("%s/fifo", dir);
	struct err *err = config_read(path, &text);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	assert_null(config_make_dirs(path));
	assert_null(config_make_dirs(path));
	FILE *f = fopen(path, "w");
	fputs("a = b\n", f);
	fclose(f);
	assert_null(config_read(path, &text));
	assert_string_equal(text, "a = b\n");
	free(text);
	assert_int_equal(truncate(path, CONFIG_MAX_BYTES), 0);
	assert_null(config_read(path, &text));
	free(text);
	assert_int_equal(truncate(path, CONFIG_MAX_BYTES + 1), 0);
	err = config_read(path, &text);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
	/* doesn't wait for a writer */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	err = config_read(fifo, &text);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);

	setenv("XDG_CONFIG_HOME", "/x", 1);
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", "/h", 1);
	CLEANUP_FREE char *config = config_user_path("r"), *state_file = config_state_path("s");
	assert_string_equal(config, "/x/heaptop/r");
	assert_string_equal(state_file, "/h/.local/state/heaptop/s");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	assert_null(config_user_path("r"));

	unlink(path);
	unlink(fifo);
	for (char *slash; (slash = strrchr(path, '/')) && strlen(path) > sizeof("/tmp"); *slash = '\0')
		rmdir(path);
	rmdir(dir);
}

/* ---- jobs ---- */

#define JOBS 50

struct job {
	struct worker_job job;
	int number;
	int *next;		/* both sides count up */
	pthread_t owner;
};

static void job_run(struct worker_job *j)
{
	struct job *job = (struct job *)j;

	assert_false(pthread_equal(pthread_self(), job->owner));
	assert_int_equal(job->number, job->next[0]++);
}

static void job_done(struct worker_job *j)
{
	struct job *job = (struct job *)j;

	assert_true(pthread_equal(pthread_self(), job->owner));
	assert_int_equal(job->number, job->next[1]++);
	job->next[2] += job->job.cancelled;
	free(job);
}

static void give(struct worker *w, int number, int *next)
{
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){ .job = { .run = job_run, .done = job_done }, number, next, pthread_self() };
	worker_give(w, &job->job);
}

static void test_worker(void **state)
{
	(void)state;
	int next[3] = { 0 };
	struct worker *w = worker_create("test-jobs");

	assert_false(worker_busy(w));
	for (int i = 0; i < JOBS; i++)
		give(w, i, next);
	assert_true(worker_busy(w));
	while (worker_busy(w))
		worker_poll(w);
	assert_int_equal(next[1], JOBS);
	assert_int_equal(next[2], 0);
	for (int i = JOBS; i < 2 * JOBS; i++)
		give(w, i, next);
	/* nothing is lost: run and done, though nobody waits */
	worker_destroy(w);
	assert_int_equal(next[0], 2 * JOBS);
	assert_int_equal(next[1], 2 * JOBS);
	assert_true(next[2] > 0);
	worker_destroy(worker_create("unused"));
	worker_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
