/*
 * --doctor: what works here and what doesn't, and what to do about it, line by line on standard output.
 * Looks, and tries things on a child of its own; a process it is asked about isn't stopped or changed.
 * Main thread, before anything else is started.
 */
#ifndef HEAPTOP_DOCTOR_H
#define HEAPTOP_DOCTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct cli;
struct machine_facts;

/* Exit code: 0 if heaptop can watch what it is asked about (or just anything), else 1. */
int doctor_run(const struct cli *cli);

/* ---- doctor.c and doctor_target.c between themselves ---- */

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_LIMITED,		/* works, but not all of it, or not as well */
	DOCTOR_NO,		/* heaptop can't work because of this */
	DOCTOR_LEVELS,
};

struct doctor {
	unsigned said[DOCTOR_LEVELS];
};

/*
 * "ok       ptrace        text": foreign text in it is sanitised. `remedy` follows behind a colon, unless
 * it is NULL.
 */
void doctor_say(struct doctor *d, enum doctor_level level, const char *topic, const char *remedy,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The two kinds of things to look at. */
void doctor_process(struct doctor *d, pid_t pid, const struct machine_facts *machine);
void doctor_program(struct doctor *d, const char *name);

#endif
