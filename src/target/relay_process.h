/*
 * What runs in the relay process: a loop that drains the master of the program's terminal into
 * a bounded ring and the ring into heaptop's socket, or into nowhere once heaptop has gone.
 * See relay.h for what it is for. Called by relay.c in the forked process, never elsewhere.
 */
#ifndef HEAPTOP_TARGET_RELAY_PROCESS_H
#define HEAPTOP_TARGET_RELAY_PROCESS_H

/*
 * Take over this (just forked, single-threaded) process: own session, no descriptor but the two,
 * no signal that ends a terminal program. Returns never; the process ends when the slave has no
 * user left and nothing can open it as its controlling terminal any more.
 */
_Noreturn void relay_process_run(int master, int sock);

#endif
