/*
 * Telling look-alikes apart: eliding arguments makes one text of several functions ("f<…>()"). The
 * first that is shown keeps the plain name, the others get "#2", "#3", … behind it, for good, so
 * that a number belongs to a function wherever its row goes. One thread.
 */
#ifndef HEAPTOP_UI_ALIKE_H
#define HEAPTOP_UI_ALIKE_H

#include <stddef.h>
#include <stdint.h>

#include "ui/keymap.h"

struct alike {
	struct keymap numbers;	/* text and id -> its number; text alone -> the last one given */
};

#define ALIKE_MARK 24

void alike_deinit(struct alike *a);	/* zeroed is a valid empty one */
/* "" or "#2", "#3", …, in buf: to be put behind `name`, which is shown for what has this id. */
const char *alike_mark(struct alike *a, const char *name, uint64_t id, char buf[ALIKE_MARK]);

#endif
