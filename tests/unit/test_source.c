/* symbol/source.h: lines fit for a terminal, and what can't be read is said: missing, no file, too large, too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbol/source.h"

static char dir[] = "/tmp/heaptop-source.XXXXXX";

static char *put_file(const char *name, const char *bytes, size_t len)
{
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
	return path;
}

static const struct source *get(struct sources *s, const char *path)
{
	const struct source *f;

	while (!(f = sources_get(s, path)))
		poll(NULL, 0, 1);
	return f;
}

static void test_lines(void **state)
{
	(void)state;
	static const char text[] = "int a;\r\n\tb\t= \033[31m;\n\nnull \0 here\n\xff\xfe last";
	CLEANUP_FREE char *path = put_file("a.c", text, sizeof(text) - 1);
	struct sources *s = sources_create();
	const struct source *f = get(s, path);

	assert_null(f->why);
	assert_int_equal(f->n, 5);
	assert_string_equal(f->lines[0], "int a;");
	assert_string_equal(f->lines[1], "        b       = ?[31m;");
	assert_string_equal(f->lines[2], "");
	assert_string_equal(f->lines[3], "null ? here");
	assert_string_equal(f->lines[4], "?? last");
	assert_false(sources_pending(s));
	assert_ptr_equal(get(s, path), f);
	sources_destroy(s);
}

static void test_long(void **state)
{
	(void)state;
	CLEANUP_FREE char *bytes = xmalloc(SOURCE_MAX_FILE + 1);
	struct sources *s = sources_create();

	memset(bytes, 'x', SOURCE_MAX_FILE + 1);
	CLEANUP_FREE char *fits = put_file("long.c", bytes, SOURCE_MAX_FILE), *large = put_file("large.c", bytes, SOURCE_MAX_FILE + 1);
	assert_int_equal(get(s, fits)->n, 1);
	assert_int_equal(strlen(get(s, fits)->lines[0]), SOURCE_MAX_LINE);
	assert_string_equal(get(s, large)->why, "too large");
	assert_int_equal(get(s, large)->n, 0);
	sources_destroy(s);
}

static void test_not_there(void **state)
{
	(void)state;
	struct sources *s = sources_create();
	CLEANUP_FREE char *fifo = xasprintf("%s/fifo", dir), *none = xasprintf("%s/none.c", dir);

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_string_equal(get(s, fifo)->why, "not a regular file");
	assert_string_equal(get(s, none)->why, "No such file or directory");
	assert_string_equal(get(s, dir)->why, "not a regular file");
	assert_string_equal(get(s, "/dev/null")->why, "not a regular file");
	sources_destroy(s);
}

static void test_many(void **state)
{
	(void)state;
	struct sources *s = sources_create();

	for (unsigned i = 0; i < SOURCE_MAX_FILES; i++) {
		CLEANUP_FREE char *path = xasprintf("%s/%u.c", dir, i);
		assert_string_equal(get(s, path)->why, "No such file or directory");
	}
	assert_string_equal(get(s, "one more")->why, "too many source files looked at");
	sources_destroy(s);
	/* nobody asked: no thread */
	sources_destroy(sources_create());
	sources_destroy(NULL);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const files[] = { "a.c", "long.c", "large.c", "fifo" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		CLEANUP_FREE char *path = xasprintf("%s/%s", dir, files[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
