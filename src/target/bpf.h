/* What all that goes through libbpf has in common. */
#ifndef HEAPTOP_TARGET_BPF_H
#define HEAPTOP_TARGET_BPF_H

/* libbpf's word on what went wrong goes to our log, with -v. */
void bpf_say_to_log(void);

#endif
