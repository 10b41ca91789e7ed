/* The BPF object file as clang made it. */
	.section .rodata
	.global faults_bpf_start
	.global faults_bpf_end
	.balign 8
faults_bpf_start:
	.incbin "faults.bpf.o"
faults_bpf_end:
	.section .note.GNU-stack, "", @progbits
