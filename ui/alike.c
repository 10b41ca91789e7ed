/* See alike.h. */
#include "ui/alike.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void alike_deinit(struct alike *a)
{
	keymap_deinit(&a->numbers);
}

/* FNV-1a */
static uint64_t hash(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

const char *alike_mark(struct alike *a, const char *name, uint64_t id, char buf[ALIKE_MARK])
{
	uint64_t text = hash(name), one = keymap_mix(text, id), number, last;

	if (!keymap_get(&a->numbers, one, &number)) {
		number = keymap_get(&a->numbers, text, &last) ? last + 1 : 1;
		keymap_put(&a->numbers, one, number);
		keymap_put(&a->numbers, text, number);
	}
	if (number < 2)
		return "";
	snprintf(buf, ALIKE_MARK, "#%" PRIu64, number);
	return buf;
}
