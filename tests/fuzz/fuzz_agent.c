/*
 * What the agent's other half reads back: control page, slots, rings and rule table in memory that
 * anybody may have written to, both ways of reading them. This process is the target. Nothing but
 * the agent's memory may be written to; the rate chosen from its counters stays in its bounds.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "collect/control.h"
#include "collect/rate.h"
#include "probe/placed.h"
#include "target/impl.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_records.h"

#define RINGS 2u
#define BYTES 4096u
#define STRIDE (BYTES + 4096u)
#define NONCE 0x1234567890abcdefull
#define SLOTS 64u	/* the first ones are written to */

struct run {
	struct fuzz_in in;
	struct agent *a;
	struct target *t;
	uint8_t *state;
	struct control control;
	struct control_counts counts;
};

static void *map(size_t bytes)
{
	void *ret = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (ret == MAP_FAILED)
		exit(1);
	return ret;
}

static void on_event(void *ctx, const struct probe_event *e)
{
	volatile uint64_t sum = 0;

	(void)ctx;
	FUZZ_ASSERT(e->slot < WIRE_SLOTS);
	if (e->kind != WIRE_ALLOC)
		return;
	for (uint32_t i = 0; i < e->nframes; i++)
		sum += e->frames[i];
	if (e->flags & WIRE_F_WALKED)
		return;
	sum += e->regs->sp;
	for (uint32_t i = 0; i < e->stack_bytes; i++)
		sum += e->stack[i];
	(void)sum;
}

static uint32_t rule(void *ctx, uint64_t pc)
{
	(void)ctx;
	return pc & 1 ? 0 : wire_rule(WIRE_RULE_SP, (uint8_t)pc, (uint16_t)(pc >> 8));
}

static uint8_t *rings_of(const struct run *run)
{
	return run->a->shared ? run->a->shared : (uint8_t *)(uintptr_t)run->a->rings;
}

static void look_at_stats(struct run *run)
{
	struct probe *p = &run->a->probe;
	struct probe_stats st;

	p->ops->stats(p, run->t, &st);
	FUZZ_ASSERT(st.threads <= WIRE_SLOTS);
	/* as a session does; what doesn't come from the target's memory goes on evenly */
	run->counts.time += 0.3;
	run->counts.cpu += 0.2;
	run->counts.work += 0.01;
	run->counts.events += 1 + fuzz_take(&run->in, 3);
	run->counts.allocs += 1 + fuzz_take(&run->in, 2);
	run->counts.alloc_bytes += fuzz_take(&run->in, 5);
	run->counts.live_samples = fuzz_take(&run->in, 3);
	run->counts.cycles = st.cycles;
	control_measure(&run->control, &run->counts, 0.4, false);
	control_decide(&run->control, &run->counts, 0.4, st.rate, p, run->t);
	FUZZ_ASSERT(run->control.overhead >= 0 && run->control.overhead <= 1);
	FUZZ_ASSERT(run->control.rate <= RATE_MAX);
}

static void teach(struct run *run)
{
	uint64_t pcs[8];

	for (unsigned i = 0; i < ARRAY_SIZE(pcs); i++)
		pcs[i] = fuzz_number(&run->in);
	FUZZ_ASSERT(run->a->probe.ops->teach(&run->a->probe, pcs, ARRAY_SIZE(pcs), rule, NULL) <= ARRAY_SIZE(pcs));
	run->a->probe.ops->reteach(&run->a->probe, rule, NULL);
}

static void poke(uint8_t *at, struct fuzz_in *in)
{
	uint64_t word = fuzz_number(in);

	memcpy(at, &word, sizeof(word));
}

static void step(struct run *run)
{
	const struct probe_ops *ops = run->a->probe.ops;
	uint64_t op = fuzz_take(&run->in, 1);
	uint8_t *ring = rings_of(run) + (op >> 7) * STRIDE;

	switch (op & 7) {
	case 0:
	case 1:
	case 2:
		record_put(&run->in, ring + sizeof(struct wire_ring), BYTES, NONCE, (uint64_t *)ring, 1ull << 40);
		break;
	case 3:	/* head, tail or data */
		poke(ring + (fuzz_take(&run->in, 2) % (BYTES + 64) & ~7ull), &run->in);
		break;
	case 4:
		poke(run->state + (fuzz_take(&run->in, 1) % (sizeof(struct wire_ctl) / 8)) * 8, &run->in);
		poke(run->state + WIRE_STATE_SLOTS + fuzz_take(&run->in, 2) % (SLOTS * 16) * 8, &run->in);
		break;
	case 5:
		ops->drain(&run->a->probe, run->t, op & 64, on_event, NULL);
		break;
	case 6:
		look_at_stats(run);
		break;
	case 7:
		if (op & 8)
			teach(run);
		else if (op & 16)
			err_free(ops->renew(&run->a->probe, run->t));
		else
			err_free(ops->set_rate(&run->a->probe, run->t, fuzz_number(&run->in)));
		if (run->a->rules)
			poke((uint8_t *)run->a->rules + fuzz_take(&run->in, 2) * 8, &run->in);
		break;
	}
}

static void run_agent(const uint8_t *data, size_t len)
{
	const struct ring_reader_config config = { RINGS, BYTES, NONCE };
	size_t rings = RINGS * STRIDE, bytes = rings + WIRE_RULES_BYTES + sizeof(struct wire_births);
	struct agent *a = agent_of(probe_agent_create(&(struct probe_config){ .rate = 1 }));
	struct run run = { .in = { data, data + len }, .a = a, .t = target_new(getpid()) };
	bool shared = fuzz_take(&run.in, 1) & 1;

	run.state = map(WIRE_STATE_FILTER);
	a->state = (uint64_t)(uintptr_t)run.state;
	a->nrings = RINGS;
	a->ring_bytes = BYTES;
	a->ring_stride = STRIDE;
	a->nonce = NONCE;
	a->rings_bytes = bytes;
	a->reader = ring_reader_create(&config);
	uint8_t *memory = map(bytes);
	if (shared) {
		a->shared = memory;
		a->rules = (struct wire_rules *)(memory + rings);
		a->taught = xcalloc(WIRE_RULE_WORDS, sizeof(*a->taught));
	} else {
		a->rings = (uint64_t)(uintptr_t)memory;
		a->copy = xcalloc(1, BYTES);
	}
	control_init(&run.control, 0.01, 1, true);
	run.counts.time = 1;
	while (fuzz_more(&run.in))
		step(&run);
	a->probe.ops->drain(&a->probe, run.t, true, on_event, NULL);
	a->probe.ops->destroy(&a->probe);
	if (!shared)
		munmap(memory, bytes);
	munmap(run.state, WIRE_STATE_FILTER);
	target_delete(run.t);
}

const struct fuzz_target fuzz_agent = { "agent", 2048, run_agent };
