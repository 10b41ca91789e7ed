/*
 * A line of the table of `make bench` (bench.py has the convention), for benchmarks in C.
 */
#ifndef HEAPTOP_TESTS_BENCH_LINE_H
#define HEAPTOP_TESTS_BENCH_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* name, what was run, the target and whether it was met; then the figures, as for printf. With
 * HEAPTOP_QUICK nothing is judged. Returns what the exit code of main is to be or'ed with. */
static inline __attribute__((format(printf, 5, 6))) int bench_line(const char *name, const char *what,
								   const char *target, bool good,
								   const char *figures, ...)
{
	va_list args;

	if (getenv("HEAPTOP_QUICK") && *getenv("HEAPTOP_QUICK"))
		good = true;
	printf("%s | %s | ", name, what);
	va_start(args, figures);
	vprintf(figures, args);
	va_end(args);
	printf(" | %s | %s\n", target, good ? "ok" : "MISSED");
	fflush(stdout);
	return good ? 0 : 1;
}

#endif
