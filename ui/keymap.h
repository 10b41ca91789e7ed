/*
 * A small hash map from 64-bit keys (site ids, cell keys) to 64-bit values: what the user opened,
 * where rows lay. Grows, bounded by `max` (beyond it everything is forgotten: it is only memory
 * of layout). One thread.
 */
#ifndef HEAPTOP_UI_KEYMAP_H
#define HEAPTOP_UI_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keymap {
	struct keymap_slot {
		uint64_t key, value;
		bool used;
	} *slots;
	size_t n, cap, max;	/* max 0: 1 << 18 */
};

void keymap_deinit(struct keymap *m);	/* zeroed is a valid empty map */
void keymap_clear(struct keymap *m);
void keymap_put(struct keymap *m, uint64_t key, uint64_t value);
bool keymap_get(const struct keymap *m, uint64_t key, uint64_t *ret);

/* Mix two keys into one. */
uint64_t keymap_mix(uint64_t a, uint64_t b);

#endif
