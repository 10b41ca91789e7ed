/*
 * Themes: what the elements of the screen look like, over the built-in looks of style.c. Built in are default,
 * light, contrast and mono; others come from files NAME.theme, all read before the screen opens:
 *
 *	# comment
 *	base = light			another theme that is built in, or has been read, to begin with
 *	ELEMENT = FG [BG] [ATTR...]
 *
 *	ELEMENT	as theme_element names them: text, label, heading, code-main, flame-0, match, faded ...
 *	FG, BG	default, a number of the 256-colour palette, or black red green yellow blue magenta cyan white,
 *		with "bright-" in front for the other eight; fewer colours take the nearest one
 *	ATTR	bold, dim, underline, reverse: also what the element has without colours
 */
#ifndef HEAPTOP_UI_THEME_H
#define HEAPTOP_UI_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

/* Beyond the styles: what is not found, and what is, on plain and on coloured ground. */
enum theme_id {
	THEME_FADED = STYLE_IDS, THEME_FADED_FLAME, THEME_MATCH, THEME_MATCH_FLAME, THEME_IDS
};

enum { THEME_BOLD = 1, THEME_DIM = 2, THEME_UNDERLINE = 4, THEME_REVERSE = 8 };

struct theme_look {
	bool set;		/* else the built-in look */
	int16_t fg, bg;		/* of the 256-colour palette, -1: the terminal's own */
	uint8_t attr;
};

#define THEME_NAME 40
struct theme {
	char name[THEME_NAME];
	bool mono;		/* no colours, whatever the terminal has */
	struct theme_look looks[THEME_IDS];
};

struct themes {
	struct theme **list;	/* the built-in ones first */
	size_t n, cap;
};

struct err;

/* The built-in ones. */
void themes_init(struct themes *themes);
void themes_deinit(struct themes *themes);
/* One from a text, which is changed; a name that is there already is replaced. ERR_BAD_INPUT names the line, and
 * nothing is added. */
struct err *themes_add(struct themes *themes, const char *name, char *text);
/* All NAME.theme in a folder, by name, at most 64; what is wrong with one goes to the log. No folder is fine. */
void themes_read(struct themes *themes, const char *dir);
/* NULL: there is none. */
const struct theme *themes_find(const struct themes *themes, const char *name);
/* "default, light, ..."; the caller frees. */
char *themes_names(const struct themes *themes);

/* Name of an element; NULL beyond THEME_IDS. */
const char *theme_element(unsigned id);

#endif
