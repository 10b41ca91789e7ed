/*
 * Calls that change mappings: what of them is told. Anonymous ones are counted, each of them whatever the
 * rate, if the program has called: not an allocator that is hooked (it is inside of a hook then), nor the
 * C library, whose own calls come from the module that defines the function.
 *
 * An unmapping is told before it happens, as any free, and taken back if it fails. The break moves by
 * sbrk, or by brk, which doesn't say where it was: the kernel is asked.
 */
#ifndef HEAPTOP_AGENT_RANGES_H
#define HEAPTOP_AGENT_RANGES_H

#include <stdbool.h>

struct agent_frame;
struct wire_ctl;

/* Called with f->slot set. True: agent_range_after is to be called with the result. */
bool agent_range_before(struct wire_ctl *ctl, struct agent_frame *f);
void agent_range_after(struct wire_ctl *ctl, struct agent_frame *f);

#endif
