/*
 * Recording the stream of allocation stacks to a file, for tests/bench/bench_tree: the 8 bytes
 * "HTSTACK1", then for each allocation u16 n and n times u64, the frames' addresses (frame_addr),
 * innermost first, little endian. Collector thread.
 */
#ifndef HEAPTOP_COLLECT_RECORD_H
#define HEAPTOP_COLLECT_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct recorder;

/* A new file; an existing one is never written over. */
struct err *recorder_create(const char *path, struct recorder **ret);
/* What can't be written is logged once, then recording stops. Accepts NULL. */
void recorder_stack(struct recorder *r, const uint64_t *addrs, size_t n);
void recorder_destroy(struct recorder *r);	/* accepts NULL */

#endif
