/* A heaptop that was built without BPF. */
#include "target/faults_kernel.h"

#include "base/err.h"

struct faults_code *faults_code_create(void)
{
	return NULL;
}

void faults_code_destroy(struct faults_code *code)
{
	(void)code;
}

void faults_code_prepare(struct faults_code *code)
{
	(void)code;
}

struct err *faults_kernel_open(struct faults_code *code, pid_t pid, struct faults_kernel **ret)
{
	(void)code;
	(void)pid;
	*ret = NULL;
	return err_new(ERR_UNSUPPORTED, "this heaptop was built without BPF");
}

void faults_kernel_close(struct faults_kernel *k)
{
	(void)k;
}

int faults_kernel_program(const struct faults_kernel *k)
{
	(void)k;
	return -1;
}

void faults_kernel_read(struct faults_kernel *k, faults_record_fn fn, void *ctx)
{
	(void)k;
	(void)fn;
	(void)ctx;
}

struct faults_seen faults_kernel_seen(const struct faults_kernel *k)
{
	(void)k;
	return (struct faults_seen){ 0 };
}

size_t faults_kernel_cpus(const struct faults_kernel *k)
{
	(void)k;
	return 0;
}
