/*
 * The unwinder against libgcc's (which shares nothing with ours), with this
 * process as the target: recursion, alloca, frames with and without frame pointer, realigned
 * stacks, libc calling back, signals, PLT stubs, threads, code without CFI; and what it does
 * when registers, stacks and CFI lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "elf/modules.h"
#include "tests/lib/frames.h"
#include "tests/lib/selfwalk.h"
#include "unwind/remote.h"
#include "unwind/unwind.h"

static struct modules *mods;
static struct unwinder *unw;
static struct snapshot snap;
static int with_trace;

static __attribute__((noinline)) void take(void)
{
	self_snapshot(&snap, with_trace);
	__asm__ volatile("");	/* no tail call */
}

static void take_traced(void)
{
	with_trace = 1;
	take();
	__asm__ volatile("");
}

static size_t walk(uint64_t *pcs, enum unwind_end *why)
{
	return unwinder_walk(unw, &snap.regs, &snap.stack, pcs, SELF_FRAMES, why);
}

/*
 * Every frame as libgcc has it, to the root. An interrupted frame's pc is exact there, ours
 * is 1 more; such frames are counted in *ret_exact.
 */
static void check_same(size_t *ret_exact)
{
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;
	size_t exact = 0;

	/* Twice: the second time every frame is done from the cache. */
	for (int round = 0; round < 2; round++) {
		size_t n = walk(pcs, &why);
		exact = 0;
		if (why != UNWIND_END_ROOT || n != snap.ntrace)
			print_message("end: %s, %zu frames, not %zu\n", unwind_end_text(why), n,
				      snap.ntrace);
		for (size_t i = 1; i < n && i < snap.ntrace; i++) {
			uint64_t want = (uint64_t)snap.trace[i];
			if (pcs[i] == want + 1)
				exact++;
			else
				assert_int_equal(pcs[i], want);
		}
		assert_int_equal(n, snap.ntrace);
		assert_int_equal(why, UNWIND_END_ROOT);
	}
	if (ret_exact)
		*ret_exact = exact;
	else
		assert_int_equal(exact, 0);
}

/* ---- ordinary code ---- */

static void test_plain(void **state)
{
	(void)state;
	take_traced();
	check_same(NULL);
	assert_true(snap.ntrace > 4);
}

static __attribute__((noinline)) int recurse(int n)
{
	int ret = n ? recurse(n - 1) + n : (take_traced(), 0);
	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static void test_recursion(void **state)
{
	(void)state;
	assert_int_equal(recurse(100), 5050);
	check_same(NULL);
	assert_true(snap.ntrace > 100);
}

static __attribute__((noinline)) int with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	memset((char *)p, 1, n);
	take_traced();
	return p[n / 2];
}

static void test_alloca(void **state)
{
	(void)state;
	for (size_t n = 16; n < 40000; n = n * 3 + 5) {
		assert_int_equal(with_alloca(n), 1);
		check_same(NULL);
	}
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) int keeps_fp(int n)
{
	take_traced();
	__asm__ volatile("" : "+r"(n));
	return n;
}

static __attribute__((noinline, optimize("omit-frame-pointer"))) int no_fp(int n)
{
	int a = keeps_fp(n), b = keeps_fp(n + 1);
	__asm__ volatile("" : "+r"(a), "+r"(b));
	return a + b;
}

static void test_frame_pointers(void **state)
{
	(void)state;
	assert_int_equal(no_fp(2), 5);
	check_same(NULL);
}

/* A local that wants more alignment than the stack has, and alloca: gcc's CFA is *(rbp - x). */
static __attribute__((noinline)) int realigned(size_t n)
{
	_Alignas(128) volatile char local[128];
	volatile char *p = alloca(n);

	local[5] = 7;
	p[n - 1] = 1;
	take_traced();
	return local[5] + p[n - 1] + (int)((uintptr_t)local % 128);
}

static void test_realigned(void **state)
{
	(void)state;
	assert_int_equal(realigned(77), 8);
	check_same(NULL);
}

static int compare(const void *a, const void *b)
{
	int ret = *(const int *)a - *(const int *)b;

	if (ret < 0)
		take_traced();
	return ret;
}

static void test_qsort(void **state)
{
	int v[] = { 5, 3, 9, 1, 7, 2 };

	(void)state;
	qsort(v, sizeof(v) / sizeof(v[0]), sizeof(v[0]), compare);
	assert_int_equal(v[0], 1);
	check_same(NULL);
}

static void *thread(void *arg)
{
	take_traced();
	return arg;
}

static void test_thread(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	pthread_join(t, NULL);
	check_same(NULL);
}

/* ---- frames in assembly ---- */

static void test_expression(void **state)
{
	uint64_t before = unwinder_stats(unw)->libunwind;

	(void)state;
	asm_expression(take_traced);
	check_same(NULL);
	assert_int_equal(unwinder_stats(unw)->libunwind, before + 2);
}

static void test_registers(void **state)
{
	(void)state;
	asm_register(take_traced);
	check_same(NULL);
}

/* Each register is taken from its place in wire_regs. */
static void test_wire_order(void **state)
{
	const char *const calls[] = { asm_rbp_call, asm_rbx_call, asm_r12_call,
				      asm_r13_call, asm_r14_call, asm_r15_call };
	uint64_t words[64] = { 0 };
	struct stack_copy stack = { 0x7ffd00001000, (uint8_t *)words, sizeof(words) };
	uint64_t pcs[4];
	enum unwind_end why;

	(void)state;
	words[33] = (uint64_t)qsort;
	for (int i = 0; i < 6; i++) {
		struct wire_regs regs = { .ip = (uint64_t)calls[i], .sp = stack.addr };
		regs.saved[i] = stack.addr + 32 * 8;
		assert_true(unwinder_walk(unw, &regs, &stack, pcs, 4, &why) >= 2);
		assert_int_equal(pcs[1], qsort);
	}
}

static void test_bases(void **state)
{
	void (*const fns[])(void (*)(void)) = { asm_rbx, asm_r12, asm_r13, asm_r14, asm_r15 };

	(void)state;
	for (size_t i = 0; i < sizeof(fns) / sizeof(fns[0]); i++) {
		fns[i](take_traced);
		check_same(NULL);
	}
}

static __attribute__((noinline)) void deref(void)
{
	asm_deref(take_traced);
	__asm__ volatile("");
}

/* asm_rbp's frame is found only if asm_deref's gave rbp back. */
static void test_deref(void **state)
{
	uint64_t before = unwinder_stats(unw)->libunwind;

	(void)state;
	asm_rbp(deref);
	check_same(NULL);
	assert_int_equal(unwinder_stats(unw)->libunwind, before);
}

static jmp_buf back;

static void take_and_jump(void)
{
	take_traced();
	longjmp(back, 1);
}

/* The return address lies in the next function, or in nothing. */
static void test_noreturn(void **state)
{
	(void)state;
	if (!setjmp(back))
		asm_noreturn(take_and_jump);
	check_same(NULL);
	if (!setjmp(back))
		asm_noreturn_expression(take_and_jump);
	check_same(NULL);
}

/* A frame pointer below sp that leads back to itself. */
static void test_circle(void **state)
{
	uint64_t words[64] = { 0 };
	struct stack_copy stack = { 0x7ffd00001000, (uint8_t *)words, sizeof(words) };
	struct wire_regs regs = { .ip = (uint64_t)asm_rbp_call, .sp = stack.addr + 128 };
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	(void)state;
	regs.saved[0] = stack.addr + 64;
	words[8] = regs.saved[0];
	words[9] = (uint64_t)asm_rbp_call;
	/* twice: rules are derived, then cached */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unwinder_walk(unw, &regs, &stack, pcs, SELF_FRAMES, &why), 1);
		assert_int_equal(why, UNWIND_END_BAD);
	}
	/* From below it, the first step is right, the second one comes back. */
	regs.sp = stack.addr;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unwinder_walk(unw, &regs, &stack, pcs, SELF_FRAMES, &why), 2);
		assert_int_equal(why, UNWIND_END_BAD);
	}
}

static void test_endless_expression(void **state)
{
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	(void)state;
	with_trace = 0;
	asm_endless(take);
	assert_in_range(walk(pcs, &why), 2, 4);
	assert_int_equal(why, UNWIND_END_BAD);
}

/* The outer frames are those libgcc sees from here. */
static void check_outer(size_t inner)
{
	void *here[SELF_FRAMES];
	size_t n = self_backtrace(here);
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;
	size_t got = walk(pcs, &why);

	assert_int_equal(why, UNWIND_END_ROOT);
	/* here: this function, the test, its callers; there: inner frames, the test, the same */
	assert_int_equal(got, inner + n - 1);
	for (size_t i = 2; i < n; i++)
		assert_int_equal(pcs[inner + i - 1], here[i]);
}

static void test_no_cfi(void **state)
{
	uint64_t before = unwinder_stats(unw)->guessed;

	(void)state;
	with_trace = 0;
	asm_no_cfi(take);
	check_outer(3);	/* self_snapshot, take, asm_no_cfi */
	/* its instructions tell, so the frame pointer isn't just believed */
	assert_int_equal(unwinder_stats(unw)->guessed, before);
}

static void test_generated_code(void **state)
{
	size_t len = (size_t)(asm_no_cfi_end - (const char *)asm_no_cfi);
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code, (const char *)asm_no_cfi, len);
	assert_int_equal(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
	self_modules(mods);
	unwinder_flush(unw);

	void (*fn)(void (*)(void));
	*(void **)&fn = code;
	with_trace = 0;
	uint64_t before = unwinder_stats(unw)->guessed;
	fn(take);
	check_outer(3);
	assert_true(unwinder_stats(unw)->guessed > before);

	/* Gone again: the same stack now goes through no known module, but the frame pointer is
	 * as good as before. */
	munmap(code, 4096);
	self_modules(mods);
	unwinder_flush(unw);
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;
	size_t n = walk(pcs, &why);
	assert_true(n >= 3);
	assert_in_range(pcs[2], code, code + 4096);
}

/* The guess becomes a rule when a stack was complete by it, and is none when its code has moved. */
static void test_guess_told(void **state)
{
	size_t len = (size_t)(asm_no_cfi_end - (const char *)asm_no_cfi);
	const uint32_t rule = wire_rule(WIRE_RULE_BP, 2, 2);
	uint8_t *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code + 4096, (const char *)asm_no_cfi, len);
	assert_int_equal(mprotect(code, 8192, PROT_READ | PROT_EXEC), 0);
	void (*fn)(void (*)(void));
	*(void **)&fn = code + 4096;
	with_trace = 0;
	fn(take);

	/* in no module yet: complete, but nothing to be told about it */
	size_t n = walk(pcs, &why);
	assert_true(n > 4 && why == UNWIND_END_ROOT);
	assert_in_range(pcs[2], code + 4096, code + 8192);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), 0);
	assert_false(unwinder_is_guess(unw, pcs[2]));

	self_modules(mods);
	unwinder_flush(unw);
	assert_true(unwinder_is_guess(unw, pcs[2]));
	assert_false(unwinder_is_guess(unw, pcs[1]) || unwinder_is_guess(unw, pcs[3]));
	/* a stack of which the end isn't there */
	struct stack_copy cut = snap.stack;
	uint64_t frames[SELF_FRAMES];
	size_t got = 0;
	for (cut.len = 0; got < 4; cut.len += 8) {
		got = unwinder_walk(unw, &snap.regs, &cut, frames, SELF_FRAMES, &why);
		assert_int_not_equal(why, UNWIND_END_ROOT);
	}
	assert_int_equal(frames[2], pcs[2]);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), 0);

	assert_int_equal(walk(frames, &why), n);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), rule);
	unwinder_flush(unw);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), rule);

	/* another mapping around the same address; then none */
	assert_int_equal(mprotect(code, 4096, PROT_READ), 0);
	self_modules(mods);
	unwinder_flush(unw);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), 0);
	assert_int_equal(walk(frames, &why), n);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), rule);
	munmap(code, 8192);
	self_modules(mods);
	unwinder_flush(unw);
	assert_int_equal(unwinder_wire_rule(unw, pcs[2]), 0);
	assert_false(unwinder_is_guess(unw, pcs[2]));
}

/* ---- signals ---- */

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *uc = ctx;

	(void)sig;
	(void)info;
	take_traced();
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RIP] += 2;
#endif
}

static void on_signal(int sig)
{
	(void)sig;
	take_traced();
}

static void test_fault(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old;
	size_t exact;

	(void)state;
	sigaction(SIGILL, &sa, &old);
	asm_fault();
	check_same(&exact);
	assert_int_equal(exact, 1);
	asm_plt();
	check_same(&exact);
	assert_int_equal(exact, 1);
	sigaction(SIGILL, &old, NULL);
}

static void test_raise(void **state)
{
	size_t exact;

	(void)state;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	check_same(&exact);
	assert_int_equal(exact, 1);
	signal(SIGUSR1, SIG_DFL);
}

/* The interrupted frame lies on another stack: named, and that is the end. */
static void test_other_stack(void **state)
{
	static char other[64 << 10];
	stack_t ss = { .ss_sp = other, .ss_size = sizeof(other) }, off = { .ss_flags = SS_DISABLE };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	(void)state;
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR2);
	sigaltstack(&off, NULL);
	signal(SIGUSR2, SIG_DFL);
	size_t n = walk(pcs, &why);
	assert_int_equal(why, UNWIND_END_ELSEWHERE);
	assert_true(n < snap.ntrace);
	assert_int_equal(pcs[n - 1], (uint64_t)snap.trace[n - 1] + 1);
}

/* ---- limits and lies ---- */

static void test_cut_and_depth(void **state)
{
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	(void)state;
	recurse(50);
	struct stack_copy whole = snap.stack;
	size_t last = 0;
	for (size_t len = 0; len < whole.len && len < 8192; len += 8) {
		/* in a block of its own size: reading past it is an error the sanitiser sees */
		uint8_t *bytes = malloc(len + 1);
		memcpy(bytes, whole.bytes, len);
		struct stack_copy cut = { whole.addr, bytes, len };
		size_t n = unwinder_walk(unw, &snap.regs, &cut, pcs, SELF_FRAMES, &why);
		assert_true(n >= 1 && n >= last && n <= snap.ntrace);
		if (n < snap.ntrace)
			assert_int_equal(why, UNWIND_END_CUT);
		for (size_t i = 1; i < n; i++)
			assert_int_equal(pcs[i], snap.trace[i]);
		last = n;
		free(bytes);
	}
	assert_true(last > 50);

	assert_int_equal(unwinder_walk(unw, &snap.regs, &whole, pcs, 10, &why), 10);
	assert_int_equal(why, UNWIND_END_DEPTH);
	assert_int_equal(unwinder_walk(unw, &snap.regs, &whole, pcs, 0, &why), 0);
	struct stack_copy none = { 0, NULL, 0 };
	assert_int_equal(unwinder_walk(unw, &snap.regs, &none, pcs, 10, &why), 1);
}

static uint64_t rng_state = 88172645463325252ull;

static uint64_t rng(void)	/* xorshift64, Marsaglia 2003 */
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	return rng_state ^= rng_state << 17;
}

static uint64_t wild_code(void)
{
	switch (rng() % 4) {
	case 0:
		return (uint64_t)snap.trace[rng() % snap.ntrace] + rng() % 64 - 16;
	case 1:
		return (uint64_t)asm_expression + rng() % 200;
	default:
		return (uint64_t)qsort + rng() % 65536;
	}
}

/* Random words, most of them real code addresses and pointers into the stack. */
static uint64_t wild(uint64_t stack, size_t len)
{
	switch (rng() % 16) {
	case 0:
		return rng();
	case 1:
		return rng() % 2 ? 0 : UINT64_MAX - rng() % 16;
	case 2:
	case 3:
	case 4:
	case 5:
		return stack + (rng() % (len + 64) - 32) / 8 * 8;
	default:
		return wild_code();
	}
}

static void test_hostile(void **state)
{
	enum { WORDS = 512 };
	uint64_t *words = malloc(WORDS * 8);
	uint64_t pcs[64];
	uint64_t ends[UNWIND_END_COUNT] = { 0 }, frames = 0;
	struct timespec from, to;

	(void)state;
	take_traced();
	for (size_t k = 0; k < WORDS; k++)
		words[k] = wild(0x7ffd00000800, 4096);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 100000; i++) {
		uint64_t addr = i % 7 ? 0x7ffd00000000 + rng() % 4096 : rng();
		size_t len = rng() % (WORDS * 8 + 1);
		struct wire_regs regs = { .ip = i % 9 ? wild_code() : rng(), .sp = addr + rng() % 16 * 8 };
		struct stack_copy stack = { addr, (uint8_t *)words + (WORDS * 8 - len), len };
		enum unwind_end why = UNWIND_END_COUNT;

		if (i % 3 == 0)
			regs.sp = wild(addr, len);
		for (size_t k = 0; k < 10; k++)
			regs.saved[k] = wild(addr, len);
		for (size_t k = 0; k < 64; k++)
			words[rng() % WORDS] = wild(addr, len);
		size_t n = unwinder_walk(unw, &regs, &stack, pcs, 64, &why);
		assert_in_range(n, 1, 64);
		assert_true(why < UNWIND_END_COUNT);
		assert_true(pcs[0] == regs.ip);
		ends[why]++;
		frames += n;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	print_message("hostile: %.1f frames a walk, %.2f s;", (double)frames / 1e5,
		      (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	for (int i = 0; i < UNWIND_END_COUNT; i++)
		print_message(" %s %llu%s", unwind_end_text((enum unwind_end)i),
			      (unsigned long long)ends[i], i + 1 < UNWIND_END_COUNT ? "," : "\n");
	free(words);
}

/* A real stack with a few words and registers changed: walks that go astray late. */
static void test_mutated(void **state)
{
	uint64_t pcs[SELF_FRAMES];
	uint64_t frames = 0;

	(void)state;
	recurse(20);
	size_t len = snap.stack.len < 4096 ? snap.stack.len : 4096;
	uint8_t *bytes = malloc(len);
	struct stack_copy stack = { snap.stack.addr, bytes, len };
	for (int i = 0; i < 20000; i++) {
		struct wire_regs regs = snap.regs;
		enum unwind_end why;

		memcpy(bytes, snap.stack.bytes, len);
		for (uint64_t k = rng() % 8; k > 0; k--) {
			uint64_t word = wild(stack.addr, len);
			memcpy(bytes + rng() % (len / 8) * 8, &word, 8);
		}
		if (i % 2)
			regs.saved[rng() % 6] = wild(stack.addr, len);
		size_t n = unwinder_walk(unw, &regs, &stack, pcs, SELF_FRAMES, &why);
		assert_in_range(n, 1, SELF_FRAMES);
		frames += n;
	}
	print_message("mutated: %.1f frames a walk\n", (double)frames / 20000);
	free(bytes);
}

/* ---- files that lie ---- */

/* Our own file's bytes, and where its unwind tables are. */
struct image {
	uint8_t *bytes;
	size_t len, tables, tables_len;
};

static void image_read(struct image *img)
{
	FILE *f = fopen("/proc/self/exe", "re");
	Elf64_Ehdr eh;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	img->len = (size_t)ftell(f);
	img->bytes = malloc(img->len);
	rewind(f);
	assert_int_equal(fread(img->bytes, 1, img->len, f), img->len);
	fclose(f);

	memcpy(&eh, img->bytes, sizeof(eh));
	Elf64_Phdr ph[32];
	assert_in_range(eh.e_phnum, 1, 32);
	memcpy(ph, img->bytes + eh.e_phoff, eh.e_phnum * sizeof(ph[0]));
	for (int i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			img->tables = ph[i].p_offset;
	for (int i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset <= img->tables &&
		    img->tables < ph[i].p_offset + ph[i].p_filesz)
			img->tables_len = ph[i].p_offset + ph[i].p_filesz - img->tables;
	assert_true(img->tables_len > 1000);
}

/* The image for our own file, no file for others: their frames end the walk. */
static int open_image(void *ctx, const struct mapping *map)
{
	const struct image *img = ctx;
	char self[512] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || strcmp(map->path, self) != 0)
		return -1;
	int fd = memfd_create("image", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, img->bytes, img->len) != (ssize_t)img->len)
		abort();
	return fd;
}

static void walk_both(const struct image *img)
{
	struct modules *lying = modules_create();
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;

	self_modules_open(lying, open_image, (void *)img);
	struct unwinder *u = unwinder_create(lying);
	struct remote *r = remote_create(lying);
	size_t n = unwinder_walk(u, &snap.regs, &snap.stack, pcs, SELF_FRAMES, &why);
	assert_in_range(n, 1, SELF_FRAMES);

	struct regs_frame f = { .pc = snap.regs.ip, .sp = snap.regs.sp };
	memcpy(f.reg, snap.regs.saved, sizeof(snap.regs.saved));
	for (int i = 0; i < 40 && f.pc && remote_step(r, &f, &snap.stack); i++)
		;
	remote_destroy(r);
	unwinder_destroy(u);
	modules_destroy(lying);
}

static void test_hostile_cfi(void **state)
{
	const char *rounds = getenv("HOSTILE_ROUNDS");
	struct image img, lie;

	(void)state;
	recurse(20);
	image_read(&img);
	walk_both(&img);
	lie = img;
	lie.bytes = malloc(img.len);
	for (int i = rounds ? atoi(rounds) : 60; i > 0; i--) {
		size_t span = i % 3 ? img.tables_len : 64;	/* a third: the header */
		memcpy(lie.bytes, img.bytes, img.len);
		for (uint64_t k = rng() % (i % 2 ? 400 : 8) + 1; k > 0; k--) {
			uint8_t *at = lie.bytes + img.tables + rng() % span;
			*at = rng() % 4 ? (uint8_t)rng() : *at ^ (uint8_t)(1u << rng() % 8);
		}
		walk_both(&lie);
	}
	free(lie.bytes);
	free(img.bytes);
}

/* After a flush the rules of modules still in place are kept. */
static void test_flush(void **state)
{
	(void)state;
	take_traced();
	check_same(NULL);
	uint64_t misses = unwinder_stats(unw)->rule_misses;
	unwinder_flush(unw);
	check_same(NULL);
	assert_int_equal(unwinder_stats(unw)->rule_misses, misses);
}

static int setup(void **state)
{
	(void)state;
	snapshot_init(&snap);
	mods = modules_create();
	self_modules(mods);
	unw = unwinder_create(mods);
	return 0;
}

static int teardown(void **state)
{
	const struct unwind_stats *s = unwinder_stats(unw);

	(void)state;
	print_message("%llu walks, %llu frames: %llu by rules, %llu by libunwind, %llu guessed\n",
		      (unsigned long long)s->walks, (unsigned long long)s->frames,
		      (unsigned long long)s->rule_hits, (unsigned long long)s->libunwind,
		      (unsigned long long)s->guessed);
	unwinder_destroy(unw);
	modules_destroy(mods);
	snapshot_deinit(&snap);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_alloca),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_realigned),
		cmocka_unit_test(test_qsort),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_expression),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_wire_order),
		cmocka_unit_test(test_bases),
		cmocka_unit_test(test_deref),
		cmocka_unit_test(test_noreturn),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_endless_expression),
		cmocka_unit_test(test_no_cfi),
		cmocka_unit_test(test_generated_code),
		cmocka_unit_test(test_guess_told),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_raise),
		cmocka_unit_test(test_other_stack),
		cmocka_unit_test(test_cut_and_depth),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_mutated),
		cmocka_unit_test(test_hostile_cfi),
		cmocka_unit_test(test_flush),
	};
	return cmocka_run_group_tests_name("unwind", tests, setup, teardown);
}
