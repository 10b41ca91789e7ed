/*
 * The table of modules; see modules.h. Only executable mappings count: a frame can lie nowhere
 * else, and files that are merely mapped as data (archives, fonts, devices) are never opened.
 *
 * A module is a (device, inode, path) at one bias. The bias comes from the mapping itself: start
 * minus the vaddr the file's headers give to its offset. Inode numbers are used again, so a file
 * that shows up in a new place is compared (size, modification time) with what we have open.
 */
#include "elf/modules.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "elf/file.h"
#include "elf/internal.h"

/* Modules lie in chunks that never move, so that readers need no lock. A target that maps ever
 * new files ends up with frames in "no module", not with our memory. */
#define CHUNK 256
#define CHUNKS 1024

/* What the writer knows besides; `pub` is what others see. */
struct entry {
	struct module pub;
	char *raw_path;		/* as in maps, for comparison */
	bool seen;		/* in this update */
};

struct range {
	uint64_t start, end, offset, dev, inode;
	struct entry *entry;
};

struct modules {
	struct entry *chunks[CHUNKS];
	size_t count;		/* atomic: entries below it are complete */
	struct range *ranges, *old;	/* executable ones, by start; the last update's */
	size_t nranges, cap, nold, old_cap;
	struct entry *anon;
	bool full_logged;
};

static struct entry *entry_at(const struct modules *mods, size_t i)
{
	return &mods->chunks[i / CHUNK][i % CHUNK];
}

struct modules *modules_create(void)
{
	return xcalloc(1, sizeof(struct modules));
}

void modules_destroy(struct modules *mods)
{
	if (!mods)
		return;
	for (size_t i = 0; i < mods->count; i++) {
		struct entry *e = entry_at(mods, i);
		elf_file_unref(e->pub.file);
		free(e->pub.path);
		free(e->pub.name);
		free(e->raw_path);
	}
	for (size_t i = 0; i < CHUNKS; i++)
		free(mods->chunks[i]);
	free(mods->ranges);
	free(mods->old);
	free(mods);
}

/* Published as a whole: what others read is complete before the count says it is there. */
static struct entry *add_entry(struct modules *mods, const struct module *pub, const char *path)
{
	size_t i = mods->count;

	if (i == (size_t)CHUNK * CHUNKS) {
		if (!mods->full_logged)
			log_line("more than %d modules: new ones are not told apart",
				 CHUNK * CHUNKS);
		mods->full_logged = true;
		return NULL;
	}
	if (!mods->chunks[i / CHUNK])
		mods->chunks[i / CHUNK] = xcalloc(CHUNK, sizeof(struct entry));
	struct entry *e = entry_at(mods, i);
	e->pub = *pub;
	e->pub.id = (uint32_t)i + 1;
	e->raw_path = xstrdup(path);
	e->pub.path = xstrdup(path);
	text_sanitize(e->pub.path);
	const char *slash = strrchr(e->pub.path, '/');
	e->pub.name = xstrdup(slash && slash[1] ? slash + 1 : e->pub.path);
	__atomic_store_n(&mods->count, i + 1, __ATOMIC_RELEASE);
	return e;
}

static struct entry *same_entry(const struct modules *to, const struct entry *e)
{
	return e ? entry_at(to, e->pub.id - 1) : NULL;
}

struct modules *modules_copy(const struct modules *mods)
{
	struct modules *ret = modules_create();

	for (size_t i = 0; i < mods->count; i++) {
		const struct entry *e = entry_at(mods, i);
		struct entry *copy = add_entry(ret, &e->pub, e->raw_path);
		copy->seen = e->seen;
		if (e->pub.file)
			elf_file_ref(e->pub.file);
	}
	ret->anon = same_entry(ret, mods->anon);
	for (size_t i = 0; i < mods->nranges; i++) {
		VEC_GROW(ret->ranges, ret->nranges, ret->cap);
		ret->ranges[ret->nranges] = mods->ranges[i];
		ret->ranges[ret->nranges++].entry = same_entry(ret, mods->ranges[i].entry);
	}
	return ret;
}

uint32_t modules_adopt(struct modules *mods, const struct module *of)
{
	bool vdso = !strcmp(of->path, "[vdso]");

	/* the newest first: a program's files are asked for together */
	for (size_t i = mods->count; i-- > 0;) {
		const struct module *m = &entry_at(mods, i)->pub;
		bool same = vdso ? true
			: of->file ? m->file == of->file
			: !m->file && m->dev == of->dev && m->inode == of->inode;
		if (same && !strcmp(m->path, of->path))
			return m->id;
	}
	struct module pub = *of;
	pub.gone = false;
	struct entry *e = add_entry(mods, &pub, of->path);
	if (e && pub.file)
		elf_file_ref(pub.file);
	return e ? e->pub.id : 0;
}

static bool is_anonymous(const struct mapping *map)
{
	/* "[heap]", "[stack]", "[anon:name]" and "anon_inode:..." hold no file either */
	return !map->path[0] || !strncmp(map->path, "anon_inode:", 11) ||
	       (map->path[0] == '[' && strcmp(map->path, "[vdso]") &&
		strcmp(map->path, "[vsyscall]"));
}

static bool is_vdso(const struct mapping *map)
{
	return !strcmp(map->path, "[vdso]");
}

/* Opening a device may have effects. */
static bool is_openable(const struct mapping *map)
{
	return map->path[0] != '[' &&
	       (strncmp(map->path, "/dev/", 5) || !strncmp(map->path, "/dev/shm/", 9));
}

static bool same_key(const struct entry *e, const struct mapping *map)
{
	return e->pub.dev == map->dev && e->pub.inode == map->inode &&
	       !strcmp(e->raw_path, map->path);
}

static bool fits(const struct entry *e, const struct mapping *map)
{
	return !e->pub.file ||
	       elf_file_fits(e->pub.file, map->start, map->offset, e->pub.bias);
}

/* Some range of the last update is exactly this one: the same bytes as then. */
static struct entry *find_unchanged(const struct modules *mods, const struct mapping *map,
				    size_t *cursor)
{
	while (*cursor < mods->nold && mods->old[*cursor].start < map->start)
		(*cursor)++;
	if (*cursor == mods->nold)
		return NULL;
	const struct range *r = &mods->old[*cursor];
	if (r->start != map->start || r->offset != map->offset || !r->entry)
		return NULL;
	if (r->entry == mods->anon)
		return is_anonymous(map) ? r->entry : NULL;
	return same_key(r->entry, map) ? r->entry : NULL;
}

struct opener {
	modules_open_fn fn;
	void *ctx;
};

/* The file behind the mapping, NULL if it isn't ELF. One that is open already comes out as the same. */
static struct elf_file *open_file(const struct mapping *map, const struct opener *open)
{
	struct elf_file *file = NULL;

	if (!is_openable(map) && !is_vdso(map))
		return NULL;
	int fd = open->fn ? open->fn(open->ctx, map) : -1;
	if (fd < 0) {
		log_line("%s: can't be opened", map->path);
		return NULL;
	}
	struct err *err = elf_file_open(fd, map->path, &file);
	if (err) {
		log_line("%s", err->text);
		err_free(err);
		return NULL;
	}
	return file;
}

/* The program itself comes first in memory; libraries may have an interpreter too (libc has). */
static bool looks_like_main(const struct modules *mods, const struct mapping *map,
			    const struct elf_file *file)
{
	if (!file || is_vdso(map) || !elf_file_entry(file))
		return false;
	for (size_t i = 0; i < mods->count; i++) {
		const struct entry *e = entry_at(mods, i);
		if (e->pub.is_main && !e->pub.gone)
			return false;
	}
	return true;
}

static struct entry *find_anon(struct modules *mods)
{
	if (!mods->anon)
		mods->anon = add_entry(mods, &(struct module){ 0 }, "[anon]");
	return mods->anon;
}

/* The module of a mapping in a place where there was none of it before. */
static struct entry *find_new(struct modules *mods, const struct mapping *map,
			      const struct opener *open)
{
	struct elf_file *file;

	if (is_anonymous(map))
		return find_anon(mods);
	/* another part of a file seen in this very update (text remapped in pieces): as it is */
	for (size_t i = mods->count; i-- > 0;) {
		struct entry *e = entry_at(mods, i);
		if (e->seen && same_key(e, map) && fits(e, map))
			return e;
	}
	file = open_file(map, open);

	uint64_t bias = 0;
	if (file && !elf_file_exec_bias(file, map->start, map->offset, &bias)) {
		elf_file_unref(file);	/* its headers don't know that part: no addresses in it */
		file = NULL;
	}
	for (size_t i = mods->count; i-- > 0;) {
		struct entry *e = entry_at(mods, i);
		bool is_it = is_vdso(map) ? file && e->pub.file && e->pub.bias == bias
			   : file ? e->pub.file == file && fits(e, map)
			   : !e->pub.file;
		if (is_it && same_key(e, map)) {
			elf_file_unref(file);
			return e;
		}
	}
	struct module pub = {
		.file = file,
		.dev = map->dev,
		.inode = map->inode,
		.bias = bias,
		.is_main = looks_like_main(mods, map, file),
	};
	struct entry *e = add_entry(mods, &pub, map->path);
	if (!e)
		elf_file_unref(file);
	return e;
}

/* Nothing executable has changed. Allocates nothing: this is the usual answer. */
static bool is_unchanged(const struct modules *mods, const struct mapping *maps, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		const struct mapping *map = &maps[i];
		if (!(map->prot & PROT_EXEC) || map->end <= map->start)
			continue;
		if (k == mods->nranges)
			return false;
		const struct range *r = &mods->ranges[k++];
		if (r->start != map->start || r->end != map->end || r->offset != map->offset ||
		    r->dev != map->dev || r->inode != map->inode)
			return false;
		if (!r->entry)
			continue;
		if (r->entry == mods->anon ? !is_anonymous(map) : !same_key(r->entry, map))
			return false;
	}
	return k == mods->nranges;
}

bool modules_update(struct modules *mods, const struct mapping *maps, size_t n,
		    modules_open_fn open_fn, void *ctx)
{
	const struct opener open = { .fn = open_fn, .ctx = ctx };

	if (is_unchanged(mods, maps, n))
		return false;

	struct range *spare = mods->old;
	size_t spare_cap = mods->old_cap;
	mods->old = mods->ranges;
	mods->nold = mods->nranges;
	mods->old_cap = mods->cap;
	mods->ranges = spare;
	mods->cap = spare_cap;
	mods->nranges = 0;

	/* Files that stayed where they were first, so that none of them is opened again for a
	 * neighbouring new piece. */
	for (size_t i = 0; i < mods->count; i++)
		entry_at(mods, i)->seen = false;
	size_t cursor = 0;
	uint64_t top = 0;
	for (size_t i = 0; i < n; i++) {
		const struct mapping *map = &maps[i];
		/* sorted and disjoint, as the kernel has them; what isn't is left out */
		if (!(map->prot & PROT_EXEC) || map->end <= map->start || map->start < top)
			continue;
		top = map->end;
		VEC_GROW(mods->ranges, mods->nranges, mods->cap);
		struct entry *e = find_unchanged(mods, map, &cursor);
		if (e)
			e->seen = true;
		mods->ranges[mods->nranges++] = (struct range){
			.start = map->start, .end = map->end, .offset = map->offset,
			.dev = map->dev, .inode = map->inode, .entry = e,
		};
	}
	/* what wasn't seen counts as gone before new ones are judged (which one is the program) */
	for (size_t i = 0; i < mods->count; i++) {
		struct entry *e = entry_at(mods, i);
		if (!e->seen)
			__atomic_store_n(&e->pub.gone, true, __ATOMIC_RELAXED);
	}
	size_t k = 0;
	for (size_t i = 0; i < n && k < mods->nranges; i++) {
		if (maps[i].start != mods->ranges[k].start || !(maps[i].prot & PROT_EXEC) ||
		    maps[i].end != mods->ranges[k].end)
			continue;
		struct range *r = &mods->ranges[k++];
		if (!r->entry && !ending_broken_off())
			r->entry = find_new(mods, &maps[i], &open);
		if (r->entry) {
			r->entry->seen = true;
			__atomic_store_n(&r->entry->pub.gone, false, __ATOMIC_RELAXED);
		}
	}
	return true;
}

static const struct range *range_at(const struct modules *mods, uint64_t pc)
{
	size_t lo = 0, hi = mods->nranges;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (mods->ranges[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == mods->nranges || pc < mods->ranges[lo].start || !mods->ranges[lo].entry)
		return NULL;
	return &mods->ranges[lo];
}

const struct module *modules_find(const struct modules *mods, uint64_t pc)
{
	const struct range *r = range_at(mods, pc);

	return r ? &r->entry->pub : NULL;
}

uint64_t modules_range_start(const struct modules *mods, uint64_t pc)
{
	const struct range *r = range_at(mods, pc);

	return r ? r->start : 0;
}

size_t modules_count(const struct modules *mods)
{
	return __atomic_load_n(&mods->count, __ATOMIC_ACQUIRE);
}

const struct module *module_get(const struct modules *mods, uint32_t id)
{
	if (!id || id > modules_count(mods))
		return NULL;
	return &entry_at(mods, id - 1)->pub;
}
