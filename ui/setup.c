/*
 * The setup (F2): what the screen looks like, changed at once under the box; "Save" keeps it in the user's settings
 * file, with everything else there as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/worker.h"
#include "export/file.h"
#include "ui/columns.h"
#include "ui/graph.h"
#include "ui/modal.h"
#include "ui/theme.h"
#include "ui/tools.h"

enum { ROW_THEME, ROW_GRAPH, ROW_MOUSE, ROW_REFRESH, ROW_COLUMNS };	/* columns, then Save */

struct setup {
	struct modal modal;
	int cursor, top;
	struct rect inside;
};

/* The i-th column that can be chosen; COLUMN_IDS beyond them. */
static enum column_id column_at(int i)
{
	enum column_id id = 0;

	for (; id < COLUMN_IDS; id++)
		if (columns_name(id) && !i--)
			break;
	return id;
}

static int row_count(void)
{
	int n = ROW_COLUMNS;

	while (column_at(n - ROW_COLUMNS) < COLUMN_IDS)
		n++;
	return n + 1;
}

/* ---- saving ---- */

#define SETTINGS 6

struct save_job {
	struct worker_job job;
	struct ui *ui;
	char *path;
	struct config_setting settings[SETTINGS];
	char *owned[SETTINGS];		/* values of settings, where they were made */
	struct err *err;
};

/*
 * Never as another owner: under sudo the file would be root's in the user's folder, or root's own settings
 * would be changed where the user's were meant.
 */
static struct err *check_owner(const char *path)
{
	const char *sudo = getenv("SUDO_UID");
	CLEANUP_FREE char *at = xstrdup(path);
	struct stat st;

	if (sudo && *sudo && strtoul(sudo, NULL, 10) != geteuid())
		return err_new(ERR_DENIED, "not saved under sudo: run heaptop as yourself to save settings");
	while (stat(at, &st)) {
		char *slash = strrchr(at, '/');
		if (errno != ENOENT || !slash)
			return err_errno(errno, "%s", path);
		slash[slash == at] = '\0';
	}
	if (st.st_uid != geteuid())
		return err_new(ERR_DENIED, "not saved: another user's: %s", at);
	return NULL;
}

static struct err *save(const struct save_job *j)
{
	CLEANUP_FREE char *old = NULL;
	struct new_file *file;
	struct stat st;
	FILE *out;

	struct err *err = check_owner(j->path);
	if (!err)
		err = config_read(j->path, &old);
	if (err && err->code == ERR_NOT_FOUND) {
		err_free(err);
		err = config_make_dirs(j->path);
	}
	if (!err)
		err = file_begin(j->path, &file, &out);
	if (err)
		return err;
	CLEANUP_FREE char *text = config_change(old ? old : "", j->settings, SETTINGS);
	if (old && !stat(j->path, &st))
		fchmod(fileno(out), st.st_mode & 0777);
	fputs(text, out);
	return file_commit(file);
}

static void save_run(struct worker_job *job)
{
	struct save_job *j = (struct save_job *)job;

	j->err = save(j);
}

static void save_done(struct worker_job *job)
{
	struct save_job *j = (struct save_job *)job;

	if (!job->cancelled && j->err)
		ui_message(j->ui, true, "%s", j->err->text);
	else if (!job->cancelled)
		ui_message(j->ui, false, "saved %s", j->path);
	err_free(j->err);
	for (size_t i = 0; i < SETTINGS; i++)
		free(j->owned[i]);
	free(j->path);
	free(j);
}

static void start_saving(struct ui *ui)
{
	const struct ui_options *o = &ui->options;

	if (!o->config_path) {
		ui_message(ui, true, "there is nowhere to save to: neither XDG_CONFIG_HOME nor HOME is set");
		return;
	}
	struct save_job *j = xcalloc(1, sizeof(*j));
	j->job = (struct worker_job){ .run = save_run, .done = save_done };
	j->ui = ui;
	j->path = xstrdup(o->config_path);
	j->owned[0] = xasprintf("%g", ui->refresh);
	j->owned[1] = columns_list(ui->hidden_columns);
	j->owned[2] = xstrdup(ui->theme ? ui->theme->name : "default");
	j->settings[0] = (struct config_setting){ "delay", j->owned[0] };
	j->settings[1] = (struct config_setting){ "columns", j->owned[1] };
	j->settings[2] = (struct config_setting){ "theme", j->owned[2] };
	j->settings[3] = (struct config_setting){ "graph", graph_kind_name(ui->canvas->graph) };
	j->settings[4] = (struct config_setting){ "mouse", ui->mouse_on ? "yes" : "no" };
	/* the other way to say it would count against this one */
	j->settings[5] = (struct config_setting){ "no-mouse", NULL };
	worker_give(ui->worker, &j->job);
}

/* ---- changing ---- */

static void change_theme(struct ui *ui, int step)
{
	const struct themes *themes = ui->options.themes;
	size_t i = 0;

	if (!themes || !themes->n)
		return;
	while (i < themes->n && themes->list[i] != ui->theme)
		i++;
	ui->theme = themes->list[(i + themes->n + (size_t)(step + (int)themes->n)) % themes->n];
	ui->clear = true;
}

/* False: it was Save. */
static bool change(struct ui *ui, int row, int step)
{
	switch (row) {
	case ROW_THEME:
		change_theme(ui, step);
		return true;
	case ROW_GRAPH:
		ui->canvas->graph = (uint8_t)((ui->canvas->graph + 3 + step) % 3);
		return true;
	case ROW_MOUSE:
		ui_action(ui, ACT_MOUSE);
		return true;
	case ROW_REFRESH:
		ui_action(ui, step < 0 ? ACT_FASTER : ACT_SLOWER);
		return true;
	}
	enum column_id id = column_at(row - ROW_COLUMNS);
	if (id == COLUMN_IDS) {
		start_saving(ui);
		return false;
	}
	ui->hidden_columns ^= 1u << id;
	return true;
}

static void describe(struct ui *ui, int row, char *buf, size_t len)
{
	enum column_id id = row < ROW_COLUMNS ? COLUMN_IDS : column_at(row - ROW_COLUMNS);

	switch (row) {
	case ROW_THEME:
		snprintf(buf, len, "theme    < %s >", ui->theme ? ui->theme->name : "default");
		return;
	case ROW_GRAPH:
		snprintf(buf, len, "graph    < %s >%s", graph_kind_name(ui->canvas->graph),
			 ui->canvas->unicode ? "" : " (ASCII here)");
		return;
	case ROW_MOUSE:
		snprintf(buf, len, "mouse    [%c]", ui->mouse_on ? 'x' : ' ');
		return;
	case ROW_REFRESH:
		snprintf(buf, len, "refresh  < %g s >", ui->refresh);
		return;
	}
	if (id == COLUMN_IDS)
		snprintf(buf, len, "s Save");
	else
		snprintf(buf, len, "column   [%c] %-8s %s", ui->hidden_columns >> id & 1 ? ' ' : 'x', columns_name(id),
			 columns_help(id));
}

/* ---- the box ---- */

static void setup_draw(struct ui *ui, struct modal *m)
{
	struct setup *s = (struct setup *)m;
	struct canvas *c = ui->canvas;
	int n = row_count();
	char text[100];

	struct rect r = box_draw(c, n + 4, 62, " Setup ");
	s->inside = r;
	int hint = r.rows > 6 ? 2 : 0, room = r.rows - hint;
	/* a screen too low for all scrolls with the cursor */
	s->top = s->cursor < room ? 0 : s->cursor - room + 1;
	for (int i = 0; i < room && s->top + i < n; i++) {
		describe(ui, s->top + i, text, sizeof(text));
		canvas_put_cut(c, r.y + i, r.x, r.cols, STYLE_BOX | (s->top + i == s->cursor ? STYLE_SELECTED : 0), text);
	}
	if (hint)
		canvas_put_cut(c, r.y + r.rows - 1, r.x, r.cols, STYLE_BOX, ui->message ? ui->message :
			       "Up Down Choose  Left Right Change  s Save  Esc Close");
	canvas_clip_all(c);
}

static bool setup_mouse(struct ui *ui, struct setup *s, const struct key_event *ev)
{
	int row = ev->y - s->inside.y + s->top;

	if (ev->button == MOUSE_LEFT && ev->y >= s->inside.y && ev->y < s->inside.y + s->inside.rows &&
	    ev->x >= s->inside.x && ev->x < s->inside.x + s->inside.cols && row < row_count()) {
		s->cursor = row;
		return change(ui, row, 1);
	}
	return ev->button != MOUSE_RIGHT && ev->button != MOUSE_LEFT;
}

static bool setup_key(struct ui *ui, struct modal *m, const struct key_event *ev)
{
	struct setup *s = (struct setup *)m;
	int n = row_count();

	if (ev->key == UKEY_MOUSE)
		return setup_mouse(ui, s, ev);
	if (ev->key == 's')
		return change(ui, n - 1, 1);
	if (ev->key == ' ')
		return change(ui, s->cursor, 1);
	switch (action_of_key(ev->key, UI_SITES)) {
	case ACT_UP:
		s->cursor = (s->cursor + n - 1) % n;
		return true;
	case ACT_DOWN:
		s->cursor = (s->cursor + 1) % n;
		return true;
	case ACT_TOP:
	case ACT_PAGE_UP:
		s->cursor = 0;
		return true;
	case ACT_BOTTOM:
	case ACT_PAGE_DOWN:
		s->cursor = n - 1;
		return true;
	case ACT_LEFT:
		return s->cursor == n - 1 || change(ui, s->cursor, -1);
	case ACT_RIGHT:
		return s->cursor == n - 1 || change(ui, s->cursor, 1);
	case ACT_OPEN:
		return change(ui, s->cursor, 1);
	case ACT_REDRAW:
		ui->clear = true;
		return true;
	case ACT_BACK:
	case ACT_QUIT:
	case ACT_SETUP:
		return false;
	default:
		return true;
	}
}

static void setup_destroy(struct modal *m)
{
	free(m);
}

void setup_open(struct ui *ui)
{
	struct setup *s = xcalloc(1, sizeof(*s));

	s->modal = (struct modal){ .draw = setup_draw, .key = setup_key, .destroy = setup_destroy };
	ui_set_modal(ui, &s->modal);
}
