/*
 * An agent that a killed heaptop left behind. It is found by its memory, not by its hooks, since
 * its heaptop may have died half-way in or out: islands start with a magic word, so does the
 * state mapping, the rings' memfd has a name. All of that is the target's word: what is put back
 * comes from the ELF file, what is unmapped must at least look the part in /proc/PID/maps.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "probe/entries.h"
#include "probe/inside.h"
#include "probe/placed.h"
#include "target/proc.h"
#include "target/target.h"

#define FUNCTIONS_MAX 512
#define FOUND_MAX 64		/* pieces of old agents, of each sort */
#define STATE_BYTES ((WIRE_STATE_BYTES + PAGE - 1) / PAGE * PAGE)
#define PAGE 4096u

struct pieces {
	struct code_range at[FOUND_MAX];
	size_t n;
};

struct found {
	struct target *t;
	struct pieces islands, states, rings;
	struct pieces claimed;	/* rings in private memory, as islands name them */
	bool foreign;		/* by another build: where its threads are can't be told, its memory stays */
};

static bool add(struct pieces *p, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->at[i].start == start)
			return true;
	if (p->n == FOUND_MAX)
		return false;
	p->at[p->n++] = (struct code_range){ start, end };
	return true;
}

static bool is_anonymous(const struct mapping *m)
{
	return !*m->path && !m->inode && !m->shared;
}

static void look_island(struct found *f, const struct mapping *m)
{
	struct wire_island head;

	if (target_read_some(f->t, m->start, &head, sizeof(head)) < sizeof(head) ||
	    head.magic != WIRE_ISLAND_MAGIC || head.bytes < sizeof(head) || head.bytes % PAGE ||
	    head.bytes > m->end - m->start)
		return;
	add(&f->islands, m->start, m->start + head.bytes);
	f->foreign |= head.version != WIRE_VERSION;
	if (head.rings_bytes && head.rings_bytes <= UINT64_MAX - head.rings &&
	    !(head.rings % PAGE) && !(head.rings_bytes % PAGE))
		add(&f->claimed, head.rings, head.rings + head.rings_bytes);
}

static void look_state(struct found *f, uint64_t at)
{
	uint64_t magic;

	if (target_read_some(f->t, at, &magic, sizeof(magic)) == sizeof(magic) && magic == WIRE_CTL_MAGIC)
		add(&f->states, at, at + STATE_BYTES);
}

/*
 * MADV_WIPEONFORK keeps a state from being merged with the program's memory, but not with another one: each is looked
 * for, from both ends, since one whose heaptop was killed just then may have no magic number, or still be as all memory is.
 */
static void look_states(struct found *f, const struct mapping *m)
{
	for (uint64_t at = m->start; m->end - at >= STATE_BYTES && (at - m->start) / STATE_BYTES < FOUND_MAX; at += STATE_BYTES)
		look_state(f, at);
	for (uint64_t end = m->end; end - m->start >= STATE_BYTES && (m->end - end) / STATE_BYTES < FOUND_MAX; end -= STATE_BYTES)
		look_state(f, end - STATE_BYTES);
}

static bool look(void *ctx, const struct mapping *m)
{
	struct found *f = ctx;

	if (is_anonymous(m)) {
		if (m->prot & PROT_EXEC && !(m->prot & PROT_WRITE))
			look_island(f, m);
		else if (m->prot == (PROT_READ | PROT_WRITE))
			look_states(f, m);
	} else if (m->shared && !(m->prot & PROT_EXEC) && !strncmp(m->path, "/memfd:heaptop", 14)) {
		add(&f->rings, m->start, m->end);
	}
	return true;
}

static bool in_pieces(const struct pieces *p, uint64_t addr)
{
	for (size_t i = 0; i < p->n; i++)
		if (addr >= p->at[i].start && addr < p->at[i].end)
			return true;
	return false;
}

bool agent_is_island(struct target *t, uint64_t addr)
{
	CLEANUP_FREE struct found *f = xcalloc(1, sizeof(*f));

	f->t = t;
	err_free(target_each_mapping(t, look, f));
	return in_pieces(&f->islands, addr);
}

/* If the code at `addr` is a jump into a found island, give it its first bytes back. */
static struct err *restore_entry(const struct found *f, const struct module *m, uint64_t addr, size_t *count)
{
	uint8_t now[HOOK_PATCH], was[HOOK_PATCH];
	uint64_t to;

	if (target_read_some(f->t, addr, now, sizeof(now)) < sizeof(now) || !hook_is_jump(now, addr, &to) ||
	    !in_pieces(&f->islands, to) || elf_file_read(m->file, addr - m->bias, was, sizeof(was)) < sizeof(was))
		return NULL;
	struct err *err = target_write_text(f->t, addr, was, sizeof(was));
	if (!err)
		++*count;
	return err;
}

/* What the thunks of an island say they were made for: names don't tell what the user had named. */
static struct err *restore_thunks(const struct found *f, const struct modules *mods, const struct code_range *island,
				  size_t *count)
{
	struct wire_island head;
	struct wire_hook hook;
	struct err *err = NULL;

	if (target_read_some(f->t, island->start, &head, sizeof(head)) < sizeof(head) ||
	    head.version != WIRE_VERSION || head.code_bytes > island->end - island->start)
		return NULL;
	for (uint64_t at = island->start + ((head.code_bytes + 63) & ~63ull);
	     at + HOOK_THUNK_MAX <= island->end && !err; at += HOOK_THUNK_MAX) {
		if (target_read_some(f->t, at + HOOK_RECORD, &hook, sizeof(hook)) < sizeof(hook))
			break;
		const struct module *m = hook.at ? modules_find(mods, hook.at) : NULL;
		if (m && m->file)
			err = restore_entry(f, m, hook.at, count);
	}
	return err;
}

/* The same for the entry points of a module that are known by name: the thunks' word isn't enough. */
static struct err *restore_module(const struct found *f, const struct module *m, const struct entries *entries,
				  size_t *count)
{
	size_t nnames;
	const char *const *names = entries_names(entries, &nnames);
	CLEANUP_FREE struct elf_func *funcs = xcalloc(FUNCTIONS_MAX, sizeof(*funcs));
	size_t n = elf_file_find_functions(m->file, names, nnames, funcs, FUNCTIONS_MAX);
	struct err *err = NULL;

	for (size_t i = 0; i < n && !err; i++)
		err = restore_entry(f, m, m->bias + funcs[i].vaddr, count);
	return err;
}

static struct err *restore_text(const struct found *f, const struct modules *mods, size_t *count)
{
	struct entries *entries = entries_create(true);
	struct err *err = NULL;

	for (size_t i = 0; i < f->islands.n && !err; i++)
		err = restore_thunks(f, mods, &f->islands.at[i], count);
	for (uint32_t id = 1; id <= modules_count(mods) && !err; id++) {
		const struct module *m = module_get(mods, id);
		if (m && !m->gone && m->file)
			err = restore_module(f, m, entries, count);
	}
	entries_destroy(entries);
	return err;
}

/* A heaptop that is alive and well watches this process already. */
static struct err *check_owner(struct target *t, uint64_t state)
{
	struct proc_stat st;
	struct wire_ctl ctl;
	pid_t owner;

	if (target_read_some(t, state, &ctl, sizeof(ctl)) < sizeof(ctl))
		return NULL;
	owner = (pid_t)ctl.owner;
	if (owner <= 1 || owner == getpid() || !proc_stat(owner, 0, &st) || st.start != ctl.owner_start ||
	    st.state == 'Z' || st.state == 'X')
		return NULL;
	return err_new(ERR_BUSY, "process %d is already watched by another heaptop (process %d): end that one first",
		       (int)target_pid(t), (int)owner);
}

/* Threads that wait for room in a ring nobody reads any more shall leave now, not when the lease
 * is over. */
static void deactivate(const struct found *f)
{
	const uint32_t zero = 0;

	for (size_t k = 0; k < f->states.n; k++)
		err_free(target_write(f->t, f->states.at[k].start + offsetof(struct wire_ctl, active),
				      &zero, sizeof(zero)));
}

static bool anybody_inside(const struct found *f)
{
	size_t n;
	const struct target_thread *threads = target_threads(f->t, &n);

	if (f->foreign)
		return true;
	for (size_t i = 0; f->islands.n && i < n; i++) {
		if (inside_ranges(f->t, &threads[i], 0, f->islands.at, f->islands.n))
			return true;
		for (size_t k = 0; k < f->states.n; k++)
			if (inside_ranges(f->t, &threads[i], f->states.at[k].start, f->islands.at, f->islands.n))
				return true;
	}
	return false;
}

static void release(struct target *t, const struct pieces *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const uint64_t args[6] = { p->at[i].start, p->at[i].end - p->at[i].start };
		err_free(agent_call(t, "munmap", SYS_munmap, args, NULL));
	}
}

/* A descriptor of the rings stays open if heaptop died before the target had closed it. */
static void close_memfds(struct target *t)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)target_pid(t));
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		if (!strncmp(link, "/memfd:heaptop", 14))
			err_free(agent_call(t, "close", SYS_close,
					    (const uint64_t[6]){ strtoul(e->d_name, NULL, 10) }, NULL));
	}
	if (dir)
		closedir(dir);
}

struct keep {
	const struct pieces *claimed;
	struct pieces good;
};

/* Claimed rings that lie within one private anonymous mapping. */
static bool check_claim(void *ctx, const struct mapping *m)
{
	struct keep *k = ctx;

	for (size_t i = 0; i < k->claimed->n; i++) {
		const struct code_range *c = &k->claimed->at[i];
		if (c->start >= m->start && c->end <= m->end && is_anonymous(m) &&
		    m->prot == (PROT_READ | PROT_WRITE))
			add(&k->good, c->start, c->end);
	}
	return true;
}

struct err *probe_agent_cleanup(struct target *t, const struct modules *mods, size_t *ret_found,
				bool *ret_again)
{
	CLEANUP_FREE struct found *f = xcalloc(1, sizeof(*f));

	*ret_found = 0;
	*ret_again = false;
	f->t = t;
	struct err *err = target_each_mapping(t, look, f);
	for (size_t k = 0; k < f->states.n && !err; k++)
		err = check_owner(t, f->states.at[k].start);
	if (!err && f->islands.n)
		err = restore_text(f, mods, ret_found);
	if (err)
		return err;
	deactivate(f);
	if (anybody_inside(f)) {
		*ret_again = true;
		return NULL;
	}
	CLEANUP_FREE struct keep *k = xcalloc(1, sizeof(*k));
	k->claimed = &f->claimed;
	if (f->claimed.n)
		err_free(target_each_mapping(t, check_claim, k));
	release(t, &f->islands);
	release(t, &f->rings);
	release(t, &k->good);
	release(t, &f->states);
	if (f->states.n || f->rings.n)
		close_memfds(t);
	return NULL;
}
