/*
 * Where in a function a uprobe is cheapest. Bytes in, an offset out; the code is untrusted. Implemented per CPU.
 *
 * The kernel emulates some instructions at a probe (about 1,000 ns a hit) and runs others out of line with a single
 * step (13,000 ns on a virtual machine), so the probe goes to the first emulated one that each call passes
 * exactly once with stack pointer and arguments as at the entry.
 */
#ifndef HEAPTOP_PROBE_UPROBE_PLACE_H
#define HEAPTOP_PROBE_UPROBE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_args;

/*
 * Bytes from the entry of a function with these arguments, of which `code` holds the first `len`, all of its `size` bytes if
 * that is known and len allows. 0 where there is no better place. *ret_stepped: the kernel will single-step there.
 */
size_t uprobe_place(const uint8_t *code, size_t len, const struct wire_args *args, bool *ret_stepped);

#endif
