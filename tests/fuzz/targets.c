/* The list of fuzz targets, and what they share; see fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

const struct fuzz_target *const fuzz_targets[] = {
	&fuzz_agent, &fuzz_cli, &fuzz_config, &fuzz_elf, &fuzz_filter, &fuzz_lines, &fuzz_maps, &fuzz_names,
	&fuzz_pprof, &fuzz_ring, &fuzz_unwind, &fuzz_vt,
};
const size_t fuzz_ntargets = ARRAY_SIZE(fuzz_targets);

const struct fuzz_target *fuzz_find(const char *name)
{
	for (size_t i = 0; i < fuzz_ntargets; i++)
		if (name && !strcmp(fuzz_targets[i]->name, name))
			return fuzz_targets[i];
	return NULL;
}

void fuzz_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

char *fuzz_string(const uint8_t *data, size_t len)
{
	char *ret = xmalloc(len + 1);

	if (len)
		memcpy(ret, data, len);
	ret[len] = '\0';
	return ret;
}

bool fuzz_is_clean(const char *text)
{
	CLEANUP_FREE char *copy = xstrdup(text);

	text_sanitize(copy);
	return !strcmp(copy, text);
}

int fuzz_memfd(const uint8_t *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len) {
		perror("memfd");
		exit(1);
	}
	return fd;
}
