/* The agent, placed in a test; see placed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/placed.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/hook.h"
#include "probe/ring.h"

#define RULES_BYTES (WIRE_RULES_BYTES + sizeof(struct wire_births))

extern const uint8_t agent_blob[], agent_blob_end[];

/* ---- made-up allocators, in assembly so that their first bytes are ours to know ---- */

__asm__(".text\n"
	".globl fake_malloc\nfake_malloc:\n\tmovq bump(%rip), %rax\n\tjmp fake_malloc_body\n"
	".globl fake_free\nfake_free:\n\ttest %rdi, %rdi\n\tje 1f\n\tnop\n\tincq frees(%rip)\n1:\tret\n"
	".globl fake_calloc\nfake_calloc:\n\timul %rsi, %rdi\n\tjmp *nested_malloc(%rip)\n"
	".globl fake_realloc\nfake_realloc:\n\tjmp fake_realloc_body\n\tnop\n\tnop\n\tnop\n"
	".globl fake_posix_memalign\nfake_posix_memalign:\n\tendbr64\n\tpush %rdi\n\tmov %rdx, %rdi\n"
	"\tcall *nested_malloc(%rip)\n\tpop %rdi\n\tmov %rax, (%rdi)\n\txor %eax, %eax\n\tret\n"
	".globl fake_new\nfake_new:\n\tincq news(%rip)\n\tmov %rsp, new_sp(%rip)\n\tmovq bump(%rip), %rax\n\tret\n"
	".globl fake_object\nfake_object:\n\tmov $500, %edi\n\tjmp *nested_malloc(%rip)\n"
	".globl fake_put\nfake_put:\n\tincq frees(%rip)\n\tret\n"
	".globl fake_grow\nfake_grow:\n\tmov grown(%rip), %rax\n\tret\n");

uint64_t bump = 0x700000000000, frees, news, new_sp, grown;
const void *nothrow_given;
bool nothrow_fails;
void *(*nested_malloc)(size_t);
static void (*nested_free)(void *);
bool realloc_fails;
void (*malloc_body_hook)(void);

__attribute__((used)) void *fake_malloc_body(size_t n)
{
	void *p = (void *)__atomic_fetch_add(&bump, (n + 15) & ~15ull, __ATOMIC_RELAXED);

	if (malloc_body_hook)
		malloc_body_hook();
	return n > 1ull << 40 ? NULL : p;
}

void *fake_new_nothrow(size_t n, size_t align, const void *nothrow)
{
	nothrow_given = nothrow;
	return nothrow_fails || align != 64 ? NULL : nested_malloc(n);
}

__attribute__((used)) void *fake_realloc_body(void *p, size_t size)
{
	if (realloc_fails)
		return NULL;
	if (!size) {
		nested_free(p);
		return NULL;
	}
	void *ret = nested_malloc(size);
	if (p)
		nested_free(p);
	return ret;
}

/* ---- the agent, placed ---- */

static const struct {
	void *fn;
	enum wire_hook_kind kind;
	struct wire_args args;
} hooks[H_COUNT] = {
	{ fake_malloc, WIRE_HOOK_MALLOC, { .size = 1 } },
	{ fake_free, WIRE_HOOK_FREE, { .pointer = 1 } },
	{ fake_calloc, WIRE_HOOK_ALLOC, { .count = 1, .size = 2 } },
	{ fake_realloc, WIRE_HOOK_REALLOC, { .pointer = 1, .size = 2 } },
	{ fake_posix_memalign, WIRE_HOOK_ALLOC, { .out = 1, .size = 3, .returns = WIRE_RETURNS_STATUS } },
	{ fake_new, WIRE_HOOK_NEW, { .size = 1, .nothrow = 3 } },
	{ fake_object, WIRE_HOOK_ALLOC, { .bytes = 64 } },
	{ fake_put, WIRE_HOOK_RELEASE, { .pointer = 2 } },
	{ fake_grow, WIRE_HOOK_REALLOC, { .pointer = 1, .size = 2, .returns = WIRE_RETURNS_SIZE, .flags = WIRE_ARGS_INT } },
};

uint8_t *island, *state, *rings;
struct wire_rules *rules;
struct wire_tags *tags;
struct wire_ctl *ctl;
uint64_t thunk[H_COUNT];
static uint64_t read_pos[NRINGS];
struct probe_event told;
char told_name[17];
unsigned ntold;

struct wire_slot *slots(void)
{
	return (struct wire_slot *)(state + WIRE_STATE_SLOTS);
}

struct wire_slot *my_slot(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	for (unsigned i = 0; i < WIRE_SLOTS; i++)
		if (slots()[i].tp == tp)
			return &slots()[i];
	return NULL;
}

void set_bounds(uint64_t lo, uint64_t hi)
{
	my_slot()->stack_lo = lo;
	my_slot()->stack_hi = hi;
	my_slot()->stack_tid = my_slot()->tid;
}

struct wire_ring *ring_number(unsigned i)
{
	return (struct wire_ring *)(rings + i * ((struct wire_island *)island)->ring_stride);
}

struct wire_ring *my_ring(void)
{
	return ring_number(my_slot()->ring & (NRINGS - 1));
}

const struct wire_walk *slots_walk(void)
{
	return (const struct wire_walk *)(state + WIRE_STATE_WALKS) + (my_slot() - slots());
}

int placed_setup(void **unused)
{
	(void)unused;
	size_t blob = (size_t)(agent_blob_end - agent_blob), stride = sizeof(struct wire_ring) + RING_BYTES;

	/* Near our own text: thunks reach 2 GiB. */
	island = mmap((void *)(((uint64_t)fake_malloc & ~0xfffull) - (64 << 20)), 65536, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	state = mmap(NULL, WIRE_STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rings = mmap(NULL, NRINGS * stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rules = mmap(NULL, RULES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	tags = mmap(NULL, sizeof(*tags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(madvise(state, WIRE_STATE_BYTES, MADV_WIPEONFORK), 0);
	memcpy(island, agent_blob, blob);

	struct wire_island *is = (struct wire_island *)island;
	assert_true(is->magic == WIRE_ISLAND_MAGIC);
	assert_true(is->version == WIRE_VERSION);
	assert_int_equal(is->code_bytes, blob);
	is->ctl = (uint64_t)state;
	is->rings = (uint64_t)rings;
	is->ring_bytes = RING_BYTES;
	is->ring_stride = stride;
	is->nrings = NRINGS;
	is->nonce = 0x123456789abcdef;
	is->rules = (uint64_t)rules;
	is->tags = (uint64_t)tags;
	ctl = (struct wire_ctl *)state;
	*ctl = (struct wire_ctl){ .magic = WIRE_CTL_MAGIC, .active = 1, .lease = ~0ull, .rate = 1,
				  .pid = (uint32_t)getpid(), .may_syscall = 1, .max_stack = 4096, .seed = 42 };
	memset(read_pos, 0, sizeof(read_pos));
	ntold = 0;
	uint64_t at = ((uint64_t)island + blob + 63) & ~63ull;
	for (unsigned i = 0; i < H_COUNT; i++, at += HOOK_THUNK_MAX) {
		struct hook_plan plan;
		char reason[HOOK_REASON] = "";

		if (!hook_plan(hooks[i].fn, HOOK_LOOK, 0, (uint64_t)hooks[i].fn, &plan, reason))
			fail_msg("hook %u: %s", i, reason);
		struct wire_hook what = { .kind = hooks[i].kind, .index = i, .args = hooks[i].args,
					  .instead = i == H_NEW ? (uint64_t)fake_new_nothrow : 0 };
		assert_true(hook_thunk(&plan, at, (uint64_t)island + is->entry[hooks[i].kind], &what, (uint8_t *)at,
				       &thunk[i]));
	}
	assert_int_equal(mprotect(island, 65536, PROT_READ | PROT_EXEC), 0);
	nested_malloc = h_malloc;
	nested_free = h_free;
	realloc_fails = false;
	malloc_body_hook = NULL;
	frees = 0;
	return 0;
}

int placed_teardown(void **unused)
{
	(void)unused;
	munmap(island, 65536);
	munmap(state, WIRE_STATE_BYTES);
	munmap(rules, RULES_BYTES);
	munmap(tags, sizeof(*tags));
	munmap(rings, NRINGS * (sizeof(struct wire_ring) + RING_BYTES));
	return 0;
}

const struct probe_event *next_event(void)
{
	const struct wire_island *is = (const struct wire_island *)island;
	static __thread struct probe_event e;

	for (unsigned i = 0; i < NRINGS; i++) {
		struct wire_ring *r = (struct wire_ring *)(rings + i * is->ring_stride);

		while (read_pos[i] < __atomic_load_n(&r->head, __ATOMIC_ACQUIRE)) {
			uint8_t *at = (uint8_t *)(r + 1) + read_pos[i] % RING_BYTES;
			uint64_t word = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);

			if (word >> 32 != wire_tag(read_pos[i], is->nonce) || word & WIRE_BUSY)
				break;
			read_pos[i] += word & WIRE_SIZE_MASK;
			r->tail = read_pos[i];
			if (word & WIRE_PAD || wire_kind(word) == WIRE_VOID)
				continue;
			memset(&e, 0, sizeof(e));
			assert_true(ring_decode((const struct wire_head *)at, &e));
			if (e.kind == WIRE_THREAD) {
				told = e;
				memcpy(told_name, e.name, 16);
				ntold++;
				continue;
			}
			return &e;
		}
	}
	return NULL;
}

const struct probe_event *expect_alloc(const void *p, size_t size)
{
	const struct probe_event *a = next_event();

	assert_non_null(a);
	assert_int_equal(a->kind, WIRE_ALLOC);
	assert_true(a->addr == (uint64_t)p);
	assert_true(a->size == size);
	return a;
}

const struct probe_event *expect_free(const void *p, unsigned kind)
{
	const struct probe_event *f = next_event();

	assert_non_null(f);
	assert_int_equal(f->kind, kind);
	assert_true(f->addr == (uint64_t)p);
	return f;
}
