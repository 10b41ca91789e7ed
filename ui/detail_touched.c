/*
 * Detail's part about page faults (report/touched.h): whose blocks the row's stacks have touched first, and who has
 * touched the blocks that the row asked for.
 */
#include <stdio.h>

#include "report/touched.h"
#include "ui/detail_blocks.h"
#include "ui/format.h"

#define AMOUNT 14		/* columns of bytes and percent */

static void draw_item(struct ui *ui, const char *function, uint64_t bytes, uint64_t whole, bool dim, int y, int x, int cols)
{
	char name[UI_NAME], number[FORMAT_BUF], percent[16];
	int room = cols > AMOUNT + 4 ? cols - AMOUNT : 4;
	double share = whole ? (double)bytes / (double)whole : 0;

	canvas_put_cut(ui->canvas, y, x + 1, room - 2, dim ? STYLE_DIM : STYLE_TEXT, ui_name(ui, function, name));
	canvas_put_right(ui->canvas, y, x + room, 8, STYLE_NUMBER | (dim ? STYLE_FADED : 0), format_bytes(number, bytes, 7));
	snprintf(percent, sizeof(percent), "%3u%%", (unsigned)(share * 100 + 0.5));
	canvas_put_right(ui->canvas, y, x + room + 8, 6, dim ? STYLE_DIM : STYLE_TEXT, percent);
}

static int draw_list(struct ui *ui, const struct report_touched_list *list, const char *title, const char *what, int y,
		     int x, int cols)
{
	int rows = 0, end;

	if (!list->n)
		return 0;
	end = canvas_put_max(ui->canvas, y, x, cols, STYLE_HEADING_SORT, title);
	canvas_put_max(ui->canvas, y + rows++, end + 1, x + cols - end - 1, STYLE_DIM, what);
	for (size_t i = 0; i < list->n; i++)
		draw_item(ui, list->items[i].function, list->items[i].bytes, list->bytes,
			  !list->items[i].known, y + rows++, x, cols);
	if (list->more) {
		char text[40];
		snprintf(text, sizeof(text), "%zu more", list->more);
		draw_item(ui, text, list->rest, list->bytes, true, y + rows++, x, cols);
	}
	return rows + 1;
}

int detail_touched(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	int top = y;

	y += draw_list(ui, &f->touched->owners, "TOUCHES", "first, blocks asked for by", y, x, cols);
	y += draw_list(ui, &f->touched->touchers, "TOUCHED", "first by", y, x, cols);
	return y - top;
}
