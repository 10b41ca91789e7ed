/*
 * The free filter: which blocks are live samples. Exact: no false and no missed ones; any number of threads
 * at once, one CAS each. Once there is no room for a tag anywhere, every free is recorded.
 */
#ifndef HEAPTOP_AGENT_FILTER_H
#define HEAPTOP_AGENT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct wire_ctl;

bool agent_filter_has(const struct wire_ctl *ctl, uint64_t addr);
/* Before the program sees the block. */
void agent_filter_insert(struct wire_ctl *ctl, uint64_t addr);
/* False: it wasn't there. */
bool agent_filter_remove(struct wire_ctl *ctl, uint64_t addr);

#endif
