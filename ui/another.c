/* See another.h. */
#include "ui/another.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/worker.h"
#include "target/proclist.h"
#include "ui/modal.h"
#include "ui/pickask.h"

#define READ_SECONDS 1.0	/* between readings of the list */

struct another {
	struct modal modal;
	struct picker picker;
	struct reading *reading;	/* NULL: none is under way */
	double read_at;			/* when the next one is due */
};

struct reading {
	struct worker_job job;
	struct another *a;		/* NULL: closed meanwhile */
	struct ui *ui;
	struct proc_row *rows;
	size_t n;
};

static void reading_run(struct worker_job *job)
{
	struct reading *r = (struct reading *)job;

	r->rows = proclist_read(&r->n);
}

static void reading_done(struct worker_job *job)
{
	struct reading *r = (struct reading *)job;

	if (r->a) {
		r->a->reading = NULL;
		for (size_t i = 0; i < r->n; i++)
			if (r->ui->view && r->rows[i].pid == r->ui->view->info.pid) {
				free(r->rows[i].refusal);
				r->rows[i].refusal = xstrdup("this is the one that is watched");
			}
		picker_take(&r->a->picker, r->rows, r->n);
		r->ui->dirty = true;
	} else {
		proclist_free(r->rows, r->n);
	}
	free(r);
}

static void read_list(struct ui *ui, struct another *a)
{
	if (a->reading || ui->now < a->read_at)
		return;
	struct reading *r = a->reading = xcalloc(1, sizeof(*r));
	*r = (struct reading){ .job = { .run = reading_run, .done = reading_done }, .a = a, .ui = ui };
	a->read_at = ui->now + READ_SECONDS;
	worker_give(ui->worker, &r->job);
}

static void another_draw(struct ui *ui, struct modal *modal)
{
	struct another *a = (struct another *)modal;

	read_list(ui, a);
	picker_look(&a->picker, ui->worker, ui->source->foresee, ui->source->ctx);
	picker_draw(&a->picker, ui->canvas);
}

/* There is another view: a second has gone by. */
static void another_changed(struct ui *ui, struct modal *modal)
{
	read_list(ui, (struct another *)modal);
}

static bool another_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct another *a = (struct another *)modal;

	switch (picker_key(&a->picker, ev)) {
	case PICKER_GOES_ON:
		return true;
	case PICKER_CHOSEN:
		ui->source->other(ui->source->ctx, a->picker.cursor);
		ui->leaving = true;
		ui->leave = UI_LEAVE_OTHER;
		return false;
	case PICKER_LEFT:
	case PICKER_INTERRUPTED:
		break;
	}
	return false;
}

static void another_destroy(struct modal *modal)
{
	struct another *a = (struct another *)modal;

	if (a->reading)
		a->reading->a = NULL;
	picker_deinit(&a->picker);
	free(a);
}

void another_open(struct ui *ui)
{
	struct another *a = xcalloc(1, sizeof(*a));

	a->modal = (struct modal){
		.draw = another_draw, .changed = another_changed, .key = another_key, .destroy = another_destroy,
	};
	picker_init(&a->picker, NULL);
	a->picker.within = true;
	ui_set_modal(ui, &a->modal);
}
