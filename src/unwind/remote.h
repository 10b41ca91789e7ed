/*
 * libunwind for the frames that no tiny rule describes: one step over the copied stack and the
 * ELF files' images. Owned by the unwinder, used by its thread.
 */
#ifndef HEAPTOP_UNWIND_REMOTE_H
#define HEAPTOP_UNWIND_REMOTE_H

#include <stdbool.h>

#include "unwind/regs.h"

struct modules;
struct remote;
struct stack_copy;

/* NULL if libunwind can't be set up; every call below accepts that and fails. */
struct remote *remote_create(const struct modules *mods);
void remote_destroy(struct remote *r);

/* Mappings have changed: forget what libunwind knows. */
void remote_flush(struct remote *r);

/*
 * Replace *f by its caller. `exact` of the result is not touched. Registers that libunwind can't
 * recover keep their value. False: no unwind information, or it led outside of the copy.
 */
bool remote_step(struct remote *r, struct regs_frame *f, const struct stack_copy *stack);

#endif
