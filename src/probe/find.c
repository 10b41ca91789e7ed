/*
 * What to hook: every definition of an allocator's entry point in every module, as far as its
 * first instructions can be displaced. A module is looked through once, when it is first seen. Runs while the target does; reads files, and the target's
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
#include "target/target.h"

#define BODY_MAX (1u << 20)	/* bytes of a function that are looked at */
#define CHUNK (1u << 20)	/* of text scanned at a time */
#define FUNCTIONS_MAX 256

static struct probe_hook *add_hook(struct agent *a, const struct text *x, const struct elf_func *f)
{
	VEC_GROW(a->probe.hooks, a->probe.nhooks, a->hooks_cap);
	struct probe_hook *h = &a->probe.hooks[a->probe.nhooks++];

	memset(h, 0, sizeof(*h));
	h->module = x->module;
	h->addr = x->bias + f->vaddr;
	snprintf(h->name, sizeof(h->name), "%s", f->name);
	return h;
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

/* One that comes before in the table bears it, too: "__libc_free" is "free". */
static bool is_alias(const struct elf_func *funcs, const struct entry *const *found, size_t n, size_t k)
{
	for (size_t i = 0; i < n; i++)
		if (funcs[i].vaddr == funcs[k].vaddr && found[i] && found[i] < found[k])
			return true;
	return false;
}

/*
 * What a library calls of its own functions isn't the program's doing: the stacks of threads, say. In a static
 * program the two can't be told apart.
 */
static void note_module(const struct text *x, uint64_t addr, struct wire_hook *call)
{
	uint64_t lo = addr, hi = addr;

	for (size_t i = 0; i < x->nranges && !x->is_main; i++) {
		lo = x->ranges[i].start < lo ? x->ranges[i].start : lo;
		hi = x->ranges[i].end > hi ? x->ranges[i].end : hi;
	}
	call->args.bytes = (uint32_t)(addr - lo < UINT32_MAX ? addr - lo : UINT32_MAX);
	call->above = (uint32_t)(hi - addr < UINT32_MAX ? hi - addr : UINT32_MAX);
}

/* One function: plan a hook, or note why not. */
static void consider(struct agent *a, struct target *t, size_t text, const struct elf_func *f,
		     const struct entry *e)
{
	struct text *x = &a->texts[text];
	struct probe_hook *h = add_hook(a, x, f);
	uint64_t want = f->size < HOOK_LOOK ? HOOK_LOOK : f->size > BODY_MAX ? BODY_MAX : f->size;
	CLEANUP_FREE uint8_t *code = xmalloc(want);
	size_t len = elf_file_read(x->file, f->vaddr, code, want);
	struct site s = { .hook = (size_t)(h - a->probe.hooks), .text = text, .entry = e, .size = f->size,
			  .call = { .kind = e->kind, .args = e->args } };

	if (e->kind == WIRE_HOOK_RANGE)
		note_module(x, h->addr, &s.call);
	/* it would leave no mark, by which mappings that it makes are known as its own */
	else if (a->config.mmap && e->kind == WIRE_HOOK_MALLOC)
		s.call.kind = WIRE_HOOK_ALLOC;
	else if (a->config.mmap && e->kind == WIRE_HOOK_NEW)
		s.call.kind = WIRE_HOOK_NEW_OUTER;
	if (len < HOOK_PATCH) {
		snprintf(h->reason, sizeof(h->reason), "its code isn't in the file");
		return;
	}
	if (!hook_plan(code, len, f->size, h->addr, &s.plan, h->reason))
		return;
	const char *why = differs(t, h->addr, s.plan.code, s.plan.displaced);
	if (why) {
		snprintf(h->reason, sizeof(h->reason), "%s", why);
		return;
	}
	h->hooked = true;
	VEC_GROW(a->sites, a->nsites, a->sites_cap);
	a->sites[a->nsites++] = s;
}

/* Drop the sites of a module that its own text branches into behind the first byte. */
static void scan_text(struct agent *a, size_t text, size_t first)
{
	struct text *x = &a->texts[text];
	size_t n = a->nsites - first;
	CLEANUP_FREE struct hook_window *w = xcalloc(n + 1, sizeof(*w));
	CLEANUP_FREE uint8_t *buf = xmalloc(CHUNK + 8);

	for (size_t i = 0; i < n; i++) {
		const struct hook_plan *p = &a->sites[first + i].plan;
		w[i] = (struct hook_window){ .lo = p->addr, .hi = p->addr + p->displaced };
	}
	for (size_t k = 0; k < x->nranges; k++)
		for (uint64_t at = x->ranges[k].start; at < x->ranges[k].end; at += CHUNK) {
			uint64_t left = x->ranges[k].end - at;
			/* A few bytes more: an instruction may lie across. */
			size_t want = left < CHUNK + 8 ? (size_t)left : CHUNK + 8;
			size_t got = elf_file_read(x->file, at - x->bias, buf, want);
			hook_scan_text(buf, got, at, w, n);
		}
	size_t out = first;
	for (size_t i = 0; i < n; i++) {
		struct site *s = &a->sites[first + i];
		if (w[i].hit) {
			struct probe_hook *h = &a->probe.hooks[s->hook];
			h->hooked = false;
			snprintf(h->reason, sizeof(h->reason), "other code branches into its first instructions");
			continue;
		}
		a->sites[out++] = *s;
	}
	a->nsites = out;
}

/*
 * A malloc that hands on to another hooked malloc would count its bytes twice, since its fast
 * path leaves no mark for the inner one. Where there are several mallocs, those that could do so go
 * through a frame. The C library's own is the innermost.
 */
static void frame_wrappers(struct agent *a)
{
	size_t mallocs = 0;

	for (size_t i = 0; i < a->nsites; i++)
		mallocs += a->sites[i].call.kind == WIRE_HOOK_MALLOC;
	for (size_t i = 0; mallocs > 1 && i < a->nsites; i++) {
		struct site *s = &a->sites[i];
		struct text *x = &a->texts[s->text];

		if (s->call.kind != WIRE_HOOK_MALLOC || s->thunk ||
		    elf_file_find_symbol(x->file, "__libc_start_main"))
			continue;
		if (s->size > BODY_MAX)
			continue;
		CLEANUP_FREE uint8_t *code = xmalloc(s->size + 1);
		size_t len = elf_file_read(x->file, s->plan.addr - x->bias, code, s->size);
		if (hook_has_indirect_call(code, len))
			s->call.kind = WIRE_HOOK_ALLOC;
	}
}

/* A module with functions that have the right names. */
struct candidate {
	size_t text;		/* index in texts */
	size_t nfuncs;
	struct elf_func funcs[FUNCTIONS_MAX];
};

struct gather {
	struct agent *a;
	const struct modules *mods;
	size_t first;		/* texts from here on are the ones wanted */
};

static struct text *text_of(const struct gather *g, uint32_t module)
{
	for (size_t i = g->first; i < g->a->ntexts; i++)
		if (g->a->texts[i].module == module)
			return &g->a->texts[i];
	return NULL;
}

/* The executable mappings of these modules. */
static bool gather_code(void *ctx, const struct mapping *m)
{
	struct gather *g = ctx;
	const struct module *mod;
	struct text *x;

	if (!(m->prot & PROT_EXEC) || !(mod = modules_find(g->mods, m->start)) ||
	    !(x = text_of(g, mod->id)) || x->dev != m->dev || x->inode != m->inode)
		return true;
	if (!x->nranges) {
		x->lo = m->start;
		x->hi = m->end;
	}
	VEC_GROW(x->ranges, x->nranges, x->ranges_cap);
	x->ranges[x->nranges++] = (struct text_range){ m->start, m->end };
	return true;
}

/* How far such a module reaches: displaced instructions may refer to its data. */
static bool gather_extent(void *ctx, const struct mapping *m)
{
	struct gather *g = ctx;

	for (size_t i = g->first; m->inode && i < g->a->ntexts; i++) {
		struct text *x = &g->a->texts[i];

		if (x->dev != m->dev || x->inode != m->inode)
			continue;
		x->lo = m->start < x->lo ? m->start : x->lo;
		x->hi = m->end > x->hi ? m->end : x->hi;
	}
	return true;
}

/* Look a module through, once in its life. */
static bool look_through(struct agent *a, const struct module *m, struct candidate *ret)
{
	size_t n;
	const char *const *names = entries_names(a->entries, &n);

	if (m->gone || !m->file || !m->inode || elf_file_machine(m->file) != EM_X86_64 || a->looked[m->id])
		return false;
	a->looked[m->id] = true;
	ret->nfuncs = elf_file_find_functions(m->file, names, n, ret->funcs, FUNCTIONS_MAX);
	/*
	 * The linker makes hidden functions of a position-independent program local (malloc in
	 * a static one): they count beside global ones, else they just bear the name.
	 */
	if (!ret->nfuncs || !ret->funcs[0].global)
		return false;
	ret->text = a->ntexts;
	VEC_GROW(a->texts, a->ntexts, a->texts_cap);
	a->texts[a->ntexts++] = (struct text){ .module = m->id, .file = elf_file_ref(m->file),
		.bias = m->bias, .dev = m->dev, .inode = m->inode, .is_main = m->is_main };
	return true;
}

static void grow_looked(struct agent *a, size_t n)
{
	if (n <= a->nlooked)
		return;
	bool *looked = xcalloc(n * 2, sizeof(*looked));
	if (a->nlooked)
		memcpy(looked, a->looked, a->nlooked * sizeof(*looked));
	free(a->looked);
	a->looked = looked;
	a->nlooked = n * 2;
}

struct err *agent_find(struct agent *a, struct target *t, const struct modules *mods)
{
	struct gather g = { a, mods, a->ntexts };
	struct candidate *c = NULL;
	size_t n = 0, cap = 0, first_hook = a->probe.nhooks;

	grow_looked(a, modules_count(mods) + 1);
	for (uint32_t id = 1; id <= modules_count(mods); id++) {
		VEC_GROW(c, n, cap);
		n += look_through(a, module_get(mods, id), &c[n]);
	}
	struct err *err = n ? target_each_mapping(t, gather_code, &g) : NULL;
	if (n && !err)
		err = target_each_mapping(t, gather_extent, &g);
	for (size_t i = 0; i < n && !err; i++) {
		size_t first = a->nsites;
		const struct entry *found[FUNCTIONS_MAX];

		for (size_t k = 0; k < c[i].nfuncs; k++)
			found[k] = entries_find(a->entries, c[i].funcs[k].name);
		for (size_t k = 0; k < c[i].nfuncs && a->texts[c[i].text].nranges; k++) {
			const struct entry *e = found[k];

			if (e && !e->family && !e->is_operator && !is_alias(c[i].funcs, found, c[i].nfuncs, k))
				consider(a, t, c[i].text, &c[i].funcs[k], e);
		}
		if (a->nsites > first)
			scan_text(a, c[i].text, first);
	}
	free(c);
	/* unmapped again meanwhile: may come back */
	for (size_t i = g.first; i < a->ntexts; i++)
		if (!a->texts[i].nranges)
			a->looked[a->texts[i].module] = false;
	if (n)
		frame_wrappers(a);
	for (size_t i = first_hook; i < a->probe.nhooks; i++)
		if (!a->probe.hooks[i].hooked)
			log_line("%s at %#lx not hooked: %s", a->probe.hooks[i].name,
				 (unsigned long)a->probe.hooks[i].addr, a->probe.hooks[i].reason);
	agent_tidy(a);
	return err;
}

struct err *agent_prepare(struct probe *p, struct target *t, const struct modules *mods)
{
	struct agent *a = agent_of(p);
	struct err *err = agent_find(a, t, mods);

	if (!err && !a->nsites)
		err = err_new(ERR_NOT_FOUND, a->probe.nhooks ?
			      "none of the allocator's functions can be hooked: %s" :
			      "no allocator found in the program or its libraries%s",
			      a->probe.nhooks ? a->probe.hooks[0].reason : "");
	return err;
}
