/*
 * From return addresses to frame_addr() values: which module, which vaddr. A direct-mapped
 * cache in front of the modules' look-up, since the same addresses come again and again.
 * Collector thread.
 */
#ifndef HEAPTOP_COLLECT_FRAMES_H
#define HEAPTOP_COLLECT_FRAMES_H

#include <stdint.h>

struct frames;
struct modules;

struct frames *frames_create(const struct modules *mods);
void frames_destroy(struct frames *frames);
/* The modules' ranges have changed. */
void frames_flush(struct frames *frames);
/* frame_addr() of a return address; module 0 if no module holds it. */
uint64_t frames_addr(struct frames *frames, uint64_t pc);

#endif
