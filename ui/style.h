/*
 * Styles to looks: what colour and attributes a style has in a theme, with 256, 16 or 8 colours or none,
 * and which style the code of a module gets. Pure; tty.c turns a look into curses attributes.
 */
#ifndef HEAPTOP_UI_STYLE_H
#define HEAPTOP_UI_STYLE_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/canvas.h"

enum style_depth {
	STYLE_DEPTH_MONO,	/* bold, underline, reverse only: also for NO_COLOR */
	STYLE_DEPTH_8,
	STYLE_DEPTH_16,
	STYLE_DEPTH_256,
};

struct style_look {
	int16_t fg, bg;		/* colour of the 256 palette, -1: the terminal's default */
	bool bold, dim, underline, reverse;
};

/* Without a theme, and in one (NULL: none). */
struct style_look style_look(style_t style, enum style_depth depth);
struct theme;
struct style_look style_look_in(const struct theme *theme, style_t style, enum style_depth depth);

/* 0xRRGGBB of a colour of the 256 palette as xterm has it, and the nearest of its first 16 or 8. */
uint32_t style_rgb(int color);
int style_nearest(int color, enum style_depth depth);

/* For dumps: '.' for plain text. */
char style_letter(style_t style);

/* How a module's code is coloured; main_module is the program's own name or NULL. Returns a
 * STYLE_CODE_*; style_flame() of it is the same on coloured ground. */
enum style_id style_of_module(const char *module, bool unknown, const char *main_module);
static inline enum style_id style_flame(enum style_id code)
{
	return code - STYLE_CODE_MAIN + STYLE_FLAME_MAIN;
}

#endif
