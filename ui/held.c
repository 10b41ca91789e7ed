/* See held.h. */
#include "ui/held.h"

#include "ui/detail.h"
#include "ui/screen.h"

bool held_possible(const struct ui *ui)
{
	/* a program that has ended is looked at no more, but its last view may know */
	return ui->source->want_classes || (ui->view && ui->view->classes);
}

void held_drawn(struct ui *ui)
{
	bool want = ui->held_shown || detail_is_open(ui);

	if (ui->source->want_classes && ui->held_wanted != want)
		ui->source->want_classes(ui->source->ctx, want);
	ui->held_wanted = want;
}
