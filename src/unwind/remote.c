/*
 * Accessors for libunwind's remote interface. Memory is the copied stack and, for the unwind
 * tables, the image of the one module whose code is being unwound. Everything libunwind reads
 * comes through access_mem, so counting reads bounds what a hostile CFI program can cost:
 * DWARF expressions may branch backwards.
 */
#include "unwind/remote.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "unwind/unwind.h"

/* Exported by libunwind for profilers, declared in none of its headers. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* Words one step may read. The largest real CFI programs take a few hundred. */
#define MAX_READS 4000

/* Pieces of files read last: libunwind reads tables a word at a time, a system call each. */
#define BLOCKS 64
#define BLOCK_BYTES 1024

struct block {
	const struct elf_file *file;	/* NULL: empty. Files live as long as the modules */
	uint64_t vaddr;
	size_t len;			/* bytes there */
	uint8_t bytes[BLOCK_BYTES];
};

struct remote {
	const struct modules *mods;
	unw_addr_space_t as;
	/* during a step */
	const struct regs_frame *frame;
	const struct stack_copy *stack;
	const struct module *mod;
	unsigned reads;
	struct block blocks[BLOCKS];
};

/* The fixed header of .eh_frame_hdr (LSB 10.6.2), with the encodings every linker writes. */
struct eh_frame_hdr {
	uint8_t version;
	uint8_t eh_frame_enc;
	uint8_t count_enc;
	uint8_t table_enc;
	uint32_t eh_frame;
	uint32_t count;
};
#define ENC_UDATA4 0x03
#define ENC_SDATA4_DATAREL 0x3b

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi,
			  int need_unwind_info, void *arg)
{
	struct remote *r = arg;
	struct eh_frame_hdr hdr;
	uint64_t vaddr, size;

	if (!r->mod || modules_find(r->mods, ip) != r->mod || !r->mod->file ||
	    !elf_file_eh_frame_hdr(r->mod->file, &vaddr, &size) || size < sizeof(hdr) ||
	    elf_file_read(r->mod->file, vaddr, &hdr, sizeof(hdr)) != sizeof(hdr) ||
	    hdr.version != 1 || (hdr.eh_frame_enc & 0x0f & ~0x08) != ENC_UDATA4 ||
	    hdr.count_enc != ENC_UDATA4 || hdr.table_enc != ENC_SDATA4_DATAREL)
		return -UNW_ENOINFO;

	uint64_t count = hdr.count;
	if (count > (size - sizeof(hdr)) / 8)
		count = (size - sizeof(hdr)) / 8;
	if (count == 0)
		return -UNW_ENOINFO;

	unw_dyn_info_t di;
	memset(&di, 0, sizeof(di));
	di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	di.start_ip = 0;
	di.end_ip = UINT64_MAX;
	di.u.rti.segbase = r->mod->bias + vaddr;
	di.u.rti.table_data = r->mod->bias + vaddr + sizeof(hdr);
	di.u.rti.table_len = count * 8 / sizeof(unw_word_t);
	return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need_unwind_info, arg);
}

/* libunwind frees what dwarf_search_unwind_table() made itself. */
static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as;
	(void)pi;
	(void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *ret, void *arg)
{
	(void)as;
	(void)ret;
	(void)arg;
	return -UNW_ENOINFO;
}

/* The word at vaddr; zeroes where the file has none, false if it has not a byte there. */
static bool read_word(struct remote *r, uint64_t vaddr, unw_word_t *ret)
{
	const struct elf_file *file = r->mod->file;
	uint64_t start = vaddr / BLOCK_BYTES * BLOCK_BYTES;
	struct block *b = &r->blocks[(start / BLOCK_BYTES + r->mod->id * 7) % BLOCKS];

	*ret = 0;
	if (b->file != file || b->vaddr != start) {
		b->file = file;
		b->vaddr = start;
		b->len = elf_file_read(file, start, b->bytes, BLOCK_BYTES);
	}
	uint64_t at = vaddr - start;
	if (b->len >= sizeof(*ret) && at <= b->len - sizeof(*ret)) {
		memcpy(ret, b->bytes + at, sizeof(*ret));
		return true;
	}
	/* across two blocks, at a segment's end, or the segment starts within the block */
	return elf_file_read(file, vaddr, ret, sizeof(*ret)) > 0;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg)
{
	struct remote *r = arg;
	uint64_t offset = addr - r->stack->addr;

	(void)as;
	if (write || ++r->reads > MAX_READS)
		return -UNW_EINVAL;
	if (r->stack->len >= sizeof(*val) && offset <= r->stack->len - sizeof(*val)) {
		memcpy(val, r->stack->bytes + offset, sizeof(*val));
		return 0;
	}
	if (!r->mod || !r->mod->file)
		return -UNW_EINVAL;
	/* Smaller reads are done as the aligned word around them, which may pass a segment's end. */
	return read_word(r, addr - r->mod->bias, val) ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg)
{
	struct remote *r = arg;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg == UNW_REG_IP) {
		/* libunwind takes the address of the first frame as it is. */
		*val = r->frame->pc - !r->frame->exact;
		return 0;
	}
	if (reg == UNW_REG_SP) {
		*val = r->frame->sp;
		return 0;
	}
	for (int i = 0; i < REGS_SLOTS; i++) {
		if (regs_cpu.dwarf[i] >= 0 && reg == regs_cpu.dwarf[i]) {
			*val = r->frame->reg[i];
			return 0;
		}
	}
	return -UNW_EBADREG;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
			void *arg)
{
	(void)as;
	(void)reg;
	(void)val;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t len,
			 unw_word_t *offset, void *arg)
{
	(void)as;
	(void)ip;
	(void)buf;
	(void)len;
	(void)offset;
	(void)arg;
	return -UNW_ENOINFO;
}

struct remote *remote_create(const struct modules *mods)
{
	/* Kept by libunwind as a copy. */
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	unw_addr_space_t as = unw_create_addr_space(&accessors, 0);

	if (!as)
		return NULL;
	unw_set_caching_policy(as, UNW_CACHE_GLOBAL);

	struct remote *r = xcalloc(1, sizeof(*r));
	r->mods = mods;
	r->as = as;
	return r;
}

void remote_destroy(struct remote *r)
{
	if (!r)
		return;
	unw_destroy_addr_space(r->as);
	free(r);
}

void remote_flush(struct remote *r)
{
	if (r)
		unw_flush_cache(r->as, 0, 0);
}

bool remote_step(struct remote *r, struct regs_frame *f, const struct stack_copy *stack)
{
	unw_cursor_t cursor;
	unw_word_t pc, sp;

	if (!r)
		return false;
	r->frame = f;
	r->stack = stack;
	r->mod = modules_find(r->mods, f->pc - !f->exact);
	r->reads = 0;
	if (!r->mod || unw_init_remote(&cursor, r->as, r) < 0 || unw_step(&cursor) < 0 ||
	    unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || unw_get_reg(&cursor, UNW_REG_SP, &sp) < 0)
		return false;

	struct regs_frame caller = *f;
	for (int i = 0; i < REGS_SLOTS; i++) {
		unw_word_t val;
		if (regs_cpu.dwarf[i] >= 0 && i != REGS_RA &&
		    unw_get_reg(&cursor, regs_cpu.dwarf[i], &val) >= 0)
			caller.reg[i] = val;
	}
	caller.pc = pc;
	caller.sp = sp;
	*f = caller;
	return true;
}
