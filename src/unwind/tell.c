/*
 * A rule in the words of the agent, which knows sp and the frame pointer only, finds the return
 * address below the CFA and counts in words of 8 bytes.
 */
#include "unwind/regs.h"
#include "unwind/rules.h"
#include "wire/wire.h"

/* *ret: words below the CFA at which the caller's frame pointer lies, 0: it is unchanged. */
static bool fp_below(const struct rule *r, uint8_t *ret)
{
	int saved = r->saved[regs_cpu.fp];

	*ret = 0;
	if (!(r->mask & 1u << regs_cpu.fp))
		return true;
	if (saved > -2 || saved < -UINT8_MAX)
		return false;
	*ret = (uint8_t)-saved;
	return true;
}

/* As gcc realigns: CFA = *(fp + offset), and the caller's frame pointer lies at fp. */
static bool fp_at_base(const struct rule *r, uint8_t *ret)
{
	unsigned fp = 1u << regs_cpu.fp;

	*ret = (r->mask & fp) != 0;
	return !(r->mask & fp) || (r->base_mask & fp && r->saved[regs_cpu.fp] == 0);
}

/*
 * A frame record. The agent can't tell whether it leads into code, so only one that did before is
 * worth its while; where it leads elsewhere this time, the agent has no rule to go on by.
 */
static uint32_t guess(const struct rule *r)
{
	if (!r->held || regs_cpu.record_ra + 8 != regs_cpu.record_size)
		return WIRE_RULE_NONE;
	return wire_rule(WIRE_RULE_BP, regs_cpu.record_size / 8, regs_cpu.record_size / 8);
}

uint32_t rule_tell(const struct rule *r)
{
	unsigned ra = 1u << REGS_RA;
	uint8_t bp;

	if (r->kind == RULE_ROOT)
		return wire_rule(WIRE_RULE_END, 0, 0);
	if (r->kind == RULE_FP)
		return guess(r);
	if ((r->kind != RULE_CFA && r->kind != RULE_CFA_DEREF) || !(r->mask & ra) || r->base_mask & ra ||
	    r->saved[REGS_RA] != -1 || r->offset % 8)
		return WIRE_RULE_NONE;

	int32_t words = r->offset / 8;
	if (r->kind == RULE_CFA_DEREF) {
		if (r->base != regs_cpu.fp || words < INT16_MIN || words > INT16_MAX || !fp_at_base(r, &bp))
			return WIRE_RULE_NONE;
		return wire_rule(WIRE_RULE_DEREF, bp, (uint16_t)words);
	}
	if ((r->base != REGS_SP && r->base != regs_cpu.fp) || words < 0 || words > UINT16_MAX ||
	    !fp_below(r, &bp))
		return WIRE_RULE_NONE;
	return wire_rule(r->base == REGS_SP ? WIRE_RULE_SP : WIRE_RULE_BP, bp, (uint16_t)words);
}
