/*
 * What to hook: every definition of an allocator's entry point in every module, as far as its
 * first instructions can be displaced. Runs while the target does; reads files, and the target's
 * memory only to see that it agrees with them.
 */
#include "probe/placed.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "probe/entries.h"
#include "probe/named.h"
#include "target/target.h"

#define BODY_MAX (1u << 20)	/* bytes of a function that are looked at */
#define CHUNK (1u << 20)	/* of text scanned at a time */
#define FUNCTIONS_MAX 512	/* of a module that bear a name of the table */
#define NAMED_FUNCTIONS_MAX 16	/* that bear a name of the user's */

static struct probe_hook *add_hook(struct agent *a, uint32_t module, uint64_t addr, const char *name)
{
	VEC_GROW(a->probe.hooks, a->probe.nhooks, a->hooks_cap);
	struct probe_hook *h = &a->probe.hooks[a->probe.nhooks++];

	memset(h, 0, sizeof(*h));
	h->module = module;
	h->addr = addr;
	snprintf(h->name, sizeof(h->name), "%s", name);
	return h;
}

static void refuse(struct agent *a, struct site *s, const char *why)
{
	struct probe_hook *h = &a->probe.hooks[s->hook];

	s->hookable = false;
	snprintf(h->reason, sizeof(h->reason), "%s", why);
}

/* NULL: the target's memory at the entry is what the file says. */
static const char *differs(struct target *t, uint64_t addr, const uint8_t *code, size_t len)
{
	uint8_t now[HOOK_WINDOW];
	uint64_t to;

	struct err *err = target_read(t, addr, now, len);
	if (err) {
		err_free(err);
		return "its code can't be read";
	}
	if (!memcmp(now, code, len))
		return NULL;
	if (hook_is_jump(now, addr, &to)) {
		/* A killed heaptop's; it is taken out before we place ours. */
		if (agent_is_island(t, to) && !memcmp(now + HOOK_PATCH, code + HOOK_PATCH, len - HOOK_PATCH))
			return NULL;
		return "somebody else has hooked it";
	}
	return "its code is not what the file says";
}

/* ---- one function ---- */

/* Plan its hook, or note why there can't be one. */
static void consider(struct agent *a, struct target *t, size_t text, const struct elf_func *f,
		     const struct entry *e, bool named)
{
	struct text *x = &a->texts[text];
	struct probe_hook *h = add_hook(a, x->module, x->bias + f->vaddr, e->name);
	uint64_t want = f->size < HOOK_LOOK ? HOOK_LOOK : f->size > BODY_MAX ? BODY_MAX : f->size;
	CLEANUP_FREE uint8_t *code = xmalloc(want);
	size_t len = elf_file_read(x->file, f->vaddr, code, want);

	VEC_GROW(a->sites, a->nsites, a->sites_cap);
	struct site *s = &a->sites[a->nsites++];
	*s = (struct site){ .hook = a->probe.nhooks - 1, .text = text, .entry = e, .named = named,
			    .addr = h->addr, .size = f->size, .call = { .kind = e->kind, .args = e->args } };
	if (len < HOOK_PATCH) {
		refuse(a, s, "its code isn't in the file");
		return;
	}
	if (!hook_plan(code, len, f->size, h->addr, &s->plan, h->reason))
		return;
	s->hookable = true;
	const char *why = differs(t, h->addr, s->plan.code, s->plan.displaced);
	if (why)
		refuse(a, s, why);
}

/*
 * A block to be recorded comes from the form of operator new that doesn't throw: the module's own, as what
 * else bears that name in the process may be another allocator's.
 */
static void find_sibling(struct agent *a, struct site *s)
{
	struct text *x = &a->texts[s->text];

	if (s->call.kind != WIRE_HOOK_NEW || !s->hookable)
		return;
	uint64_t vaddr = elf_file_find_symbol(x->file, s->entry->sibling);
	if (vaddr)
		s->call.instead = x->bias + vaddr;
	else
		refuse(a, s, "its form that doesn't throw isn't there");
}

/* ---- one module ---- */

/* The functions of a module that bear a name of the table; found[k] is that of funcs[k]. */
struct named_functions {
	struct elf_func funcs[FUNCTIONS_MAX];
	const struct entry *found[FUNCTIONS_MAX];
	size_t n;
	bool global;	/* one of the C library's names is global */
	bool allocates;	/* it isn't operators alone */
};

static void look_up(const struct agent *a, const struct text *x, struct named_functions *ret)
{
	size_t nnames;
	const char *const *names = entries_names(a->entries, &nnames);

	memset(ret, 0, sizeof(*ret));
	ret->n = elf_file_find_functions(x->file, names, nnames, ret->funcs, FUNCTIONS_MAX);
	for (size_t k = 0; k < ret->n; k++) {
		ret->found[k] = entries_find(a->entries, ret->funcs[k].name);
		ret->global |= ret->funcs[k].global && !ret->found[k]->family && !ret->found[k]->is_operator;
	}
	for (size_t k = 0; k < ret->n; k++)
		ret->allocates |= !ret->found[k]->is_operator && (ret->global || ret->found[k]->family) &&
			entries_family_there(ret->found, ret->n, ret->found[k]->family);
}

/*
 * Is the k-th to be hooked? The linker makes hidden functions of a position-independent program local (malloc
 * in a static one, all of a Rust program's): they count beside global ones or with their whole family,
 * else they just bear the name. operator new and delete of a module that has no allocator call one: it is
 * seen there.
 */
static bool is_wanted(const struct named_functions *f, size_t k)
{
	const struct entry *e = f->found[k];

	if (e->is_operator)
		return f->allocates && f->funcs[k].global;
	return e->family ? entries_family_there(f->found, f->n, e->family) : f->global;
}

/* One that comes before in the table is at the same place: "__libc_free" is "free". */
static bool is_alias(const struct named_functions *f, size_t k)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->funcs[i].vaddr == f->funcs[k].vaddr &&
		    (f->found[i] < f->found[k] || (f->found[i] == f->found[k] && i < k)) && is_wanted(f, i))
			return true;
	return false;
}

static bool is_considered(const struct agent *a, uint64_t addr)
{
	for (size_t i = 0; i < a->nsites; i++)
		if (a->sites[i].addr == addr)
			return true;
	return false;
}

/* Are all those branches no such, but bytes from the midst of instructions of the functions they are in? */
static bool only_seems(const struct text *x, const struct hook_window *w)
{
	if (w->nhits > HOOK_HITS)
		return false;
	for (size_t i = 0; i < w->nhits; i++) {
		uint64_t vaddr = w->hits[i] - x->bias;
		struct elf_func f;
		bool read;

		if (!elf_file_function_at(x->file, vaddr, &f) || !f.size || f.size > BODY_MAX || vaddr == f.vaddr)
			return false;
		CLEANUP_FREE uint8_t *code = xmalloc(f.size);
		size_t len = elf_file_read(x->file, f.vaddr, code, f.size);
		if (hook_is_branch_at(code, len, vaddr - f.vaddr, &read) || !read)
			return false;
	}
	return true;
}

/* Drop the sites of a module that its own text branches into behind the first byte. */
static void scan_text(struct agent *a, size_t text, size_t first)
{
	struct text *x = &a->texts[text];
	size_t n = a->nsites - first, nw = 0;
	CLEANUP_FREE struct hook_window *w = xcalloc(n + 1, sizeof(*w));
	CLEANUP_FREE struct site **of = xcalloc(n + 1, sizeof(*of));
	CLEANUP_FREE uint8_t *buf = xmalloc(CHUNK + 8);

	for (size_t i = 0; i < n; i++) {
		struct site *s = &a->sites[first + i];

		if (!s->hookable)
			continue;
		of[nw] = s;
		w[nw++] = (struct hook_window){ .lo = s->addr, .hi = s->addr + s->plan.displaced };
	}
	for (size_t k = 0; nw && k < x->nranges; k++)
		for (uint64_t at = x->ranges[k].start; at < x->ranges[k].end; at += CHUNK) {
			uint64_t left = x->ranges[k].end - at;
			/* A few bytes more: an instruction may lie across. */
			size_t want = left < CHUNK + 8 ? (size_t)left : CHUNK + 8;
			size_t got = elf_file_read(x->file, at - x->bias, buf, want);
			hook_scan_text(buf, got, at, w, nw);
		}
	for (size_t i = 0; i < nw; i++)
		if (w[i].hit && !only_seems(x, &w[i]))
			refuse(a, of[i], "other code branches into its first instructions");
}

/* What the user named in this module; before the table, whose word counts less. */
static void consider_named(struct agent *a, struct target *t, size_t text, const struct module *mod)
{
	struct text *x = &a->texts[text];

	for (size_t i = 0; a->config.named && i < a->config.named->n; i++) {
		const struct named *m = &a->config.named->items[i];
		struct elf_func funcs[NAMED_FUNCTIONS_MAX] = { { .vaddr = m->offset } };
		size_t n = 1;

		if (!named_in_module(m, mod->name))
			continue;
		if (m->symbol)
			n = elf_file_find_functions(x->file, (const char *const[]){ m->symbol }, 1, funcs,
						    NAMED_FUNCTIONS_MAX);
		else if (!m->module)
			funcs[0].vaddr -= x->bias;
		for (size_t k = 0; k < n; k++) {
			uint64_t addr = x->bias + funcs[k].vaddr;
			bool here = m->symbol != NULL;

			for (size_t r = 0; !here && r < x->nranges; r++)
				here = addr >= x->ranges[r].start && addr < x->ranges[r].end;
			if (!here)
				continue;
			a->named_found[i] = true;
			if (!is_considered(a, addr))
				consider(a, t, text, &funcs[k], &m->entry, true);
		}
	}
}

static void consider_module(struct agent *a, struct target *t, size_t text, const struct module *mod)
{
	struct text *x = &a->texts[text];
	CLEANUP_FREE struct named_functions *f = xmalloc(sizeof(*f));
	size_t first = a->nsites;

	consider_named(a, t, text, mod);
	look_up(a, x, f);
	for (size_t k = 0; k < f->n; k++)
		if (is_wanted(f, k) && !is_alias(f, k) && !is_considered(a, x->bias + f->funcs[k].vaddr))
			consider(a, t, text, &f->funcs[k], f->found[k], false);
	for (size_t i = first; i < a->nsites; i++)
		find_sibling(a, &a->sites[i]);
	scan_text(a, text, first);
}

/* ---- all modules ---- */

/* Keep the sites that will be patched; of the hooks, also those that can't be. */
static void drop_others(struct agent *a)
{
	CLEANUP_FREE bool *beneath = xcalloc(a->probe.nhooks + 1, sizeof(*beneath));
	CLEANUP_FREE size_t *now = xcalloc(a->probe.nhooks + 1, sizeof(*now));
	size_t out = 0, nhooks = 0;

	for (size_t i = 0; i < a->nsites; i++) {
		beneath[a->sites[i].hook] = a->sites[i].beneath;
		a->probe.hooks[a->sites[i].hook].hooked = a->sites[i].hookable;
	}
	for (size_t i = 0; i < a->probe.nhooks; i++) {
		now[i] = nhooks;
		if (!beneath[i])
			a->probe.hooks[nhooks++] = a->probe.hooks[i];
	}
	for (size_t i = 0; i < a->nsites; i++) {
		struct site s = a->sites[i];

		if (s.beneath || !s.hookable)
			continue;
		s.hook = now[s.hook];
		a->sites[out++] = s;
	}
	a->nsites = out;
	a->probe.nhooks = nhooks;
}

/* What the user named and no module has. */
static void note_missing(struct agent *a)
{
	for (size_t i = 0; a->config.named && i < a->config.named->n; i++) {
		const struct named *m = &a->config.named->items[i];

		if (a->named_found[i] || m->optional)
			continue;
		struct probe_hook *h = add_hook(a, 0, m->module ? 0 : m->offset, m->entry.name);
		snprintf(h->reason, sizeof(h->reason), "no module that is loaded has it");
	}
}

struct gather {
	struct agent *a;
	const struct modules *mods;
};

static struct text *text_of(struct agent *a, uint32_t module)
{
	for (size_t i = 0; i < a->ntexts; i++)
		if (a->texts[i].module == module)
			return &a->texts[i];
	return NULL;
}

/* The executable mappings of modules with a file. */
static bool gather_code(void *ctx, const struct mapping *m)
{
	struct gather *g = ctx;
	const struct module *mod;

	if (!(m->prot & PROT_EXEC) || !(mod = modules_find(g->mods, m->start)) || !mod->file ||
	    !mod->inode || elf_file_machine(mod->file) != EM_X86_64)
		return true;
	struct text *x = text_of(g->a, mod->id);
	if (!x) {
		VEC_GROW(g->a->texts, g->a->ntexts, g->a->texts_cap);
		x = &g->a->texts[g->a->ntexts++];
		*x = (struct text){ .module = mod->id, .file = elf_file_ref(mod->file), .bias = mod->bias,
				    .dev = m->dev, .inode = m->inode, .lo = m->start, .hi = m->end };
	}
	VEC_GROW(x->ranges, x->nranges, x->ranges_cap);
	x->ranges[x->nranges++] = (struct text_range){ m->start, m->end };
	return true;
}

/* How far such a module reaches: displaced instructions may refer to its data. */
static bool gather_extent(void *ctx, const struct mapping *m)
{
	struct gather *g = ctx;

	for (size_t i = 0; m->inode && i < g->a->ntexts; i++) {
		struct text *x = &g->a->texts[i];

		if (x->dev != m->dev || x->inode != m->inode)
			continue;
		x->lo = m->start < x->lo ? m->start : x->lo;
		x->hi = m->end > x->hi ? m->end : x->hi;
	}
	return true;
}

struct err *agent_prepare(struct probe *p, struct target *t, const struct modules *mods)
{
	struct agent *a = agent_of(p);
	struct gather g = { a, mods };

	struct err *err = target_each_mapping(t, gather_code, &g);
	if (!err)
		err = target_each_mapping(t, gather_extent, &g);
	if (err)
		return err;
	if (a->config.named)
		a->named_found = xcalloc(a->config.named->n + 1, sizeof(*a->named_found));
	for (size_t i = 0; i < a->ntexts; i++)
		consider_module(a, t, i, module_get(mods, a->texts[i].module));
	agent_settle_nesting(a);
	drop_others(a);
	note_missing(a);
	for (size_t i = 0; i < a->probe.nhooks; i++)
		if (!a->probe.hooks[i].hooked)
			log_line("%s at %#lx not hooked: %s", a->probe.hooks[i].name,
				 (unsigned long)a->probe.hooks[i].addr, a->probe.hooks[i].reason);
	if (!a->nsites)
		return err_new(ERR_NOT_FOUND, a->probe.nhooks ?
			       "none of the allocator's functions can be hooked: %s" :
			       "no allocator found in the program or its libraries%s",
			       a->probe.nhooks ? a->probe.hooks[0].reason : "");
	return NULL;
}
