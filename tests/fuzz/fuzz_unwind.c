/*
 * Hostile registers and stack copies, walked by the CFI of a real program: this one. A walk ends, within
 * its bound; what isn't a guess is the same when it is walked again by the rules now known, and after
 * they were flushed.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/unwind.h"

#define BASE 0x400000000000ull
#define STACK 0x7ffc00000000ull
#define WORDS 512u
#define FRAMES 64u

static int open_self(void *ctx, const struct mapping *m)
{
	(void)ctx;
	(void)m;
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* The program's own text: the first segment of the first object that can be executed. */
static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mapping *map = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		map->offset = ph->p_offset & ~4095ull;
		map->end = map->start + ((ph->p_memsz + (ph->p_offset & 4095) + 4095) & ~4095ull);
		break;
	}
	return 1;
}

/* A word as there are on stacks: a return address, a pointer into the stack, anything. */
static uint64_t word(struct fuzz_in *in, const struct mapping *map, uint64_t at)
{
	uint64_t how = fuzz_take(in, 1);

	switch (how & 3) {
	case 0: return map->start + fuzz_take(in, 3) % (map->end - map->start);
	case 1: return at + (fuzz_take(in, 1) << 3);
	case 2: return how >> 2;
	default: return fuzz_number(in);
	}
}

static void run_unwind(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	struct mapping map = { .start = BASE, .end = BASE + 4096, .inode = 1, .prot = PROT_READ | PROT_EXEC, .path = "/fuzz" };
	struct wire_regs regs = { 0 };
	uint64_t *pcs = xcalloc(2 * FRAMES, sizeof(*pcs)), *again = pcs + FRAMES;
	enum unwind_end why, why_again;

	dl_iterate_phdr(find_text, &map);
	struct modules *mods = modules_create();
	modules_update(mods, &map, 1, open_self, NULL);
	struct unwinder *u = unwinder_create(mods);
	size_t words = fuzz_take(&in, 2) % WORDS;
	regs.ip = word(&in, &map, STACK);
	regs.sp = STACK + (fuzz_take(&in, 1) & 1 ? fuzz_number(&in) : 0);
	for (unsigned i = 0; i < 6; i++)
		regs.saved[i] = word(&in, &map, STACK);
	uint64_t *bytes = xmalloc((words ? words : 1) * sizeof(*bytes));
	for (size_t i = 0; i < words; i++)
		bytes[i] = word(&in, &map, STACK + i * 8);
	const struct stack_copy stack = { STACK, (const uint8_t *)bytes, words * 8 };

	size_t max = 1 + fuzz_take(&in, 1) % FRAMES;
	size_t n = unwinder_walk(u, &regs, &stack, pcs, max, &why);
	FUZZ_ASSERT(n >= 1 && n <= max && why < UNWIND_END_COUNT && pcs[0] == regs.ip);
	unwinder_stats(u);
	for (int round = 0; round < 2; round++) {
		size_t k = unwinder_walk(u, &regs, &stack, again, max, &why_again);
		FUZZ_ASSERT(k == n && why_again == why && !memcmp(pcs, again, n * sizeof(*pcs)));
		unwinder_flush(u);
	}
	for (size_t i = 0; i < n; i++) {
		unwinder_wire_rule(u, pcs[i]);
		unwinder_is_guess(u, pcs[i]);
	}
	free(bytes);
	free(pcs);
	unwinder_destroy(u);
	modules_destroy(mods);
}

const struct fuzz_target fuzz_unwind = { "unwind", 4096, run_unwind };
