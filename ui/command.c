/*
 * The command line (`:`) and what scripts run: any action by its name, and
 *
 *	sort VALUE  value VALUE		live, blocks, rate, calls, alloc, allocs, temp, peak, delta
 *	find RE  filter [RE]
 *	view NAME			sites, tree, flame, time, threads, modules, output
 *	group NAME			site, function, stack, module, thread
 *	thread LIST  module NAME	only these (heap_choose_threads)
 *	faults on|off  res on|off	sample page faults, look at what is in memory
 *	signal NAME			to the program: TERM, SIGTERM or 15
 *	save [FILE]			a snapshot
 *	save-display FILE		what is on the screen as text
 *	save-attrs FILE			its style layer, a letter a cell (style_letter)
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "ui/choice.h"
#include "ui/file.h"
#include "ui/screen.h"
#include "ui/signals.h"
#include "ui/watching.h"

static bool dump(struct ui *ui, const char *path, bool styles)
{
	if (!*path) {
		ui_message(ui, true, "a file name is missing");
		return false;
	}
	ui_draw(ui);
	CLEANUP_FREE char *text = styles ? canvas_dump_styles(ui->canvas) : canvas_dump(ui->canvas);
	struct err *err = file_write(path, text);
	if (err) {
		ui_message(ui, true, "%s", err->text);
		err_free(err);
		return false;
	}
	return true;
}

static bool set_value(struct ui *ui, const char *name)
{
	int v = report_value_parse(name);

	if (v < 0) {
		ui_message(ui, true, "no such value: %s (live, blocks, rate, calls, alloc, allocs, temp, peak, delta)", name);
		return false;
	}
	ui_set_value(ui, v, false);
	return true;
}

bool command_run(struct ui *ui, const char *line)
{
	while (*line == ' ' || *line == ':')
		line++;
	size_t n = strcspn(line, " ");
	CLEANUP_FREE char *name = xstrndup(line, n);
	const char *arg = line + n;
	while (*arg == ' ')
		arg++;
	if (!*name)
		return true;

	if (!strcmp(name, "save-display"))
		return dump(ui, arg, false);
	if (!strcmp(name, "save-attrs"))
		return dump(ui, arg, true);
	if (*arg) {
		if (!strcmp(name, "sort") || !strcmp(name, "value"))
			return set_value(ui, arg);
		if (!strcmp(name, "filter"))
			return ui_set_filter(ui, arg);
		if (!strcmp(name, "find")) {
			if (!ui_set_find(ui, arg, false))
				return false;
			/* to the first match, the cursor's row included */
			ui_draw(ui);
			const struct view_ops *ops = view_ops_of(ui->screen);
			ui->find.failed = !ops->find || !ops->find(ui, ui->state[ui->screen], 0);
			ui->dirty = true;
			return true;
		}
		if (!strcmp(name, "group")) {
			int group = report_group_parse(arg);
			if (group >= 0)
				ui_set_group(ui, group);
			else
				ui_message(ui, true, "no such group: %s (site, function, stack, module, thread)", arg);
			return group >= 0;
		}
		if (!strcmp(name, "thread"))
			return choice_set_thread(ui, arg);
		if (!strcmp(name, "module")) {
			choice_set_module(ui, arg);
			return true;
		}
		if (!strcmp(name, "faults") || !strcmp(name, "res")) {
			bool on = !strcmp(arg, "on");
			if (on || !strcmp(arg, "off"))
				return (*name == 'f' ? watching_set_faults : watching_set_res)(ui, on);
			ui_message(ui, true, "%s is on or off", name);
			return false;
		}
		if (!strcmp(name, "signal"))
			return signals_command(ui, arg);
		if (!strcmp(name, "save")) {
			ui_save(ui, arg);
			return true;
		}
		if (!strcmp(name, "view")) {
			enum action a = action_parse(arg);
			if (a >= ACT_SITES && a <= ACT_OUTPUT)
				return ui_action(ui, a);
			ui_message(ui, true, "no such screen: %s (sites, tree, flame, time, threads, modules, output)", arg);
			return false;
		}
	}
	if (!strcmp(name, "q"))
		return ui_action(ui, ACT_QUIT);
	enum action a = action_parse(name);
	if (a == ACT_NONE || *arg) {
		ui_message(ui, true, a == ACT_NONE ? "no such command: %s" : "%s takes no argument", name);
		return false;
	}
	return ui_action(ui, a);
}
