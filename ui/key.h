/*
 * Key codes as the screens see them, free of curses: a code point for what is typed (control
 * characters are 1-31, DEL 127), one of these for the rest.
 */
#ifndef HEAPTOP_UI_KEY_H
#define HEAPTOP_UI_KEY_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_CTRL_(c)	((c) & 31)

enum ukey {
	UKEY_NONE = 0,
	UKEY_TAB = 9,
	UKEY_ENTER = 13,
	UKEY_ESC = 27,
	UKEY_BASE = 0x200000,	/* above every code point */
	UKEY_UP, UKEY_DOWN, UKEY_LEFT, UKEY_RIGHT,
	UKEY_PGUP, UKEY_PGDN, UKEY_HOME, UKEY_END,
	UKEY_INSERT, UKEY_DELETE, UKEY_BACKSPACE, UKEY_BACKTAB,
	UKEY_F1, UKEY_F2, UKEY_F3, UKEY_F4, UKEY_F5, UKEY_F6,
	UKEY_F7, UKEY_F8, UKEY_F9, UKEY_F10, UKEY_F11, UKEY_F12,
	UKEY_RESIZE,
	UKEY_MOUSE,		/* the event's mouse fields are valid */
	UKEY_EOF,		/* the terminal has gone */
};

enum mouse_button {
	MOUSE_LEFT = 1, MOUSE_MIDDLE, MOUSE_RIGHT, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN,
};

struct key_event {
	uint32_t key;		/* code point or enum ukey */
	enum mouse_button button;
	int y, x;		/* mouse: cell */
};

/* "j", "Space", "Enter", "F1", "C-f" …: as help shows it and scripts name it; UKEY_NONE if it is none. */
uint32_t key_parse(const char *name);

#endif
