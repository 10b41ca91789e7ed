/*
 * Loads and unloads plug-ins as its arguments say, in their order:
 *
 *	load PATH	dlopen, RTLD_LOCAL; said at once: "loaded" and its address
 *	unload PATH
 *	call PATH FUNCTION N SIZE	FUNCTION(N, SIZE) of it: N blocks of SIZE bytes are made and kept
 *	give PATH FUNCTION N	and given back, the first N that were made
 *	many FOLDER N	loads FOLDER/0.so, FOLDER/1.so, ...
 *	wait FILE	until it is there, at most 60 s
 *
 * Exit code 1: something isn't as it should be.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULES 8

static struct {
	const char *path;
	void *handle;
} modules[MODULES];

static void die(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s\n", name, what);
	exit(1);
}

static void **find(const char *path)
{
	for (int i = 0; i < MODULES; i++) {
		if (modules[i].path && strcmp(modules[i].path, path))
			continue;
		modules[i].path = path;
		return &modules[i].handle;
	}
	die("too many modules", path);
	return NULL;
}

static void load(const char *path)
{
	void **handle = find(path);
	struct link_map *map;

	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle || dlinfo(*handle, RTLD_DI_LINKMAP, &map))
		die(dlerror(), path);
	printf("loaded %#lx\n", (unsigned long)map->l_addr);
}

static void *function(const char *path, const char *name)
{
	void *ret = dlsym(*find(path), name);

	if (!ret)
		die("no such function", name);
	return ret;
}

static void many(const char *folder, int n)
{
	char path[4096];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", folder, i);
		if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
			die(dlerror(), path);
	}
	printf("many\n");
}

static void wait_for(const char *file)
{
	for (int i = 0; access(file, F_OK); i++) {
		if (i == 6000)
			die("doesn't come", file);
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];

		if (!strcmp(what, "load")) {
			load(argv[++i]);
		} else if (!strcmp(what, "unload")) {
			dlclose(*find(argv[++i]));
			printf("unloaded\n");
		} else if (!strcmp(what, "call")) {
			void (*f)(int, size_t) = function(argv[i + 1], argv[i + 2]);
			f(atoi(argv[i + 3]), (size_t)atol(argv[i + 4]));
			i += 4;
		} else if (!strcmp(what, "give")) {
			void (*f)(int) = function(argv[i + 1], argv[i + 2]);
			f(atoi(argv[i + 3]));
			i += 3;
		} else if (!strcmp(what, "many")) {
			many(argv[i + 1], atoi(argv[i + 2]));
			i += 2;
		} else if (!strcmp(what, "wait")) {
			wait_for(argv[++i]);
		} else {
			die("unknown", what);
		}
	}
	return 0;
}
