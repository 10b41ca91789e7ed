/* The Output screen: hands keys, wheel and its place on the canvas to the pane (output.c). */
#include "ui/output.h"
#include "ui/screen.h"

static void output_view_draw(struct ui *ui, void *state, struct rect r)
{
	(void)state;
	if (ui->output)
		output_draw(ui->output, ui->canvas, r.y, r.x, r.rows, r.cols);
}

static void output_view_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	(void)state;
	if (!ui->output)
		return;
	if (ev->button == MOUSE_WHEEL_UP)
		output_scroll(ui->output, 3);
	else if (ev->button == MOUSE_WHEEL_DOWN)
		output_scroll(ui->output, -3);
}

const struct view_ops output_ops = {
	.title = "Output",
	.draw = output_view_draw,
	.mouse = output_view_mouse,
};
