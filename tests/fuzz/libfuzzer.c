/* The targets under libFuzzer: HEAPTOP_FUZZ names one of them. Without it, all names are listed. */
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
const char *__lsan_default_suppressions(void);

/*
 * elfutils (0.188) loses a section's bytes now and then when a file's section headers contradict each
 * other: at most the file's size, once a file, and nothing that its callers could free.
 */
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\nleak:libdw.so\n";
}

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	target = fuzz_find(getenv("HEAPTOP_FUZZ"));
	if (target)
		return 0;
	for (size_t i = 0; i < fuzz_ntargets; i++)
		printf("%s %zu\n", fuzz_targets[i]->name, fuzz_targets[i]->max_len);
	fflush(stdout);
	_exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	target->run(data, len);
	return 0;
}
