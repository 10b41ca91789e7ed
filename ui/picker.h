/* The process picker's model and drawing, apart from the terminal so that it can be tested. */
#ifndef HEAPTOP_UI_PICKER_H
#define HEAPTOP_UI_PICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ui/canvas.h"
#include "ui/key.h"
#include "ui/list.h"

struct proc_row;
struct seen;
struct look;

struct picker {
	struct list list;
	struct proc_row *rows;		/* owned */
	struct seen *seen;		/* the same processes by pid, and what they had at first */
	size_t n;
	struct proc_row **shown;	/* those the filter leaves */
	size_t nshown;
	pid_t cursor;			/* process under the cursor, 0: none */
	pid_t clicked;			/* the last key was a click on it; 0: it was none */
	int y;				/* of the first row, as drawn last */
	bool within;			/* a session goes on behind it, which is let go for another one */
	char filter[64];
	char *said;			/* why the last one chosen couldn't be attached to; NULL: nothing to say */
	struct {			/* pickask.h's */
		pid_t pid;		/* it is asked about this one; 0: about none */
		char *text;		/* what attaching would do; NULL: not known yet */
		struct look *look;	/* who finds that out, or NULL */
		int keys_y, back_x;	/* where the keys stand, as drawn last */
	} ask;
};

enum picker_result { PICKER_GOES_ON, PICKER_CHOSEN, PICKER_LEFT, PICKER_INTERRUPTED };

void picker_init(struct picker *p, const char *filter);
void picker_deinit(struct picker *p);
/* A line to show until the next key; copied. */
void picker_say(struct picker *p, const char *text);
/* A fresh list; takes it over. The cursor stays on its process. Growth counts from the first list a process was in. */
void picker_take(struct picker *p, struct proc_row *rows, size_t n);
void picker_draw(struct picker *p, struct canvas *c);
/* Enter asks first, with what attaching would do (pickask.h). Esc takes the filter back first, then leaves. */
enum picker_result picker_key(struct picker *p, const struct key_event *ev);

#endif
