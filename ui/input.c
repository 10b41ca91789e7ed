/* Who gets a key or a click: the box over the screen, the program's terminal, the line at the bottom, or an action. */
#include "base/err.h"
#include "base/pattern.h"
#include "ui/detail.h"
#include "ui/modal.h"
#include "ui/output.h"

static bool is_pattern(const char *text)
{
	regex_t re;
	struct err *err = pattern_compile(text, false, &re);

	if (!err)
		regfree(&re);
	err_free(err);
	return !err;
}

static void prompt_input(struct ui *ui, uint32_t key)
{
	enum prompt_kind kind = ui->prompt.kind;
	enum prompt_result result = prompt_key(&ui->prompt, key);
	const char *text = ui->prompt.text;

	if (kind == PROMPT_FIND) {
		if (result == PROMPT_CANCELLED) {
			ui_set_find(ui, NULL, false);
		} else if (result != PROMPT_SAME) {
			/* half a pattern is often none: wait for the rest without a word */
			if (result == PROMPT_DONE || is_pattern(text)) {
				if (ui_set_find(ui, text, false))
					ui_find_step(ui, 0);
			}
		}
	} else if (kind == PROMPT_FILTER && result == PROMPT_DONE) {
		ui_set_filter(ui, text);
	} else if (kind == PROMPT_COMMAND && result == PROMPT_DONE) {
		command_run(ui, text);
	}
}

static bool inside(struct rect r, int y, int x)
{
	return y >= r.y && y < r.y + r.rows && x >= r.x && x < r.x + r.cols;
}

static void mouse(struct ui *ui, const struct key_event *ev)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	ui->moved = ui->now;
	if (ev->button == MOUSE_RIGHT) {
		ui_action(ui, ACT_BACK);
		return;
	}
	if (ev->button == MOUSE_LEFT && inside(ui->layout.tabs, ev->y, ev->x)) {
		for (int v = 0; v < UI_VIEWS; v++)
			if (ev->x >= ui->layout.tab_x[v][0] && ev->x < ui->layout.tab_x[v][1])
				ui_set_screen(ui, v);
	} else if (ev->button == MOUSE_LEFT && inside(ui->layout.footer, ev->y, ev->x)) {
		for (size_t i = 0; i < ui->layout.nhints; i++)
			if (ev->x >= ui->layout.hints[i].x0 && ev->x < ui->layout.hints[i].x1)
				ui_action(ui, ui->layout.hints[i].a);
	} else if (ev->button == MOUSE_LEFT && inside(ui->layout.graph, ev->y, ev->x)) {
		ui_action(ui, ACT_GRAPH);
	} else if (detail_mouse(ui, ev)) {
		return;
	} else if (inside(ui->layout.screen, ev->y, ev->x) && ops->mouse) {
		ui_refresh_screen(ui);
		/* a click on what was clicked last opens it */
		bool again = ev->button == MOUSE_LEFT && ev->y == ui->click_y && ev->x == ui->click_x &&
			ui->now - ui->click_time < 1;
		ops->mouse(ui, ui->state[ui->screen], ev);
		ui->touched = true;
		if (again)
			ui_action(ui, ACT_OPEN);
		ui->click_y = ev->y;
		ui->click_x = ev->x;
		ui->click_time = again ? -10 : ui->now;
	}
}

void ui_key(struct ui *ui, const struct key_event *ev)
{
	ui->dirty = true;
	if (ui->message && ev->key != UKEY_MOUSE)
		ui_clear_message(ui);
	/* the line at the bottom searches while one types: its own keys say anew what they find */
	if (ui->prompt.kind == PROMPT_NONE)
		ui_hush_find(ui);
	if (ui->modal) {
		struct modal *m = ui->modal;
		if (!m->key(ui, m, ev) && ui->modal == m)
			ui_set_modal(ui, NULL);
		return;
	}
	if (ui->output && output_typing(ui->output) && ui->screen == UI_OUTPUT && ev->key != UKEY_MOUSE) {
		output_key(ui->output, ev->key);
		return;
	}
	if (ev->key == UKEY_MOUSE) {
		mouse(ui, ev);
		return;
	}
	if (ui->prompt.kind != PROMPT_NONE) {
		prompt_input(ui, ev->key);
		return;
	}
	enum action a = action_of_key(ev->key, ui->screen);
	if (ui->screen == UI_OUTPUT && ui->output && a != ACT_QUIT && output_key(ui->output, ev->key))
		return;
	if (a != ACT_NONE)
		ui_action(ui, a);
}
