/*
 * A session of the screen on the made-up heap of fakeheap.h, without a terminal, for tests that look at all of the
 * screen: keys and actions in, canvas out.
 */
#ifndef HEAPTOP_TESTS_LIB_FAKESCREEN_H
#define HEAPTOP_TESTS_LIB_FAKESCREEN_H

#include "base/mem.h"
#include "heap/view.h"
#include "tests/lib/fakeheap.h"
#include "ui/screen.h"

struct fakescreen {
	struct fakeheap *heap;
	struct view *view;
	struct ui_source source;
	struct ui *ui;
};

static inline struct view *fakescreen_view(void *ctx)
{
	return view_ref(((struct fakescreen *)ctx)->view);
}

static inline void fakescreen_open(struct fakescreen *f, struct fakeheap_config config, int seconds, int rows, int cols,
				   bool unicode)
{
	static const struct ui_options options = { .delay = 1, .title = "./sceneview --hd scene.json" };

	*f = (struct fakescreen){ .heap = fakeheap_create(&config) };
	for (int i = 0; i < seconds; i++) {
		view_unref(f->view);
		fakeheap_step(f->heap);
		f->view = fakeheap_view(f->heap);
	}
	f->source = (struct ui_source){ .ctx = f, .view = fakescreen_view, .live = true };
	f->ui = ui_create(&f->source, fakeheap_names(f->heap), NULL, &options, rows, cols, unicode);
	f->ui->now = 1000;
	ui_poll(f->ui);
	ui_draw(f->ui);
}

static inline void fakescreen_close(struct fakescreen *f)
{
	ui_destroy(f->ui);
	view_unref(f->view);
	fakeheap_destroy(f->heap);
}

#endif
