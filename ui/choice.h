/*
 * Only some threads' blocks, only one module's sites: choices that hold on all screens. Threads are chosen
 * where blocks are counted, so a view that shows the choice comes a moment later; modules are a filter of
 * the report's.
 */
#ifndef HEAPTOP_UI_CHOICE_H
#define HEAPTOP_UI_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

struct report_site;
struct ui;
struct view;

/* `which` as for heap_choose_threads; NULL: all. False, and said in the status line: that can't be. */
bool choice_set_thread(struct ui *ui, const char *which);
/* NULL: all. */
void choice_set_module(struct ui *ui, const char *module);
/* Why there are none to choose from, or to list. */
const char *choice_no_threads(const struct ui *ui);
/* This one alone, or, if it is that already, all. */
void choice_toggle_thread(struct ui *ui, const struct report_site *row);
void choice_toggle_module(struct ui *ui, const char *module);
/* The same for what is selected on the screen shown. */
void choice_thread(struct ui *ui);
void choice_module(struct ui *ui);
/* All threads, all modules. */
void choice_clear(struct ui *ui);

/* Is it the view that was waited for? */
bool choice_shown(const struct ui *ui, const struct view *view);
/* "thr:io-1  mod:libpng16.so.16" for the tabs; "" if all is shown. */
void choice_text(const struct ui *ui, char *buf, size_t len);

/* What chooses this thread: its id, or for several of one name that name, taken literally; malloc'ed. */
char *choice_of_thread(const struct report_site *row);

/* ---- threadmenu.c ---- */
void thread_menu_open(struct ui *ui);

#endif
