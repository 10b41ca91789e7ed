/*
 * A program with allocators of its own, which nobody knows by name: some get their blocks from malloc, some from
 * a piece of memory of their own. Writes "SITE SIZE BLOCKS LIVE" per size to the file named, as is right once they are named.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char piece[4 << 20];
static size_t used;
static void *volatile keep;

struct pool {
	unsigned got;
};

/* Its block lies behind a head of its own. */
void *pool_get(struct pool *pool, size_t size)
{
	uint64_t *head = malloc(size + 16);

	pool->got++;
	*head = size;
	return head + 2;
}

void pool_put(struct pool *pool, void *block)
{
	pool->got--;
	free((uint64_t *)block - 2);
}

void *pool_resize(struct pool *pool, void *block, size_t size)
{
	uint64_t *head = realloc((uint64_t *)block - 2, size + 16);

	*head = size;
	return pool ? head + 2 : NULL;
}

/* No malloc at all; both are ints, as the upper halves of their registers show. */
void *slab_new(int n, int size)
{
	char *ret = piece + used;

	used += ((size_t)(n * size) + 31) & ~(size_t)15;
	return used < sizeof(piece) ? ret : NULL;
}

void *object_new(void)
{
	return slab_new(1, 640);
}

int make(void *pool, void **out, size_t size)
{
	*out = pool_get(pool, size);
	return *out ? 0 : -1;
}

#define TIMES(n, ...) for (int i = 0; i < (n); i++) { __VA_ARGS__; }
#define TOLD(size, blocks, live) printf("%s %d %d %d\n", __func__, size, blocks, live)

static void site_pool(struct pool *pool)
{
	void *p = NULL;

	TIMES(700, keep = pool_get(pool, 1101); pool_put(pool, keep));
	TOLD(1101, 700, 0);
	TIMES(60, keep = pool_get(pool, 1202); keep = pool_resize(pool, keep, 1303));
	TOLD(1202, 60, 0);
	TOLD(1303, 60, 60);
	TIMES(80, if (make(pool, &p, 1404)) exit(1); pool_put(pool, p));
	TOLD(1404, 80, 0);
}

static void site_slab(void)
{
	void *(*volatile wide)(uint64_t n, uint64_t size) = (void *(*)(uint64_t, uint64_t))(uintptr_t)slab_new;

	TIMES(90, keep = wide(0xdead00000002, 0xbeef00000000 + 500));
	TOLD(1000, 90, 90);
	TIMES(110, keep = object_new());
	TOLD(640, 110, 110);
}

static void site_malloc(void)
{
	TIMES(120, keep = malloc(1505));
	TOLD(1505, 120, 120);
}

int main(int argc, char **argv)
{
	struct pool pool = { 0 };

	if (argc < 2 || !freopen(argv[1], "w", stdout))
		return 1;
	setvbuf(stdout, NULL, _IOFBF, 4096);
	site_pool(&pool);
	site_slab();
	site_malloc();
	puts("ok");
	fflush(stdout);
	_exit(3);
}
