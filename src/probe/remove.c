/*
 * Taking our agent out. First the text, so that nobody comes in any more; then the memory, once
 * each thread has been seen outside once. And the comparison with the files afterwards.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "probe/inside.h"
#include "probe/placed.h"
#include "target/target.h"

#define CHUNK (1u << 20)
#define OUT_FIRST 50e-6		/* seconds that threads inside run alone at first, 1.5 times as long each time, */
#define OUT_ALL 5e-3		/* as long as that isn't more */

static bool seen_outside(const struct agent *a, pid_t tid)
{
	for (size_t i = 0; i < a->noutside; i++)
		if (a->outside[i] == tid)
			return true;
	return false;
}

/*
 * Threads never come back in: who was outside once, after the text was restored, stays there. The others' ids, which the
 * caller frees, and their number.
 */
static size_t find_inside(struct agent *a, struct target *t, pid_t **ret)
{
	CLEANUP_FREE struct code_range *ranges = xcalloc(a->nislands + 1, sizeof(*ranges));
	size_t n, ninside = 0;
	const struct target_thread *threads = target_threads(t, &n);
	pid_t *inside = xcalloc(n + 1, sizeof(*inside));

	for (size_t i = 0; i < a->nislands; i++)
		ranges[i] = (struct code_range){ a->islands[i].addr, a->islands[i].addr + a->islands[i].bytes };
	for (size_t i = 0; i < n; i++) {
		if (seen_outside(a, threads[i].tid))
			continue;
		if (inside_ranges(t, &threads[i], a->state, ranges, a->nislands)) {
			inside[ninside++] = threads[i].tid;
			continue;
		}
		VEC_GROW(a->outside, a->noutside, a->outside_cap);
		a->outside[a->noutside++] = threads[i].tid;
	}
	*ret = inside;
	return ninside;
}

/*
 * Who is inside is given the processors alone for some moments: beside a crowd of busy threads each would wait long for
 * its turn, and few instructions are all it takes. One that waits for what a thread outside holds needs all to run.
 * *ret_inside: again later; the target may run then.
 */
static struct err *get_out(struct agent *a, struct target *t, bool *ret_inside)
{
	double moment = OUT_FIRST, all = 0;

	for (;;) {
		CLEANUP_FREE pid_t *inside = NULL;
		size_t n = find_inside(a, t, &inside);

		*ret_inside = n != 0;
		if (!n || all > OUT_ALL)
			return NULL;
		struct err *err = target_let_run(t, inside, n, moment);
		if (err && err->code == ERR_BUSY) {	/* one has begun to wait in the kernel, and all run: later again */
			err_free(err);
			return NULL;
		}
		if (err)
			return err;
		all += moment;
		moment *= 1.5;
	}
}

bool agent_still_ours(struct agent *a, struct target *t)
{
	struct wire_island head;

	if (!a->nislands)
		return true;
	return target_read_some(t, a->islands[0].addr, &head, sizeof(head)) == sizeof(head) &&
	       head.magic == WIRE_ISLAND_MAGIC && head.nonce == a->nonce && head.ctl == a->state;
}

struct err *agent_remove(struct probe *p, struct target *t, bool *ret_again)
{
	struct agent *a = agent_of(p);
	static const uint32_t zero = 0;
	struct err *err;

	*ret_again = false;
	if (!a->state)
		return NULL;
	if (!agent_still_ours(a, t)) {
		log_line("the agent is no longer there: another heaptop has taken it out");
		a->others = true;
		return agent_unmap(a, t);
	}
	if (!a->restored) {
		err = agent_restore_text(a, t);
		if (err)
			return err;
		a->restored = true;
		a->active = false;
		err = target_write(t, a->state + offsetof(struct wire_ctl, active), &zero, sizeof(zero));
		if (err)
			return err;
	}
	err = get_out(a, t, ret_again);
	if (err || *ret_again)
		return err;
	struct probe_stats st;
	a->probe.ops->stats(p, t, &st);		/* their last values */
	err = agent_unmap(a, t);
	if (err && err->code == ERR_DENIED) {
		log_line("%s", err->text);
		err_free(err);
		err = NULL;
		p->stays = "it has come under a seccomp filter, which might punish unmapping";
	}
	return err;
}

/* ---- verify ---- */

static struct err *compare(struct target *t, const struct text *x, const struct text_range *r)
{
	CLEANUP_FREE uint8_t *file = xmalloc(CHUNK), *now = xmalloc(CHUNK);

	for (uint64_t at = r->start; at < r->end; at += CHUNK) {
		size_t want = r->end - at < CHUNK ? (size_t)(r->end - at) : CHUNK;
		size_t len = elf_file_read(x->file, at - x->bias, file, want);
		size_t got = target_read_some(t, at, now, len);

		if (got == len && !memcmp(file, now, len))
			continue;
		if (!got) {
			struct err *err = target_read(t, at, now, 1);
			if (err && err->code == ERR_GONE)
				return err;
			err_free(err);
			return NULL;	/* unmapped since */
		}
		for (size_t i = 0; i < got; i++)
			if (file[i] != now[i])
				return err_new(ERR_OTHER, "heaptop's hooks are out, but code at %#lx differs from %s: "
					       "something else changes it, too", (unsigned long)(at + i),
					       elf_file_path(x->file));
	}
	return NULL;
}

struct err *agent_verify(struct probe *p, struct target *t)
{
	struct agent *a = agent_of(p);

	for (size_t i = 0; i < a->ntexts; i++) {
		bool hooked = false;

		for (size_t k = 0; k < a->nsites && !hooked; k++)
			hooked = a->sites[k].text == i;
		for (size_t k = 0; hooked && k < a->texts[i].nranges; k++) {
			struct err *err = compare(t, &a->texts[i], &a->texts[i].ranges[k]);
			if (err)
				return err;
		}
	}
	return NULL;
}
