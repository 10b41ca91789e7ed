/*
 * The agent's code (agent/, linked flat into agent.bin) as data of heaptop. The assembler's
 * include path (-Wa,-I) must lead to agent.bin.
 */
	.section .rodata
	.globl	agent_blob
	.hidden	agent_blob
	.type	agent_blob, @object
	.balign	64
agent_blob:
	.incbin	"agent.bin"
	.size	agent_blob, . - agent_blob
	.globl	agent_blob_end
	.hidden	agent_blob_end
agent_blob_end:
	.byte	0

	.section .note.GNU-stack, "", @progbits
