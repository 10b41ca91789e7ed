/* Choosing threads and modules; see choice.h. */
#include "ui/choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/screen.h"
#include "ui/sites.h"

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static const char *shown_threads(const struct ui *ui)
{
	return ui->view ? ui->view->info.thread : NULL;
}

const char *choice_no_threads(const struct ui *ui)
{
	bool file = ui->view && ui->view->info.state == VIEW_SNAPSHOT;

	if (ui->view && ui->view->info.processes > 1)
		return file ? "a file of several processes has no threads: choose one (p) before it is saved" :
			"all processes together have no threads: choose a process first (p)";
	return file ? "the file doesn't say which thread a block is of" : "no thread has allocated yet";
}

bool choice_set_thread(struct ui *ui, const char *which)
{
	const struct ui_source *s = ui->source;

	if (same(which, ui->thread_due ? ui->thread : shown_threads(ui)))
		return true;
	if (!s->choose_threads) {
		ui_message(ui, true, "a snapshot doesn't say which thread a block is of: choose one before it is made (-T, t)");
		return false;
	}
	if (which && ui->view && ui->view->info.processes > 1) {
		ui_message(ui, true, "%s", choice_no_threads(ui));
		return false;
	}
	char *copy = which ? xstrdup(which) : NULL;
	free(ui->thread);
	ui->thread = copy;
	ui->thread_due = true;
	s->choose_threads(s->ctx, copy);
	ui->resort = true;
	ui->dirty = true;
	return true;
}

void choice_set_module(struct ui *ui, const char *module)
{
	char *copy = module ? xstrdup(module) : NULL;

	free(ui->module);
	ui->module = copy;
	report_set_module(ui->report, copy);
	ui->resort = true;
	ui_changed(ui);
}

char *choice_of_thread(const struct report_site *row)
{
	if (row->more->tid)
		return xasprintf("%" PRIu32, row->more->tid);
	char *ret = xmalloc(2 * strlen(row->function) + 1), *end = ret;
	for (const char *s = row->function; *s; s++) {
		if (strchr("*?[]\\,", *s))
			*end++ = '\\';
		*end++ = *s;
	}
	*end = '\0';
	return ret;
}

void choice_toggle_thread(struct ui *ui, const struct report_site *row)
{
	CLEANUP_FREE char *which = choice_of_thread(row);

	if (!*which)
		ui_message(ui, false, "nothing is known of these threads to choose them by");
	else if (same(which, ui->thread_due ? ui->thread : shown_threads(ui)))
		choice_set_thread(ui, NULL);
	else if (choice_set_thread(ui, which) && !row->more->tid)
		ui_message(ui, false, "all threads of this name");
}

void choice_toggle_module(struct ui *ui, const char *module)
{
	choice_set_module(ui, ui->module && !strcmp(ui->module, module) ? NULL : module);
}

void choice_thread(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);
	const struct report_site *row = NULL;

	ui_refresh_screen(ui);
	if (ui->view && ops->changed == rows_changed)
		row = rows_cursor(ui, ui->state[ui->screen]);
	if (row && row->more && (ui->screen == UI_THREADS || (ui->screen == UI_SITES && ui->group == REPORT_BY_THREAD)))
		choice_toggle_thread(ui, row);
	else if (shown_threads(ui))
		choice_set_thread(ui, NULL);
	else
		thread_menu_open(ui);
}

void choice_module(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);
	struct selection sel;

	ui_refresh_screen(ui);
	bool any = ui->view && ops->selected && ops->selected(ui, ui->state[ui->screen], &sel) && !sel.gathered;
	if (any && sel.module && *sel.module && (!sel.cell || sel.cell->depth))
		choice_toggle_module(ui, sel.module);
	else if (ui->module)
		choice_set_module(ui, NULL);
	else
		ui_message(ui, false, "the selected row belongs to no module");
}

void choice_clear(struct ui *ui)
{
	if (ui->module)
		choice_set_module(ui, NULL);
	if (shown_threads(ui) && ui->source->choose_threads)
		choice_set_thread(ui, NULL);
}

bool choice_shown(const struct ui *ui, const struct view *view)
{
	return same(ui->thread, view->info.thread);
}

/* An id alone says little: the name of the thread that has it, if there is one. */
static const char *thread_name(const struct view *view, char buf[24])
{
	for (size_t i = 0; i < view->nthreads; i++) {
		snprintf(buf, 24, "%" PRIu32, view->threads[i].tid);
		if (view->threads[i].tid && *view->threads[i].name && !strcmp(buf, view->info.thread))
			return view->threads[i].name;
	}
	return view->info.thread;
}

void choice_text(const struct ui *ui, char *buf, size_t len)
{
	char id[24];
	size_t n = 0;

	buf[0] = '\0';
	if (shown_threads(ui)) {
		/* without the backslashes that names needed as patterns */
		n = (size_t)snprintf(buf, len, "thr:");
		for (const char *s = thread_name(ui->view, id); *s && n + 1 < len && n < 44; s++)
			if (*s != '\\' || !s[1] || *++s)
				buf[n++] = *s;
		buf[n] = '\0';
	}
	if (ui->view && ui->view->info.min_size && n < len) {
		char bytes[TEXT_NUMBER];
		n += (size_t)snprintf(buf + n, len - n, "%smin:%s", n ? "  " : "", text_bytes(bytes, ui->view->info.min_size));
	}
	if (ui->module && n < len)
		snprintf(buf + n, len - n, "%smod:%.40s", n ? "  " : "", *ui->module ? ui->module : "(in no file)");
}
