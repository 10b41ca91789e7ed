/*
 * SIGINT, SIGTERM and SIGHUP tell heaptop to end. They are blocked from the first moment of main() on, so that at no instant
 * their default action ends it half-way; the front ends take them from a descriptor, or let them through while the
 * screen has its handlers. Until one of those runs they wait, and work that takes long before that can be broken off.
 */
#ifndef HEAPTOP_BASE_ENDING_H
#define HEAPTOP_BASE_ENDING_H

#include <signal.h>
#include <stdbool.h>

/*
 * Block these three, SIGUSR1 (a snapshot) and SIGCHLD (stops of a launched program) in the calling thread and in those that it
 * starts. *ret_before: the mask before, for what doesn't watch anything.
 */
void ending_block(sigset_t *ret_before);
/* The three alone: empty `set` but for them. */
void ending_signals(sigset_t *set);
/* The one of them that waits to be taken, 0: none. In a thread that has them blocked. */
int ending_pending(void);

/*
 * Work that takes long is no longer wanted, in no thread, and heaptop ends: for good. Loops over symbols, modules and text
 * look now and then, and stop with what they have; whoever uses that looks, too. Any thread.
 */
void ending_break_off(void);
bool ending_broken_off(void);

#endif
