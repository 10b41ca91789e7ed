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
 * Functions are called on a thread of their own, always at the same depth, which does nothing else: what
 * it allocates by one module after another differs in nothing but what lies at these addresses.
 *
 * Exit code 1: something isn't as it should be.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULES 8

static struct {
	const char *path;
	void *handle;
} modules[MODULES];

/* What the thread shall do: one of the two. */
static struct {
	sem_t wanted, done;
	void (*make)(int n, size_t size);
	void (*give)(int n);
	int n;
	size_t size;
} job;

static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		sem_wait(&job.wanted);
		if (job.make)
			job.make(job.n, job.size);
		else
			job.give(job.n);
		sem_post(&job.done);
	}
	return NULL;
}

static void do_job(void)
{
	sem_post(&job.wanted);
	sem_wait(&job.done);
}

/* For plug-ins. Their frame isn't the innermost one, and so one that the thread need not tell again. */
__attribute__((visibility("default"))) void *xmalloc(size_t size)
{
	return malloc(size);
}

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
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&job.wanted, 0, 0);
	sem_init(&job.done, 0, 0);
	if (pthread_create(&thread, NULL, work, NULL))
		die("can't be created", "a thread");
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];

		if (!strcmp(what, "load")) {
			load(argv[++i]);
		} else if (!strcmp(what, "unload")) {
			dlclose(*find(argv[++i]));
			printf("unloaded\n");
		} else if (!strcmp(what, "call")) {
			job.make = function(argv[i + 1], argv[i + 2]);
			job.n = atoi(argv[i + 3]);
			job.size = (size_t)atol(argv[i + 4]);
			do_job();
			i += 4;
		} else if (!strcmp(what, "give")) {
			job.make = NULL;
			job.give = function(argv[i + 1], argv[i + 2]);
			job.n = atoi(argv[i + 3]);
			do_job();
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
