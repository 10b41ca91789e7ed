/*
 * Which processes are watched: the ones to begin with, what becomes of their children, and the end of each.
 * All on the collector thread.
 *
 * A launched program's children are traced from their birth on (target_family). A forked one gets rings of
 * its own for the hooks it has inherited; one that vfork made runs in its parent's memory, and what it does counts
 * there; what is executed is hooked afresh, before its first instruction. A program without hooks runs on,
 * traced only for what it may execute.
 */
#ifndef HEAPTOP_COLLECT_FOLLOW_H
#define HEAPTOP_COLLECT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/collect.h"
#include "collect/session.h"

struct err;
struct follow;
struct modules;
struct pollfd;
struct processes;

/* Borrows both. */
struct follow *follow_create(const struct collect_config *config, struct modules *modules);
void follow_destroy(struct follow *f);	/* accepts NULL; on the thread of follow_open */

/* Launch or attach. *ret_refusals: as collector_refusals, malloc'ed, or NULL. */
struct err *follow_open(struct follow *f, char **ret_refusals, int *ret_exit);

/*
 * One step of all. ENDED: the launched program, or all attached to, have ended, and the others were let go.
 * BROKEN: the last one can't be watched any more, *ret_err says why.
 */
enum session_step follow_step(struct follow *f, struct err **ret_err);
struct processes *follow_processes(struct follow *f);
/* Of the launched program, -1 if not known. */
int follow_exit_code(const struct follow *f);
/* Something to tell about the end, malloc'ed, or NULL. */
char *follow_farewell(const struct follow *f);
/* Room for `before` entries and behind them one for each process whose end poll(2) tells. Valid until the next call. */
struct pollfd *follow_polls(struct follow *f, size_t before, size_t *ret_n);

/* All are let go without their hooks. *ret_message as session_detach. The error: the first one's. */
struct err *follow_detach(struct follow *f, char **ret_message);

void follow_pause(struct follow *f, bool paused);
/* session_hush in all processes. */
void follow_hush(struct follow *f);
void follow_set_rate(struct follow *f, uint64_t rate);	/* 0: auto */
void follow_want_faults(struct follow *f, bool want);
void follow_want_res(struct follow *f, bool want);
void follow_choose_threads(struct follow *f, const char *which);	/* copied; NULL: all */
struct err *follow_signal(struct follow *f, uint32_t id, int sig);	/* as collector_kill */

#endif
