/* The screen without a terminal, driven by a file: see script.c for the language. */
#ifndef HEAPTOP_UI_SCRIPT_H
#define HEAPTOP_UI_SCRIPT_H

struct err;
struct ui;

/* Run the script to its end, or until the user's keys have left (ui->leaving). */
struct err *script_run(struct ui *ui, const char *path);

#endif
