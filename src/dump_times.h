/* What --dump asks for: when the file of -o is written. Pure. */
#ifndef HEAPTOP_DUMP_TIMES_H
#define HEAPTOP_DUMP_TIMES_H

#include <stdbool.h>

struct err;

struct dump_times {
	bool exit, peak, on_signal;
	double every;		/* seconds, 0: not */
};

/* "peak", "exit", "every=10s", "signal", with commas between; ERR_BAD_INPUT says what is wrong. */
struct err *dump_parse(const char *list, struct dump_times *ret);
/* Is anything but the end waited for? Then -p -o alone doesn't mean one snapshot now. */
bool dump_goes_on(const struct dump_times *times);

#endif
