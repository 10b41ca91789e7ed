/*
 * The agent in a process just forked. It has the parent's patched text, thunks and code; what is wiped by
 * MADV_WIPEONFORK passes everything on. What it must not have is the parent's rings, whose memory both share:
 * they get others in their place, at the same address, so that nothing else has to change. Then the control
 * block is filled in, as when an agent is placed, and the child records for itself.
 *
 * A few remote calls instead of some thirty, and no symbol is looked up. At each instant heaptop may die: the
 * control block comes last, and until then nobody writes to a ring; but for the end of one event,
 * if the fork was made by a signal handler that had interrupted it. Another nonce keeps that from counting.
 */
#include "probe/probe.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "elf/file.h"
#include "probe/entries.h"
#include "probe/named.h"
#include "probe/placed.h"
#include "target/target.h"

/* Ours of what the parent's heaptop side knows of hooks, texts and islands. */
static struct agent *copy_agent(const struct agent *of, const struct probe_config *config)
{
	struct agent *a = agent_of(probe_agent_create(config));

	for (size_t i = 0; i < of->probe.nhooks; i++) {
		VEC_GROW(a->probe.hooks, a->probe.nhooks, a->hooks_cap);
		a->probe.hooks[a->probe.nhooks++] = of->probe.hooks[i];
	}
	for (size_t i = 0; i < of->nsites; i++) {
		VEC_GROW(a->sites, a->nsites, a->sites_cap);
		struct site *s = &a->sites[a->nsites++];
		*s = of->sites[i];
		if (!s->named)
			s->entry = entries_find(a->entries, s->entry->name);
	}
	for (size_t i = 0; i < of->ntexts; i++) {
		const struct text *x = &of->texts[i];
		VEC_GROW(a->texts, a->ntexts, a->texts_cap);
		struct text *copy = &a->texts[a->ntexts++];
		*copy = *x;
		copy->file = elf_file_ref(x->file);
		copy->ranges = NULL;
		copy->nranges = copy->ranges_cap = 0;
		for (size_t k = 0; k < x->nranges; k++) {
			VEC_GROW(copy->ranges, copy->nranges, copy->ranges_cap);
			copy->ranges[copy->nranges++] = x->ranges[k];
		}
	}
	for (size_t i = 0; i < of->nislands; i++) {
		VEC_GROW(a->islands, a->nislands, a->islands_cap);
		struct island *is = &a->islands[a->nislands++];
		*is = of->islands[i];
		is->taken = xcalloc(is->nplaces, sizeof(*is->taken));
		memcpy(is->taken, of->islands[i].taken, is->nplaces * sizeof(*is->taken));
	}
	a->looked = xcalloc(of->nlooked + 1, sizeof(*a->looked));
	if (of->nlooked)
		memcpy(a->looked, of->looked, of->nlooked * sizeof(*a->looked));
	a->nlooked = of->nlooked;
	if (of->named_found) {
		size_t n = config->named->n;
		a->named_found = xcalloc(n + 1, sizeof(*a->named_found));
		memcpy(a->named_found, of->named_found, n * sizeof(*a->named_found));
	}
	a->state = of->state;
	a->rings = of->rings;
	a->break_at = of->break_at;
	/* what its island says of them */
	a->nrings = of->nrings;
	a->ring_bytes = of->ring_bytes;
	a->ring_stride = of->ring_stride;
	return a;
}

/* A process that has its parent's memory sees the control block; in a copy of the memory it is wiped. */
static bool is_wiped(const struct agent *a, struct target *t)
{
	uint64_t magic = 0;

	return target_read_some(t, a->state, &magic, sizeof(magic)) == sizeof(magic) && magic != WIRE_CTL_MAGIC;
}

static struct err *write_nonce(struct agent *a, struct target *t)
{
	if (getrandom(&a->nonce, sizeof(a->nonce), 0) != sizeof(a->nonce))
		a->nonce = ticks_now() * 0x9e3779b97f4a7c15ull;
	struct err *err = NULL;
	for (size_t i = 0; i < a->nislands && !err; i++)
		err = target_write_text(t, a->islands[i].addr + offsetof(struct wire_island, nonce), &a->nonce,
					sizeof(a->nonce));
	return err;
}

/*
 * Rings in private memory where the parent's are shared, after memfd_create was refused: the parent's island
 * says where rules lie, which is in memory that isn't there now.
 */
static struct err *write_rules_address(struct agent *a, struct target *t)
{
	static const uint64_t none = 0;
	struct err *err = NULL;

	for (size_t i = 0; i < a->nislands && !err && !a->rules; i++)
		err = target_write_text(t, a->islands[i].addr + offsetof(struct wire_island, rules), &none,
					sizeof(none));
	return err;
}

struct err *probe_agent_inherit(const struct probe *of, struct target *t, const struct probe_config *config,
				struct probe **ret)
{
	const struct agent *parent = (const struct agent *)of;

	*ret = NULL;
	if (!parent->state || !parent->nislands || !is_wiped(parent, t))
		return NULL;
	struct agent *a = copy_agent(parent, config);
	struct err *err = write_nonce(a, t);
	if (!err)
		err = agent_map_rings(a, t);
	if (!err)
		err = write_rules_address(a, t);
	if (!err)
		err = agent_write_control(a, t);
	if (err) {
		a->probe.ops->destroy(&a->probe);
		return err_prefix(err, "the agent of a forked child");
	}
	const struct ring_reader_config reader = { a->nrings, a->ring_bytes, a->nonce };
	a->reader = ring_reader_create(&reader);
	a->probe.outlives = a->shared;
	*ret = &a->probe;
	return NULL;
}
