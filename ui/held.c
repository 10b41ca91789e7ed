/* See held.h. */
#include "ui/held.h"

#include "heap/classes.h"
#include "ui/detail.h"
#include "ui/screen.h"

const char *held_why_not(const struct ui *ui)
{
	if (ui->view && ui->view->classes)
		return NULL;
	if (!ui->source->want_classes)
		return "the file doesn't say how old blocks are";
	return ui->view && ui->view->totals.s.live_samples > CLASSES_MAX_LIVE ? "too many live blocks to look at each" : NULL;
}

bool held_possible(const struct ui *ui)
{
	return !held_why_not(ui);
}

void held_drawn(struct ui *ui)
{
	bool want = ui->held_shown || ui->value == REPORT_OLD_BYTES || detail_is_open(ui);

	if (ui->source->want_classes && ui->held_wanted != want)
		ui->source->want_classes(ui->source->ctx, want);
	ui->held_wanted = want;
}
