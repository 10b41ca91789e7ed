/*
 * What page faults sampled cost the program (RATE_FAULT_NS, RATE_FAULT_SAMPLE_NS): a child touches new pages as fast as
 * it can, where few of them are sampled and all are counted, and one in two milliseconds, where each is sampled;
 * by turns with and without. Medians; time of the touch alone.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "collect/rate.h"
#include "line.h"
#include "target/faults.h"
#include "target/faults_kernel.h"
#include "target/impl.h"

#define ROUNDS 9
#define PAGE 4096u
#define FAST 2048u		/* pages a round */
#define SLOW 40u

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(values[0]), by_value);
	return values[n / 2];
}

/* Nanoseconds a touch. */
static double touch(unsigned pages, bool slow)
{
	double took[FAST], began;
	volatile char *at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	madvise((void *)at, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < pages; i++) {
		if (slow)
			usleep(2000);
		began = now_ns();
		at[(size_t)i * PAGE] = 1;
		took[i] = now_ns() - began;
	}
	munmap((void *)at, (size_t)pages * PAGE);
	/* the mean of the middle: a fault that waits for zeroed pages or another processor is no measure */
	qsort(took, pages, sizeof(took[0]), by_value);
	double sum = 0;
	for (unsigned i = pages / 10; i < pages - pages / 10; i++)
		sum += took[i];
	return sum / (pages - pages / 10 * 2);
}

static void child(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		double ns = touch(c == 's' ? SLOW : FAST, c == 's');
		if (write(out, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static void count(void *ctx, const struct fault *fault)
{
	(void)fault;
	++*(size_t *)ctx;
}

int main(void)
{
	double ns[2][2][ROUNDS];	/* by slow, sampled */
	int to[2], from[2], missed = 0;
	size_t samples = 0;
	uint64_t faults = 0;

	if (pipe(to) || pipe(from))
		return 1;
	pid_t pid = fork();
	if (!pid) {
		close(to[1]);
		child(to[0], from[1]);
	}
	struct target t = { .pid = pid };
	struct faults_code *code = faults_code_create();

	faults_code_prepare(code);
	for (int i = 0; i < ROUNDS * 4; i++) {
		bool slow = i & 1, sampled = i & 2;
		struct faults *f = NULL;
		size_t got = 0;
		struct err *err = sampled ? faults_open(&t, code, &f) : NULL;
		if (err) {
			printf("faults | %s\n", err->text);
			kill(pid, SIGKILL);
			return 77;
		}
		if (write(to[1], slow ? "s" : "f", 1) != 1 ||
		    read(from[0], &ns[slow][sampled][i / 4], sizeof(double)) != sizeof(double))
			return 1;
		if (f) {
			faults_drain(f, count, &got);
			if (!slow) {
				samples += got;
				faults += faults_count(f, true).faults;
			}
		}
		faults_close(f);
	}
	close(to[1]);
	waitpid(pid, NULL, 0);
	double fast = median(ns[0][1], ROUNDS) - median(ns[0][0], ROUNDS);
	double slow = median(ns[1][1], ROUNDS) - median(ns[1][0], ROUNDS);
	/* the trimmed mean of the fast ones has few of those sampled in it: what is left is the counting */
	missed |= bench_line("fault-counted", "a page fault counted, not sampled", "<= 15%", fast <= 0.15 * median(ns[0][0], ROUNDS),
			     "%.0f ns more than %.0f, %zu of %llu sampled; taken for %.0f", fast, median(ns[0][0], ROUNDS),
			     samples, (unsigned long long)faults, RATE_FAULT_NS);
	missed |= bench_line("fault-sampled", "a page fault sampled, with 8 KiB of stack", "<= 50%", slow <= 0.5 * median(ns[1][0], ROUNDS),
			     "%.0f ns more than %.0f; taken for %.0f", slow, median(ns[1][0], ROUNDS),
			     RATE_FAULT_SAMPLE_NS + RATE_FAULT_NS);
	return missed;
}
