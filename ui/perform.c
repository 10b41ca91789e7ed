/*
 * What an action does: the screen shown is asked first, and what it leaves is the same on all of
 * them. Also the changes that more than a key can make: screen, value, filter, saving.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "ui/choice.h"
#include "ui/detail.h"
#include "ui/held.h"
#include "ui/modal.h"
#include "ui/output.h"
#include "ui/processes.h"
#include "ui/signals.h"
#include "ui/tools.h"
#include "ui/watching.h"

bool ui_set_filter(struct ui *ui, const char *pattern)
{
	struct err *err = report_set_filter(ui->report, pattern);

	if (err) {
		ui_message(ui, true, "%s", err->text);
		err_free(err);
		return false;
	}
	free(ui->filter);
	ui->filter = pattern && *pattern ? xstrdup(pattern) : NULL;
	ui->resort = true;
	ui_changed(ui);
	return true;
}

void ui_set_screen(struct ui *ui, enum ui_view v)
{
	if (v >= UI_VIEWS || (v == UI_OUTPUT && !ui->output)) {
		ui_message(ui, false, "the program has no terminal of ours: nothing to show here");
		return;
	}
	carry_to(ui, v);
	ui->hscroll = 0;
	/* it counted the rows of another screen */
	ui_hush_find(ui);
	ui->dirty = true;
}

bool ui_value_known(const struct ui *ui, enum report_value v)
{
	if (v == REPORT_DELTA_BYTES)
		return ui->base != UI_BASE_NONE;
	/* asked for is looked at */
	if (v == REPORT_OLD_BYTES && held_possible(ui))
		return true;
	return ui->view ? report_value_known(ui->view, v) : v < REPORT_RES_BYTES;
}

/* Why it can't be chosen. */
static const char *why_unknown(const struct ui *ui, enum report_value v)
{
	switch (v) {
	case REPORT_DELTA_BYTES:
		return "nothing to compare with: m sets a mark";
	case REPORT_SWAP_BYTES:
		return "nothing is swapped out";
	case REPORT_FAULT_BYTES:
		return "the file says nothing of page faults: --faults, before it was made";
	case REPORT_OLD_BYTES:
		return held_why_not(ui);
	default:
		return ui->view && ui->view->info.res_off ? "nobody looks at what is in memory: :res on" : "what is in memory isn't known (yet)";
	}
}

void ui_set_value(struct ui *ui, enum report_value v, bool toggle_reverse)
{
	if (v >= REPORT_VALUES)
		return;
	/* asked for is switched on */
	bool begins = v == REPORT_FAULT_BYTES && ui->source->want_faults && !ui_value_known(ui, v);
	if (begins && !watching_set_faults(ui, true))
		return;
	if (!begins && !ui_value_known(ui, v)) {
		ui_message(ui, false, "%s", why_unknown(ui, v));
		return;
	}
	ui->reverse = toggle_reverse && v == ui->value && action_def(ACT_REVERSE)->screens & ON(ui->screen) && !ui->reverse;
	ui->value = v;
	ui->resort = true;
	ui_changed(ui);
}

void ui_save(struct ui *ui, const char *path)
{
	if (!ui->source->save) {
		ui_message(ui, true, "there is nothing to save: this is a snapshot already");
		return;
	}
	if (!ui->view) {
		ui_message(ui, true, "there is nothing to save yet");
		return;
	}
	if (!path || !*path)
		path = ui->options.snapshot_name;
	ui->source->save(ui->source->ctx, path);
	/* a name with %p and the like isn't the file's yet */
	ui_message(ui, false, "saving %s …", path && !strchr(path, '%') ? path : "a snapshot");
}

static void set_refresh(struct ui *ui, bool faster)
{
	static const double steps[] = { 0.1, 0.2, 0.5, 1, 2, 5, 10 };
	size_t n = ARRAY_SIZE(steps), i = 0;

	if (!ui->source->set_refresh) {
		ui_message(ui, false, "a snapshot has no refresh");
		return;
	}
	while (i + 1 < n && steps[i] < ui->refresh * 0.99)
		i++;
	if (faster)
		i = i ? i - 1 : 0;
	else if (i + 1 < n && steps[i] <= ui->refresh * 1.01)
		i++;
	ui->refresh = steps[i];
	ui->source->set_refresh(ui->source->ctx, ui->refresh);
	char text[16];
	unsigned tenths = (unsigned)(ui->refresh * 10 + 0.5);
	snprintf(text, sizeof(text), "%u.%u", tenths / 10, tenths % 10);
	ui_message(ui, false, "refresh every %s s", text);
}

static void next_value(struct ui *ui, int step)
{
	int v = ui->value;

	do
		v = (v + step + REPORT_VALUES) % REPORT_VALUES;
	while (!ui_value_known(ui, v));
	ui_set_value(ui, v, false);
}

static void find_same(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);
	struct selection sel;

	ui_refresh_screen(ui);
	if (!ops->selected || !ops->selected(ui, ui->state[ui->screen], &sel) || sel.gathered)
		return;
	if (ui_set_find(ui, sel.function, true))
		ui_find_step(ui, 0);
}

static void go_back(struct ui *ui)
{
	if (ui->find.pattern)
		ui_forget_find(ui);
	else if (ui->hscroll)
		ui->hscroll = 0;
	else if (ui->filter)
		ui_set_filter(ui, NULL);
	else
		choice_clear(ui);
}

static void next_screen(struct ui *ui, int step)
{
	int v = ui->screen;

	do
		v = (v + step + UI_VIEWS) % UI_VIEWS;
	while (v == UI_OUTPUT && !ui->output);
	ui_set_screen(ui, v);
}

static void next_names(struct ui *ui)
{
	static const char *const forms[UI_NAMES] = { "short names", "full names", "names as the linker has them" };

	ui->names_form = (ui->names_form + 1) % UI_NAMES;
	ui_message(ui, false, "%s", forms[ui->names_form]);
}

void ui_set_group(struct ui *ui, enum report_group group)
{
	ui->group = group;
	ui->resort = true;
	ui_changed(ui);
	ui_message(ui, false, "rows by %s", report_group_name(group));
}

static void next_group(struct ui *ui)
{
	ui_set_group(ui, (ui->group + 1) % REPORT_GROUPS);
}

static bool act_generally(struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_SITES:
	case ACT_TREE:
	case ACT_FLAME:
	case ACT_TIME:
	case ACT_THREADS:
	case ACT_MODULES:
	case ACT_OUTPUT:
		ui_set_screen(ui, (enum ui_view)(a - ACT_SITES));
		return true;
	case ACT_NEXT_SCREEN:
		next_screen(ui, 1);
		return true;
	case ACT_PREVIOUS_SCREEN:
		next_screen(ui, -1);
		return true;
	case ACT_BACK:
		go_back(ui);
		return true;
	case ACT_VALUE:
		next_value(ui, 1);
		return true;
	case ACT_VALUE_BACK:
		next_value(ui, -1);
		return true;
	case ACT_SORT:
		sort_menu_open(ui);
		return true;
	case ACT_REVERSE:
		ui_set_value(ui, ui->value, true);
		return true;
	case ACT_RESORT:
		ui->resort = true;
		ui_changed(ui);
		return true;
	case ACT_NAMES:
		next_names(ui);
		return true;
	case ACT_DETAILS:
		detail_open(ui);
		return true;
	case ACT_MARK:
		marks_set(ui);
		return true;
	case ACT_MARKS:
		marks_open(ui);
		return true;
	case ACT_SINCE:
		marks_since(ui);
		return true;
	case ACT_FIND:
		prompt_open(&ui->prompt, PROMPT_FIND, "");
		return true;
	case ACT_FIND_NEXT:
		ui_find_step(ui, 1);
		return true;
	case ACT_FIND_PREVIOUS:
		ui_find_step(ui, -1);
		return true;
	case ACT_SAME:
		find_same(ui);
		return true;
	case ACT_FILTER:
		prompt_open(&ui->prompt, PROMPT_FILTER, ui->filter);
		return true;
	case ACT_CLEAR_FILTER:
		if (ui->filter)
			ui_set_filter(ui, NULL);
		choice_clear(ui);
		return true;
	case ACT_THREAD:
		choice_thread(ui);
		return true;
	case ACT_THREAD_MENU:
		thread_menu_open(ui);
		return true;
	case ACT_MODULE:
		choice_module(ui);
		return true;
	case ACT_GROUP:
		next_group(ui);
		return true;
	case ACT_USER:
		ui->user_only = !ui->user_only;
		report_set_user_only(ui->report, ui->user_only);
		ui_changed(ui);
		ui_message(ui, false, "%s", ui->user_only ? "the program's own code alone" : "all code");
		return true;
	case ACT_FOLLOW:
		ui->no_follow = !ui->no_follow;
		ui_message(ui, false, ui->no_follow ? "the cursor stays where it is" : "the cursor follows its row");
		return true;
	case ACT_INVERT:
		ui->inverted = !ui->inverted;
		ui_changed(ui);
		return true;
	case ACT_FREEZE:
		ui->frozen = !ui->frozen;
		ui->missed = 0;
		ui_poll(ui);
		return true;
	case ACT_PAUSE:
		if (!ui->source->pause) {
			ui_message(ui, false, "nothing is being collected");
			return true;
		}
		ui->paused = !ui->paused;
		ui->source->pause(ui->source->ctx, ui->paused);
		ui_message(ui, false, "collection %s", ui->paused ? "off" : "on");
		return true;
	case ACT_SLOWER:
		set_refresh(ui, false);
		return true;
	case ACT_FASTER:
		set_refresh(ui, true);
		return true;
	case ACT_SAVE:
		ui_save(ui, NULL);
		return true;
	case ACT_TYPE:
		if (!ui->output || !output_set_typing(ui->output, true)) {
			ui_message(ui, true, "the program has no terminal to type into");
		} else {
			ui->screen = UI_OUTPUT;
			ui_message(ui, false, "typing into the program; C-] ends it");
		}
		return true;
	case ACT_PROCESSES:
		processes_open(ui);
		return true;
	case ACT_SIGNAL:
		signals_open(ui);
		return true;
	case ACT_HELP:
		help_open(ui);
		return true;
	case ACT_LOG:
		log_open(ui);
		return true;
	case ACT_MEMORY:
		memory_open(ui);
		return true;
	case ACT_COMMAND:
		prompt_open(&ui->prompt, PROMPT_COMMAND, "");
		return true;
	case ACT_GRAPH:
		ui->graph_rows = ui->graph_rows == 3 ? -1 : ui->graph_rows + 1;
		return true;
	case ACT_MOUSE:
		ui->mouse_on = !ui->mouse_on;
		ui_message(ui, false, "mouse %s", ui->mouse_on ? "on" : "off: the terminal's own selection works");
		return true;
	case ACT_REDRAW:
		ui->clear = true;
		return true;
	case ACT_SUSPEND:
		ui->suspend = true;
		return true;
	case ACT_QUIT:
		/* before the first view it runs too */
		if (ui->source->live && ui->source->launched &&
		    (!ui->view || ui->view->info.state == VIEW_RUNNING || ui->view->info.state == VIEW_PAUSED)) {
			quit_open(ui);
		} else {
			ui->leaving = true;
			ui->leave = UI_LEAVE_QUIT;
		}
		return true;
	default:
		return tools_action(ui, a);
	}
}

bool ui_action(struct ui *ui, enum action a)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!action_def(a))
		return false;
	ui->dirty = true;
	ui_refresh_screen(ui);
	if (detail_action(ui, a))
		return true;
	if (ops->action && ops->action(ui, ui->state[ui->screen], a)) {
		ui->moved = ui->now;
		ui->touched = true;
		return true;
	}
	return act_generally(ui, a);
}
