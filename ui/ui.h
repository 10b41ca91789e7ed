/*
 * The screen: everything that knows curses is in this folder. main() describes what there is to
 * show (a live collector or a snapshot) in a ui_source and calls ui_run, which returns when the
 * user leaves. The screen reads and draws on /dev/tty, never on descriptors 0-2.
 *
 * The thread that calls ui_run is the only one that touches curses. It never waits for the
 * collector, for names or for files.
 */
#ifndef HEAPTOP_UI_UI_H
#define HEAPTOP_UI_UI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/view.h"
#include "report/groups.h"
#include "report/report.h"

struct err;
struct modules;
struct names;
struct relay;
struct view;

enum ui_view {
	UI_SITES, UI_TREE, UI_FLAME, UI_TIME, UI_THREADS, UI_MODULES, UI_OUTPUT, UI_VIEWS
};

/* One of several processes watched. */
struct ui_process {
	uint32_t id, parent;	/* parent: 0 if it isn't watched; else a smaller id */
	int pid;
	uint32_t merged;	/* ended processes this row stands for, mostly 1 */
	char *command;		/* owned, sanitised */
	char *why;		/* owned: why it isn't watched any more; NULL or "": it is */
	enum view_state state;
	int exit_code;
	uint64_t live_bytes, rss;
	uint32_t threads;
};
void ui_processes_free(struct ui_process *list, size_t n);

/* Where the data comes from; every function may be called at any time, must not block. */
struct ui_source {
	void *ctx;
	struct view *(*view)(void *ctx);	/* newest, caller's reference; NULL: none yet */
	int (*fd)(void *ctx);			/* readable when something changed; -1: never (snapshot) */
	void (*seen)(void *ctx);		/* call when fd was readable, before looking: resets it */
	/* All processes, malloc'ed into *ret (see ui_processes_free), and their number; and which of them
	 * `view` gives from now on, 0: all together; false: it is no longer there. NULL: there is one. */
	size_t (*processes)(void *ctx, struct ui_process **ret);
	bool (*choose)(void *ctx, uint32_t id);
	void (*pause)(void *ctx, bool paused);	/* NULL: can't */
	/* Another process is to be watched instead: the screen is left by UI_LEAVE_OTHER. NULL: can't. And what attaching
	 * to it would do (ui_pick.foresee). */
	void (*other)(void *ctx, pid_t pid);
	char *(*foresee)(void *ctx, pid_t pid);
	/* Send the process shown a signal, of all together the first. NULL: can't. */
	void (*signal)(void *ctx, int sig);
	/* Why what was asked for so couldn't be done, once; the caller frees. NULL: nothing new. Announced through fd. */
	char *(*refused)(void *ctx);
	/* Show blocks of these threads alone (heap_choose_threads), NULL: of all; a view follows. NULL: can't. */
	void (*choose_threads)(void *ctx, const char *which);
	void (*set_refresh)(void *ctx, double seconds);	/* NULL: can't */
	/* Sample page faults from now on; look at what is in memory; or don't any more. A view follows, whose info says
	 * whether that could be. NULL: can't. */
	void (*want_faults)(void *ctx, bool want);
	void (*want_res)(void *ctx, bool want);
	/* Views are to say what live blocks are like (heap/classes.h), or needn't any more. NULL: they do, or can't. */
	void (*want_classes)(void *ctx, bool want);
	/* Start writing a snapshot in the background; *_status tells how it goes. NULL: can't. */
	void (*save)(void *ctx, const char *path);
	/* One line about the last save or other news ("saved heaptop.4242.pb.gz"), "" if none; the
	 * caller frees. Changes are announced through fd. */
	char *(*status)(void *ctx);
	/* There will never be a view: leave. NULL: there will. */
	bool (*failed)(void *ctx);
	const char *waiting;	/* what is being done until the first view comes; NULL: its numbers come */
	struct view *base;	/* to compare with, and its names (-i --base); NULL: none. Borrowed */
	struct names *base_names;
	const char *base_name;	/* its file */
	const struct modules *mods;	/* of the process, for frames without names; NULL: snapshot */
	bool live;		/* a process behind it: quitting asks / detaches */
	bool launched;		/* it is our child: q asks kill / detach / cancel while it runs */
};

/* What y copies to: the terminal if it may know how, else (and within tmux or screen, also) a file. */
enum ui_copy { UI_COPY_AUTO, UI_COPY_TERMINAL, UI_COPY_FILE };

struct source_paths;
struct themes;

struct ui_options {
	enum ui_view view;
	enum report_value value;	/* what Sites sorts by, Flame's widths */
	const char *filter;		/* or NULL */
	const struct wrappers *wrappers;	/* report_set_wrappers; NULL: none */
	enum report_group group;	/* rows of Sites */
	double delay;			/* seconds between refreshes */
	double duration;		/* seconds until the screen is left as if by q; 0: never */
	bool no_color, no_unicode, no_mouse;
	bool exit_with_program;
	bool paused;			/* collection begins switched off */
	const char *title;		/* command line for the header */
	const char *script;		/* HEAPTOP_SCRIPT: keys and :commands from this file, no terminal
					 * is touched (tests) */
	const char *snapshot_name;	/* default file for S */
	const struct themes *themes;	/* to choose from, NULL: the built-in looks alone */
	const char *theme;		/* one of them, or NULL */
	uint32_t hidden_columns;	/* columns.h */
	int graph;			/* enum graph_kind */
	enum ui_copy copy;
	const struct source_paths *source_paths;	/* or NULL */
	const char *config_path;	/* the setup saves to it; NULL: nowhere */
};

enum ui_leave {
	UI_LEAVE_QUIT,		/* attached: detach. snapshot: end. program has ended: end */
	UI_LEAVE_KILL,		/* launched and alive: kill it */
	UI_LEAVE_DETACH,	/* launched and alive: let it go on */
	UI_LEAVE_OTHER,		/* attached: detach, and watch the process that ui_source.other was called with */
	UI_LEAVE_SIGNAL,	/* SIGTERM or SIGHUP came: *ret_signal */
};

/* Can a screen be opened (a /dev/tty, a TERM with cursor addressing)? NULL: yes, else why not. */
struct err *ui_available(void);

/* What that terminal is, for --doctor. */
struct ui_terminal {
	char name[41];		/* TERM */
	int height, width;	/* in cells; 0: it doesn't tell */
	int colors;		/* 0: monochrome */
	bool utf8;		/* by the locale */
};
/* Errors as ui_available. */
struct err *ui_terminal(struct ui_terminal *ret);

struct err *ui_run(const struct ui_source *source, struct names *names, struct relay *relay,
		   const struct ui_options *options, enum ui_leave *ret_leave, int *ret_signal);

/* The process picker, and what is to be seen of it when it opens again. */
struct ui_pick {
	char filter[64];	/* to begin with; then what it was at the end */
	const char *said;	/* a line to show: why the last choice couldn't be attached to. Borrowed, or NULL */
	/* What attaching to a process would do to it, a line each; the caller frees. On another thread. NULL: isn't told. */
	char *(*foresee)(void *ctx, pid_t pid);
	void *ctx;		/* for it */
	pid_t pid;		/* out: 0 if the user left without choosing, */
	int signal;		/* out: and by which signal or Ctrl-C, else 0 */
};
struct err *ui_pick(struct ui_pick *pick, const struct ui_options *options);

/* The key table as text, for --keys and the man page: "keys\taction\tname\n" lines. */
void ui_print_keys(void);

#endif
