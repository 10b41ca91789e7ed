/* Return address to (module, vaddr); see frames.h. */
#include "collect/frames.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "heap/tree.h"

#define FRAMES_CACHE 16384u	/* entries, a power of two */

struct frames {
	const struct modules *mods;
	struct modules *shared;
	uint32_t *ids;		/* in shared, by the process's own minus 1 */
	size_t nids, ids_cap;
	bool used;		/* something is in the cache */
	struct {
		uint64_t pc;
		uint64_t addr;
	} cache[FRAMES_CACHE];
};

struct frames *frames_create(const struct modules *mods, struct modules *shared)
{
	struct frames *frames = xcalloc(1, sizeof(*frames));

	frames->mods = mods;
	frames->shared = shared;
	return frames;
}

void frames_destroy(struct frames *frames)
{
	if (frames)
		free(frames->ids);
	free(frames);
}

static void adopt(struct frames *frames)
{
	size_t n = modules_count(frames->mods);

	while (frames->nids < n) {
		VEC_GROW(frames->ids, frames->nids, frames->ids_cap);
		frames->ids[frames->nids] = modules_adopt(frames->shared,
							  module_get(frames->mods, (uint32_t)frames->nids + 1));
		frames->nids++;
	}
}

void frames_flush(struct frames *frames)
{
	if (frames->used)
		memset(frames->cache, 0, sizeof(frames->cache));
	frames->used = false;
	adopt(frames);
}

uint64_t frames_addr(struct frames *frames, uint64_t pc)
{
	uint64_t k = (pc ^ pc >> 14) % FRAMES_CACHE;

	if (frames->cache[k].pc == pc && pc)
		return frames->cache[k].addr;
	/* a call may be the last instruction of a mapping: the call, not what follows, counts */
	const struct module *mod = modules_find(frames->mods, pc - 1);
	if (mod && mod->id > frames->nids)
		adopt(frames);
	uint32_t id = mod ? frames->ids[mod->id - 1] : 0;
	uint64_t addr = id ? frame_addr(id, pc - mod->bias) : frame_addr(0, pc);
	frames->used = true;
	frames->cache[k].pc = pc;
	frames->cache[k].addr = addr;
	return addr;
}
