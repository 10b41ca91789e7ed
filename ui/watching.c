/* See watching.h. */
#include "ui/watching.h"

#include "ui/screen.h"

bool watching_set_faults(struct ui *ui, bool on)
{
	if (!ui->source->want_faults || (ui->view && ui->view->info.state >= VIEW_EXITED)) {
		ui_message(ui, true, "there is no running program whose page faults could be sampled");
		return false;
	}
	ui->source->want_faults(ui->source->ctx, on);
	ui->faults_due = on;
	ui_message(ui, false, on ? "page faults are sampled from now on (:faults off ends it)"
				 : "page faults are no longer sampled; what they have told stays");
	return true;
}

bool watching_set_res(struct ui *ui, bool on)
{
	if (!ui->source->want_res || (ui->view && ui->view->info.state >= VIEW_EXITED)) {
		ui_message(ui, true, "there is no running program whose memory could be looked at");
		return false;
	}
	ui->source->want_res(ui->source->ctx, on);
	ui_message(ui, false, on ? "what is in memory is looked at from now on (:res off ends it)"
				 : "nobody looks at what is in memory any more; what is shown of it is of now");
	return true;
}

void watching_view(struct ui *ui)
{
	const struct view_info *info = &ui->view->info;

	if (!ui->faults_due || (!info->faults && !info->faults_why))
		return;
	ui->faults_due = false;
	if (info->faults)
		return;
	ui_message(ui, true, "%s", info->faults_why);
	if (ui->value == REPORT_FAULT_BYTES && !ui_value_known(ui, REPORT_FAULT_BYTES))
		ui_set_value(ui, REPORT_LIVE_BYTES, false);
}
