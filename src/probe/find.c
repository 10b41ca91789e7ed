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

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "probe/entries.h"
#include "probe/named.h"
#include "probe/uprobe_place.h"
#include "target/target.h"

#define BODY_MAX (1u << 20)	/* bytes of a function that are looked at */
#define CHUNK (1u << 20)	/* of text scanned at a time */
#define FUNCTIONS_MAX 512	/* of a module that bear a name of the table */
#define BREAKPOINT 0xcc		/* what the kernel puts where a uprobe is */
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
static const char *differs(struct target *t, uint64_t addr, const uint8_t *code, size_t len, bool by_uprobes,
			   size_t at)
{
	uint8_t now[HOOK_WINDOW];
	uint64_t to;

	struct err *err = target_read(t, addr, now, len);
	if (err) {
		err_free(err);
		return "its code can't be read";
	}
	/* a uprobe there already, of a parent's or another heaptop's, is none of our business: the kernel has both */
	if (by_uprobes && at < len && now[at] == BREAKPOINT)
		now[at] = code[at];
	if (!memcmp(now, code, len))
		return NULL;
	if (hook_is_jump(now, addr, &to)) {
		/* A killed heaptop's; it is taken out before we place ours. */
		if (!by_uprobes && agent_is_island(t, to) && !memcmp(now + HOOK_PATCH, code + HOOK_PATCH, len - HOOK_PATCH))
			return NULL;
		return "somebody else has hooked it";
	}
	return "its code is not what the file says";
}

/* ---- one function ---- */

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

/* glibc exports where it keeps the break that its brk and sbrk have set; musl's brk does nothing. */
static void note_break(struct agent *a, const struct text *x, const struct entry *e)
{
	uint64_t vaddr = e->args.range == WIRE_RANGE_BRK ? elf_file_find_symbol(x->file, "__curbrk") : 0;

	if (vaddr)
		a->break_at = x->bias + vaddr;
}

/* A probe displaces nothing; the code at its place must be the file's all the same. */
static void plan_uprobe(struct site *s, const uint8_t *code, size_t len)
{
	s->at = (uint32_t)uprobe_place(code, len, &s->call.args, &s->stepped);
	s->plan.addr = s->addr;
	s->plan.displaced = HOOK_WINDOW < len ? HOOK_WINDOW : (uint32_t)len;
	memcpy(s->plan.code, code, s->plan.displaced);
}

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
	if (e->kind == WIRE_HOOK_RANGE) {
		note_module(x, h->addr, &s->call);
		note_break(a, x, e);
	}
	if (len < HOOK_PATCH) {
		refuse(a, s, "its code isn't in the file");
		return;
	}
	if (a->by_uprobes)
		plan_uprobe(s, code, len);
	else if (!hook_plan(code, len, f->size, h->addr, &s->plan, h->reason))
		return;
	s->hookable = true;
	const char *why = differs(t, h->addr, s->plan.code, s->plan.displaced, a->by_uprobes, s->at);
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
	if (a->by_uprobes) {
		refuse(a, s, "it may throw past a probe at its return, which would end the program");
		return;
	}
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
	bool runtime;	/* it is the C++ runtime, whose operators call malloc */
};

static void look_up(const struct agent *a, struct elf_file *file, struct named_functions *ret)
{
	size_t nnames;
	const char *const *names = entries_names(a->entries, &nnames);

	memset(ret, 0, sizeof(*ret));
	ret->runtime = elf_file_find_symbol(file, "__cxa_throw") != 0;
	ret->n = elf_file_find_functions(file, names, nnames, ret->funcs, FUNCTIONS_MAX);
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
 * else they just bear the name. operator new and delete of the C++ runtime call malloc: it is seen there.
 */
static bool is_wanted(const struct named_functions *f, size_t k)
{
	const struct entry *e = f->found[k];

	if (e->is_operator)
		return f->funcs[k].global && (f->allocates || !f->runtime);
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
	for (size_t i = 0; i < w->nhits && !ending_broken_off(); i++) {
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

		if (!s->hookable || a->by_uprobes)
			continue;
		of[nw] = s;
		w[nw++] = (struct hook_window){ .lo = s->addr, .hi = s->addr + s->plan.displaced };
	}
	for (size_t k = 0; nw && k < x->nranges; k++)
		for (uint64_t at = x->ranges[k].start; at < x->ranges[k].end && !ending_broken_off(); at += CHUNK) {
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

static void consider_module(struct agent *a, struct target *t, size_t text, const struct module *mod,
			    const struct named_functions *f)
{
	struct text *x = &a->texts[text];
	size_t first = a->nsites;

	consider_named(a, t, text, mod);
	for (size_t k = 0; k < f->n; k++)
		if (is_wanted(f, k) && !is_alias(f, k) && !is_considered(a, x->bias + f->funcs[k].vaddr))
			consider(a, t, text, &f->funcs[k], f->found[k], false);
	for (size_t i = first; i < a->nsites; i++)
		find_sibling(a, &a->sites[i]);
	scan_text(a, text, first);
}

/* ---- all modules ---- */

/*
 * Mappings that an allocator makes are known as its own by the mark its hook leaves; so where mappings
 * are counted each goes through a frame.
 */
static void frame_all(struct agent *a)
{
	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];

		if (s->call.kind == WIRE_HOOK_MALLOC)
			s->call.kind = WIRE_HOOK_ALLOC;
		else if (s->call.kind == WIRE_HOOK_NEW)
			s->call.kind = WIRE_HOOK_NEW_OUTER;
	}
}

/* Keep the sites that will be patched; of the hooks, also those that can't be. What was missing is noted anew. */
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
		if (!beneath[i] && a->probe.hooks[i].module)
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

/* A module that has what is looked for. */
struct candidate {
	size_t text;		/* index in texts */
	struct named_functions *f;
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

/* Might the user have named something in it? */
static bool has_named(const struct agent *a, const struct module *m)
{
	for (size_t i = 0; a->config.named && i < a->config.named->n; i++) {
		const struct named *n = &a->config.named->items[i];
		struct elf_func func;

		if (named_in_module(n, m->name) &&
		    (!n->symbol || elf_file_find_functions(m->file, (const char *const[]){ n->symbol }, 1, &func, 1)))
			return true;
	}
	return false;
}

/* Look a module through, once in its life. */
static bool look_through(struct agent *a, const struct module *m, struct named_functions *f)
{
	bool ret = false;

	if (m->gone || !m->file || !m->inode || elf_file_machine(m->file) != EM_X86_64 || a->looked[m->id])
		return false;
	a->looked[m->id] = true;
	look_up(a, m->file, f);
	for (size_t k = 0; k < f->n && !ret; k++)
		ret = is_wanted(f, k);
	if (!ret && !has_named(a, m))
		return false;
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

/* The modules not looked through yet that have what is looked for. */
static struct candidate *find_candidates(struct agent *a, const struct modules *mods, size_t *ret_n)
{
	struct candidate *c = NULL;
	struct named_functions *f = NULL;
	size_t n = 0, cap = 0;

	grow_looked(a, modules_count(mods) + 1);
	for (uint32_t id = 1; id <= modules_count(mods) && !ending_broken_off(); id++) {
		if (!f)
			f = xmalloc(sizeof(*f));
		if (!look_through(a, module_get(mods, id), f))
			continue;
		VEC_GROW(c, n, cap);
		c[n++] = (struct candidate){ a->ntexts - 1, f };
		f = NULL;
	}
	free(f);
	*ret_n = n;
	return c;
}

static void consider_all(struct agent *a, struct target *t, const struct modules *mods,
			 const struct candidate *c, size_t n)
{
	size_t first_hook = a->probe.nhooks;

	for (size_t i = 0; i < n; i++) {
		const struct text *x = &a->texts[c[i].text];

		if (x->nranges)
			consider_module(a, t, c[i].text, module_get(mods, x->module), c[i].f);
		else
			a->looked[x->module] = false;	/* unmapped again meanwhile: may come back */
	}
	agent_settle_nesting(a);
	if (a->config.mmap)
		frame_all(a);
	for (size_t i = first_hook; i < a->probe.nhooks; i++)
		if (*a->probe.hooks[i].reason)
			log_line("%s at %#lx not hooked: %s", a->probe.hooks[i].name,
				 (unsigned long)a->probe.hooks[i].addr, a->probe.hooks[i].reason);
	drop_others(a);
	note_missing(a);
}

struct err *agent_find(struct agent *a, struct target *t, const struct modules *mods)
{
	struct gather g = { a, mods, a->ntexts };
	bool first_time = !a->nlooked;
	size_t n;
	struct candidate *c = find_candidates(a, mods, &n);

	if (a->config.named && !a->named_found)
		a->named_found = xcalloc(a->config.named->n + 1, sizeof(*a->named_found));
	struct err *err = n ? target_each_mapping(t, gather_code, &g) : NULL;
	if (n && !err)
		err = target_each_mapping(t, gather_extent, &g);
	if (!err && (n || first_time))
		consider_all(a, t, mods, c, n);
	for (size_t i = 0; i < n; i++)
		free(c[i].f);
	free(c);
	agent_tidy(a);
	return err;
}

/* The program, if it is all there is, and stripped of its symbols; else NULL. */
static const struct module *stripped_alone(const struct modules *mods)
{
	const struct module *only = NULL;

	for (uint32_t id = 1; id <= modules_count(mods); id++) {
		const struct module *m = module_get(mods, id);

		if (m->gone || !m->file || !m->inode)
			continue;
		if (only)
			return NULL;
		only = m;
	}
	return only && elf_file_is_stripped(only->file) ? only : NULL;
}

struct err *agent_prepare(struct probe *p, struct target *t, const struct modules *mods)
{
	struct agent *a = agent_of(p);
	struct err *err = agent_find(a, t, mods);

	const struct module *stripped = err || a->nsites || a->probe.nhooks ? NULL : stripped_alone(mods);
	if (stripped)
		return err_new(ERR_NOT_FOUND, "no allocator found: %s is stripped of its symbols; its debug file "
			       "would tell, or --alloc and --free with addresses", elf_file_path(stripped->file));
	if (!err && !a->nsites)
		err = err_new(ERR_NOT_FOUND, a->probe.nhooks ?
			      "none of the allocator's functions can be hooked: %s; --alloc and --free name others" :
			      "no allocator found in the program or its libraries%s: --alloc and --free name one",
			      a->probe.nhooks ? a->probe.hooks[0].reason : "");
	return err;
}
