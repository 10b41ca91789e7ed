/*
 * A one-line editor: find, filter, command line. UTF-8, cursor in characters, history per kind. Pure.
 */
#ifndef HEAPTOP_UI_PROMPT_H
#define HEAPTOP_UI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/canvas.h"
#include "ui/key.h"

enum prompt_kind {
	PROMPT_NONE, PROMPT_FIND, PROMPT_FILTER, PROMPT_COMMAND, PROMPT_KINDS
};

#define PROMPT_MAX 512		/* bytes with NUL */
#define PROMPT_HISTORY 50

struct prompt {
	enum prompt_kind kind;	/* NONE: closed */
	char text[PROMPT_MAX];
	size_t len, at;		/* bytes; at: before which the cursor stands */
	char before[PROMPT_MAX];/* what was set when it was opened, to go back to on Esc */
	char *history[PROMPT_KINDS][PROMPT_HISTORY];
	size_t nhistory[PROMPT_KINDS];
	size_t recall;		/* nhistory: the new line */
};

enum prompt_result {
	PROMPT_SAME,		/* key used, text as before */
	PROMPT_CHANGED,
	PROMPT_DONE,		/* Enter: closed, text is the answer */
	PROMPT_CANCELLED,	/* Esc: closed */
};

/* `text`: to begin with. */
void prompt_open(struct prompt *p, enum prompt_kind kind, const char *text);
enum prompt_result prompt_key(struct prompt *p, uint32_t key);
void prompt_draw(const struct prompt *p, struct canvas *c, int y, int x, int cols, const char *hint);
void prompt_deinit(struct prompt *p);

#endif
