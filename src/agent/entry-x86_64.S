/*
 * Where the hooks' thunks arrive, x86-64. r11 = struct wire_hook; the stack and all other
 * registers are as the allocator's caller left them. Only rax, r10, r11 and the flags are changed on the way
 * to the original: a compiler that knows the allocator (-fipa-ra) may rely on more registers
 * surviving than the ABI says.
 *
 * Offsets are those of wire/wire.h and agent/agent.h; agent.c asserts them.
 */

#define ISLAND_CTL	16
#define CTL_FREE_ALL	32
#define SLOT_TP		4096
#define SLOT_COUNTDOWN	(4096 + 8)
#define SLOT_BYTES	256
#define FILTER		(4096 + 4128 * 256)
#define HOOK_INSTEAD	0
#define HOOK_NOTHROW	30
#define HOOK_ORIGINAL	40
#define FRAME_HOOK	96
#define FRAME_RESULT	104
#define FRAME_BYTES	200

	.section .island, "a", @progbits
	.globl	agent_island
	.hidden	agent_island
	.type	agent_island, @object
agent_island:
	.quad	0x706f747061656801
	.long	4			/* WIRE_VERSION */
	.zero	64
	.long	agent_end - agent_island	/* end: in the linker script */
	.long	entry_malloc - agent_island	/* MALLOC */
	.long	entry_free - agent_island	/* FREE */
	.long	entry_new - agent_island	/* NEW */
	.long	entry_new_outer - agent_island	/* NEW_OUTER */
	.long	entry_framed - agent_island	/* ALLOC */
	.long	entry_framed - agent_island	/* REALLOC */
	.long	entry_release - agent_island	/* RELEASE */
	.long	entry_framed - agent_island	/* RANGE */
	.quad	0			/* rules */
	.quad	0			/* tags */
	.size	agent_island, . - agent_island

	.text

	/* Build struct agent_frame; afterwards rsp is 16-byte aligned, as calls want it. */
	.macro	frame_push
	sub	$FRAME_BYTES, %rsp
	mov	%rbp, 0(%rsp)
	mov	%rbx, 8(%rsp)
	mov	%r12, 16(%rsp)
	mov	%r13, 24(%rsp)
	mov	%r14, 32(%rsp)
	mov	%r15, 40(%rsp)
	mov	%rdi, 48(%rsp)
	mov	%rsi, 56(%rsp)
	mov	%rdx, 64(%rsp)
	mov	%rcx, 72(%rsp)
	mov	%r8, 80(%rsp)
	mov	%r9, 88(%rsp)
	mov	%r11, FRAME_HOOK(%rsp)
	.endm

	/* The callee-saved ones still have their values. */
	.macro	frame_reload
	mov	48(%rsp), %rdi
	mov	56(%rsp), %rsi
	mov	64(%rsp), %rdx
	mov	72(%rsp), %rcx
	mov	80(%rsp), %r8
	mov	88(%rsp), %r9
	mov	FRAME_HOOK(%rsp), %r11
	.endm

/*
 * malloc: find the thread's slot at its home or one further, count the bytes down, and go on
 * unless that reached zero (unsigned: a huge size must not silence the thread).
 */
	.macro	count_down slow
	mov	%fs:0, %rax
	mov	%rax, %r10
	shr	$6, %r10
	imul	$0x9e3779b1, %r10d, %r10d
	shr	$12, %r10d			/* >> 20, then * 256 */
	and	$(4095 * SLOT_BYTES), %r10d
	add	agent_island+ISLAND_CTL(%rip), %r10
	cmp	%rax, SLOT_TP(%r10)
	jne	2f
1:	sub	%rdi, SLOT_COUNTDOWN(%r10)
	jbe	3f
	jmp	*HOOK_ORIGINAL(%r11)
2:	add	$SLOT_BYTES, %r10
	cmp	%rax, SLOT_TP(%r10)
	je	1b
	jmp	\slow
3:	add	%rdi, SLOT_COUNTDOWN(%r10)	/* agent_before counts again */
	.endm

	.balign	64
entry_malloc:
	count_down entry_framed
	/* fall through */

/* Every other allocation, and a malloc that needs a closer look. */
entry_framed:
	frame_push
	mov	%rsp, %rdi
	call	agent_before
	test	%eax, %eax
	frame_reload
	jnz	1f
	add	$FRAME_BYTES, %rsp
	jmp	*HOOK_ORIGINAL(%r11)
1:	call	*HOOK_ORIGINAL(%r11)
	mov	%rax, FRAME_RESULT(%rsp)
	mov	%rsp, %rdi
	call	agent_after
	mov	%rsp, %rdi
	call	agent_leave
	movq	$0, -8(%rsp)	/* no word that points here stays behind on the stack: heaptop
				 * looks for such words to see whether a thread is inside */
	frame_reload
	mov	FRAME_RESULT(%rsp), %rax
	add	$FRAME_BYTES, %rsp
	ret

/*
 * operator new: an exception can't pass our frame, so the block to be recorded comes from its nothrow
 * sibling. If there is none to be had the original is jumped to, which calls the new-handler or throws.
 */
	.balign	64
entry_new:
	count_down entry_new_outer
	/* fall through */

entry_new_outer:
	frame_push
	mov	%rsp, %rdi
	call	agent_before
	test	%eax, %eax
	frame_reload
	jnz	1f
	add	$FRAME_BYTES, %rsp
	jmp	*HOOK_ORIGINAL(%r11)
1:	cmpb	$3, HOOK_NOTHROW(%r11)
	cmove	%r11, %rdx			/* std::nothrow is never looked at */
	je	2f
	mov	%r11, %rsi
2:	call	*HOOK_INSTEAD(%r11)
	mov	%rax, FRAME_RESULT(%rsp)
	mov	%rsp, %rdi
	call	agent_after
	mov	%rsp, %rdi
	call	agent_leave
	movq	$0, -8(%rsp)
	frame_reload
	mov	FRAME_RESULT(%rsp), %rax
	add	$FRAME_BYTES, %rsp
	test	%rax, %rax
	jz	3f
	ret
3:	jmp	*HOOK_ORIGINAL(%r11)

/*
 * free: one bucket of seven tags says whether the block was sampled; the word after them is negative if
 * it has tags elsewhere, too. bucket offset = (addr >> 4 & 0x3fff) * 32, tag =
 * (addr >> 18) * 2 + (addr >> 3 & 1) + 1.
 */
	.balign	64
entry_free:
	mov	agent_island+ISLAND_CTL(%rip), %r10
	cmpl	$0, CTL_FREE_ALL(%r10)
	jne	1f
	mov	%edi, %eax
	and	$0x3fff0, %eax
	lea	(%r10,%rax,2), %r10
	mov	%rdi, %rax
	shr	$18, %rax
	bt	$3, %edi
	adc	%eax, %eax
	inc	%eax
	cmp	%eax, FILTER(%r10)
	je	1f
	cmp	%eax, FILTER+4(%r10)
	je	1f
	cmp	%eax, FILTER+8(%r10)
	je	1f
	cmp	%eax, FILTER+12(%r10)
	je	1f
	cmp	%eax, FILTER+16(%r10)
	je	1f
	cmp	%eax, FILTER+20(%r10)
	je	1f
	cmp	%eax, FILTER+24(%r10)
	je	1f
	cmpl	$0, FILTER+28(%r10)
	jl	1f
	jmp	*HOOK_ORIGINAL(%r11)
1:
entry_release:
	frame_push
	mov	%rsp, %rdi
	call	agent_free
	movq	$0, -8(%rsp)
	frame_reload
	add	$FRAME_BYTES, %rsp
	jmp	*HOOK_ORIGINAL(%r11)

	.section .note.GNU-stack, "", @progbits
