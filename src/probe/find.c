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
#include "target/target.h"

#define BODY_MAX (1u << 20)	/* bytes of a function that are looked at */
#define CHUNK (1u << 20)	/* of text scanned at a time */
#define FUNCTIONS_MAX 64

static const struct {
	const char *name;
	enum wire_hook_kind kind;
} entries[] = {
	{ "malloc", WIRE_HOOK_MALLOC },
	{ "free", WIRE_HOOK_FREE },
	{ "cfree", WIRE_HOOK_FREE },
	{ "calloc", WIRE_HOOK_CALLOC },
	{ "realloc", WIRE_HOOK_REALLOC },
	{ "reallocarray", WIRE_HOOK_REALLOCARRAY },
	{ "memalign", WIRE_HOOK_MEMALIGN },
	{ "aligned_alloc", WIRE_HOOK_MEMALIGN },
	{ "posix_memalign", WIRE_HOOK_POSIX_MEMALIGN },
	{ "valloc", WIRE_HOOK_SIZED },
	{ "pvalloc", WIRE_HOOK_SIZED },
};

static enum wire_hook_kind kind_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		if (!strcmp(entries[i].name, name))
			return entries[i].kind;
	return WIRE_HOOK_SIZED;
}

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

/* One function: plan a hook, or note why not. */
static void consider(struct agent *a, struct target *t, size_t text, const struct elf_func *f)
{
	struct text *x = &a->texts[text];
	struct probe_hook *h = add_hook(a, x, f);
	uint64_t want = f->size < HOOK_LOOK ? HOOK_LOOK : f->size > BODY_MAX ? BODY_MAX : f->size;
	CLEANUP_FREE uint8_t *code = xmalloc(want);
	size_t len = elf_file_read(x->file, f->vaddr, code, want);
	struct site s = { .hook = (size_t)(h - a->probe.hooks), .text = text, .kind = kind_of(f->name),
			  .size = f->size };

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
		mallocs += a->sites[i].kind == WIRE_HOOK_MALLOC;
	for (size_t i = 0; mallocs > 1 && i < a->nsites; i++) {
		struct site *s = &a->sites[i];
		struct text *x = &a->texts[s->text];

		if (s->kind != WIRE_HOOK_MALLOC || elf_file_find_symbol(x->file, "__libc_start_main"))
			continue;
		if (s->size > BODY_MAX)
			continue;
		CLEANUP_FREE uint8_t *code = xmalloc(s->size + 1);
		size_t len = elf_file_read(x->file, s->plan.addr - x->bias, code, s->size);
		if (hook_has_indirect_call(code, len))
			s->kind = WIRE_HOOK_SIZED;
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
	const char *names[ARRAY_SIZE(entries)];

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		names[i] = entries[i].name;
	struct err *err = target_each_mapping(t, gather_code, &g);
	if (!err)
		err = target_each_mapping(t, gather_extent, &g);
	if (err)
		return err;
	for (size_t i = 0; i < a->ntexts; i++) {
		struct elf_func funcs[FUNCTIONS_MAX];
		size_t n = elf_file_find_functions(a->texts[i].file, names, ARRAY_SIZE(names), funcs,
						   FUNCTIONS_MAX);
		size_t first = a->nsites;

		/*
		 * The linker makes hidden functions of a position-independent program local (malloc in
		 * a static one): they count beside global ones, else they just bear the name.
		 */
		for (size_t k = 0; k < n && (funcs[k].global || funcs[0].global); k++)
			consider(a, t, i, &funcs[k]);
		if (a->nsites > first)
			scan_text(a, i, first);
	}
	frame_wrappers(a);
	for (size_t i = 0; i < a->probe.nhooks; i++)
		if (!a->probe.hooks[i].hooked)
			log_line("%s at %#lx not hooked: %s", a->probe.hooks[i].name,
				 (unsigned long)a->probe.hooks[i].addr, a->probe.hooks[i].reason);
	if (!a->nsites && !a->probe.nhooks && a->ntexts == 1 && elf_file_is_stripped(a->texts[0].file))
		return err_new(ERR_NOT_FOUND, "no allocator found: %s is stripped of its symbols; its debug file "
			       "would tell, or --alloc and --free with addresses", elf_file_path(a->texts[0].file));
	if (!a->nsites)
		return err_new(ERR_NOT_FOUND, a->probe.nhooks ?
			       "none of the allocator's functions can be hooked: %s" :
			       "no allocator found in the program or its libraries%s",
			       a->probe.nhooks ? a->probe.hooks[0].reason : "");
	return NULL;
}
