/*
 * For tests of the relay: runs "heaptop's side" as the command of a terminal of its own (pty.h),
 * where it makes the relay and starts a little program on the descriptors it gives, as
 * target_launch would. The side reports by its exit code: 0, or one made of the line of the check
 * that failed, which it prints.
 */
#ifndef HEAPTOP_TESTS_LIB_SIDE_H
#define HEAPTOP_TESTS_LIB_SIDE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct relay;

#define LIMIT_MS 20000

/* In the side and in the program, where cmocka's assertions don't reach. */
#define CHECK(what)							\
	do {								\
		if (!(what)) {						\
			printf("line %d: %s\r\n", __LINE__, #what);	\
			return __LINE__ % 200 + 20;			\
		}							\
	} while (0)

/* Shared by all processes of a test. */
struct shared {
	volatile int ready;
	volatile int done;
	volatile long count;
	volatile pid_t program;
	volatile pid_t side;
	char path[128];
};
extern struct shared *shared;

/* Before anything else; false: no memory. */
bool side_init(void);

void sleep_ms(long ms);
/* Wait until another process has set it. */
bool reached(volatile int *flag);

/* Run on a terminal, or on these files where they aren't NULL; fails the test with what was printed. */
void run_side_with(int (*side)(void *), const char *const file[3]);
void run_side(int (*side)(void *));

/* ---- on heaptop's side ---- */
pid_t start_program(const int fd[3], bool new_session, int (*program)(void));
/* RELAY_PANE, 24 x 80; the program is shared->program. */
struct relay *launch_pane(int (*program)(void));
/* Everything until the terminal is closed or the text ends with `until`. Static. */
char *read_all(struct relay *relay, const char *until);
/* The shell's code of a child, once it has ended. */
int exit_code(pid_t pid);

#endif
