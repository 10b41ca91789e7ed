/* See system.h. */
#include "report/system.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

static bool begins(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(text, list[i], strlen(list[i])))
			return true;
	return false;
}

bool system_library(const char *module)
{
	static const char *const names[] = {
		"libc.so", "libc-2.", "ld-linux", "ld-musl", "libpthread", "libm.so", "libdl.so", "[vdso]",
		"libjemalloc", "libtcmalloc", "libmimalloc", "libstdc++", "libgcc_s", "libc.musl",
	};

	return begins(module, names, ARRAY_SIZE(names));
}

bool system_path(const char *path)
{
	static const char *const folders[] = {
		"/usr/lib/", "/usr/lib64/", "/usr/lib32/", "/lib/", "/lib64/", "/lib32/", "/nix/store/", "/gnu/store/",
	};

	return begins(path, folders, ARRAY_SIZE(folders));
}
