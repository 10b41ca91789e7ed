/* See pickask.h. */
#include "ui/pickask.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "target/proclist.h"
#include "ui/modal.h"

#define WIDE 72			/* columns of the box, where there is room */
#define ATTACHES "Enter attaches"
#define GOES_BACK "Esc goes back"
#define LINES_MAX 32

struct look {
	struct worker_job job;
	struct picker *p;	/* NULL: nobody waits for it any more */
	picker_foresee_fn foresee;
	void *ctx;
	pid_t pid;
	char *text;
};

static void look_run(struct worker_job *job)
{
	struct look *look = (struct look *)job;

	look->text = look->foresee(look->ctx, look->pid);
}

static void look_done(struct worker_job *job)
{
	struct look *look = (struct look *)job;

	if (look->p) {
		look->p->ask.look = NULL;
		picker_tell(look->p, look->pid, look->text);
		look->text = NULL;
	}
	free(look->text);
	free(look);
}

void picker_look(struct picker *p, struct worker *w, picker_foresee_fn foresee, void *ctx)
{
	if (!p->ask.pid || p->ask.text || p->ask.look || !foresee)
		return;
	struct look *look = xcalloc(1, sizeof(*look));
	*look = (struct look){
		.job = { .run = look_run, .done = look_done }, .p = p, .foresee = foresee, .ctx = ctx, .pid = p->ask.pid,
	};
	p->ask.look = look;
	worker_give(w, &look->job);
}

void picker_tell(struct picker *p, pid_t pid, char *text)
{
	if (pid != p->ask.pid) {
		free(text);
		return;
	}
	free(p->ask.text);
	p->ask.text = text ? text : xstrdup("");
}

void pickask_open(struct picker *p)
{
	pickask_close(p);
	p->ask.pid = p->cursor;
	p->clicked = 0;
}

void pickask_close(struct picker *p)
{
	if (p->ask.look)
		p->ask.look->p = NULL;
	free(p->ask.text);
	memset(&p->ask, 0, sizeof(p->ask));
}

/* Rows of at most `cols` columns, broken between words; returns their number. */
static int wrap(const struct canvas *c, const char *text, int cols, char *rows[LINES_MAX])
{
	int n = 0;

	while (*text && n < LINES_MAX) {
		size_t line = strcspn(text, "\n"), fit = canvas_fit(c, text, cols);
		if (fit >= line) {
			rows[n++] = xstrndup(text, line);
			text += line + (text[line] == '\n');
			continue;
		}
		size_t cut = fit;
		while (cut && text[cut] != ' ')
			cut--;
		if (!cut)
			cut = fit ? fit : 1;
		rows[n++] = xstrndup(text, cut);
		text += cut;
		text += strspn(text, " ");
	}
	return n;
}

void pickask_draw(struct picker *p, struct canvas *c)
{
	const struct proc_row *row = p->nshown ? p->shown[p->list.cursor] : NULL;
	char *rows[LINES_MAX], title[96];
	int cols = c->cols < WIDE ? c->cols : WIDE, inside = cols - 4 > 1 ? cols - 4 : 1;

	if (!row || row->pid != p->ask.pid)
		return;
	const char *command = row->command ? row->command : "";
	snprintf(title, sizeof(title), " %s to %ld (%.*s)? ", p->within ? "Let this one go, attach" : "Attach", (long)row->pid,
		 (int)strcspn(proclist_brief(command), " "), proclist_brief(command));
	int n = wrap(c, p->ask.text ? p->ask.text : "Looking at its allocators …", inside, rows);
	/* the keys matter most, then what is told first */
	int gap = n + 4 < c->rows;
	struct rect r = box_draw(c, n + gap + 3, cols, title);
	for (int i = 0; i < n; i++) {
		if (i < r.rows - 1)
			canvas_put_max(c, r.y + i, r.x, r.cols, STYLE_BOX, rows[i]);
		free(rows[i]);
	}
	p->ask.keys_y = r.y + r.rows - 1;
	int x = canvas_put_max(c, p->ask.keys_y, r.x, r.cols, STYLE_BOX | STYLE_STRONG, ATTACHES);
	p->ask.back_x = x + 2;
	canvas_put_max(c, p->ask.keys_y, x + 2, r.x + r.cols - x - 2, STYLE_BOX | STYLE_STRONG, GOES_BACK);
	canvas_clip_all(c);
}

static enum picker_result click(struct picker *p, const struct key_event *ev)
{
	if (ev->button == MOUSE_RIGHT || (ev->button == MOUSE_LEFT && ev->y == p->ask.keys_y && ev->x >= p->ask.back_x))
		pickask_close(p);
	else if (ev->button == MOUSE_LEFT && ev->y == p->ask.keys_y)
		return PICKER_CHOSEN;
	return PICKER_GOES_ON;
}

enum picker_result pickask_key(struct picker *p, const struct key_event *ev)
{
	switch (ev->key) {
	case UKEY_ENTER:
		return PICKER_CHOSEN;
	case KEY_CTRL_('c'):
		return PICKER_INTERRUPTED;
	case UKEY_F10:
		return PICKER_LEFT;
	case UKEY_MOUSE:
		return click(p, ev);
	case UKEY_ESC:
	case UKEY_BACKSPACE:
	case 'q':
	case 'n':
		pickask_close(p);
		return PICKER_GOES_ON;
	default:
		return PICKER_GOES_ON;
	}
}
