/*
 * Side-band records: a process that maps code, executes another program or starts a thread is told of, and nobody else; what was lost
 * may have been anything; nonsense in a ring ends it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/perfring.h"
#include "target/sideband.h"

/* A child that does one thing for each byte it gets, and says so. */
struct child {
	pid_t pid;
	int in, out;
};

static void *nothing(void *arg)
{
	return arg;
}

static void child_main(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		int prot = c == 'x' ? PROT_READ | PROT_EXEC : PROT_READ;
		void *at = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (c == 'p')
			mprotect(at, 4096, PROT_READ | PROT_EXEC);
		if (c == 't') {
			pthread_t thread;
			pthread_create(&thread, NULL, nothing, NULL);
			pthread_join(thread, NULL);
		}
		if (c == 'e') {
			dup2(in, 0);
			dup2(out, 1);
			execlp("cat", "cat", NULL);
		}
		if (write(out, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static struct child start(void)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(to[1]);
		close(from[0]);
		child_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	return (struct child){ pid, to[1], from[0] };
}

/* It has done it. After an exec it is cat that answers, once the new image is there. */
static void tell(const struct child *c, char what)
{
	char said;

	assert_int_equal(write(c->in, &what, 1), 1);
	if (what == 'e')
		assert_int_equal(write(c->in, &what, 1), 1);
	assert_int_equal(read(c->out, &said, 1), 1);
	assert_int_equal(said, what);
}

static void end(const struct child *c)
{
	close(c->in);
	close(c->out);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

/* Nothing new, as soon as the rest of the machine has left our rings alone for a moment. */
static bool quiet(struct sideband *s, pid_t pid)
{
	for (int i = 0; i < 10000; i++)
		if (!sideband_take(s, pid))
			return true;
	return false;
}

static void test_told(void **state)
{
	(void)state;
	struct sideband *s;
	struct err *err = sideband_open(&s);

	if (err) {
		print_message("%s\n", err->text);
		bool denied = err->code == ERR_DENIED;
		err_free(err);
		assert_true(denied);
		skip();
	}
	struct child one = start(), two = start();
	tell(&one, 'r');
	tell(&two, 'r');
	/* one that isn't watched, or not any more: nothing is told of it */
	sideband_watch(s, one.pid);
	tell(&two, 't');
	assert_int_equal(sideband_take(s, two.pid), 0);
	sideband_watch(s, two.pid);
	sideband_watch(s, two.pid);
	assert_true(quiet(s, two.pid));
	sideband_watch(s, getpid());
	sideband_unwatch(s, getpid());
	sideband_unwatch(s, getpid());
	assert_true(quiet(s, one.pid));
	/* somebody else may fill the rings meanwhile: what is lost is told as anything */
	tell(&one, 'x');
	assert_true(sideband_take(s, one.pid) & SIDEBAND_CODE);
	assert_true(quiet(s, one.pid));
	tell(&one, 'p');
	assert_true(sideband_take(s, one.pid) & SIDEBAND_CODE);
	assert_true(quiet(s, one.pid));
	tell(&one, 'e');
	assert_int_equal(sideband_take(s, one.pid) & ~SIDEBAND_THREADS, SIDEBAND_CODE | SIDEBAND_EXEC);
	assert_true(quiet(s, two.pid));
	tell(&two, 't');
	/* whoever asks first, each has what is its own */
	assert_true(quiet(s, one.pid));
	assert_true(sideband_take(s, two.pid) & SIDEBAND_THREADS);
	end(&two);	/* which has a copy of the other one's pipe */
	end(&one);
	assert_true(sideband_take(s, one.pid) & SIDEBAND_THREADS);
	/* their numbers may be others' now */
	sideband_unwatch(s, one.pid);
	assert_int_equal(sideband_take(s, one.pid), 0);
	sideband_close(s);
}

/* ---- parsing ---- */

#define SIZE 256u

static uint64_t put(uint8_t *ring, uint64_t at, uint32_t type, uint16_t misc, uint16_t size, uint32_t pid)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
	} r = { { .type = type, .misc = misc, .size = size }, pid, pid };

	for (size_t i = 0; i < sizeof(r); i++)
		ring[(at + i) % SIZE] = ((const uint8_t *)&r)[i];
	return at + size;
}

static unsigned parsed(const uint8_t *ring, uint64_t tail, uint64_t head)
{
	const struct perf_ring mapped = { .data = ring, .bytes = SIZE };
	struct sideband_watched watched[] = { { .pid = 7 }, { .pid = 42 }, { .pid = 44 } };

	sideband_parse(&mapped, &tail, head, watched, ARRAY_SIZE(watched));
	assert_int_equal(tail, head);
	/* what was lost may have been about anybody */
	assert_int_equal(watched[0].news, watched[1].news == SIDEBAND_ALL ? SIDEBAND_ALL : 0);
	assert_int_equal(watched[2].news, watched[0].news);
	return watched[1].news;
}

static void test_parse(void **state)
{
	(void)state;
	static _Alignas(8) uint8_t ring[SIZE];
	const unsigned all = SIDEBAND_ALL;

	assert_int_equal(parsed(ring, 0, 0), 0);
	/* about another, a name that is no exec, then around the ring's end */
	uint64_t at = put(ring, SIZE - 88, PERF_RECORD_MMAP2, 0, 40, 43);
	at = put(ring, at, PERF_RECORD_COMM, 0, 40, 42);
	assert_int_equal(parsed(ring, SIZE - 88, at), 0);
	uint64_t more = put(ring, at, PERF_RECORD_MMAP2, 0, 64, 42);
	assert_int_equal(parsed(ring, SIZE - 88, more), SIDEBAND_CODE);
	assert_int_equal(parsed(ring, at, more), SIDEBAND_CODE);
	put(ring, at, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 24, 42);
	assert_int_equal(parsed(ring, at, at + 24), SIDEBAND_EXEC);
	put(ring, at, PERF_RECORD_FORK, 0, 32, 42);
	assert_int_equal(parsed(ring, at, at + 32), SIDEBAND_THREADS);
	put(ring, at, PERF_RECORD_EXIT, 0, 32, 42);
	assert_int_equal(parsed(ring, at, at + 32), SIDEBAND_THREADS);
	put(ring, at, PERF_RECORD_LOST, 0, 24, 0);
	assert_int_equal(parsed(ring, at, at + 24), all);
	/* nonsense: no size, more than there is, less than a record */
	put(ring, at, PERF_RECORD_MMAP2, 0, 0, 43);
	assert_int_equal(parsed(ring, at, at + 64), all);
	put(ring, at, PERF_RECORD_MMAP2, 0, 200, 43);
	assert_int_equal(parsed(ring, at, at + 64), all);
	put(ring, at, PERF_RECORD_MMAP2, 0, 64, 43);
	assert_int_equal(parsed(ring, at, at + 8), all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
