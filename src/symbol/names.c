/*
 * The table of names with its worker; see names.h. Two locks: `lock` guards the table and the
 * queue and is held for a look-up's time only; `slow` is held while files are read, by the worker
 * or by whoever calls names_wait (that thread reads by itself: no hand-over for each of thousands
 * of names). Order: slow before lock.
 */
#include "symbol/names.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "symbol/resolve.h"
#include "symbol/strings.h"

struct key {
	uint64_t vaddr;
	uint32_t module;
	bool exact;
};

struct slot {
	struct key key;
	bool used;
	struct name *name;	/* NULL: asked for, not known yet */
};

struct names {
	const struct modules *mods;
	struct strings *strings;
	uint64_t generation;	/* atomic */

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct slot *slots;	/* open addressing, capacity a power of two, at most half full */
	size_t n, cap;
	size_t pending;
	struct key *queue;	/* a stack: what the screen shows now was asked for last */
	size_t nqueue, queue_cap;
	bool started, stop;
	pthread_t worker;

	pthread_mutex_t slow;
	struct resolver *resolver;
};

struct names *names_create(const struct modules *mods)
{
	struct names *names = xcalloc(1, sizeof(*names));

	names->mods = mods;
	names->strings = strings_create();
	names->resolver = resolver_create(mods, names->strings);
	names->cap = 1024;
	names->slots = xcalloc(names->cap, sizeof(*names->slots));
	pthread_mutex_init(&names->lock, NULL);
	pthread_mutex_init(&names->slow, NULL);
	pthread_cond_init(&names->wake, NULL);
	return names;
}

void names_destroy(struct names *names)
{
	if (!names)
		return;
	pthread_mutex_lock(&names->lock);
	names->stop = true;
	bool started = names->started;
	pthread_cond_signal(&names->wake);
	pthread_mutex_unlock(&names->lock);
	if (started)
		pthread_join(names->worker, NULL);

	for (size_t i = 0; i < names->cap; i++)
		free(names->slots[i].name);
	free(names->slots);
	free(names->queue);
	resolver_destroy(names->resolver);
	strings_destroy(names->strings);
	pthread_cond_destroy(&names->wake);
	pthread_mutex_destroy(&names->slow);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

/* ---- the table; under `lock` ---- */

/* finalizer of MurmurHash3 */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

static struct slot *find_slot(struct slot *slots, size_t cap, struct key key)
{
	uint64_t rest = (uint64_t)key.module << 48 ^ (uint64_t)key.exact << 47;
	size_t i = mix(key.vaddr ^ rest) & (cap - 1);

	while (slots[i].used && (slots[i].key.vaddr != key.vaddr ||
				 slots[i].key.module != key.module ||
				 slots[i].key.exact != key.exact))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void grow(struct names *names)
{
	size_t cap = names->cap * 2;
	struct slot *slots = xcalloc(cap, sizeof(*slots));

	for (size_t i = 0; i < names->cap; i++)
		if (names->slots[i].used)
			*find_slot(slots, cap, names->slots[i].key) = names->slots[i];
	free(names->slots);
	names->slots = slots;
	names->cap = cap;
}

/* The key's slot, made if there was none; *ret_new says so. */
static struct slot *get_slot(struct names *names, struct key key, bool *ret_new)
{
	struct slot *slot = find_slot(names->slots, names->cap, key);

	*ret_new = !slot->used;
	if (slot->used)
		return slot;
	if (2 * (names->n + 1) > names->cap) {
		grow(names);
		slot = find_slot(names->slots, names->cap, key);
	}
	*slot = (struct slot){ .key = key, .used = true };
	names->n++;
	names->pending++;
	return slot;
}

static const struct name *look_up(struct names *names, struct key key)
{
	pthread_mutex_lock(&names->lock);
	const struct slot *slot = find_slot(names->slots, names->cap, key);
	const struct name *name = slot->used ? slot->name : NULL;
	pthread_mutex_unlock(&names->lock);
	return name;
}

/* Takes `name` over; the first answer to a key stays. */
static const struct name *publish(struct names *names, struct key key, struct name *name)
{
	bool is_new;

	pthread_mutex_lock(&names->lock);
	struct slot *slot = get_slot(names, key, &is_new);
	if (slot->name) {
		free(name);
	} else {
		slot->name = name;
		names->pending--;
		__atomic_add_fetch(&names->generation, 1, __ATOMIC_RELEASE);
	}
	const struct name *ret = slot->name;
	pthread_mutex_unlock(&names->lock);
	return ret;
}

/* ---- reading ---- */

static const struct name *resolve(struct names *names, struct key key)
{
	pthread_mutex_lock(&names->slow);
	const struct name *name = look_up(names, key);	/* somebody else may have been first */
	if (!name)
		name = publish(names, key, resolver_name(names->resolver, key.module, key.vaddr,
							 key.exact));
	pthread_mutex_unlock(&names->slow);
	return name;
}

static void *work(void *arg)
{
	struct names *names = arg;

	/* Linux: the nice value is the thread's own. Names can wait, the collector can't. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid()) + 5);
	pthread_mutex_lock(&names->lock);
	while (!names->stop) {
		if (!names->nqueue) {
			pthread_cond_wait(&names->wake, &names->lock);
			continue;
		}
		struct key key = names->queue[--names->nqueue];
		pthread_mutex_unlock(&names->lock);
		resolve(names, key);
		pthread_mutex_lock(&names->lock);
	}
	pthread_mutex_unlock(&names->lock);
	return NULL;
}

/* Under `lock`. False if there can be no thread: the caller must do with the address. */
static bool start_worker(struct names *names)
{
	sigset_t all, old;

	if (names->started)
		return true;
	/* signals are for the threads that wait for them, except those a fault of its own raises */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	names->started = !pthread_create(&names->worker, NULL, work, names);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (names->started)
		pthread_setname_np(names->worker, "heaptop-names");
	else
		log_line("no thread for symbols: names are missing");
	return names->started;
}

const struct name *names_get(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	const struct key key = { .vaddr = vaddr, .module = module, .exact = exact };
	bool is_new, later = true;

	pthread_mutex_lock(&names->lock);
	struct slot *slot = get_slot(names, key, &is_new);
	const struct name *name = slot->name;
	if (is_new) {
		later = module && names->mods && start_worker(names);
		if (later) {
			VEC_GROW(names->queue, names->nqueue, names->queue_cap);
			names->queue[names->nqueue++] = key;
			pthread_cond_signal(&names->wake);
		}
	}
	pthread_mutex_unlock(&names->lock);
	if (name || later)
		return name;
	return publish(names, key, resolver_unknown(names->resolver, module, vaddr));
}

const struct name *names_wait(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	const struct key key = { .vaddr = vaddr, .module = module, .exact = exact };
	const struct name *name = look_up(names, key);

	return name ? name : resolve(names, key);
}

uint64_t names_generation(const struct names *names)
{
	return __atomic_load_n(&names->generation, __ATOMIC_ACQUIRE);
}

size_t names_pending(const struct names *names)
{
	struct names *table = (struct names *)names;	/* the lock is no part of its value */

	pthread_mutex_lock(&table->lock);
	size_t n = table->pending;
	pthread_mutex_unlock(&table->lock);
	return n;
}

const struct name *names_put(struct names *names, uint32_t module, uint64_t vaddr, bool exact,
			     const char *module_name, const struct name_func *funcs, size_t nfuncs)
{
	const struct key key = { .vaddr = vaddr, .module = module, .exact = exact };

	if (!nfuncs)
		return publish(names, key, resolver_unknown(names->resolver, module, vaddr));
	return publish(names, key, name_build(names->strings, module, module_name, funcs, nfuncs));
}
