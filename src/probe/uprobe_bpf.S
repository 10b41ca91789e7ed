/* The BPF object file as clang made it. */
	.section .rodata
	.global uprobe_bpf_start
	.global uprobe_bpf_end
	.balign 8
uprobe_bpf_start:
	.incbin "uprobe.bpf.o"
uprobe_bpf_end:
	.section .note.GNU-stack, "", @progbits
