/*
 * Modules that come and go while the target runs. A new one is looked through for entry points once, by
 * its file; only if it has some the target is held, for as long as their jumps take. One that has
 * been unmapped is forgotten with its sites, and its memory, where something else may lie by now,
 * isn't touched; its thunks' places are used again.
 *
 * A thunk may be written over as soon as its module has gone: whoever was in it would go on
 * into unmapped code, which no program survives, with or without us.
 */
#include "probe/placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "target/target.h"

#define NONE ((size_t)-1)

void agent_free_text(struct text *x)
{
	elf_file_unref(x->file);
	free(x->ranges);
}

static void leave_place(struct agent *a, const struct site *s)
{
	for (size_t i = 0; s->thunk && i < a->nislands; i++) {
		struct island *is = &a->islands[i];
		if (s->thunk >= is->addr + is->first && s->thunk < is->addr + is->bytes)
			is->taken[(s->thunk - is->addr - is->first) / HOOK_THUNK_MAX] = false;
	}
}

/* Close the gaps in sites, hooks and texts: to_text and to_hook have the new index of each, or NONE. */
static void renumber(struct agent *a, const size_t *to_text, const size_t *to_hook)
{
	size_t out = 0;

	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];

		if (to_text[s->text] == NONE || to_hook[s->hook] == NONE || !a->probe.hooks[s->hook].hooked) {
			leave_place(a, s);
			continue;
		}
		a->sites[out] = *s;
		a->sites[out].text = to_text[s->text];
		a->sites[out++].hook = to_hook[s->hook];
	}
	a->nsites = out;
	out = 0;
	for (size_t i = 0; i < a->probe.nhooks; i++)
		if (to_hook[i] != NONE)
			a->probe.hooks[out++] = a->probe.hooks[i];
	a->probe.nhooks = out;
	out = 0;
	for (size_t i = 0; i < a->ntexts; i++) {
		if (to_text[i] == NONE)
			agent_free_text(&a->texts[i]);
		else
			a->texts[out++] = a->texts[i];
	}
	a->ntexts = out;
}

/* Keep the texts for which keep[] is true, and their hooks; and of sites those that are hooked. */
static void keep_texts(struct agent *a, const bool *keep)
{
	CLEANUP_FREE size_t *to_text = xcalloc(a->ntexts + 1, sizeof(*to_text));
	CLEANUP_FREE size_t *to_hook = xcalloc(a->probe.nhooks + 1, sizeof(*to_hook));
	size_t n = 0;

	for (size_t i = 0; i < a->ntexts; i++)
		to_text[i] = keep[i] ? n++ : NONE;
	n = 0;
	for (size_t i = 0; i < a->probe.nhooks; i++) {
		/* what the user named and no module has belongs to none */
		to_hook[i] = a->probe.hooks[i].module ? NONE : n++;
		for (size_t k = 0; k < a->ntexts && to_hook[i] == NONE; k++)
			if (keep[k] && a->texts[k].module == a->probe.hooks[i].module)
				to_hook[i] = n++;
	}
	renumber(a, to_text, to_hook);
}

void agent_tidy(struct agent *a)
{
	CLEANUP_FREE bool *keep = xcalloc(a->ntexts + 1, sizeof(*keep));

	for (size_t i = 0; i < a->ntexts; i++)
		for (size_t k = 0; k < a->probe.nhooks && !keep[i]; k++)
			keep[i] = a->probe.hooks[k].module == a->texts[i].module;
	keep_texts(a, keep);
}

/* A module that has gone may come back, under the same id: it is looked through again then. */
static void forget(struct agent *a, const bool *keep)
{
	for (size_t i = 0; i < a->ntexts; i++)
		if (!keep[i] && a->texts[i].module < a->nlooked)
			a->looked[a->texts[i].module] = false;
	keep_texts(a, keep);
}

void agent_forget_gone(struct agent *a, const struct modules *mods)
{
	CLEANUP_FREE bool *keep = xcalloc(a->ntexts + 1, sizeof(*keep));
	bool any = false;

	for (size_t i = 0; i < a->ntexts; i++) {
		const struct module *m = module_get(mods, a->texts[i].module);
		keep[i] = m && !m->gone;
		any |= !keep[i];
	}
	if (any)
		forget(a, keep);
}

static bool has_file_bytes(struct target *t, const struct site *s)
{
	uint8_t now[HOOK_PATCH];

	return target_read_some(t, s->plan.addr, now, sizeof(now)) == sizeof(now) &&
	       !memcmp(now, s->plan.code, sizeof(now));
}

/*
 * Unloaded and loaded again at the same place since the maps were last read: the file's bytes are back
 * where our jump was. Then they are at all of a module's, which lie together here: one is looked at.
 */
static void see_reloaded(struct agent *a, struct target *t)
{
	size_t text = NONE;
	bool reloaded = false;

	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];

		if (!s->patched)
			continue;
		if (s->text != text || reloaded)
			reloaded = has_file_bytes(t, s);
		text = s->text;
		s->patched = !reloaded;
	}
}

struct err *agent_update(struct probe *p, struct target *t, const struct modules *mods, bool *ret_wanted)
{
	struct agent *a = agent_of(p);

	*ret_wanted = false;
	if (!a->state || a->restored)
		return NULL;
	agent_forget_gone(a, mods);
	struct err *err = agent_find(a, t, mods);
	see_reloaded(a, t);
	for (size_t i = 0; i < a->nsites; i++)
		*ret_wanted |= !a->sites[i].patched;
	return err;
}

/* Since update() the target has run on: what is to be patched must still be that file's text. */
static void forget_moved(struct agent *a, struct target *t)
{
	CLEANUP_FREE bool *keep = xcalloc(a->ntexts + 1, sizeof(*keep));
	struct mapping m;

	for (size_t i = 0; i < a->ntexts; i++)
		keep[i] = true;
	for (size_t i = 0; i < a->nsites; i++) {
		const struct site *s = &a->sites[i];
		const struct text *x = &a->texts[s->text];

		if (!s->patched && keep[s->text])
			keep[s->text] = target_mapping_at(t, s->plan.addr, &m) && m.dev == x->dev &&
					m.inode == x->inode;
	}
	forget(a, keep);
}

struct err *agent_extend(struct probe *p, struct target *t)
{
	struct agent *a = agent_of(p);

	if (!a->state || a->restored)
		return NULL;
	/* our islands may be gone with the program that has been replaced by another */
	if (!agent_still_ours(a, t))
		return err_new(ERR_GONE, "the agent is no longer in process %d", (int)target_pid(t));
	forget_moved(a, t);
	struct err *err = agent_build_thunks(a, t, true);
	if (!err)
		err = agent_patch_text(a, t);
	return err;
}
