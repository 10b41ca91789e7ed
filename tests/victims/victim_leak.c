/*
 * A leak as it hides in real programs: a megabyte a second from one line, in one of several threads, among others that
 * allocate and free fifty times as much, and beside three dozen steady blocks, of more than
 * twenty megabytes each, though untouched. Prints the place of the leak ("leak victim_leak.c:LINE") and runs until it is
 * killed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MIB = 1 << 20, LEAK_BLOCK = 2048, A_SECOND = 100 };

static void *volatile sink;

static void rest(void)
{
	struct timespec ts = { .tv_nsec = 1000000000 / A_SECOND };

	nanosleep(&ts, NULL);
}

/* ---- steady: each holds more than the leak will, so that it is on no list's first page by its size ---- */

#define STEADY(name) static void name(void) { sink = malloc((24 + (__LINE__ % 8) * 3) * (size_t)MIB); }
STEADY(texture_load)
STEADY(index_build)
STEADY(cache_fill)
STEADY(mesh_read)
STEADY(font_raster)
STEADY(log_reserve)
STEADY(pool_grow)
STEADY(table_rehash)
STEADY(image_decode)
STEADY(audio_mix)
STEADY(undo_keep)
STEADY(shader_compile)
STEADY(tile_fetch)
STEADY(route_plan)
STEADY(glyph_cache)
STEADY(arena_make)
STEADY(trace_open)
STEADY(map_load)
STEADY(frame_queue)
STEADY(string_pool)
STEADY(model_read)
STEADY(bitmap_new)
STEADY(heap_fill)
STEADY(page_cache)
STEADY(block_list)
STEADY(node_store)
STEADY(layer_stack)
STEADY(history_load)
STEADY(plugin_scan)
STEADY(voice_bank)
STEADY(light_bake)
STEADY(water_grid)
static void (*const steady[])(void) = {
	texture_load, index_build, cache_fill, mesh_read, font_raster, log_reserve, pool_grow, table_rehash,
	image_decode, audio_mix, undo_keep, shader_compile, tile_fetch, route_plan, glyph_cache, arena_make,
	trace_open, map_load, frame_queue, string_pool, model_read, bitmap_new, heap_fill, page_cache,
	block_list, node_store, layer_stack, history_load, plugin_scan, voice_bank, light_bake, water_grid,
};

/* ---- churn: loud, and all of it freed ---- */

static void *request_buffer(size_t bytes)
{
	return malloc(bytes);
}

static void *parse_node(size_t bytes)
{
	return malloc(bytes);
}

static void *serve(void *arg)
{
	void *ring[64] = { NULL };

	(void)arg;
	for (unsigned n = 0;; n++) {
		/* a few live on for a while, so that what these hold goes up and down */
		for (int k = 0; k < 40; k++) {
			unsigned slot = (n * 40 + k) * 7 % 64;
			free(ring[slot]);
			ring[slot] = k % 2 ? request_buffer(4096 + n % 9 * 512) : parse_node(1024 + n % 5 * 256);
		}
		rest();
	}
	return NULL;
}

/* ---- the leak ---- */

struct session {
	struct session *next;
	char data[LEAK_BLOCK - sizeof(void *)];
};
static struct session *sessions;

enum { LEAK_LINE = __LINE__ + 4 };
static struct session *session_open(void)
{
	struct session *s;
	s = malloc(sizeof(*s));
	memset(s, 4, sizeof(*s));
	s->next = sessions;
	sessions = s;
	return s;
}

static void *accept_all(void *arg)
{
	(void)arg;
	for (unsigned n = 0;; n++) {
		for (int k = 0; k < MIB / LEAK_BLOCK / A_SECOND + (n % 100 < MIB / LEAK_BLOCK % A_SECOND); k++)
			session_open();
		rest();
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	printf("leak victim_leak.c:%d\n", LEAK_LINE);
	fflush(stdout);
	for (size_t i = 0; i < sizeof(steady) / sizeof(steady[0]); i++)
		steady[i]();
	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread, NULL, serve, NULL))
			return 1;
	if (pthread_create(&thread, NULL, accept_all, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
