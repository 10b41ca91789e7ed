/*
 * A flat list of rows with numbers, of any group (report/groups.h): Sites, and by the same means Threads
 * and Modules. A kind says what differs; the functions are view_ops' own, for a state made by rows_create.
 */
#ifndef HEAPTOP_UI_SITES_H
#define HEAPTOP_UI_SITES_H

#include "ui/columns.h"
#include "ui/screen.h"

struct rows_kind {
	enum columns_set columns;
	const char *one;		/* of its rows: "thread" */
	/* What is listed, the value it is sorted by, and what stands over the names. */
	enum report_group (*group)(const struct ui *ui);
	enum report_value (*value)(const struct ui *ui);	/* NULL: ui->value */
	const char *(*heading)(const struct ui *ui);
	/* Enter; NULL: the details. */
	void (*open)(struct ui *ui, const struct report_site *row);
};

void *rows_create(const struct rows_kind *kind);
void rows_destroy(void *state);
void rows_changed(struct ui *ui, void *state);
void rows_draw(struct ui *ui, void *state, struct rect r);
bool rows_action(struct ui *ui, void *state, enum action a);
void rows_mouse(struct ui *ui, void *state, const struct key_event *ev);
bool rows_find(struct ui *ui, void *state, int direction);
bool rows_selected(struct ui *ui, void *state, struct selection *ret);
void rows_reveal(struct ui *ui, void *state, const struct selection *sel);

/* A row's name and what belongs to it, into these columns; more of it for status line and details. Of rows by
 * thread (threads.c) and by module (modules.c), whichever list they are in. */
/* What threads have no figures of is shown as live bytes. */
enum report_value thread_value(const struct ui *ui);
const char *thread_heading(const struct ui *ui);
void thread_draw_name(struct ui *ui, int y, int x, int width, const struct report_site *row, style_t extra);
void thread_selected(const struct ui *ui, const struct report_site *row, struct selection *ret);
void module_draw_name(struct ui *ui, int y, int x, int width, const struct report_site *row, style_t extra);
void module_selected(const struct ui *ui, const struct report_site *row, struct selection *ret);
/* The row under the cursor; NULL: there is none. */
const struct report_site *rows_cursor(const struct ui *ui, void *state);

#endif
