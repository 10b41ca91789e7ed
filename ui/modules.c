/*
 * Modules: which program or library. LIVE and the other numbers are of the sites in the module, TOTAL of
 * all stacks that pass through it. Enter or d shows that module's sites alone, on all screens.
 */
#include <stdio.h>
#include <string.h>

#include "elf/file.h"
#include "elf/modules.h"
#include "ui/choice.h"
#include "ui/sites.h"
#include "ui/style.h"

#define NO_FILE "(in no file)"
#define BUILD_ID_SHOWN 8		/* of its characters */

static enum report_group modules_group(const struct ui *ui)
{
	(void)ui;
	return REPORT_BY_MODULE;
}

static const char *modules_heading(const struct ui *ui)
{
	return ui->base != UI_BASE_NONE || ui->value == REPORT_LIVE_BYTES ? "MODULE" : "MODULE OF THE SITE";
}

static const char *symbols_text(enum report_symbols symbols)
{
	static const char *const texts[] = {
		[REPORT_SYMBOLS_PENDING] = "", [REPORT_SYMBOLS_NONE] = "no symbols",
		[REPORT_SYMBOLS_NAMES] = "no source lines", [REPORT_SYMBOLS_LINES] = "source lines",
	};

	return texts[symbols];
}

/* The open file doesn't change, and its build-id was read when it was opened. */
static const char *build_id(const struct ui *ui, uint32_t module)
{
	const struct module *mod = ui->source->mods && module ? module_get(ui->source->mods, module) : NULL;

	return mod && mod->file ? elf_file_build_id(mod->file) : "";
}

void module_draw_name(struct ui *ui, int y, int x, int width, const struct report_site *row, style_t extra)
{
	struct canvas *c = ui->canvas;
	const char *id = build_id(ui, row->more->module_id);
	const char *name = *row->function ? row->function : NO_FILE;
	style_t style = style_of_module(row->function, false, ui->main_module) | extra;
	const char *symbols = symbols_text(row->more->symbols);
	int end = x + width, sw = canvas_width(c, symbols);

	if (ui_find_matches(ui, row->function, NULL, NULL))
		style |= STYLE_MATCH;
	if (ui->module && !strcmp(ui->module, row->function))
		style |= STYLE_STRONG;
	canvas_clip(c, y, x, 1, width);
	x = canvas_put(c, y, x - ui->hscroll, style, name);
	if (sw && x + 2 + sw <= end) {
		style_t how = row->more->symbols == REPORT_SYMBOLS_NONE ? STYLE_WARN : STYLE_DIM;
		x = canvas_put(c, y, x + 2, how | extra, symbols);
	}
	if (*id && x + 2 + BUILD_ID_SHOWN <= end)
		canvas_put_max(c, y, x + 2, BUILD_ID_SHOWN, STYLE_DIM | extra, id);
	canvas_clip_all(c);
}

void module_selected(const struct ui *ui, const struct report_site *row, struct selection *ret)
{
	(void)ui;
	ret->unknown = true;	/* the name is the module itself */
	if (!*row->function)
		ret->function = NO_FILE;
	if (row->gone)
		snprintf(ret->note, sizeof(ret->note), "gone");
	else if (row->more->symbols == REPORT_SYMBOLS_NONE)
		snprintf(ret->note, sizeof(ret->note), "no names without symbols: install its debug package (-dbgsym, -debuginfo)");
	else if (row->more->symbols == REPORT_SYMBOLS_NAMES)
		snprintf(ret->note, sizeof(ret->note), "no source lines without debug information (-g, -dbgsym, -debuginfo)");
}

static void modules_open(struct ui *ui, const struct report_site *row)
{
	choice_toggle_module(ui, row->function);
}

static void *modules_list_create(struct ui *ui)
{
	static const struct rows_kind kind = {
		.columns = COLUMNS_MODULES, .one = "module", .group = modules_group, .heading = modules_heading,
		.open = modules_open,
	};

	(void)ui;
	return rows_create(&kind);
}

const struct view_ops modules_ops = {
	.title = "Modules",
	.create = modules_list_create,
	.destroy = rows_destroy,
	.changed = rows_changed,
	.draw = rows_draw,
	.action = rows_action,
	.mouse = rows_mouse,
	.find = rows_find,
	.selected = rows_selected,
};
