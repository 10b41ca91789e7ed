/*
 * Strings that are wanted many times and for long (functions, source paths): one copy of each,
 * sanitised for the terminal, alive as long as the table. Any thread.
 */
#ifndef HEAPTOP_SYMBOL_STRINGS_H
#define HEAPTOP_SYMBOL_STRINGS_H

#include <stddef.h>

struct strings;

/* Longer ones are cut: no real name comes near it. */
#define STRINGS_MAX 65536

struct strings *strings_create(void);
void strings_destroy(struct strings *strings);	/* accepts NULL */

/* The table's copy of s. Equal strings give the same pointer. */
const char *strings_intern(struct strings *strings, const char *s);

#endif
