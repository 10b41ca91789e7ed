/*
 * The one program behind the reach table (tests/reach/), built in many ways: it does the same work for
 * the same seed, checks that its blocks keep what was written into them, and says at its end
 * what it allocated. C that a C++ compiler takes, too; there operator new and delete are among its sites.
 *
 *	reach [WORD | NAME=VALUE]...
 *
 * threads=4 steps=4000 seed=1
 *	so many threads make so many steps each, a step being an allocation, a realloc or a free
 * rate=R	print the standard errors of a sampler with a mean of R bytes between samples, too
 * out=FD	where to write; 1
 * how the work is done:
 * coro		in ucontext coroutines (glibc)
 * altstack	in handlers of signals that run on a stack of their own
 * jit		malloc is called by code written at run time, with a frame pointer and no CFI
 * bare		malloc is called by a function that has no CFI
 * realloc	mostly realloc
 * churn=N	by N short threads one after the other, in place of `threads` long ones
 * exhaust	first allocate until RLIMIT_AS ends it (with threads=1)
 * throw	exceptions fly between steps, operator new fails (C++)
 * dlopen=FILE	by the allocator of that library; the work begins once its malloc has been patched, or
 *		after ten seconds
 * pool		by pool_get and pool_put, an allocator of its own
 * what happens before:
 * fork, spawn	a child does the work
 * unlink, replace=FILE	the program's file is deleted, or FILE takes its place
 * seccomp	every system call that it doesn't need is death
 * maps		thousands of mappings and a reservation of 64 GB
 *
 * It says "ready", waits for a byte or the end of its standard input, works, and prints
 *
 *	site NAME allocs N alloc_bytes N frees N live_blocks N live_bytes N
 *	se NAME alloc_blocks X alloc_bytes X live_blocks X live_bytes X
 *	sound
 *
 * and ends after another byte, or the end of its input: who watches has seen the rest then.
 *
 * Every site_* function is one caller of one allocator function. All figures are each thread's own
 * until it ends, so they never vary. For the standard errors see known.c.
 *
 * With -DPREFIX=_rjem_ the allocator's functions have that prefix; with -DOWN_NEW operator new takes
 * from the pool.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#if __has_include(<linux/seccomp.h>)	/* musl-gcc has no headers of the kernel's */
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif
#include <unistd.h>
#ifdef __cplusplus
#include <new>
#endif

#include "reach_pool.h"

#ifdef PREFIX
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define ALLOCATOR(name) JOIN(PREFIX, name)
EXTERN_C void *ALLOCATOR(malloc)(size_t);
EXTERN_C void *ALLOCATOR(calloc)(size_t, size_t);
EXTERN_C void *ALLOCATOR(realloc)(void *, size_t);
EXTERN_C int ALLOCATOR(posix_memalign)(void **, size_t, size_t);
EXTERN_C void ALLOCATOR(free)(void *);
#else
#define ALLOCATOR(name) name
#endif

/* What the sites call; without calloc, realloc or posix_memalign malloc serves. */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void (*free)(void *);
} api = {
	ALLOCATOR(malloc), ALLOCATOR(calloc), ALLOCATOR(realloc), ALLOCATOR(posix_memalign),
	ALLOCATOR(free),
};

enum site { SMALL, MIDDLE, LARGE, ZEROED, ALIGNED, GROWN, KEPT, NEWED, NSITES };

static const char *const names[NSITES] = {
	"site_small", "site_middle", "site_large", "site_zeroed", "site_aligned", "site_grown",
	"site_kept", "site_newed",
};

struct count {
	uint64_t allocs, alloc_bytes, frees, freed_bytes;
	double var_alloc_blocks, var_alloc_bytes, var_live_blocks, var_live_bytes;
};

struct block {
	unsigned char *p;
	size_t size;
	enum site site;
	unsigned char mark;
};

#define SLOTS 64u
struct worker {
	pthread_t thread;
	uint64_t random;
	struct block blocks[SLOTS];
	struct count counts[NSITES];
};

static struct {
	unsigned threads, steps, churn;
	uint64_t seed;
	double rate;
	int out;
	int coro, altstack, jit, bare, realloc, exhaust, raise, pool;
	int fork, spawn, unlink, seccomp, maps;
	const char *dlopen, *replace;
} opt;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct count totals[NSITES];
static __thread struct worker *me;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (len > 0 && write(opt.out, line, (size_t)len) != len)
		_exit(3);
}

static void die(const char *what)
{
	say("broken: %s: %s\n", what, strerror(errno));
	_exit(3);
}

/* ---- the sites ---- */

#define SITE EXTERN_C __attribute__((noinline))

SITE void *site_small(size_t size)
{
	return api.malloc(size);
}

SITE void *site_middle(size_t size)
{
	void *p = api.malloc(size);

	__asm__ volatile("" ::: "memory");	/* not the same code as the one before */
	return p;
}

SITE void *site_large(size_t size)
{
	void *p = api.malloc(size);

	__asm__ volatile("nop" ::: "memory");
	return p;
}

SITE void *site_kept(size_t size)
{
	void *p = api.malloc(size);

	__asm__ volatile("nop; nop" ::: "memory");
	return p;
}

SITE void *site_zeroed(size_t size)
{
	return api.calloc ? api.calloc(1, size) : api.malloc(size);
}

SITE void *site_aligned(size_t size)
{
	void *p = NULL;

	if (!api.posix_memalign)
		return api.malloc(size);
	return api.posix_memalign(&p, 64, size) ? NULL : p;
}

SITE void *site_grown(void *old, size_t size)
{
	return api.realloc(old, size);
}

#ifdef __cplusplus
SITE void *site_newed(size_t size)
{
	return operator new(size);
}

#ifdef OWN_NEW
void *operator new(size_t size)
{
	void *p = pool_get(size);

	if (!p)
		throw std::bad_alloc();
	return p;
}

/* Without this form heaptop doesn't hook the one above: an exception couldn't pass. */
void *operator new(size_t size, const std::nothrow_t &) noexcept
{
	return pool_get(size);
}

void operator delete(void *p) noexcept
{
	if (p)
		pool_put(p);
}

void operator delete(void *p, size_t) noexcept
{
	if (p)
		pool_put(p);
}
#endif
#endif

/* ---- the books ---- */

static double odds(size_t size)
{
	double q = exp(-(double)size / opt.rate);

	return q / (1 - q);
}

static void book(enum site site, size_t size, int sign)
{
	struct count *c = &me->counts[site];
	double v = opt.rate > 0 ? odds(size) : 0, s = (double)size;

	if (sign > 0) {
		c->allocs++;
		c->alloc_bytes += size;
		c->var_alloc_blocks += v;
		c->var_alloc_bytes += v * s * s;
	} else {
		c->frees++;
		c->freed_bytes += size;
	}
	c->var_live_blocks += sign * v;
	c->var_live_bytes += sign * v * s * s;
}

static uint64_t draw(uint64_t below)
{
	me->random ^= me->random << 13;
	me->random ^= me->random >> 7;
	me->random ^= me->random << 17;
	return (me->random >> 11) % below;
}

/* ---- blocks: written at both ends, looked at again before they go ---- */

static void write_marks(struct block *b)
{
	b->mark = (unsigned char)(1 + draw(255));
	b->p[0] = b->p[b->size / 2] = b->p[b->size - 1] = b->mark;
}

static void check_marks(const struct block *b)
{
	if (b->p[0] != b->mark || b->p[b->size / 2] != b->mark || b->p[b->size - 1] != b->mark)
		die("a block has lost its contents");
}

static struct block take(enum site site, size_t size)
{
	struct block b = { NULL, size, site, 0 };

	switch (site) {
	case SMALL: b.p = (unsigned char *)site_small(size); break;
	case MIDDLE: b.p = (unsigned char *)site_middle(size); break;
	case LARGE: b.p = (unsigned char *)site_large(size); break;
	case ZEROED: b.p = (unsigned char *)site_zeroed(size); break;
	case ALIGNED: b.p = (unsigned char *)site_aligned(size); break;
	case KEPT: b.p = (unsigned char *)site_kept(size); break;
#ifdef __cplusplus
	case NEWED: b.p = (unsigned char *)site_newed(size); break;
#endif
	default: break;
	}
	if (!b.p)
		die("no memory");
	book(site, size, 1);
	write_marks(&b);
	return b;
}

static void put(struct block *b)
{
	check_marks(b);
	book(b->site, b->size, -1);
#ifdef __cplusplus
	if (b->site == NEWED)
		operator delete(b->p);
	else
#endif
		api.free(b->p);
	b->p = NULL;
}

static void grow(struct block *b)
{
	size_t size = 1 + b->size / 2 + draw(b->size + 64);

	check_marks(b);
	unsigned char *p = (unsigned char *)site_grown(b->p, size);
	if (!p)
		die("no memory");
	if (p[0] != b->mark)
		die("realloc has lost a block's contents");
	book(b->site, b->size, -1);
	book(GROWN, size, 1);
	b->p = p;
	b->size = size;
	b->site = GROWN;
	write_marks(b);
}

static void allocate(struct block *b)
{
	uint64_t which = draw(100);

	if (which < 40)
		*b = take(SMALL, 16 + draw(240));
	else if (which < 55)
		*b = take(MIDDLE, 512 + draw(4096));
	else if (which < 56)
		*b = take(LARGE, 60000 + draw(150000));
	else if (which < 65)
		*b = take(ZEROED, 24 + draw(1000));
	else if (which < 70)
		*b = take(ALIGNED, 64 + draw(1000));
#ifdef __cplusplus
	else if (which < 85)
		*b = take(NEWED, 16 + draw(500));
#endif
	else
		(void)take(KEPT, 24 + draw(400));	/* nobody will free it */
}

static void step(void)
{
	struct block *b = &me->blocks[draw(SLOTS)];

	if (!b->p)
		allocate(b);
	else if (b->site != NEWED && api.realloc && draw(8) < (opt.realloc ? 7 : 1))
		grow(b);
	else
		put(b);
}

/* ---- ways to do the work ---- */

#ifdef __cplusplus
struct thrown {
	char text[200];
};

EXTERN_C __attribute__((noinline)) void throw_deep(int depth)
{
	if (depth)
		throw_deep(depth - 1);
	else
		throw thrown();
	__asm__ volatile("" ::: "memory");
}

static void fly(void)
{
	int caught = 0;

	try {
		throw_deep(5);
	} catch (const thrown &) {
		caught++;
	}
	try {
		(void)site_newed(PTRDIFF_MAX / 2);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	if (caught != 2)
		die("an exception wasn't caught");
}
#else
static void fly(void)
{
}
#endif

static void steps(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		step();
		if (opt.raise && i % 50 == 0)
			fly();
	}
}

static void on_signal(int sig)
{
	(void)sig;
	steps(25);
}

static void in_handlers(void)
{
	stack_t stack = { .ss_sp = NULL, .ss_flags = 0, .ss_size = 64 << 10 };
	struct sigaction act;

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(&act, 0, sizeof(act));
	act.sa_handler = on_signal;
	act.sa_flags = SA_ONSTACK;
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &act, NULL))
		die("sigaltstack");
	for (unsigned i = 0; i < opt.steps / 25; i++)
		pthread_kill(pthread_self(), SIGUSR1);
}

#ifdef __GLIBC__
#define COROUTINES 4
#define COROUTINE_STACK (64u << 10)
static __thread struct {
	ucontext_t back, of[COROUTINES];
	unsigned left;
} co;

static void coroutine(unsigned i)
{
	while (co.left) {
		co.left--;
		step();
		if (draw(8) == 0)
			swapcontext(&co.of[i], &co.back);
	}
}

static void make_coroutine(unsigned i)
{
	ucontext_t *c = &co.of[i];

	getcontext(c);
	c->uc_stack.ss_size = COROUTINE_STACK;
	c->uc_stack.ss_sp = mmap(NULL, COROUTINE_STACK, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c->uc_link = &co.back;
	if (c->uc_stack.ss_sp == MAP_FAILED)
		die("mmap");
	makecontext(c, (void (*)(void))coroutine, 1, i);
}

static void in_coroutines(void)
{
	co.left = opt.steps;
	for (unsigned i = 0; i < COROUTINES; i++)
		make_coroutine(i);
	for (unsigned i = 0; co.left; i++)
		swapcontext(&co.back, &co.of[i % COROUTINES]);
}
#else
static void in_coroutines(void)
{
	die("no ucontext here");
}
#endif

/* Whatever is left of the memory the limit allows; a failed realloc leaves its block alone. */
static void exhaust(void)
{
	static struct block taken[4096];
	struct rlimit limit, old;
	unsigned long pages = 0;
	char text[64] = "";
	size_t n = 0;

	int fd = open("/proc/self/statm", O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || getrlimit(RLIMIT_AS, &old))
		die("statm");
	close(fd);
	pages = strtoul(text, NULL, 10);
	limit = old;
	limit.rlim_cur = pages * 4096 + (64u << 20);
	if (setrlimit(RLIMIT_AS, &limit))
		die("setrlimit");
	for (void *p; n < 4096 && (p = site_large(200000)) != NULL; n++) {
		taken[n].p = (unsigned char *)p;
		taken[n].size = 200000;
		taken[n].site = LARGE;
		book(LARGE, taken[n].size, 1);
		write_marks(&taken[n]);
	}
	if (n == 4096)
		die("memory without end");
	if (site_grown(taken[0].p, 256u << 20))
		die("a realloc beyond the limit");
	while (n)
		put(&taken[--n]);
	setrlimit(RLIMIT_AS, &old);
}

static void work(struct worker *w)
{
	me = w;
	if (opt.exhaust)
		exhaust();
	if (opt.coro)
		in_coroutines();
	else if (opt.altstack)
		in_handlers();
	else
		steps(opt.steps);
	/* every second block stays */
	for (unsigned i = 0; i < SLOTS; i += 2)
		if (w->blocks[i].p)
			put(&w->blocks[i]);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < NSITES; i++) {
		totals[i].allocs += w->counts[i].allocs;
		totals[i].alloc_bytes += w->counts[i].alloc_bytes;
		totals[i].frees += w->counts[i].frees;
		totals[i].freed_bytes += w->counts[i].freed_bytes;
		totals[i].var_alloc_blocks += w->counts[i].var_alloc_blocks;
		totals[i].var_alloc_bytes += w->counts[i].var_alloc_bytes;
		totals[i].var_live_blocks += w->counts[i].var_live_blocks;
		totals[i].var_live_bytes += w->counts[i].var_live_bytes;
	}
	pthread_mutex_unlock(&lock);
}

static void *work_thread(void *w)
{
	work((struct worker *)w);
	return NULL;
}

/* At most 1,024 at a time, their books in the workers' own memory: mmap, not the allocator. */
static void run(void)
{
	unsigned all = opt.churn ? opt.churn : opt.threads, batch = opt.churn ? 8 : all;
	size_t bytes = batch * sizeof(struct worker);
	pthread_attr_t attr;

	struct worker *w = (struct worker *)mmap(NULL, bytes, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED || pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 256 << 10))
		die("no memory");
	if (all == 1) {		/* on the main thread */
		w->random = opt.seed * 0x9e3779b97f4a7c15ull;
		work(w);
		return;
	}
	for (unsigned first = 0; first < all; first += batch) {
		unsigned n = all - first < batch ? all - first : batch;
		memset(w, 0, bytes);
		for (unsigned i = 0; i < n; i++) {
			w[i].random = (opt.seed + first + i) * 0x9e3779b97f4a7c15ull;
			errno = pthread_create(&w[i].thread, &attr, work_thread, &w[i]);
			if (errno)
				die("pthread_create");
		}
		for (unsigned i = 0; i < n; i++)
			pthread_join(w[i].thread, NULL);
	}
}

/* ---- what happens before ---- */

#ifdef __x86_64__
/* push %rbp; mov %rsp,%rbp; movabs $malloc,%rax; call *%rax; pop %rbp; ret */
static void write_code(void)
{
	unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3 };
	uint64_t to = (uint64_t)(uintptr_t)api.malloc;

	memcpy(code + 6, &to, sizeof(to));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		die("mmap");
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		die("mprotect");
	memcpy(&api.malloc, &page, sizeof(page));
}

EXTERN_C void *bare_call(size_t size);
void *(*bare_malloc)(size_t);
__asm__(".text\n.globl bare_call\n.type bare_call, @function\nbare_call:\n"
	"	push %rbp\n	mov %rsp, %rbp\n	mov bare_malloc(%rip), %rax\n"
	"	call *%rax\n	pop %rbp\n	ret\n.size bare_call, . - bare_call\n");
#endif

#ifdef SECCOMP_MODE_FILTER
static void forbid(void)
{
	static const int allowed[] = {
		SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
		SYS_brk, SYS_futex, SYS_exit, SYS_exit_group, SYS_clone, SYS_clone3, SYS_rseq,
		SYS_set_robust_list, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall,
		SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_gettid, SYS_openat, SYS_close,
	};
	static struct sock_filter code[64];
	struct sock_fprog prog = { 0, code };
	unsigned n = sizeof(allowed) / sizeof(*allowed), k = 0;

	code[k++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (unsigned i = 0; i < n; i++)
		code[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i],
							  (unsigned char)(n - i), 0);
	code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = (unsigned short)k;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		die("seccomp");
}
#else
static void forbid(void)
{
	die("no seccomp here");
}
#endif

static void map_much(void)
{
	for (int i = 0; i < 4000; i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			die("mmap");
	if (mmap(NULL, 64ull << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		die("mmap");
}

/* A patched function begins with other bytes than its file. */
static void load_allocator(void)
{
	void *lib = dlopen(opt.dlopen, RTLD_NOW | RTLD_LOCAL);
	const struct timespec tick = { 0, 10000000 };
	unsigned char before, *code;

	if (!lib) {
		say("broken: %s\n", dlerror());
		_exit(3);
	}
	*(void **)&api.malloc = dlsym(lib, "malloc");
	*(void **)&api.calloc = dlsym(lib, "calloc");
	*(void **)&api.realloc = dlsym(lib, "realloc");
	api.posix_memalign = NULL;	/* dlsym would find the C library's */
	*(void **)&api.free = dlsym(lib, "free");
	memcpy(&code, &api.malloc, sizeof(code));
	before = *(volatile unsigned char *)code;
	for (int i = 0; i < 1000 && *(volatile unsigned char *)code == before; i++)
		nanosleep(&tick, NULL);
}

static void prepare(const char *self)
{
	if (opt.unlink && unlink(self))
		die("unlink");
	if (opt.replace && rename(opt.replace, self))
		die("rename");
	if (opt.maps)
		map_much();
#ifdef __x86_64__
	if (opt.jit)
		write_code();
	if (opt.bare) {
		bare_malloc = api.malloc;
		api.malloc = bare_call;
	}
#endif
	if (opt.pool) {
		api.malloc = pool_get;
		api.free = pool_put;
		api.calloc = NULL;
		api.realloc = NULL;
		api.posix_memalign = NULL;
	}
	if (opt.seccomp)
		forbid();
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

static void await_byte(void)
{
	char byte;

	while (read(0, &byte, 1) < 0)
		if (errno != EINTR)
			die("read");
}

static void parse(int argc, char **argv)
{
	struct { const char *name; int *value; } words[] = {
		{ "coro", &opt.coro }, { "altstack", &opt.altstack }, { "jit", &opt.jit },
		{ "bare", &opt.bare }, { "realloc", &opt.realloc }, { "exhaust", &opt.exhaust },
		{ "throw", &opt.raise }, { "pool", &opt.pool }, { "fork", &opt.fork },
		{ "spawn", &opt.spawn }, { "unlink", &opt.unlink }, { "seccomp", &opt.seccomp },
		{ "maps", &opt.maps },
	};

	for (int i = 1; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		size_t k;

		for (k = 0; k < sizeof(words) / sizeof(*words) && strcmp(argv[i], words[k].name); k++)
			;
		if (k < sizeof(words) / sizeof(*words))
			*words[k].value = 1;
		else if (!strncmp(argv[i], "threads=", 8))
			opt.threads = (unsigned)atoi(value + 1);
		else if (!strncmp(argv[i], "steps=", 6))
			opt.steps = (unsigned)atoi(value + 1);
		else if (!strncmp(argv[i], "churn=", 6))
			opt.churn = (unsigned)atoi(value + 1);
		else if (!strncmp(argv[i], "seed=", 5))
			opt.seed = (uint64_t)atoi(value + 1);
		else if (!strncmp(argv[i], "rate=", 5))
			opt.rate = atof(value + 1);
		else if (!strncmp(argv[i], "out=", 4))
			opt.out = atoi(value + 1);
		else if (!strncmp(argv[i], "dlopen=", 7))
			opt.dlopen = value + 1;
		else if (!strncmp(argv[i], "replace=", 8))
			opt.replace = value + 1;
		else {
			fprintf(stderr, "reach: what is '%s'?\n", argv[i]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	pid_t pid;

	opt.threads = 4;
	opt.steps = 4000;
	opt.seed = 1;
	opt.out = 1;
	parse(argc, argv);
	if (opt.spawn) {
		char **args = argv + 1;
		while (strcmp(*args, "spawn"))
			args++;
		*args = (char *)"seed=1";
		extern char **environ;
		errno = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
		if (errno)
			die("posix_spawn");
		wait_for(pid);
	}
	if (opt.fork) {
		pid = fork();
		if (pid < 0)
			die("fork");
		if (pid)
			wait_for(pid);
	}
	prepare(argv[0]);
	say("ready\n");
	await_byte();
	if (opt.dlopen)
		load_allocator();
	run();
	for (int i = 0; i < NSITES; i++) {
		const struct count *c = &totals[i];
		if (!c->allocs)
			continue;
		say("site %s allocs %ju alloc_bytes %ju frees %ju live_blocks %ju live_bytes %ju\n", names[i],
		    (uintmax_t)c->allocs, (uintmax_t)c->alloc_bytes, (uintmax_t)c->frees,
		    (uintmax_t)(c->allocs - c->frees), (uintmax_t)(c->alloc_bytes - c->freed_bytes));
		if (opt.rate > 0)
			say("se %s alloc_blocks %.6g alloc_bytes %.6g live_blocks %.6g live_bytes %.6g\n", names[i],
			    sqrt(c->var_alloc_blocks), sqrt(c->var_alloc_bytes),
			    sqrt(fmax(c->var_live_blocks, 0)), sqrt(fmax(c->var_live_bytes, 0)));
	}
	say("sound\n");
	await_byte();
	return 0;
}
