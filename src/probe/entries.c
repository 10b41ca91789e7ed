/* The table of entry points; see entries.h. */
#include "probe/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Kinds and arguments by what C calls them. Arguments are counted from 1. */
#define MALLOC		WIRE_HOOK_MALLOC, { .size = 1 }
#define FREE		WIRE_HOOK_FREE, { .pointer = 1 }
#define SIZED(n)	WIRE_HOOK_ALLOC, { .size = (n) }
#define COUNTED(n, s)	WIRE_HOOK_ALLOC, { .count = (n), .size = (s) }
#define REALLOC(p, s)	WIRE_HOOK_REALLOC, { .pointer = (p), .size = (s) }
#define RECOUNTED(p, n, s) WIRE_HOOK_REALLOC, { .pointer = (p), .count = (n), .size = (s) }
#define REALLOCF(p, s)	WIRE_HOOK_REALLOC, { .pointer = (p), .size = (s), .flags = WIRE_ARGS_FREES }
#define RELEASE(p)	WIRE_HOOK_RELEASE, { .pointer = (p) }
#define POSIX(o, s)	WIRE_HOOK_ALLOC, { .out = (o), .size = (s), .returns = WIRE_RETURNS_STATUS }
#define IN_PLACE(p, s)	WIRE_HOOK_REALLOC, { .pointer = (p), .size = (s), .returns = WIRE_RETURNS_SIZE }
#define THROWING(nothrow_arg) WIRE_HOOK_NEW, { .size = 1, .nothrow = (nothrow_arg) }

struct base {
	const char *name;
	enum wire_hook_kind kind;
	struct wire_args args;
	const char *sibling;
};

/* What C, POSIX and the C libraries have, and what allocators have with a prefix besides. */
static const struct base standard[] = {
	{ "malloc", MALLOC, NULL },
	{ "free", FREE, NULL },
	{ "cfree", FREE, NULL },
	{ "calloc", COUNTED(1, 2), NULL },
	{ "realloc", REALLOC(1, 2), NULL },
	{ "reallocarray", RECOUNTED(1, 2, 3), NULL },
	{ "reallocf", REALLOCF(1, 2), NULL },
	{ "memalign", SIZED(2), NULL },
	{ "aligned_alloc", SIZED(2), NULL },
	{ "posix_memalign", POSIX(1, 3), NULL },
	{ "valloc", SIZED(1), NULL },
	{ "pvalloc", SIZED(1), NULL },
	/* C23 */
	{ "free_sized", FREE, NULL },
	{ "free_aligned_sized", FREE, NULL },
};

/* jemalloc's own, with or without its prefix. */
static const struct base jemalloc[] = {
	{ "mallocx", SIZED(1), NULL },
	{ "rallocx", REALLOC(1, 2), NULL },
	{ "xallocx", IN_PLACE(1, 2), NULL },
	{ "dallocx", FREE, NULL },
	{ "sdallocx", FREE, NULL },
};

/*
 * gperftools' and mimalloc's, with their full names. What throws is called by its sibling, as operator
 * new; mi_new_n and mi_new_realloc have none and aren't here.
 */
static const struct base tcmalloc[] = {
	{ "tc_malloc_skip_new_handler", SIZED(1), NULL },
	{ "tc_free_sized", FREE, NULL },
	{ "tc_new", THROWING(2), "tc_new_nothrow" },
	{ "tc_new_nothrow", MALLOC, NULL },
	{ "tc_newarray", THROWING(2), "tc_newarray_nothrow" },
	{ "tc_newarray_nothrow", MALLOC, NULL },
	{ "tc_new_aligned", THROWING(3), "tc_new_aligned_nothrow" },
	{ "tc_new_aligned_nothrow", MALLOC, NULL },
	{ "tc_newarray_aligned", THROWING(3), "tc_newarray_aligned_nothrow" },
	{ "tc_newarray_aligned_nothrow", MALLOC, NULL },
	{ "tc_delete", FREE, NULL },
	{ "tc_delete_nothrow", FREE, NULL },
	{ "tc_delete_sized", FREE, NULL },
	{ "tc_delete_aligned", FREE, NULL },
	{ "tc_delete_aligned_nothrow", FREE, NULL },
	{ "tc_delete_sized_aligned", FREE, NULL },
	{ "tc_deletearray", FREE, NULL },
	{ "tc_deletearray_nothrow", FREE, NULL },
	{ "tc_deletearray_sized", FREE, NULL },
	{ "tc_deletearray_aligned", FREE, NULL },
	{ "tc_deletearray_aligned_nothrow", FREE, NULL },
	{ "tc_deletearray_sized_aligned", FREE, NULL },
};

static const struct base mimalloc[] = {
	{ "mi_malloc_small", SIZED(1), NULL },
	{ "mi_zalloc_small", SIZED(1), NULL },
	{ "mi_zalloc", SIZED(1), NULL },
	{ "mi_mallocn", COUNTED(1, 2), NULL },
	{ "mi_reallocn", RECOUNTED(1, 2, 3), NULL },
	{ "mi_rezalloc", REALLOC(1, 2), NULL },
	{ "mi_recalloc", RECOUNTED(1, 2, 3), NULL },
	{ "mi_expand", REALLOC(1, 2), NULL },
	{ "mi_malloc_aligned", SIZED(1), NULL },
	{ "mi_malloc_aligned_at", SIZED(1), NULL },
	{ "mi_zalloc_aligned", SIZED(1), NULL },
	{ "mi_zalloc_aligned_at", SIZED(1), NULL },
	{ "mi_calloc_aligned", COUNTED(1, 2), NULL },
	{ "mi_calloc_aligned_at", COUNTED(1, 2), NULL },
	{ "mi_realloc_aligned", REALLOC(1, 2), NULL },
	{ "mi_realloc_aligned_at", REALLOC(1, 2), NULL },
	{ "mi_rezalloc_aligned", REALLOC(1, 2), NULL },
	{ "mi_rezalloc_aligned_at", REALLOC(1, 2), NULL },
	{ "mi_recalloc_aligned", RECOUNTED(1, 2, 3), NULL },
	{ "mi_recalloc_aligned_at", RECOUNTED(1, 2, 3), NULL },
	{ "mi_heap_malloc", SIZED(2), NULL },
	{ "mi_heap_malloc_small", SIZED(2), NULL },
	{ "mi_heap_zalloc", SIZED(2), NULL },
	{ "mi_heap_calloc", COUNTED(2, 3), NULL },
	{ "mi_heap_mallocn", COUNTED(2, 3), NULL },
	{ "mi_heap_realloc", REALLOC(2, 3), NULL },
	{ "mi_heap_reallocf", REALLOCF(2, 3), NULL },
	{ "mi_heap_reallocn", RECOUNTED(2, 3, 4), NULL },
	{ "mi_heap_rezalloc", REALLOC(2, 3), NULL },
	{ "mi_heap_recalloc", RECOUNTED(2, 3, 4), NULL },
	{ "mi_heap_malloc_aligned", SIZED(2), NULL },
	{ "mi_heap_malloc_aligned_at", SIZED(2), NULL },
	{ "mi_heap_zalloc_aligned", SIZED(2), NULL },
	{ "mi_heap_zalloc_aligned_at", SIZED(2), NULL },
	{ "mi_heap_calloc_aligned", COUNTED(2, 3), NULL },
	{ "mi_heap_calloc_aligned_at", COUNTED(2, 3), NULL },
	{ "mi_heap_realloc_aligned", REALLOC(2, 3), NULL },
	{ "mi_heap_realloc_aligned_at", REALLOC(2, 3), NULL },
	{ "mi_new", THROWING(2), "mi_new_nothrow" },
	{ "mi_new_nothrow", MALLOC, NULL },
	{ "mi_new_aligned", THROWING(3), "mi_new_aligned_nothrow" },
	{ "mi_new_aligned_nothrow", MALLOC, NULL },
	{ "mi_free_size", FREE, NULL },
	{ "mi_free_size_aligned", FREE, NULL },
	{ "mi_free_aligned", FREE, NULL },
};

/* C++: operator new and delete, as the Itanium ABI writes them on x86-64; Zn: new, Zd: delete,
 * w and l: one object, a: array, m: size_t, St11align_val_t, RKSt9nothrow_t. */
static const struct base operators[] = {
	{ "_Znwm", THROWING(2), "_ZnwmRKSt9nothrow_t" },
	{ "_Znam", THROWING(2), "_ZnamRKSt9nothrow_t" },
	{ "_ZnwmSt11align_val_t", THROWING(3), "_ZnwmSt11align_val_tRKSt9nothrow_t" },
	{ "_ZnamSt11align_val_t", THROWING(3), "_ZnamSt11align_val_tRKSt9nothrow_t" },
	{ "_ZnwmRKSt9nothrow_t", MALLOC, NULL },
	{ "_ZnamRKSt9nothrow_t", MALLOC, NULL },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", MALLOC, NULL },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", MALLOC, NULL },
	{ "_ZdlPv", FREE, NULL },
	{ "_ZdaPv", FREE, NULL },
	{ "_ZdlPvm", FREE, NULL },
	{ "_ZdaPvm", FREE, NULL },
	{ "_ZdlPvRKSt9nothrow_t", FREE, NULL },
	{ "_ZdaPvRKSt9nothrow_t", FREE, NULL },
	{ "_ZdlPvSt11align_val_t", FREE, NULL },
	{ "_ZdaPvSt11align_val_t", FREE, NULL },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", FREE, NULL },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t", FREE, NULL },
	{ "_ZdlPvmSt11align_val_t", FREE, NULL },
	{ "_ZdaPvmSt11align_val_t", FREE, NULL },
};

/* What changes mappings. */
#define RANGE(op)	WIRE_HOOK_RANGE, { .range = WIRE_RANGE_ ## op }
static const struct base ranges[] = {
	{ "mmap", RANGE(MMAP), NULL },
	{ "mmap64", RANGE(MMAP), NULL },
	{ "munmap", RANGE(MUNMAP), NULL },
	{ "mremap", RANGE(MREMAP), NULL },
	{ "brk", RANGE(BRK), NULL },
	{ "sbrk", RANGE(SBRK), NULL },
};

/*
 * Families: "": the C library's names. jemalloc is built with any prefix; "je_" and "_rjem_" (the
 * crates jemalloc-sys and tikv-jemalloc-sys) are the usual ones. rpmalloc has no underscore.
 */
static const struct {
	const char *prefix;
	bool is_jemalloc;
	const struct base *own;
	size_t n;
} families[ENTRIES_FAMILIES] = {
	{ "", true, operators, ARRAY_SIZE(operators) },
	{ "je_", true, NULL, 0 },
	{ "_rjem_", true, NULL, 0 },
	{ "tc_", false, tcmalloc, ARRAY_SIZE(tcmalloc) },
	{ "mi_", false, mimalloc, ARRAY_SIZE(mimalloc) },
	{ "rp_", false, NULL, 0 },
	{ "rp", false, NULL, 0 },
	{ "__libc_", false, NULL, 0 },
};

#define BUCKETS 2048u	/* several times the entries */

struct entries {
	struct entry *all;
	const char **names;		/* with a prefix: our own */
	size_t n, cap;
	uint16_t bucket[BUCKETS];	/* index + 1, 0: none */
};

/* FNV-1a, up to a version. */
static uint32_t hash_name(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name && *name != '@'; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static void add(struct entries *t, const struct base *b, const char *prefix, unsigned family)
{
	VEC_GROW(t->all, t->n, t->cap);
	t->all[t->n++] = (struct entry){
		.name = xasprintf("%s%s", prefix, b->name), .kind = b->kind, .args = b->args,
		.sibling = b->sibling, .family = family,
		.is_operator = b->name[0] == '_' && b->name[1] == 'Z',
	};
}

struct entries *entries_create(bool mmap)
{
	struct entries *t = xcalloc(1, sizeof(*t));

	for (unsigned f = 0; f < ENTRIES_FAMILIES; f++) {
		for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
			add(t, &standard[i], families[f].prefix, f);
		for (size_t i = 0; families[f].is_jemalloc && i < ARRAY_SIZE(jemalloc); i++)
			add(t, &jemalloc[i], families[f].prefix, f);
		for (size_t i = 0; i < families[f].n; i++)
			add(t, &families[f].own[i], "", f);
	}
	for (size_t i = 0; mmap && i < ARRAY_SIZE(ranges); i++)
		add(t, &ranges[i], "", 0);
	t->names = xcalloc(t->n, sizeof(*t->names));
	for (size_t i = 0; i < t->n; i++) {
		uint32_t at = hash_name(t->all[i].name);

		t->names[i] = t->all[i].name;
		while (t->bucket[at % BUCKETS])
			at++;
		t->bucket[at % BUCKETS] = (uint16_t)(i + 1);
	}
	return t;
}

void entries_destroy(struct entries *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free((char *)t->all[i].name);
	free(t->all);
	free(t->names);
	free(t);
}

const char *const *entries_names(const struct entries *t, size_t *ret_n)
{
	*ret_n = t->n;
	return t->names;
}

const struct entry *entries_find(const struct entries *t, const char *symbol)
{
	size_t len = strcspn(symbol, "@");

	for (uint32_t at = hash_name(symbol); t->bucket[at % BUCKETS]; at++) {
		const struct entry *e = &t->all[t->bucket[at % BUCKETS] - 1];

		if (!strncmp(e->name, symbol, len) && !e->name[len])
			return e;
	}
	return NULL;
}

bool entries_family_there(const struct entry *const *found, size_t n, unsigned family)
{
	static const char *const needed[] = { "malloc", "free", "realloc" };
	size_t prefix = strlen(families[family].prefix), there = 0;

	if (!family)
		return true;
	for (size_t k = 0; k < ARRAY_SIZE(needed); k++)
		for (size_t i = 0; i < n; i++)
			if (found[i]->family == family && !strcmp(found[i]->name + prefix, needed[k])) {
				there++;
				break;
			}
	return there == ARRAY_SIZE(needed);
}
