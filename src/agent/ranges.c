/* Mappings that come and go; see ranges.h. */
#include "agent/ranges.h"

#include "agent/agent.h"
#include "agent/cpu-x86_64.h"
#include "agent/inside.h"
#include "agent/record.h"

/* Linux, asm-generic: as the target passes them. */
#define MAP_FIXED 0x10u
#define MAP_ANONYMOUS 0x20u
#define MAP_HUGETLB 0x40000u
#define MAP_HUGE_SHIFT 26
#define MAP_HUGE_MASK 63u
#define HUGE_DEFAULT 21		/* 2 MiB */
#define MREMAP_DONTUNMAP 4u
#define FAILED(result) ((result) > ~4095ull)	/* (void *)-1 */

static uint64_t whole(uint64_t bytes, unsigned shift)
{
	uint64_t mask = (1ull << shift) - 1;

	return (bytes + mask) & ~mask;
}

static uint64_t pages(uint64_t bytes)
{
	return whole(bytes, 12);
}

static uint64_t mapped_bytes(const struct agent_frame *f)
{
	unsigned flags = (unsigned)f->arg[3], shift = flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;

	return flags & MAP_HUGETLB ? whole(f->arg[1], shift ? shift : HUGE_DEFAULT) : pages(f->arg[1]);
}

static bool by_own_module(const struct agent_frame *f)
{
	const struct wire_hook *h = f->hook;

	return f->ip - (h->at - h->args.bytes) < (uint64_t)h->args.bytes + h->above;
}

static void unmap(struct wire_ctl *ctl, struct agent_frame *f, uint64_t addr, uint64_t bytes)
{
	if (!(addr & (CPU_PAGE - 1)) && bytes && agent_record_unmap(ctl, f->slot, addr, bytes))
		f->flags |= AGENT_FREED;
}

/* 0: not to be had. A libc that has not been asked for memory yet may not know either. */
static uint64_t current_break(const struct wire_ctl *ctl)
{
	const uint64_t *at = (const uint64_t *)LOAD(ctl->break_at);
	uint64_t now = at ? LOAD(*at) : 0;

	return now || !LOAD(ctl->may_syscall) ? now : (uint64_t)cpu_syscall(CPU_NR_BRK, 0, 0, 0, 0, 0, 0);
}

bool agent_range_before(struct wire_ctl *ctl, struct agent_frame *f)
{
	if (by_own_module(f))
		return false;
	if (!LOAD(ctl->active)) {
		count_missed(ctl, f->slot, MISSED_GAP);
		return false;
	}
	f->rate = 1;
	f->flags = AGENT_RANGE;
	f->size = 0;
	switch (f->hook->args.range) {
	case WIRE_RANGE_MUNMAP:
		unmap(ctl, f, f->arg[0], pages(f->arg[1]));
		break;
	case WIRE_RANGE_MREMAP:
		if (!(f->arg[3] & MREMAP_DONTUNMAP))
			unmap(ctl, f, f->arg[0], pages(f->arg[1]));
		break;
	case WIRE_RANGE_BRK:
		f->size = current_break(ctl);
		break;
	case WIRE_RANGE_SBRK:
		if (!f->arg[0])
			return false;
		break;
	default:
		break;
	}
	return true;
}

static void map(struct wire_ctl *ctl, struct agent_frame *f, uint64_t addr, uint64_t bytes)
{
	f->size = bytes;
	if (LOAD(ctl->active))
		agent_record_alloc(ctl, f, addr);
	else
		count_missed(ctl, f->slot, MISSED_GAP);
}

/* The break has moved. */
static void moved_break(struct wire_ctl *ctl, struct agent_frame *f, uint64_t from, uint64_t to)
{
	if (to > from)
		map(ctl, f, from, to - from);
	else if (to < from)
		agent_record_unmap(ctl, f->slot, to, from - to);
}

void agent_range_after(struct wire_ctl *ctl, struct agent_frame *f)
{
	bool failed = FAILED(f->result);

	switch (f->hook->args.range) {
	case WIRE_RANGE_MMAP:
		if (failed)
			break;
		if (f->arg[3] & MAP_ANONYMOUS)
			map(ctl, f, f->result, mapped_bytes(f));
		else if (f->arg[3] & MAP_FIXED)
			agent_record_unmap(ctl, f->slot, f->result, pages(f->arg[1]));
		break;
	case WIRE_RANGE_MUNMAP:
		if ((uint32_t)f->result && f->flags & AGENT_FREED)
			agent_record_free(ctl, f->slot, f->arg[0], WIRE_UNFREE, WIRE_F_RANGE);
		break;
	case WIRE_RANGE_MREMAP:
		if (failed) {
			if (f->flags & AGENT_FREED)
				agent_record_free(ctl, f->slot, f->arg[0], WIRE_UNFREE, WIRE_F_RANGE);
			break;
		}
		if (!(f->arg[3] & MREMAP_DONTUNMAP))
			f->flags |= AGENT_MOVED;
		map(ctl, f, f->result, pages(f->arg[2]));
		break;
	case WIRE_RANGE_BRK:
		if (!(uint32_t)f->result && f->size)
			moved_break(ctl, f, f->size, f->arg[0]);
		break;
	case WIRE_RANGE_SBRK:
		if (!failed)
			moved_break(ctl, f, f->result, f->result + f->arg[0]);
		break;
	default:
		break;
	}
}
