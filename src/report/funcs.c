/* Frames and functions of a report; see funcs.h. */
#include "report/funcs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "heap/tree.h"
#include "report/wrappers.h"
#include "symbol/names.h"

/* By address: 1 + enum unwind_end; the texts stand here so that a report needs no unwinder. */
static const char *const pseudo_texts[FRAME_PSEUDO_MAX + 1] = {
	[0] = "[incomplete stack]",
	[1] = "[complete stack]",
	[2] = "[incomplete stack: copy ended first]",
	[3] = "[incomplete stack: no unwind information]",
	[4] = "[incomplete stack: code of no module]",
	[5] = "[incomplete stack: led astray]",
	[6] = "[incomplete stack: too deep]",
	[7] = "[incomplete stack: an event was lost]",
	[8] = "[incomplete stack: handler on another stack]",
	[FRAME_MERGED] = "[cold stacks, merged]",
};

const char *report_pseudo_text(uint64_t addr)
{
	if (addr > FRAME_PSEUDO_MAX || !pseudo_texts[addr])
		return pseudo_texts[0];
	return pseudo_texts[addr];
}

uint64_t report_pseudo_parse(const char *text)
{
	for (uint64_t i = 1; i <= FRAME_PSEUDO_MAX; i++)
		if (pseudo_texts[i] && !strcmp(pseudo_texts[i], text))
			return i;
	return 0;
}

/* FNV-1a, eight bytes' worth of it: functions are told apart by the text, not by this. */
static uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

void funcs_init(struct funcs *funcs, struct names *names, bool wait)
{
	*funcs = (struct funcs){ .names = names, .wait = wait, .round = 1 };
	funcs->nslots = funcs->nframe_slots = funcs->nid_slots = 1024;
	funcs->slots = xcalloc(funcs->nslots, sizeof(*funcs->slots));
	funcs->frame_slots = xcalloc(funcs->nframe_slots, sizeof(*funcs->frame_slots));
	funcs->ids = xcalloc(funcs->nid_slots, sizeof(*funcs->ids));
}

void funcs_deinit(struct funcs *funcs)
{
	free(funcs->items);
	free(funcs->slots);
	free(funcs->frames);
	free(funcs->frame_slots);
	free(funcs->ids);
	free(funcs->raws);
	free(funcs->module_names);
	arena_free(&funcs->arena);
}

/* ---- ids ---- */

static void id_put(struct funcs *funcs, uint64_t id, uint32_t func)
{
	if (funcs->nids >= funcs->nid_slots / 2) {
		size_t old_n = funcs->nid_slots;
		__typeof__(funcs->ids) old = funcs->ids;
		funcs->nid_slots *= 2;
		funcs->ids = xcalloc(funcs->nid_slots, sizeof(*funcs->ids));
		funcs->nids = 0;
		for (size_t i = 0; i < old_n; i++)
			if (old[i].id)
				id_put(funcs, old[i].id, old[i].func);
		free(old);
	}
	size_t mask = funcs->nid_slots - 1;
	size_t i = id & mask;
	while (funcs->ids[i].id && funcs->ids[i].id != id)
		i = (i + 1) & mask;
	if (!funcs->ids[i].id)
		funcs->nids++;
	funcs->ids[i].id = id;
	funcs->ids[i].func = func;
}

int64_t funcs_by_id(const struct funcs *funcs, uint64_t id)
{
	size_t mask = funcs->nid_slots - 1;

	if (!id)
		return -1;
	for (size_t i = id & mask; funcs->ids[i].id; i = (i + 1) & mask)
		if (funcs->ids[i].id == id)
			return funcs->ids[i].func;
	return -1;
}

static void id_give(struct funcs *funcs, uint32_t func, uint64_t id)
{
	funcs->items[func].id = id ? id : 1;
	id_put(funcs, funcs->items[func].id, func);
}

/* ---- functions ---- */

static void slots_grow(struct funcs *funcs)
{
	free(funcs->slots);
	funcs->nslots *= 2;
	funcs->slots = xcalloc(funcs->nslots, sizeof(*funcs->slots));
	for (uint32_t k = 0; k < funcs->n; k++) {
		size_t i = funcs->items[k].hash & (funcs->nslots - 1);
		while (funcs->slots[i])
			i = (i + 1) & (funcs->nslots - 1);
		funcs->slots[i] = k + 1;
	}
}

uint64_t funcs_what(const char *function, const char *module)
{
	return funcs_mix(hash_text(0xcbf29ce484222325ull, module), hash_text(0xcbf29ce484222325ull, function));
}

/* Strings are kept as they are: they live as long as the names, or in the arena. */
static uint32_t func_intern(struct funcs *funcs, const char *module, const char *function,
			    bool unknown, bool pseudo)
{
	uint64_t hash = funcs_what(function, module);
	size_t i = hash & (funcs->nslots - 1);

	for (; funcs->slots[i]; i = (i + 1) & (funcs->nslots - 1)) {
		const struct func *func = &funcs->items[funcs->slots[i] - 1];
		if (func->hash == hash && !strcmp(func->function, function)
		    && !strcmp(func->module, module))
			return funcs->slots[i] - 1;
	}
	VEC_GROW(funcs->items, funcs->n, funcs->cap);
	uint32_t k = (uint32_t)funcs->n++;
	funcs->items[k] = (struct func){
		.hash = hash,
		.function = function,
		.module = module,
		.unknown = unknown,
		.pseudo = pseudo,
		.wrapper = !unknown && !pseudo && wrappers_match(funcs->wrappers, function),
		.match = -1,
	};
	funcs->slots[i] = k + 1;
	if (funcs->n > funcs->nslots / 2)
		slots_grow(funcs);
	return k;
}

void funcs_rejudge(struct funcs *funcs)
{
	for (size_t k = 0; k < funcs->n; k++) {
		struct func *func = &funcs->items[k];
		func->wrapper = !func->unknown && !func->pseudo
			&& wrappers_match(funcs->wrappers, func->function);
	}
}

static void raws_index(struct funcs *funcs)
{
	free(funcs->raws);
	funcs->nraw_slots = 64;
	while (funcs->nraw_slots < funcs->n * 2)
		funcs->nraw_slots *= 2;
	funcs->raws = xcalloc(funcs->nraw_slots, sizeof(*funcs->raws));
	for (uint32_t k = 0; k < funcs->n; k++) {
		size_t i = funcs_mix((uintptr_t)funcs->items[k].function, 1) & (funcs->nraw_slots - 1);
		while (funcs->raws[i].function)
			i = (i + 1) & (funcs->nraw_slots - 1);
		if (!funcs->items[k].function)
			continue;
		funcs->raws[i].function = funcs->items[k].function;
		funcs->raws[i].func = k;
	}
	funcs->nraws = funcs->n;
}

const char *funcs_raw(struct funcs *funcs, const char *function)
{
	/* a provisional name gets another text when its module is known: it isn't found then, and has no raw one */
	if (funcs->nraws != funcs->n)
		raws_index(funcs);
	if (!funcs->nraw_slots)
		return NULL;
	for (size_t i = funcs_mix((uintptr_t)function, 1) & (funcs->nraw_slots - 1); funcs->raws[i].function;
	     i = (i + 1) & (funcs->nraw_slots - 1))
		if (funcs->raws[i].function == function)
			return funcs->items[funcs->raws[i].func].raw;
	return NULL;
}

/* ---- frames ---- */

uint32_t funcs_frame(struct funcs *funcs, uint64_t addr)
{
	size_t mask = funcs->nframe_slots - 1;
	size_t i = funcs_mix(addr, 1) & mask;

	for (; funcs->frame_slots[i]; i = (i + 1) & mask)
		if (funcs->frames[funcs->frame_slots[i] - 1].addr == addr)
			return funcs->frame_slots[i] - 1;
	VEC_GROW(funcs->frames, funcs->nframes, funcs->frames_cap);
	uint32_t k = (uint32_t)funcs->nframes++;
	funcs->frames[k] = (struct frame){ .addr = addr, .match = -1 };
	funcs->frame_slots[i] = k + 1;
	if (funcs->nframes > funcs->nframe_slots / 2) {
		free(funcs->frame_slots);
		funcs->nframe_slots *= 2;
		mask = funcs->nframe_slots - 1;
		funcs->frame_slots = xcalloc(funcs->nframe_slots, sizeof(*funcs->frame_slots));
		for (uint32_t f = 0; f < funcs->nframes; f++) {
			i = funcs_mix(funcs->frames[f].addr, 1) & mask;
			while (funcs->frame_slots[i])
				i = (i + 1) & mask;
			funcs->frame_slots[i] = f + 1;
		}
	}
	return k;
}

static void module_learn(struct funcs *funcs, uint32_t module, const char *name)
{
	if (!module || !*name)
		return;
	if (module >= funcs->nmodule_names) {
		size_t n = module + 64;
		funcs->module_names = xreallocarray(funcs->module_names, n,
						    sizeof(*funcs->module_names));
		memset(funcs->module_names + funcs->nmodule_names, 0,
		       (n - funcs->nmodule_names) * sizeof(*funcs->module_names));
		funcs->nmodule_names = n;
	}
	funcs->module_names[module] = name;
}

static const char *module_name(const struct funcs *funcs, uint32_t module)
{
	if (module < funcs->nmodule_names && funcs->module_names[module])
		return funcs->module_names[module];
	const struct module *mod = funcs->mods ? module_get(funcs->mods, module) : NULL;
	return mod && mod->name ? mod->name : "";
}

static const uint32_t *one_func(struct funcs *funcs, uint32_t func)
{
	uint32_t *ret = arena_take(&funcs->arena, sizeof(*ret));

	*ret = func;
	return ret;
}

static void frame_set_pseudo(struct funcs *funcs, struct frame *frame)
{
	uint32_t func = func_intern(funcs, "", report_pseudo_text(frame->addr), false, true);

	if (!funcs->items[func].id)
		id_give(funcs, func, funcs->items[func].hash);
	frame->funcs = one_func(funcs, func);
	frame->nfuncs = 1;
}

/* "libfoo.so+0x1f30" until the name is there; text made anew when the module's name becomes known. */
static void frame_set_provisional(struct funcs *funcs, struct frame *frame)
{
	uint32_t module = frame_module(frame->addr);
	const char *name = module_name(funcs, module);

	if (!frame->provisional) {
		VEC_GROW(funcs->items, funcs->n, funcs->cap);
		uint32_t k = (uint32_t)funcs->n++;
		funcs->items[k] = (struct func){
			.hash = funcs_mix(frame->addr, 0x70726f76),
			.unknown = true,
			.match = -1,
		};
		if (funcs->n > funcs->nslots / 2)
			slots_grow(funcs);
		size_t i = funcs->items[k].hash & (funcs->nslots - 1);
		while (funcs->slots[i])
			i = (i + 1) & (funcs->nslots - 1);
		funcs->slots[i] = k + 1;
		frame->provisional = k + 1;
		frame->funcs = one_func(funcs, k);
		frame->nfuncs = 1;
		id_give(funcs, k, funcs->items[k].hash);
	}
	struct func *func = &funcs->items[frame->provisional - 1];
	if (func->module && !strcmp(func->module, name))
		return;
	char text[64];
	if (!module)
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)frame_vaddr(frame->addr));
	else if (*name)
		snprintf(text, sizeof(text), "+0x%llx", (unsigned long long)frame_vaddr(frame->addr));
	else
		snprintf(text, sizeof(text), "module %u+0x%llx", module,
			 (unsigned long long)frame_vaddr(frame->addr));
	size_t n = strlen(name), len = strlen(text);
	char *function = arena_take(&funcs->arena, n + len + 1);
	memcpy(function, name, n);
	memcpy(function + n, text, len + 1);
	func->function = function;
	func->module = name;
	func->match = frame->match = -1;
}

static void frame_set_name(struct funcs *funcs, struct frame *frame, const struct name *name)
{
	const char *module = name->module_name ? name->module_name : "";
	uint32_t *list = arena_take(&funcs->arena, name->nfuncs * sizeof(*list));
	uint32_t heir = 0;	/* the innermost that is no wrapper takes over the provisional id */

	module_learn(funcs, frame_module(frame->addr), module);
	for (uint32_t i = 0; i < name->nfuncs; i++) {
		list[i] = func_intern(funcs, module, name->funcs[i].function,
				      name->funcs[i].unknown, false);
		if (!funcs->items[list[i]].raw)
			funcs->items[list[i]].raw = name->funcs[i].linkage;
	}
	while (heir < name->nfuncs - 1 && funcs->items[list[heir]].wrapper)
		heir++;
	if (frame->provisional) {
		struct func *old = &funcs->items[frame->provisional - 1];
		struct func *func = &funcs->items[list[heir]];
		if (!func->id) {
			func->id = old->id;
			memcpy(func->trend, old->trend, sizeof(func->trend));
			func->ntrend = old->ntrend;
		}
		id_put(funcs, old->id, list[heir]);
		old->ntrend = 0;
	}
	for (uint32_t i = 0; i < name->nfuncs; i++)
		if (!funcs->items[list[i]].id)
			id_give(funcs, list[i], funcs->items[list[i]].hash);
	frame->name = name;
	frame->funcs = list;
	frame->nfuncs = name->nfuncs;
	frame->match = -1;
}

const struct frame *funcs_resolve(struct funcs *funcs, uint32_t index)
{
	struct frame *frame = &funcs->frames[index];

	if (frame->name || (frame->nfuncs && frame->asked == funcs->round))
		return frame;
	frame->asked = funcs->round;
	uint32_t module = frame_module(frame->addr);
	if (!module && frame->addr <= FRAME_PSEUDO_MAX) {
		if (!frame->nfuncs)
			frame_set_pseudo(funcs, frame);
		return frame;
	}
	const struct name *name = NULL;
	if (funcs->names)
		name = (funcs->wait ? names_wait : names_get)(funcs->names, module,
							      frame_vaddr(frame->addr), false);
	if (name && name->nfuncs) {
		frame_set_name(funcs, frame, name);
	} else {
		funcs->missing = funcs->missing || funcs->names;
		frame_set_provisional(funcs, frame);
	}
	return frame;
}

const char *frame_file(const struct frame *frame, uint32_t i)
{
	return frame->name && i < frame->name->nfuncs ? frame->name->funcs[i].file : NULL;
}

const char *frame_dir(const struct frame *frame)
{
	return frame->name ? frame->name->dir : NULL;
}

uint32_t frame_line(const struct frame *frame, uint32_t i)
{
	return frame->name && i < frame->name->nfuncs ? frame->name->funcs[i].line : 0;
}

bool frame_inlined(const struct frame *frame, uint32_t i)
{
	return frame->name && i < frame->name->nfuncs && frame->name->funcs[i].inlined;
}
