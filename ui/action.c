/* The key table; see action.h. */
#include "ui/action.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ui/key.h"

#define ROWS (ON(UI_SITES) | ON(UI_THREADS) | ON(UI_MODULES))
#define TREES (ON(UI_TREE) | ON(UI_FLAME))
#define LISTS (ROWS | TREES)

/* Not constant for action_bind alone. */
static struct action_def defs[ACTIONS] = {
	[ACT_SITES] = { "1", "sites", "Sites: who holds the memory, a flat list", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_TREE] = { "2", "tree", "Tree: the calls that lead there", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_FLAME] = { "3", "flame", "Flame: the same as widths", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_TIME] = { "4", "time", "Time: live bytes, RSS and allocation rate over the whole session", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_THREADS] = { "5", "threads", "Threads: who allocates", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_MODULES] = { "6", "modules", "Modules: which program or library", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_OUTPUT] = { "7", "output", "Output: the program's terminal", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_NEXT_SCREEN] = { "Tab", "next-screen", "Next screen", "Screens", EVERYWHERE, NULL, 0 },
	[ACT_PREVIOUS_SCREEN] = { "S-Tab", "previous-screen", "Previous screen", "Screens", EVERYWHERE, NULL, 0 },

	[ACT_UP] = { "Up k", "up", "Up", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_DOWN] = { "Down j", "down", "Down", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_LEFT] = { "Left h", "left", "Lists: scroll the names; Tree: fold, parent; Flame: sibling; Time: earlier", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_RIGHT] = { "Right l", "right", "Lists: scroll the names; Tree: unfold, child; Flame: sibling; Time: later", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_PAGE_UP] = { "PgUp C-b", "page-up", "A page up", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_PAGE_DOWN] = { "PgDn C-f", "page-down", "A page down", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_HALF_UP] = { "C-u", "half-up", "Half a page up", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_HALF_DOWN] = { "C-d", "half-down", "Half a page down", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_TOP] = { "g Home", "top", "First row; Time: the start", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_BOTTOM] = { "G End", "bottom", "Last row; Time: now", "Moving", EVERYWHERE, NULL, 0 },
	[ACT_OPEN] = { "Enter", "open", "Sites: Detail, again: all over; Tree: fold or unfold; Flame: zoom; Threads, Modules: only this one", "Moving", LISTS, "Open", 5 },
	[ACT_BACK] = { "Esc Backspace", "back", "Back: close, unzoom one level, forget the search", "Moving", EVERYWHERE, NULL, 0 },

	[ACT_VALUE] = { "v", "value", "Next value: live bytes, blocks, rates, allocated, temporary, peak, in memory", "Values and names", LISTS, "Value", 4 },
	[ACT_VALUE_BACK] = { "V", "value-back", "Previous value", "Values and names", LISTS, NULL, 0 },
	[ACT_SORT] = { "s F6", "sort", "Menu of values to sort by (the same again reverses)", "Values and names", LISTS, "Sort", 3 },
	[ACT_SORT_LEFT] = { "<", "sort-left", "Sort by the column to the left", "Values and names", ROWS, NULL, 0 },
	[ACT_SORT_RIGHT] = { ">", "sort-right", "Sort by the column to the right", "Values and names", ROWS, NULL, 0 },
	[ACT_REVERSE] = { "R", "reverse", "Reverse the order", "Values and names", ROWS, NULL, 0 },
	[ACT_RESORT] = { "=", "resort", "Sort again now (rows rest for 3 s after a key; Flame keeps its order)", "Values and names", LISTS, NULL, 0 },
	[ACT_NAMES] = { "w", "names", "Names short, full, or as the linker has them", "Values and names", LISTS, "Names", 8 },
	[ACT_GROUP] = { "b", "group", "Rows by site, function, stack, module or thread", "Values and names", ON(UI_SITES), "Group", 9 },
	[ACT_USER] = { "u", "user", "Only the program's own code: without frames of system libraries", "Values and names", TREES, "User", 9 },
	[ACT_FOLLOW] = { "F", "follow", "The cursor follows its row, or stays where it is", "Values and names", ROWS, NULL, 0 },
	[ACT_DETAILS] = { "x", "details", "Detail of the selected row: stack, source, sizes, ages, threads; again: all over", "Values and names", LISTS, NULL, 0 },

	[ACT_MARK] = { "m", "mark", "Set a mark: what changes from here on is shown beside", "Comparing", EVERYWHERE, "Mark", 5 },
	[ACT_MARKS] = { "M", "marks", "List of marks: choose which to compare with", "Comparing", EVERYWHERE, NULL, 0 },
	[ACT_SINCE] = { "D", "since", "Order by what has changed since the mark; again: as before", "Comparing", LISTS, NULL, 0 },

	[ACT_FIND] = { "/", "find", "Find while typing (extended regex, smart case)", "Find and filter", LISTS, "Find", 1 },
	[ACT_FIND_NEXT] = { "n", "find-next", "Next match", "Find and filter", LISTS, NULL, 0 },
	[ACT_FIND_PREVIOUS] = { "N", "find-previous", "Previous match", "Find and filter", LISTS, NULL, 0 },
	[ACT_SAME] = { "#", "same", "Find the selected function everywhere", "Find and filter", LISTS, NULL, 0 },
	[ACT_FILTER] = { "\\ F4 &", "filter", "Only stacks that match (a|b; !re excludes)", "Find and filter", LISTS, "Filter", 2 },
	[ACT_CLEAR_FILTER] = { "Del", "clear-filter", "No filter, no choice of thread or module", "Find and filter", EVERYWHERE, NULL, 0 },

	[ACT_THREAD] = { "t", "thread", "Only blocks of the selected thread; again: of all", "Find and filter", EVERYWHERE, "Thread", 8 },
	[ACT_THREAD_MENU] = { "T F5", "choose-threads", "List of threads: choose one or several", "Find and filter", EVERYWHERE, NULL, 0 },
	[ACT_MODULE] = { "d", "module", "Only sites in the selected row's module; again: all", "Find and filter", LISTS, "Module", 9 },

	[ACT_INVERT] = { "i", "invert", "Turn the call tree around: from the sites to their callers", "Tree and Flame", TREES, "Invert", 6 },
	[ACT_EXPAND] = { "e +", "expand", "Unfold the row", "Tree and Flame", ON(UI_TREE), NULL, 0 },
	[ACT_EXPAND_ALL] = { "E *", "expand-all", "Unfold everything below the row", "Tree and Flame", ON(UI_TREE), NULL, 0 },
	[ACT_COLLAPSE] = { "c -", "collapse", "Fold the row", "Tree and Flame", ON(UI_TREE), NULL, 0 },
	[ACT_COLLAPSE_ALL] = { "C", "collapse-all", "Fold everything", "Tree and Flame", ON(UI_TREE), NULL, 0 },
	[ACT_CHAINS] = { "f", "chains", "Chains of single calls in one row, or a row each", "Tree and Flame", ON(UI_TREE), NULL, 0 },
	[ACT_FLIP] = { "o", "flip", "Root at the top or at the bottom", "Tree and Flame", ON(UI_FLAME), "Flip", 9 },
	[ACT_UNZOOM] = { "0", "unzoom", "All of it again", "Tree and Flame", ON(UI_FLAME), "Unzoom", 7 },

	[ACT_FREEZE] = { "Space z Z", "freeze", "Freeze the display; collection goes on", "Time", EVERYWHERE, "Freeze", 2 },
	[ACT_PAUSE] = { "X", "pause", "Collection in the program off or on", "Time", EVERYWHERE, NULL, 0 },
	[ACT_SLOWER] = { "[", "slower", "Refresh less often (up to 10 s)", "Time", EVERYWHERE, NULL, 0 },
	[ACT_FASTER] = { "]", "faster", "Refresh more often (down to 0.1 s)", "Time", EVERYWHERE, NULL, 0 },

	[ACT_SOURCE] = { "a", "source", "Source: the file of the selected function, what each line holds beside it", "Source and files", LISTS, NULL, 0 },
	[ACT_EDITOR] = { "O", "editor", "The same file and line in $VISUAL or $EDITOR", "Source and files", LISTS, NULL, 0 },
	[ACT_COPY] = { "y", "copy", "Copy the selected function's name and place", "Source and files", LISTS, NULL, 0 },
	[ACT_COPY_STACK] = { "Y", "copy-stack", "Copy its stack", "Source and files", LISTS, NULL, 0 },
	[ACT_PRINT] = { "P", "print", "Write a text report to a file", "Source and files", EVERYWHERE, NULL, 0 },

	[ACT_SETUP] = { "F2 ,", "setup", "Setup: theme, graph, mouse, refresh, columns; saved if you like", "Other", EVERYWHERE, NULL, 0 },
	[ACT_SAVE] = { "S", "save", "Save a snapshot", "Other", EVERYWHERE, "Save", 10 },
	[ACT_TYPE] = { "I", "type", "Type into the program; C-] ends it", "Other", EVERYWHERE, NULL, 0 },
	[ACT_PROCESSES] = { "p", "processes", "Several processes: which to show; one attached to: another", "Other", EVERYWHERE, NULL, 0 },
	[ACT_SIGNAL] = { "K", "signal", "Send the program a signal: choose which", "Other", EVERYWHERE, NULL, 0 },
	[ACT_HELP] = { "F1 ?", "help", "This help", "Other", EVERYWHERE, "Help", 0 },
	[ACT_LOG] = { "!", "log", "Drops, blind spots, entry points not hooked, messages", "Other", EVERYWHERE, NULL, 0 },
	[ACT_MEMORY] = { "U", "memory", "Memory: what RSS is made of, and what of the live bytes is in it", "Other", EVERYWHERE, NULL, 0 },
	[ACT_COMMAND] = { ":", "command", "Command line: any action's name, or sort, find, filter, save-display …", "Other", EVERYWHERE, NULL, 0 },
	[ACT_GRAPH] = { "r", "graph", "Rows of the graph: as fits, 0, 1, 2, 3", "Other", EVERYWHERE, NULL, 0 },
	[ACT_MOUSE] = { "%", "mouse", "Mouse capture on or off (Shift-drag selects text with it on)", "Other", EVERYWHERE, NULL, 0 },
	[ACT_REDRAW] = { "C-l", "redraw", "Draw everything again", "Other", EVERYWHERE, NULL, 0 },
	[ACT_SUSPEND] = { "C-z", "suspend", "Suspend", "Other", EVERYWHERE, NULL, 0 },
	[ACT_QUIT] = { "q F10 C-c", "quit", "Quit (asks if a launched program still runs)", "Other", EVERYWHERE, "Quit", 0 },
};

const struct action_def *action_def(enum action a)
{
	return a > ACT_NONE && a < ACTIONS ? &defs[a] : NULL;
}

/* Step through "Up k": the next name into buf; NULL at the end. */
static const char *next_key(const char *keys, char buf[16])
{
	while (*keys == ' ')
		keys++;
	size_t n = strcspn(keys, " ");
	if (!n)
		return NULL;
	if (n > 15)
		n = 15;
	memcpy(buf, keys, n);
	buf[n] = '\0';
	return keys + n;
}

enum action action_of_key(uint32_t key, enum ui_view screen)
{
	if (key == UKEY_NONE)
		return ACT_NONE;
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++) {
		char name[16];
		if (!defs[a].keys || !(defs[a].screens & ON(screen)))
			continue;
		for (const char *k = defs[a].keys; (k = next_key(k, name)); )
			if (key_parse(name) == key)
				return a;
	}
	return ACT_NONE;
}

enum action action_parse(const char *name)
{
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++)
		if (defs[a].name && !strcmp(defs[a].name, name))
			return a;
	return ACT_NONE;
}

/* Leave out the keys that are `key`; `first` (or NULL) comes before all. */
static void set_keys(enum action a, uint32_t key, const char *first)
{
	static char bound[ACTIONS][80];
	char keys[sizeof(bound[0])] = "", name[16];

	if (first)
		snprintf(keys, sizeof(keys), "%s", first);
	for (const char *k = defs[a].keys; (k = next_key(k, name)); ) {
		size_t n = strlen(keys);
		if (key_parse(name) != key && n + strlen(name) + 2 < sizeof(keys))
			snprintf(keys + n, sizeof(keys) - n, "%s%s", n ? " " : "", name);
	}
	strcpy(bound[a], keys);
	defs[a].keys = bound[a];
}

bool action_bind(const char *key, const char *action)
{
	enum action to = action_parse(action);
	uint32_t code = key_parse(key);

	if (code == UKEY_NONE || strlen(key) > 15 || (to == ACT_NONE && strcmp(action, "none")))
		return false;
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++)
		if (a != to && (to == ACT_NONE || defs[a].screens & defs[to].screens))
			set_keys(a, code, NULL);
	if (to != ACT_NONE)
		set_keys(to, code, key);
	return true;
}

const char *action_first_key(enum action a, char *buf)
{
	if (!action_def(a) || !next_key(defs[a].keys, buf))
		buf[0] = '\0';
	return buf;
}

void ui_print_keys(void)
{
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++)
		printf("%s\t%s\t%s\n", defs[a].keys, defs[a].help, defs[a].name);
}
