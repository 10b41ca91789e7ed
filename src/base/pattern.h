/*
 * Patterns that a user types: POSIX extended regular expressions, made by regcomp(3) once it is sure that
 * glibc gets through with them. Left to itself glibc 2.36 copies what is repeated, so that x{255}{255}{255}
 * takes all memory there is, overruns its stack in deep parentheses, and takes exponential time over back
 * references (which POSIX has none of here). Any thread.
 */
#ifndef HEAPTOP_BASE_PATTERN_H
#define HEAPTOP_BASE_PATTERN_H

#include <regex.h>
#include <stdbool.h>

#define PATTERN_MAX_LEN 1000u	/* bytes */
#define PATTERN_MAX_DEPTH 30u	/* parentheses within one another */
#define PATTERN_MAX_SIZE 10000u	/* characters when all repetitions are written out */
#define PATTERN_MAX_NESTED 6u	/* repetitions within one another: ((a*)*)*, or a*** */
#define PATTERN_MAX_INPUT 8192u	/* bytes of a text that are looked at: hostile names are long */

struct err;

/* Case counts not if `icase`. ERR_BAD_INPUT says what is wrong, without the pattern; else regfree() *ret. */
struct err *pattern_compile(const char *pattern, bool icase, regex_t *ret);
/* Smart case: case doesn't count in a pattern without capitals; those of classes like \W aren't any. */
bool pattern_ignores_case(const char *pattern);
/* Is there a match in the text, as far as it is looked at? */
bool pattern_matches(const regex_t *re, const char *text);

#endif
