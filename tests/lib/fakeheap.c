/* See fakeheap.h. */
#include "fakeheap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

enum { APP = 1, LIBC, LIBSTDCXX, LIBPNG, LIBSSL };

static const char *const modules[] = { "", "sceneview", "libc.so.6", "libstdc++.so.6", "libpng16.so.16", "libssl.so.3" };

struct function {
	uint32_t module;
	uint64_t vaddr;
	const char *name, *file;
	uint32_t line;
};

enum {
	START, MAIN, LOAD, PARSE, EMPLACE, OPNEW, RENDER, TEXTURE, PNGREAD, PNGMALLOC, WORKER, CLONE, PUSH,
	REALLOCINSERT, FILTER, TMPBUF, CONFIG, STRDUP, SSLNEW, UNKNOWN, FIB, LEAF, FUNCTIONS
};

static const struct function functions[FUNCTIONS] = {
	[START] = { APP, 0x1000, "_start", NULL, 0 },
	[MAIN] = { APP, 0x2000, "main", "src/main.cpp", 61 },
	[LOAD] = { APP, 0x3000, "Loader::load_scene(std::filesystem::path const&, LoadOptions)", "src/loader.cpp", 204 },
	[PARSE] = { APP, 0x4000, "nlohmann::basic_json<std::map, std::vector, std::string, bool, long, unsigned long, double>::parse(char const*, char const*)", "src/loader.cpp", 218 },
	[EMPLACE] = { APP, 0x5000, "std::map<std::string, nlohmann::json>::emplace<std::string const&>(std::string const&)", "src/loader.cpp", 220 },
	[OPNEW] = { LIBSTDCXX, 0x1000, "operator new(unsigned long)", NULL, 0 },
	[RENDER] = { APP, 0x6000, "Renderer::frame()", "src/renderer.cpp", 77 },
	[TEXTURE] = { APP, 0x7000, "texture_decode(Texture*, int)", "src/texture.cpp", 19 },
	[PNGREAD] = { LIBPNG, 0x1000, "png_read_image", NULL, 0 },
	[PNGMALLOC] = { LIBPNG, 0x2000, "png_create_row", "pngmem.c", 90 },
	[WORKER] = { APP, 0x8000, "worker_thread(void*)", "src/worker.cpp", 12 },
	[CLONE] = { LIBC, 0x1000, "clone3", NULL, 0 },
	[PUSH] = { APP, 0x9000, "Queue<std::unique_ptr<Job, std::default_delete<Job> > >::push(std::unique_ptr<Job>&&)", "src/queue.h", 41 },
	[REALLOCINSERT] = { APP, 0xa000, "std::vector<Vertex, std::allocator<Vertex> >::_M_realloc_insert<Vertex>(Vertex*, Vertex&&)", "src/mesh.cpp", 130 },
	[FILTER] = { APP, 0xb000, "filter_apply", "src/filter.c", 88 },
	[TMPBUF] = { APP, 0xc000, "tmp_buffer", "src/filter.c", 19 },
	[CONFIG] = { APP, 0xd000, "config_read", "src/config.c", 1310 },
	[STRDUP] = { LIBC, 0x2000, "strdup", NULL, 0 },
	[SSLNEW] = { LIBSSL, 0x1000, "SSL_CTX_new", NULL, 0 },
	[UNKNOWN] = { LIBSSL, 0x1f30, "libssl.so.3+0x1f30", NULL, 0 },
	[FIB] = { APP, 0xe000, "recurse(int)", "src/recurse.c", 7 },
	[LEAF] = { APP, 0xf000, "leaf", "src/recurse.c", 3 },
};

struct stack {
	const uint8_t *frames;	/* innermost first, FUNCTIONS ends */
	uint64_t size;		/* of a block */
	uint32_t first;		/* blocks in the first second */
	uint32_t each;		/* blocks in each later one */
	uint32_t keep;		/* of them never freed; the rest goes at once */
};

#define S(...) (const uint8_t[]){ __VA_ARGS__, FUNCTIONS }
static const struct stack stacks[] = {
	{ S(OPNEW, EMPLACE, PARSE, LOAD, MAIN, START), 1024, 400, 8, 8 },
	{ S(OPNEW, PARSE, LOAD, MAIN, START), 4096, 20, 1, 0 },
	{ S(OPNEW, REALLOCINSERT, RENDER, MAIN, START), 65536, 4, 0, 0 },
	{ S(PNGMALLOC, PNGREAD, TEXTURE, RENDER, MAIN, START), 16384, 12, 2, 1 },
	{ S(OPNEW, PUSH, WORKER, CLONE), 2048, 10, 20, 20 },
	{ S(TMPBUF, FILTER, RENDER, MAIN, START), 8192, 50, 60, 0 },
	{ S(STRDUP, CONFIG, MAIN, START), 32, 300, 1, 1 },
	{ S(SSLNEW, MAIN, START), 30000, 1, 0, 0 },
	{ S(UNKNOWN, SSLNEW, MAIN, START), 12000, 1, 0, 0 },
	{ S(LEAF, FIB, FIB, FIB, FIB, FIB, MAIN, START), 500, 60, 2, 1 },
};

struct fakeheap {
	struct fakeheap_config config;
	struct heap *heap;
	struct names *names;
	struct view_unhooked unhooked;
	uint64_t addr, second, seed, ended_threads;
	uint64_t countdown[sizeof(stacks) / sizeof(stacks[0])];
	bool ended;
	int exit_code;
};

static void put_names(struct fakeheap *f)
{
	char *huge = xmalloc(50001);

	memset(huge, 'A', 50000);
	huge[50000] = '\0';
	memcpy(huge, "std::vector<", 12);
	const char *const nasty[FUNCTIONS] = {
		[PARSE] = huge, [RENDER] = "\033[31mred\033[0m\a\b\n\t", [TEXTURE] = "漢字テスト::関数",
		[PUSH] = "👩‍👩‍👧 family\xff\xfe", [CONFIG] = "e\xcc\x81" "combining", [STRDUP] = "",
		[TMPBUF] = "\xe2\x80\xae" "bidi", [SSLNEW] = "<<<<>>>>((((", [LOAD] = "operator<<(x)::operator()(int)::{lambda()#1}",
	};

	const char *const twins[FUNCTIONS] = {
		[TMPBUF] = "int decode<int>(int)", [CONFIG] = "char decode<char>(char)",
	};
	const char *const *other = f->config.hostile ? nasty : f->config.alike ? twins : NULL;

	for (int i = 0; i < FUNCTIONS; i++) {
		const struct function *fn = &functions[i];
		struct name_func nf = {
			.function = other && other[i] ? other[i] : fn->name,
			.linkage = fn->name, .file = fn->file, .line = fn->line, .unknown = i == UNKNOWN,
		};
		names_put(f->names, fn->module, fn->vaddr, false, modules[fn->module], &nf, 1);
		names_put(f->names, fn->module, fn->vaddr, true, modules[fn->module], &nf, 1);
	}
	free(huge);
}

struct fakeheap *fakeheap_create(const struct fakeheap_config *config)
{
	struct fakeheap *f = xcalloc(1, sizeof(*f));
	struct heap_config hc = { 0 };

	f->config = *config;
	f->heap = heap_create(&hc);
	f->names = names_create(NULL);
	f->addr = 0x10000;
	put_names(f);
	if (!f->config.threads) {
		heap_thread(f->heap, 0, 4242, "sceneview\0\0\0\0\0\0", 0);
		heap_thread(f->heap, 1, 4250, "worker-1\0\0\0\0\0\0\0", 0);
	}
	fakeheap_step(f);
	return f;
}

void fakeheap_destroy(struct fakeheap *f)
{
	heap_destroy(f->heap);
	names_destroy(f->names);
	free(f);
}

/* Sampled: a block is met each time a countdown of bytes runs out; evenly, which is good enough here. */
static bool met(struct fakeheap *f, size_t stack, uint64_t size)
{
	uint64_t rate = f->config.rate;

	if (rate <= 1)
		return true;
	f->countdown[stack] += size;
	if (f->countdown[stack] < rate)
		return false;
	f->countdown[stack] %= rate;
	return true;
}

static void allocate(struct fakeheap *f, size_t i, uint32_t n, uint32_t keep)
{
	const struct stack *s = &stacks[i];
	uint64_t addrs[16], now = f->second * 1000000000u;
	size_t depth = 0;
	uint32_t slot = !f->config.threads ? 0 : s->frames[1] == PUSH ? 1 : s->frames[1] == FILTER ? 2 : 3;

	for (const uint8_t *k = s->frames; *k != FUNCTIONS; k++)
		addrs[depth++] = frame_addr(functions[*k].module, functions[*k].vaddr);
	for (uint32_t b = 0; b < n; b++) {
		uint64_t addr = f->addr += 0x10000;
		if (!met(f, i, s->size))
			continue;
		heap_alloc_whole(f->heap, addr, s->size, f->config.rate, now, slot, addrs, depth, 0);
		if (b >= keep)
			heap_free(f->heap, addr, now + 1000, slot, false);
	}
}

static void begin_threads(struct fakeheap *f)
{
	static const char names[3][16] = { "pool-1", "pool-2", "sceneview" };
	uint64_t now = f->second * 1000000000u;

	for (uint32_t i = 0; i < 3 && f->second == 1; i++)
		heap_thread(f->heap, i + 1, i == 2 ? 4242 : 4243 + i, names[i], now);
	/* short ones, whose blocks stay */
	const uint64_t addrs[] = { frame_addr(APP, functions[WORKER].vaddr), frame_addr(LIBC, functions[CLONE].vaddr) };
	for (int i = 0; i < 100 && f->second < 6; i++) {
		heap_thread(f->heap, 4, (uint32_t)(5000 + f->ended_threads++), "job,[*]\0\0\0\0\0\0\0\0\0", now);
		heap_alloc_whole(f->heap, f->addr += 0x10000, 100, 1, now, 4, addrs, 2, 0);
	}
	const uint32_t there[] = { 4242, 4243, 4244 };
	heap_threads_present(f->heap, there, 3);
}

void fakeheap_choose(struct fakeheap *f, const char *which)
{
	heap_choose_threads(f->heap, which);
}

void fakeheap_step(struct fakeheap *f)
{
	bool first = !f->second;

	f->second += f->second == 10 && f->config.gap ? f->config.gap : 1;
	if (f->config.threads)
		begin_threads(f);
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		allocate(f, i, first ? stacks[i].first : stacks[i].each,
			 first && (stacks[i].keep || !stacks[i].each) ? stacks[i].first : stacks[i].keep);
}

struct view *fakeheap_view(struct fakeheap *f)
{
	static char name[] = "valloc", module[] = "libodd.so", reason[] = "its first bytes can't be moved";
	struct view_unhooked unhooked = { name, module, reason };
	struct view_info info = {
		.pid = f->config.snapshot ? 0 : 4242, .command = (char *)"./sceneview --hd scene.json",
		.state = f->config.snapshot ? VIEW_SNAPSHOT : f->ended ? VIEW_EXITED : VIEW_RUNNING,
		.exit_code = f->exit_code, .attached = f->config.attached, .exact = f->config.rate <= 1 && !f->config.auto_rate,
		.auto_rate = f->config.auto_rate,
		.rate = f->config.rate, .overhead = 0.018f, .events = 1000 * f->second,
		.dropped = f->config.dropped, .stacks = 1000, .stacks_complete = 987,
		.rss = 508u << 20, .threads = 6, .pause = 0.0123f, .nhooks = 14,
		.unhooked = &unhooked, .nunhooked = 1,
	};

	heap_classify(f->heap, f->second * 1000000000u, true);
	return heap_publish(f->heap, &info, f->second * 1000000000u);
}

struct names *fakeheap_names(struct fakeheap *f)
{
	return f->names;
}

void fakeheap_end(struct fakeheap *f, int exit_code)
{
	f->ended = true;
	f->exit_code = exit_code;
}
