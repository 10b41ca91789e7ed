/*
 * An allocator of its own for the victim reach: powers of two from an arena that is never given
 * back. With -DPLUGIN a library, which has it under the names of malloc, too.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "reach_pool.h"

#define POOL_HEAD 16u		/* its class lies before each block */
#define POOL_ARENA (1ull << 30)

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static char *pool_next, *pool_end;
static void *pool_free[64];

void *pool_get(size_t size)
{
	unsigned order = 5;
	char *p;

	if (size > POOL_ARENA / 4)
		return NULL;
	while ((size_t)1 << order < size + POOL_HEAD)
		order++;
	pthread_mutex_lock(&pool_lock);
	if (!pool_next) {
		pool_next = (char *)mmap(NULL, POOL_ARENA, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		pool_end = pool_next + POOL_ARENA;
	}
	p = (char *)pool_free[order];
	if (p) {
		memcpy(&pool_free[order], p + POOL_HEAD, sizeof(void *));
	} else if ((size_t)(pool_end - pool_next) >= (size_t)1 << order) {
		p = pool_next;
		pool_next += (size_t)1 << order;
	}
	pthread_mutex_unlock(&pool_lock);
	if (!p)
		return NULL;
	*(unsigned *)(void *)p = order;
	return p + POOL_HEAD;
}

void pool_put(void *block)
{
	char *p = (char *)block - POOL_HEAD;
	unsigned order = *(unsigned *)(void *)p;

	pthread_mutex_lock(&pool_lock);
	memcpy(block, &pool_free[order], sizeof(void *));
	pool_free[order] = p;
	pthread_mutex_unlock(&pool_lock);
}

#ifdef PLUGIN

/* A function that does nothing but call another can't be hooked: the call would be among what is moved. */
void *malloc(size_t size)
{
	return pool_get(size ? size : 1);
}

void free(void *p)
{
	if (p)
		pool_put(p);
}

void *calloc(size_t n, size_t size)
{
	void *p = pool_get(n * size);

	return p ? memset(p, 0, n * size) : NULL;
}

void *realloc(void *old, size_t size)
{
	void *p = pool_get(size);

	if (p && old) {
		size_t held = ((size_t)1 << *(unsigned *)((char *)old - POOL_HEAD)) - POOL_HEAD;
		memcpy(p, old, held < size ? held : size);
		pool_put(old);
	}
	return p;
}
#endif
