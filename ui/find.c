/* Searching for a pattern: which rows match, and going from one to the next. For every screen. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "ui/screen.h"

static bool matches(const struct find *f, const char *text)
{
	if (!text)
		return false;
	/* most patterns are plain words, and those are found 20 times faster */
	if (f->literal)
		return f->icase ? strcasestr(text, f->pattern) : strstr(text, f->pattern);
	return pattern_matches(&f->re, text);
}

bool ui_find_matches(const struct ui *ui, const char *function, const char *file, const char *module)
{
	const struct find *f = &ui->find;

	if (!f->pattern || !function)
		return false;
	if (f->exact)
		return !strcmp(f->pattern, function);
	return matches(f, function) || matches(f, file) || matches(f, module);
}

void ui_hush_find(struct ui *ui)
{
	ui->find.failed = false;
	ui->find.summary[0] = '\0';
}

void ui_forget_find(struct ui *ui)
{
	if (ui->find.pattern && !ui->find.exact)
		regfree(&ui->find.re);
	free(ui->find.pattern);
	ui->find.pattern = NULL;
	ui_hush_find(ui);
}

bool ui_set_find(struct ui *ui, const char *pattern, bool exact)
{
	regex_t re;

	if (!pattern || !*pattern) {
		ui_forget_find(ui);
		return true;
	}
	if (!exact) {
		struct err *err = pattern_compile(pattern, pattern_ignores_case(pattern), &re);
		if (err) {
			ui_message(ui, true, "%s: %s", pattern, err->text);
			err_free(err);
			return false;
		}
	}
	char *copy = xstrdup(pattern);
	ui_forget_find(ui);
	ui->find.pattern = copy;
	ui->find.exact = exact;
	if (!exact) {
		ui->find.re = re;
		ui->find.icase = pattern_ignores_case(pattern);
		ui->find.literal = !strpbrk(pattern, ".[]()*+?{}|^$\\");
	}
	ui_clear_message(ui);
	return true;
}

void ui_find_step(struct ui *ui, int direction)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!ui->find.pattern || !ops->find)
		return;
	ui_refresh_screen(ui);
	ui->find.failed = !ops->find(ui, ui->state[ui->screen], direction);
	ui->touched = ui->touched || !ui->find.failed;
}
