/*
 * From hostile rings into the model: reader, intake, heap, view. The reader's tail never passes
 * the head nor stays a whole ring behind it, what it hands over is within the limits of wire.h, the
 * model keeps to its bounds, and its totals are the sums over its traces.
 */
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/frames.h"
#include "collect/intake.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "probe/ring.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_records.h"

#define RINGS 2u
#define BYTES 4096u
#define NONCE 0xfeedface12345678ull
#define MAX_LIVE 64u
#define MAX_TRACES 32u

struct run {
	struct fuzz_in in;
	struct ring_reader *reader;
	struct intake *intake;
	struct heap *heap;
	uint8_t *data[RINGS];
	uint64_t head[RINGS];
	uint64_t tsc, ns;
};

static bool missed(void *ctx, const uint64_t *pcs, size_t n)
{
	(void)ctx;
	(void)pcs;
	FUZZ_ASSERT(n <= WIRE_MAX_FRAMES * 2);
	return n & 1;
}

static void teach(void *ctx, const uint64_t *pcs, size_t n)
{
	volatile uint64_t sum = 0;

	(void)ctx;
	for (size_t i = 0; i < n; i++)
		sum += pcs[i];
	(void)sum;
}

static void on_event(void *ctx, const struct probe_event *e)
{
	struct run *run = ctx;

	FUZZ_ASSERT(e->slot < WIRE_SLOTS && e->tsc <= run->tsc + 10);
	if (e->kind == WIRE_ALLOC) {
		FUZZ_ASSERT(e->nframes + e->keep <= WIRE_MAX_FRAMES);
		FUZZ_ASSERT(e->stack_bytes <= WIRE_MAX_STACK);
	}
	intake_event(run->intake, e);
}

static void publish(struct run *run)
{
	const struct view_info info = { .command = (char *)"" };
	struct view *view = heap_publish(run->heap, &info, run->ns);
	uint64_t live = 0, samples = 0;

	FUZZ_ASSERT(heap_live_samples(run->heap) <= MAX_LIVE);
	FUZZ_ASSERT(view->ntraces <= MAX_TRACES + 2);
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			continue;
		FUZZ_ASSERT(t->node < view->nnodes);
		live += t->s.live_bytes;
		samples += t->s.live_samples;
	}
	FUZZ_ASSERT(live == view->totals.s.live_bytes && samples == view->totals.s.live_samples);
	FUZZ_ASSERT(view->totals.s.live_bytes <= view->totals.s.peak_bytes);
	view_unref(view);
}

static void one_round(struct run *run, bool last)
{
	run->tsc += 16;
	run->ns += fuzz_take(&run->in, 1) << 25;	/* up to eight seconds */
	ring_reader_begin(run->reader, run->tsc, run->ns, last);
	for (uint32_t i = 0; i < RINGS; i++) {
		uint64_t head = run->head[i] & ~7ull;
		uint64_t tail = ring_reader_read(run->reader, i, run->head[i], run->data[i]);
		FUZZ_ASSERT(head - tail <= BYTES && tail == ring_reader_tail(run->reader, i));
		FUZZ_ASSERT(!last || tail == head);
	}
	ring_reader_finish(run->reader, run->tsc + 10, on_event, run);
	intake_flush(run->intake);
	run->intake->resync = false;
}

static void step(struct run *run)
{
	uint64_t op = fuzz_take(&run->in, 1);
	uint32_t ring = op >> 7;

	switch (op & 7) {
	default:
		/* the agent's records begin at words, wherever a lie has put the head */
		run->head[ring] = (run->head[ring] + 7) & ~7ull;
		record_put(&run->in, run->data[ring], BYTES, NONCE, &run->head[ring], run->tsc);
		break;
	case 4:	/* a word anywhere, with the right tag or without */
	{
		uint64_t at = fuzz_take(&run->in, 2) % BYTES & ~7ull, word = fuzz_take(&run->in, 8);
		if (op & 8)
			word = word << 32 >> 32 | (uint64_t)wire_tag((run->head[ring] & ~(BYTES - 1ull)) + at, NONCE) << 32;
		memcpy(run->data[ring] + at, &word, sizeof(word));
		break;
	}
	case 5:
		run->head[ring] += fuzz_number(&run->in);
		break;
	case 6:
		one_round(run, op & 8);
		break;
	case 7:
		publish(run);
		break;
	}
}

static void run_ring(const uint8_t *data, size_t len)
{
	static const struct ticks_clock clock = { .ns_per_tick = 1 };
	const struct ring_reader_config config = { RINGS, BYTES, NONCE };
	const struct heap_config bounds = { .max_traces = MAX_TRACES, .max_live = MAX_LIVE };
	struct modules *mods = modules_create(), *shared = modules_create();
	struct run run = {
		.in = { data, data + len }, .reader = ring_reader_create(&config), .heap = heap_create(&bounds),
		.intake = xcalloc(1, sizeof(struct intake)), .tsc = 1000,
	};

	*run.intake = (struct intake){
		.heap = run.heap, .frames = frames_create(mods, shared), .unwinder = unwinder_create(mods),
		.clock = &clock, .missed = missed, .teach = teach,
	};
	for (uint32_t i = 0; i < RINGS; i++)
		run.data[i] = xcalloc(1, BYTES);
	while (fuzz_more(&run.in))
		step(&run);
	one_round(&run, true);
	publish(&run);
	for (uint32_t i = 0; i < RINGS; i++)
		free(run.data[i]);
	unwinder_destroy(run.intake->unwinder);
	frames_destroy(run.intake->frames);
	heap_destroy(run.heap);
	free(run.intake);
	ring_reader_destroy(run.reader);
	modules_destroy(shared);
	modules_destroy(mods);
}

const struct fuzz_target fuzz_ring = { "ring", 4096, run_ring };
