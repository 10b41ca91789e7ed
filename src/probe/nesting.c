/*
 * Allocators call each other, and a block counts once. Where a hook goes through a frame it leaves a mark,
 * and what is called inside passes. The fast paths of malloc and operator new leave none, so the
 * code is read for what they lead to, as far as they lead there directly or through a linkage stub:
 *
 *  - whatever comes first on its straight path is a call of another hooked one: it isn't hooked, the other
 *    counts. So operator new and delete of the C++ library, and malloc that only hands on to je_malloc.
 *    One that can't be hooked isn't missed if it calls such a one anywhere.
 *  - it may call another hooked one somewhere, or one through a pointer: it goes through a frame.
 */
#include "probe/placed.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "elf/file.h"
#include "probe/entries.h"

#define BODY_MAX (1u << 20)	/* bytes of a function that are looked at */
#define LEAVES_MAX 256		/* ways out of it */
#define STUB_LOOK 32u

static bool frees(const struct site *s)
{
	return s->call.kind == WIRE_HOOK_FREE || s->call.kind == WIRE_HOOK_RELEASE;
}

/* Has it a path on which it leaves no mark? */
static bool is_fast(const struct site *s)
{
	return s->call.kind == WIRE_HOOK_MALLOC || s->call.kind == WIRE_HOOK_NEW ||
	       s->call.kind == WIRE_HOOK_FREE;
}

/* Is it counted, there or further down? */
static bool counts(const struct agent *a, const struct site *s)
{
	for (size_t n = 0; s->beneath && n < a->nsites; n++)
		s = &a->sites[s->beneath - 1];
	return s->hookable && !s->beneath;
}

static struct site *site_at(const struct agent *a, uint64_t addr)
{
	for (size_t i = 0; i < a->nsites; i++)
		if (a->sites[i].addr == addr)
			return &a->sites[i];
	return NULL;
}

/* What a module's linkage stub at `addr` leads to. */
static struct site *behind_stub(const struct agent *a, const struct text *x, uint64_t addr)
{
	uint8_t code[STUB_LOOK];
	size_t len = elf_file_read(x->file, addr - x->bias, code, sizeof(code));
	uint64_t slot, vaddr;

	if (!hook_is_stub(code, len, addr, &slot))
		return NULL;
	const char *name = elf_file_import_at(x->file, slot - x->bias);
	const struct entry *e = name ? entries_find(a->entries, name) : NULL;
	if (!e)
		return NULL;
	/* most often its own; it may have another name there that comes before */
	vaddr = elf_file_find_symbol(x->file, name);
	struct site *s = vaddr ? site_at(a, x->bias + vaddr) : NULL;
	for (size_t i = 0; !s && i < a->nsites; i++)
		if (a->sites[i].entry == e)
			s = &a->sites[i];
	return s;
}

/* Another one of its sort that counts, at `addr` or behind the stub there. */
static struct site *leads_to(const struct agent *a, const struct site *from, uint64_t addr)
{
	struct site *to = site_at(a, addr);

	if (!to)
		to = behind_stub(a, &a->texts[from->text], addr);
	return to && to != from && frees(to) == frees(from) && counts(a, to) ? to : NULL;
}

/* Its code; *ret_len 0: not to be had. */
static uint8_t *code_of(const struct agent *a, const struct site *s, size_t *ret_len)
{
	const struct text *x = &a->texts[s->text];
	uint64_t want = s->size < BODY_MAX ? s->size : 0;
	uint8_t *code = xmalloc(want + 1);

	*ret_len = elf_file_read(x->file, s->addr - x->bias, code, want);
	return code;
}

/* The first one that counts among all it may call. */
static struct site *leads_anywhere(const struct agent *a, const struct site *s, const uint8_t *code, size_t len)
{
	CLEANUP_FREE uint64_t *leaves = xcalloc(LEAVES_MAX, sizeof(*leaves));
	size_t n = hook_leaves_for(code, len, s->addr, leaves, LEAVES_MAX);
	struct site *to = NULL;

	for (size_t i = 0; i < n && !to; i++)
		to = leads_to(a, s, leaves[i]);
	return to;
}

static bool find_beneath(struct agent *a)
{
	bool changed = false;

	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i], *to;
		uint64_t target;
		size_t len;

		/* what is placed already stays as it is */
		if (s->thunk || s->beneath || (s->hookable && (s->named || !is_fast(s))))
			continue;
		CLEANUP_FREE uint8_t *code = code_of(a, s, &len);
		to = hook_straight(code, len, s->addr, &target) ? leads_to(a, s, target) : NULL;
		if (!to && !s->hookable)
			to = leads_anywhere(a, s, code, len);
		if (!to)
			continue;
		/* not in a circle */
		const struct site *last = to;
		while (last->beneath)
			last = &a->sites[last->beneath - 1];
		if (last == s)
			continue;
		s->beneath = (size_t)(to - a->sites) + 1;
		changed = true;
	}
	return changed;
}

/* The C library's own malloc is the innermost, whatever it calls by pointer. */
static bool may_wrap(const struct agent *a, const struct site *s, size_t mallocs)
{
	size_t len;
	CLEANUP_FREE uint8_t *code = code_of(a, s, &len);

	if (!len)
		return s->call.kind == WIRE_HOOK_NEW;
	if (mallocs > 1 && hook_has_indirect_call(code, len) &&
	    !elf_file_find_symbol(a->texts[s->text].file, "__libc_start_main"))
		return true;
	return leads_anywhere(a, s, code, len);
}

void agent_settle_nesting(struct agent *a)
{
	size_t mallocs = 0, nbeneath = 0;
	const struct site *first = NULL;

	while (find_beneath(a))
		;
	for (size_t i = 0; i < a->nsites; i++) {
		const struct site *s = &a->sites[i];

		if (s->beneath && !nbeneath++)
			first = s;
		mallocs += s->call.kind == WIRE_HOOK_MALLOC && s->hookable && !s->beneath && !s->entry->is_operator;
	}
	/* a C++ library has dozens of operators: a line each would push all else out of the log */
	if (first)
		log_line("%zu entry points count where they call another: %s%s where it calls %s", nbeneath,
			 nbeneath > 1 ? "as " : "", a->probe.hooks[first->hook].name,
			 a->probe.hooks[a->sites[first->beneath - 1].hook].name);
	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];

		if (a->by_uprobes && !s->patched && !s->beneath && s->hookable && !frees(s))
			s->leads = s->named || s->call.kind == WIRE_HOOK_REALLOC || may_wrap(a, s, mallocs);
		if (s->thunk || s->named || s->beneath || !s->hookable || !is_fast(s) || frees(s) || !may_wrap(a, s, mallocs))
			continue;
		s->call.kind = s->call.kind == WIRE_HOOK_NEW ? WIRE_HOOK_NEW_OUTER : WIRE_HOOK_ALLOC;
		log_line("%s at %#lx may call others", a->probe.hooks[s->hook].name, (unsigned long)s->addr);
	}
}
