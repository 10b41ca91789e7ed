/*
 * From a module's CFI to a rule: asks libdw for the row of one address and writes it down as a
 * tiny rule if it is one. Takes the file's lock; any thread.
 */
#ifndef HEAPTOP_UNWIND_DERIVE_H
#define HEAPTOP_UNWIND_DERIVE_H

#include <stdint.h>

struct module;
struct rule;

/* Fill kind, base, offset, mask, saved and signal of *r for the code at `pc` in `mod`. */
void derive_rule(const struct module *mod, uint64_t pc, struct rule *r);

#endif
