/*
 * From return addresses to frame_addr() values: which module, which vaddr. Modules are those of the
 * table that all processes share, so that a place has the same value in each of them. A direct-mapped
 * cache in front of the modules' look-up, since the same addresses come again and again.
 * Collector thread.
 */
#ifndef HEAPTOP_COLLECT_FRAMES_H
#define HEAPTOP_COLLECT_FRAMES_H

#include <stdint.h>

struct frames;
struct modules;

/* mods: the process's; shared: the ids of the values come from there, files are added as they come up. */
struct frames *frames_create(const struct modules *mods, struct modules *shared);
void frames_destroy(struct frames *frames);
/* The process's modules have changed: new ones are added to the shared table at once, in their order. */
void frames_flush(struct frames *frames);
/* frame_addr() of a return address; module 0 if no module holds it. */
uint64_t frames_addr(struct frames *frames, uint64_t pc);

#endif
