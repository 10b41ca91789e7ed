/* Where the launched program's descriptors go: a rule for each, and --io's modes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "target/relay.h"
#include "tests/lib/side.h"

/* ---- a rule per descriptor ---- */

static int program_descriptors(void)
{
	CHECK(!isatty(0) && !isatty(1) && isatty(2));
	char buf[16];
	ssize_t n = read(0, buf, sizeof(buf));
	CHECK(n >= 0 && write(1, buf, (size_t)n) == n);
	fprintf(stderr, "seen\n");
	return 0;
}

static int side_descriptors(void *arg)
{
	struct relay *relay;
	int fd[3];
	bool new_session;

	(void)arg;
	struct err *err = relay_create(RELAY_PANE, NULL, 24, 80, &relay, fd, &new_session);
	CHECK(!err);
	CHECK(fd[0] == -1 && fd[1] == -1 && fd[2] >= 0 && new_session);
	shared->program = start_program(fd, new_session, program_descriptors);
	relay_launched(relay);
	CHECK(!strcmp(read_all(relay, NULL), "seen\r\n"));
	CHECK(exit_code(shared->program) == 0);
	relay_destroy(relay);
	return 0;
}

static void test_descriptors(void **state)
{
	char in[] = "/tmp/test_relay.in.XXXXXX", out[] = "/tmp/test_relay.out.XXXXXX", buf[16];
	int in_fd = mkstemp(in), out_fd = mkstemp(out);

	(void)state;
	assert_true(in_fd >= 0 && out_fd >= 0);
	assert_int_equal(write(in_fd, "input\n", 6), 6);
	const char *file[3] = { in, out, NULL };
	run_side_with(side_descriptors, file);
	assert_int_equal(read(out_fd, buf, sizeof(buf)), 6);
	assert_memory_equal(buf, "input\n", 6);
	close(in_fd);
	close(out_fd);
	unlink(in);
	unlink(out);
}

static int side_no_terminal(void *arg)
{
	struct relay *relay;
	int fd[3];
	bool new_session;

	(void)arg;
	struct err *err = relay_create(RELAY_PANE, NULL, 24, 80, &relay, fd, &new_session);
	if (err || fd[0] != -1 || fd[1] != -1 || fd[2] != -1 || relay_has_terminal(relay)
	    || relay_fd(relay) != -1)
		return 1;
	relay_type(relay, "x", 1);
	relay_resize(relay, 5, 5);
	relay_destroy(relay);
	return 0;
}

static void test_no_terminal(void **state)
{
	const char *file[3] = { "/dev/null", "/dev/null", "/dev/null" };

	(void)state;
	run_side_with(side_no_terminal, file);
}

/* ---- the other modes ---- */

static void parses(const char *text, enum relay_mode wanted)
{
	enum relay_mode mode;
	struct err *err = relay_parse(text, &mode);

	assert_null(err);
	assert_int_equal(mode, wanted);
}

static void test_parse(void **state)
{
	enum relay_mode mode;

	(void)state;
	parses("pane", RELAY_PANE);
	parses("inherit", RELAY_INHERIT);
	parses("null", RELAY_NULL);
	parses("/dev/pts/99", RELAY_TTY);
	parses("/dev/null", RELAY_FILE);
	parses("out.log", RELAY_FILE);
	parses("panes", RELAY_FILE);
	struct err *err = relay_parse("", &mode);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);
}

static int program_is_kept_off(void)
{
	char byte;

	CHECK(read(0, &byte, 1) == 0);
	CHECK(!isatty(0) && !isatty(1) && !isatty(2));
	CHECK(open("/dev/tty", O_RDWR) < 0);
	printf("one\n");
	fflush(stdout);
	fprintf(stderr, "two\n");
	return 0;
}

static int launch_mode(enum relay_mode mode, const char *path)
{
	struct relay *relay;
	int fd[3];
	bool new_session;
	struct err *err = relay_create(mode, path, 24, 80, &relay, fd, &new_session);

	if (err) {
		printf("%s\r\n", err->text);
		err_free(err);
		return 99;
	}
	shared->program = start_program(fd, new_session, program_is_kept_off);
	relay_launched(relay);
	int code = exit_code(shared->program);
	CHECK(!relay_has_terminal(relay) && relay_fd(relay) == -1);
	relay_destroy(relay);
	return code;
}

static int side_null(void *arg)
{
	(void)arg;
	return launch_mode(RELAY_NULL, NULL);
}

static int side_file(void *arg)
{
	char other[160];
	struct stat st;
	char buf[16];

	(void)arg;
	snprintf(shared->path, sizeof(shared->path), "/tmp/test_relay.%d", (int)getpid());
	snprintf(other, sizeof(other), "%s.other", shared->path);
	int fd = open(shared->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, "what was there before", 21) == 21);
	close(fd);
	CHECK(launch_mode(RELAY_FILE, shared->path) == 0);
	fd = open(shared->path, O_RDONLY);
	CHECK(read(fd, buf, sizeof(buf)) == 8 && !memcmp(buf, "one\ntwo\n", 8));
	close(fd);

	/* a link isn't followed, a second name is another's file, a FIFO would block */
	CHECK(symlink(shared->path, other) == 0);
	CHECK(launch_mode(RELAY_FILE, other) == 99);
	unlink(other);
	CHECK(link(shared->path, other) == 0);
	CHECK(launch_mode(RELAY_FILE, other) == 99);
	unlink(other);
	CHECK(mkfifo(other, 0600) == 0);
	CHECK(launch_mode(RELAY_FILE, other) == 99);
	unlink(other);
	CHECK(stat(shared->path, &st) == 0 && st.st_size == 8);
	unlink(shared->path);
	CHECK(launch_mode(RELAY_FILE, "/nonexistent/file") == 99);
	return 0;
}

static int program_short(void)
{
	return write(1, "hello", 5) == 5 ? 0 : 1;
}

static int side_tty(void *arg)
{
	(void)arg;
	CHECK(launch_mode(RELAY_TTY, "/dev/null") == 99);
	CHECK(launch_mode(RELAY_TTY, "/dev/pts/nothing") == 99);
	CHECK(launch_mode(RELAY_TTY, ttyname(0)) == 99);	/* our own */

	/* another one */
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	struct relay *relay;
	int fd[3];
	bool new_session;
	struct err *err = relay_create(RELAY_TTY, ptsname(master), 24, 80, &relay, fd, &new_session);
	CHECK(!err);
	CHECK(fd[0] >= 0 && fd[0] == fd[1] && fd[1] == fd[2] && new_session);
	shared->program = start_program(fd, new_session, program_short);
	relay_launched(relay);
	char buf[16];
	CHECK(read(master, buf, sizeof(buf)) == 5 && !memcmp(buf, "hello", 5));
	CHECK(exit_code(shared->program) == 0);
	relay_destroy(relay);
	return 0;
}

static int side_inherit(void *arg)
{
	struct relay *relay;
	int fd[3];
	bool new_session;

	(void)arg;
	CHECK(!relay_create(RELAY_INHERIT, NULL, 24, 80, &relay, fd, &new_session));
	CHECK(fd[0] == -1 && fd[1] == -1 && fd[2] == -1 && !new_session);
	relay_launched(relay);
	relay_destroy(relay);
	relay_destroy(NULL);
	return 0;
}

static void test_modes(void **state)
{
	(void)state;
	run_side(side_null);
	run_side(side_file);
	run_side(side_tty);
	run_side(side_inherit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_no_terminal),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_modes),
	};

	return side_init() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
