/* Return address to (module, vaddr); see frames.h. */
#include "collect/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "heap/tree.h"

#define FRAMES_CACHE 16384u	/* entries, a power of two */

struct frames {
	const struct modules *mods;
	struct {
		uint64_t pc;
		uint64_t addr;
	} cache[FRAMES_CACHE];
};

struct frames *frames_create(const struct modules *mods)
{
	struct frames *frames = xcalloc(1, sizeof(*frames));

	frames->mods = mods;
	return frames;
}

void frames_destroy(struct frames *frames)
{
	free(frames);
}

void frames_flush(struct frames *frames)
{
	memset(frames->cache, 0, sizeof(frames->cache));
}

uint64_t frames_addr(struct frames *frames, uint64_t pc)
{
	uint64_t k = (pc ^ pc >> 14) % FRAMES_CACHE;

	if (frames->cache[k].pc == pc && pc)
		return frames->cache[k].addr;
	/* a call may be the last instruction of a mapping: the call, not what follows, counts */
	const struct module *mod = modules_find(frames->mods, pc - 1);
	uint64_t addr = mod ? frame_addr(mod->id, pc - mod->bias) : frame_addr(0, pc);
	frames->cache[k].pc = pc;
	frames->cache[k].addr = addr;
	return addr;
}
