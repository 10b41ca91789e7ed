/* Who may be watched: each refusal, its words and its code; and the picker's list of all processes. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "base/err.h"
#include "fine.h"
#include "spawn.h"
#include "target/proclist.h"
#include "target/target.h"

static void expect_refusal(pid_t pid, enum err_code code, const char *words)
{
	struct err *err = target_check(pid);

	assert_non_null(err);
	if (!strstr(err->text, words) || strchr(err->text, '\n') || err->code != code)
		fail_msg("\"%s\" (code %d) instead of \"%s\"", err->text, err->code, words);
	struct target *t;
	struct err *attach_err = target_attach(pid, &t);
	assert_non_null(attach_err);
	assert_int_equal(attach_err->code, code);
	assert_null(t);
	err_free(attach_err);
	err_free(err);
}

static void test_refuse_absent(void **state)
{
	(void)state;
	expect_refusal(0x7ffffff0, ERR_NOT_FOUND, "no such process");
	expect_refusal(-1, ERR_NOT_FOUND, "no such process");
	expect_refusal(getpid(), ERR_UNSUPPORTED, "itself");
}

static void test_refuse_zombie(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	while (victim_state(child) != 'Z')
		usleep(1000);
	expect_refusal(child, ERR_NOT_FOUND, "zombie");
	waitpid(child, NULL, 0);
}

static void test_refuse_kernel_thread(void **state)
{
	(void)state;
	if (access("/proc/2/stat", F_OK) < 0)
		skip();	/* a PID namespace has none */
	expect_refusal(2, ERR_UNSUPPORTED, "kernel thread");
}

static void test_refuse_traced(void **state)
{
	(void)state;
	struct victim v;
	int status;

	assert_true(victim_start(&v, "victim_ends", "wait"));
	pid_t tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, v.pid, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(tracer, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	char words[64];
	snprintf(words, sizeof(words), "already traced by test_check (pid %d)", tracer);
	expect_refusal(v.pid, ERR_BUSY, words);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	assert_int_equal(victim_end(&v), 0);
}

static void test_refuse_thread(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	size_t n;
	pid_t other = 0;

	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_fine(target_attach(v.pid, &t));
	const struct target_thread *threads = target_threads(t, &n);
	for (size_t i = 0; i < n; i++) {
		if (threads[i].tid != v.pid)
			other = threads[i].tid;
	}
	assert_int_equal(other != 0, 1);
	assert_fine(target_resume(t));
	target_destroy(t);
	char words[64];
	snprintf(words, sizeof(words), "is a thread of process %d", v.pid);
	/* Short-lived ones may have gone. */
	struct err *err = target_check(other);
	assert_non_null(err);
	assert_true(strstr(err->text, words) || strstr(err->text, "no such"));
	err_free(err);
	assert_int_equal(victim_end(&v), 0);
}

/* In a child, as nobody: what it is told about our own process. */
static void test_refuse_other_user(void **state)
{
	(void)state;
	int fd[2], status;
	char text[512] = "";
	struct victim v;

	if (getuid() != 0)
		skip();
	assert_true(victim_start(&v, "victim_ends", "wait"));
	assert_int_equal(pipe(fd), 0);
	pid_t child = fork();
	if (child == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		struct err *err = target_check(v.pid);
		dprintf(fd[1], "%d %s", err ? (int)err->code : -1, err ? err->text : "");
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(read(fd[0], text, sizeof(text) - 1) > 0);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(atoi(text), ERR_DENIED);
	assert_non_null(strstr(text, "owned by root: run heaptop as root"));
	assert_int_equal(victim_end(&v), 0);
}

/* A whole 32-bit program: pause(2) for ever. */
static void test_refuse_32bit(void **state)
{
	(void)state;
	char path[] = "/tmp/heaptop-test-XXXXXX";
	struct {
		Elf32_Ehdr e;
		Elf32_Phdr p;
		uint8_t code[9];
	} prog = {
		.e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
		       .e_type = ET_EXEC, .e_machine = EM_386, .e_version = EV_CURRENT,
		       .e_entry = 0x8048000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
		       .e_phoff = sizeof(Elf32_Ehdr), .e_ehsize = sizeof(Elf32_Ehdr),
		       .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1 },
		.p = { .p_type = PT_LOAD, .p_vaddr = 0x8048000, .p_filesz = sizeof(prog),
		       .p_memsz = sizeof(prog), .p_flags = PF_R | PF_X, .p_align = 4096 },
		.code = { 0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7 },
	};

	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &prog, sizeof(prog)), sizeof(prog));
	fchmod(fd, 0700);
	close(fd);
	pid_t child = fork();
	if (child == 0) {
		execl(path, path, (char *)NULL);
		_exit(126);
	}
	usleep(50000);
	bool runs = waitpid(child, NULL, WNOHANG) == 0;
	if (runs) {
		expect_refusal(child, ERR_UNSUPPORTED,
			       "is a 32-bit program: heaptop watches 64-bit programs only");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);

		struct target *t;
		int code;
		const struct launch_spec spec = { .argv = (char *[]){ path, NULL },
						  .fd = { -1, -1, -1 } };
		struct err *err = target_launch(&spec, &t, &code);
		assert_non_null(err);
		assert_non_null(strstr(err->text, "32-bit"));
		assert_int_equal(code, LAUNCH_FAILED);
		err_free(err);
	}
	unlink(path);
	if (!runs)
		skip();	/* this kernel runs none */
}

static void test_proclist(void **state)
{
	(void)state;
	struct victim v;
	size_t n;
	bool found = false;

	assert_true(victim_start(&v, "victim_ends", "wait"));
	struct proc_row *rows = proclist_read(&n);
	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_true(rows[i - 1].rss >= rows[i].rss);
		assert_int_not_equal(rows[i].pid, getpid());
		assert_non_null(rows[i].command);
		if (rows[i].pid == v.pid) {
			found = true;
			assert_int_equal(rows[i].uid, getuid());
			assert_non_null(strstr(rows[i].command, "victim_ends wait"));
			assert_int_equal(rows[i].threads, 1);
			assert_null(rows[i].refusal);
			assert_true(rows[i].age < 60 && rows[i].rss > 0);
		}
	}
	proclist_free(rows, n);
	assert_true(found);
	assert_int_equal(victim_end(&v), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuse_absent),
		cmocka_unit_test(test_refuse_zombie),
		cmocka_unit_test(test_refuse_kernel_thread),
		cmocka_unit_test(test_refuse_traced),
		cmocka_unit_test(test_refuse_thread),
		cmocka_unit_test(test_refuse_other_user),
		cmocka_unit_test(test_refuse_32bit),
		cmocka_unit_test(test_proclist),
	};

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
