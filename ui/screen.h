/*
 * What the parts of the screen share: struct ui, the state of one session, and struct view_ops,
 * what each screen (Sites, Tree, Flame, Output) provides. session.c owns struct ui; perform.c,
 * input.c and frame.c call the screens; the screens draw on the canvas and act on keys. Nothing
 * here knows curses: tty.c and script.c feed events in and take the canvas out.
 *
 * Order of calls: view_ops.create once; changed() whenever the report has another view, filter,
 * value or names; draw(); action() for keys. All on the one screen thread.
 */
#ifndef HEAPTOP_UI_SCREEN_H
#define HEAPTOP_UI_SCREEN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/groups.h"
#include "report/report.h"
#include "ui/action.h"
#include "ui/alike.h"
#include "ui/canvas.h"
#include "ui/key.h"
#include "ui/prompt.h"
#include "ui/ui.h"

struct detail;
struct output;
struct ui;

struct rect {
	int y, x, rows, cols;
};

/* What is under the cursor. Strings live until the next change. */
struct selection {
	const char *function, *file, *module;
	uint32_t line;
	bool unknown;
	uint64_t func;		/* id of the function (a site's id, a cell's func_key); 0: none */
	size_t trace;		/* the heaviest one of a row that is no site; SIZE_MAX: none. Without a cell only */
	bool gathered;		/* several small ones in one */
	size_t count;		/* gathered: how many */
	struct trace_stats s;
	double se;		/* of live_bytes; 0: exact */
	uint64_t site_id;	/* Sites only, 0 else */
	bool is_site;
	const struct report_site *row;	/* of a list by other things than sites, which: */
	enum report_group group;
	double delta;		/* live bytes less those of the base */
	const uint64_t *trend;		/* of a list's row: live bytes, oldest first, over trend_seconds */
	size_t ntrend;
	double trend_seconds;
	const struct report_cell *cell;	/* Tree, Flame */
	struct report_tree *tree;
	char note[160];		/* "66.7% of parent", … */
};

struct view_ops {
	const char *title;	/* on the tab */
	void *(*create)(struct ui *ui);
	void (*destroy)(void *state);
	/* The report shows something else: fetch the rows again, keep the cursor on its row. */
	void (*changed)(struct ui *ui, void *state);
	void (*draw)(struct ui *ui, void *state, struct rect r);
	/* False: not mine. */
	bool (*action)(struct ui *ui, void *state, enum action a);
	/* Mouse inside the screen's rectangle. `again`: the second click on the same row. */
	void (*mouse)(struct ui *ui, void *state, const struct key_event *ev);
	/* Move to the next row that matches ui->find: direction +1, -1, or 0: from the cursor on,
	 * including its row. False: none. */
	bool (*find)(struct ui *ui, void *state, int direction);
	/* The selected row, for the status line and the details; false: none. */
	bool (*selected)(struct ui *ui, void *state, struct selection *ret);
	/* Put the cursor on what stands for another screen's selection, if anything does. Optional. */
	void (*reveal)(struct ui *ui, void *state, const struct selection *sel);
};

struct find {
	char *pattern;		/* NULL: no search */
	regex_t re;
	bool exact;		/* the whole function name (#) */
	bool literal, icase;	/* a word without regex operators; in any case */
	bool failed;		/* no match at the last try */
	char summary[96];	/* "17 frames, 41.2% of live" */
};

struct modal;

enum ui_names { UI_NAMES_SHORT, UI_NAMES_FULL, UI_NAMES_RAW, UI_NAMES };

#define UI_MARKS 9
#define UI_BASE_NONE (-1)
#define UI_BASE_FILE UI_MARKS

struct ui {
	/* given */
	const struct ui_source *source;
	struct names *names;
	struct ui_options options;
	struct output *output;		/* NULL without a relay */

	/* data */
	struct report *report;
	struct view *view;		/* the one shown; our reference; NULL before the first */
	char *main_module;		/* the program's own module, NULL if unknown */
	unsigned main_tries;
	uint32_t process;		/* which one is shown, 0: all together */
	bool switched;			/* to another one just now */
	uint64_t missed;		/* refreshes since the display was frozen */
	double refresh;			/* seconds */
	bool frozen, paused;

	/* what is shown */
	struct canvas *canvas;
	enum ui_view screen;
	void *state[UI_VIEWS];
	bool stale[UI_VIEWS];		/* changed() is due */
	enum report_value value;
	bool reverse, inverted;
	enum ui_names names_form;
	struct alike alike[UI_NAMES];	/* by form */
	enum report_group group;	/* of the rows of Sites */
	bool user_only;			/* trees without frames of system libraries */
	bool no_follow;			/* the cursor stays where it is */
	bool touched;			/* the user has moved on this screen: the next one goes there */
	int hscroll;			/* columns the names are scrolled */
	int graph_rows;			/* -1: as fits */
	uint32_t hidden_columns;	/* columns.h */
	bool held_shown, held_wanted;	/* held.h: what live blocks are like: by this frame; by what we asked for */
	const struct theme *theme;	/* NULL: as it is without */
	struct view *marks[UI_MARKS];	/* our references, oldest first */
	size_t nmarks;
	int base;			/* compared with: index of a mark, UI_BASE_… */
	enum report_value value_before;	/* what D goes back to */
	struct find find;
	char *filter;			/* NULL: none */
	char *thread;			/* the choice of threads asked for here; NULL: none */
	bool thread_due;		/* and a view with it is to come, also while frozen */
	bool faults_due;		/* a view of page faults, which have been asked for here, is to come */
	char *module;			/* only sites in it; NULL: all */
	struct prompt prompt;
	struct detail *detail;		/* never NULL */
	struct modal *modal;		/* NULL: none */
	char *message;			/* instead of the status line */
	bool message_bad;
	double message_until;
	char *news;			/* last text of source->status */
	struct {
		struct rect tabs, screen, graph, footer;
		struct { enum action a; int x0, x1; } hints[16];
		size_t nhints;
		int tab_x[UI_VIEWS][2];
	} layout;			/* of the last draw, for the mouse */

	/* time: seconds on a monotonic clock, set by the loop before each call */
	double now;
	double moved;			/* last key that moves: rows rest for a while */
	bool resort;			/* sort now all the same */

	struct worker *worker;		/* for files */
	char *edit_path;		/* NULL: none; an editor is wanted on it */
	uint32_t edit_line;
	char *send;			/* NULL: none; bytes for the terminal as they are */

	/* for the loop */
	bool dirty;			/* draw */
	bool clear;			/* redraw from nothing */
	bool suspend;
	bool mouse_on;
	bool leaving;
	enum ui_leave leave;
	/* the last click, to recognise the second one */
	int click_y, click_x;
	double click_time;
};

#define REST_SECONDS 3.0		/* rows keep their place this long after a key */

extern const struct view_ops sites_ops, calltree_ops, flame_ops, time_ops, threads_ops, modules_ops, output_ops;
const struct view_ops *view_ops_of(enum ui_view v);

/* ---- session.c: for the screens ---- */
/* Why there are no rows. */
const char *ui_nothing(const struct ui *ui);
/* A line for the status row; bad: an error. */
void ui_message(struct ui *ui, bool bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void ui_clear_message(struct ui *ui);
/* The value, order, filter or names differ: every screen fetches again. */
void ui_changed(struct ui *ui);
/* The screen shown fetches what has changed: before it draws or acts. */
void ui_refresh_screen(struct ui *ui);
/* Are numbers estimates? */
bool ui_sampled(const struct ui *ui);
/* Are those that rows are shown by now: bytes first touched, else all others? */
bool ui_estimated(const struct ui *ui);
/* " ±12% n=40": how sure what is selected is, of what it is shown by; "": it isn't estimated, and buf. */
#define UI_ERROR 64
const char *ui_error(const struct ui *ui, const struct selection *sel, char buf[UI_ERROR]);
/* Too few samples to rely on. */
bool ui_unsure(const struct ui *ui, const struct trace_stats *s);
/* The name as it is to be shown now, in buf or the string itself. */
#define UI_NAME 512
const char *ui_name(const struct ui *ui, const char *function, char buf[UI_NAME]);
/* What tells names apart that look alike in this form (alike.h), for what has this id. */
const char *ui_mark(struct ui *ui, const char *name, uint64_t id, char buf[ALIKE_MARK]);
const char *ui_basename(const char *path);

/* ---- carry.c ---- */
/* To another screen, and there to the selection of this one if the user has moved here. */
void carry_to(struct ui *ui, enum ui_view v);
/* The cell of a tree that stands for a selection; NULL: none does. */
const struct report_cell *carry_cell(struct ui *ui, const struct selection *sel, struct report_tree *tree);
/* The heaviest trace of a row; SIZE_MAX: none is known, or the selection is a cell. */
size_t carry_trace(struct ui *ui, const struct selection *sel);
/* ---- tools.c ---- */
/* What is under the cursor; false: nothing. */
bool ui_selected(struct ui *ui, struct selection *ret);
/* Ask for an editor on a file as the debug information names it; line 0: at its beginning. */
void ui_edit(struct ui *ui, const char *file, uint32_t line);

/* ---- find.c ---- */
/* Set or clear (NULL, "") the search; a bad pattern is said in the status line, and the old one stays. */
bool ui_set_find(struct ui *ui, const char *pattern, bool exact);
void ui_forget_find(struct ui *ui);
/* What the last try found has been read: the status row is the selection's again, the marks stay. */
void ui_hush_find(struct ui *ui);
/* Does / match this row? */
bool ui_find_matches(const struct ui *ui, const char *function, const char *file, const char *module);
/* To another match on the screen shown; direction as for view_ops.find. */
void ui_find_step(struct ui *ui, int direction);

/* ---- perform.c ---- */
bool ui_action(struct ui *ui, enum action a);
void ui_set_value(struct ui *ui, enum report_value v, bool toggle_reverse);
/* Can rows be measured by it now? */
bool ui_value_known(const struct ui *ui, enum report_value v);
void ui_set_group(struct ui *ui, enum report_group group);
void ui_set_screen(struct ui *ui, enum ui_view v);
/* Set or clear (NULL, "") the filter; a bad pattern is said in the status line, and the old one stays. */
bool ui_set_filter(struct ui *ui, const char *pattern);
void ui_save(struct ui *ui, const char *path);

/* ---- session.c: for tty.c, script.c, and tests ---- */
struct ui *ui_create(const struct ui_source *source, struct names *names, struct relay *relay,
		     const struct ui_options *options, int rows, int cols, bool unicode);
void ui_destroy(struct ui *ui);
/* Look for news at the source; true if there is anything to draw. */
bool ui_poll(struct ui *ui);
/* Nothing is to be done: make ready what another screen would wait for, a few ms of it. True: there is more. */
bool ui_idle(struct ui *ui);
void ui_resize(struct ui *ui, int rows, int cols);
/* Seconds until ui_poll should be called even without an event; < 0: never. */
double ui_timeout(const struct ui *ui);

/* ---- input.c ---- */
void ui_key(struct ui *ui, const struct key_event *ev);

/* ---- frame.c ---- */
/* Draw everything onto ui->canvas. */
void ui_draw(struct ui *ui);

/* ---- marks.c ---- */
void marks_init(struct ui *ui);
void marks_deinit(struct ui *ui);
/* Keep what is shown, and compare with it from now on. */
void marks_set(struct ui *ui);
/* Order by what has changed since, or again by what was before. */
void marks_since(struct ui *ui);
void marks_open(struct ui *ui);		/* the list */
/* "Δ since 02:10"; false: there is no base. */
bool marks_name(const struct ui *ui, char *buf, size_t len);
/* When the mark compared with was set, seconds since the start; < 0: there is none. */
double marks_time(const struct ui *ui);

/* ---- parts ---- */
void header_draw(struct ui *ui, struct rect r);			/* 1 or 2 rows */
void header_line(struct ui *ui, char *buf, size_t len);		/* "live 412.3M ^1.2M/s" */
void tabs_draw(struct ui *ui, struct rect r);
void footer_draw(struct ui *ui, struct rect r);
void status_draw(struct ui *ui, struct rect r);
/* One line for `:` or a script; false and a message if it isn't understood. */
bool command_run(struct ui *ui, const char *line);

#endif
