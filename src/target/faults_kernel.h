/*
 * The BPF program that chooses which page faults are told of (faults.bpf.c), and what it keeps in the kernel for one process
 * (faults_wire.h). Events of perf_event run it with each fault: it is set on them with PERF_EVENT_IOC_SET_BPF, and inherited by
 * new threads' events. The collector thread.
 */
#ifndef HEAPTOP_TARGET_FAULTS_KERNEL_H
#define HEAPTOP_TARGET_FAULTS_KERNEL_H

#include <stddef.h>
#include <sys/types.h>

#include "target/faults_wire.h"

struct err;
struct faults_code;
struct faults_kernel;

/*
 * The program's code, once for all processes. What is to be opened next can be made beforehand, for a process that has begun to
 * run doesn't wait: some milliseconds, and before the first, when libbpf looks for this kernel's offsets, a tenth of a second
 * and more. Opening takes nothing then.
 */
struct faults_code *faults_code_create(void);
void faults_code_prepare(struct faults_code *code);
void faults_code_destroy(struct faults_code *code);	/* accepts NULL; what was opened by it stays */

/*
 * ERR_DENIED: a right is missing; ERR_UNSUPPORTED: the kernel has no way (it takes Linux 6.2 with BTF), or this heaptop was
 * built without BPF, or ids of its threads in our PID namespace can't be told.
 */
struct err *faults_kernel_open(struct faults_code *code, pid_t pid, struct faults_kernel **ret);
void faults_kernel_close(struct faults_kernel *k);	/* accepts NULL */

/* A descriptor, which stays the kernel's. */
int faults_kernel_program(const struct faults_kernel *k);

/* Hand over the records there are; their sizes are checked, nothing else. Valid during the call. */
typedef void (*faults_record_fn)(void *ctx, const struct faults_record *r);
void faults_kernel_read(struct faults_kernel *k, faults_record_fn fn, void *ctx);

/* All that has been seen. */
struct faults_seen faults_kernel_seen(const struct faults_kernel *k);
size_t faults_kernel_cpus(const struct faults_kernel *k);

#endif
