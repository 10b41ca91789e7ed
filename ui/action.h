/*
 * The one key table: every action with its keys, its name for the command line and the
 * configuration, its help and where it works. Help, footer, `:` commands, --help-keys and
 * the man page all come from it.
 */
#ifndef HEAPTOP_UI_ACTION_H
#define HEAPTOP_UI_ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/ui.h"

enum action {
	ACT_NONE,
	/* screens */
	ACT_SITES, ACT_TREE, ACT_FLAME, ACT_TIME, ACT_THREADS, ACT_MODULES, ACT_OUTPUT, ACT_NEXT_SCREEN, ACT_PREVIOUS_SCREEN,
	/* moving */
	ACT_UP, ACT_DOWN, ACT_LEFT, ACT_RIGHT, ACT_PAGE_UP, ACT_PAGE_DOWN, ACT_HALF_UP, ACT_HALF_DOWN,
	ACT_TOP, ACT_BOTTOM, ACT_OPEN, ACT_BACK,
	/* what is shown */
	ACT_VALUE, ACT_VALUE_BACK, ACT_SORT, ACT_SORT_LEFT, ACT_SORT_RIGHT, ACT_REVERSE, ACT_RESORT,
	ACT_FIND, ACT_FIND_NEXT, ACT_FIND_PREVIOUS, ACT_SAME, ACT_FILTER, ACT_CLEAR_FILTER, ACT_THREAD,
	ACT_THREAD_MENU, ACT_MODULE, ACT_NAMES, ACT_GROUP, ACT_USER, ACT_FOLLOW, ACT_DETAILS,
	/* comparing */
	ACT_MARK, ACT_MARKS, ACT_SINCE,
	/* tree, flame */
	ACT_INVERT, ACT_EXPAND, ACT_EXPAND_ALL, ACT_COLLAPSE, ACT_COLLAPSE_ALL, ACT_CHAINS,
	ACT_FLIP, ACT_UNZOOM,
	/* time */
	ACT_FREEZE, ACT_PAUSE, ACT_SLOWER, ACT_FASTER,
	/* the rest */
	ACT_SOURCE, ACT_EDITOR, ACT_COPY, ACT_COPY_STACK, ACT_PRINT, ACT_SETUP,
	ACT_SAVE, ACT_TYPE, ACT_PROCESSES, ACT_SIGNAL, ACT_HELP, ACT_LOG, ACT_MEMORY, ACT_COMMAND, ACT_GRAPH, ACT_MOUSE, ACT_REDRAW,
	ACT_SUSPEND, ACT_QUIT,
	ACTIONS
};

#define ON(view)	(1u << (view))
#define EVERYWHERE	(~0u)

struct action_def {
	const char *keys;	/* key names, blanks between; first is the one shown */
	const char *name;	/* "find-next" */
	const char *help;	/* one line */
	const char *group;	/* heading in help */
	unsigned screens;	/* ON(UI_SITES) | … */
	const char *hint;	/* footer label, or NULL */
	uint8_t rank;		/* footer: lower stays longer */
};

const struct action_def *action_def(enum action a);
/* What a key does on a screen. */
enum action action_of_key(uint32_t key, enum ui_view screen);
/* By its name; ACT_NONE if there is none. */
enum action action_parse(const char *name);
/*
 * The user's own key for an action, or that it does nothing ("none"): from then on it does nothing else. For settings,
 * before a screen opens; the table has it from there on. False: no such key, or no such action.
 */
bool action_bind(const char *key, const char *action);
/* "F1", the first of its keys. buf >= 16 bytes. */
const char *action_first_key(enum action a, char *buf);

#endif
