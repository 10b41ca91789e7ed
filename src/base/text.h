/*
 * Text: the one sanitiser for foreign strings, parsing of sizes and times, and the number
 * formats every screen, batch and report share. No locale dependence: '.' is the decimal
 * point. Pure functions, any thread.
 */
#ifndef HEAPTOP_BASE_TEXT_H
#define HEAPTOP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Make a foreign string (symbol, path, command line, thread name) safe for a terminal, in
 * place: C0 and C1 control characters, DEL, bidirectional overrides and bytes that are not
 * UTF-8 become '?' (one a byte). The length never grows.
 */
void text_sanitize(char *s);

/*
 * Decode one UTF-8 code point of at most `len` bytes at s. Returns the number of bytes used
 * (1-4) and the code point in *ret, or 0 for an invalid or cut sequence (RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF).
 */
size_t text_utf8_decode(const char *s, size_t len, uint32_t *ret);

/* "512K", "4k", "1.5M", "0": IEC units K M G T; bytes in *ret. False if malformed or too big. */
bool text_parse_size(const char *s, uint64_t *ret);

/* "500ms", "30s", "5m", "1.5h", a plain number is seconds; seconds in *ret. */
bool text_parse_time(const char *s, double *ret);

#define TEXT_NUMBER 32	/* a buffer every format below fits in */

/*
 * Bytes in IEC units: plain below 1024, from K upwards always one decimal: "0", "1023",
 * "1.0K", "84.1K", "412.3M".
 */
const char *text_bytes(char buf[TEXT_NUMBER], uint64_t bytes);

/* Counts in steps of 1000: "0", "999", "14.6k", "1.21M", "12.0M". */
const char *text_count(char buf[TEXT_NUMBER], uint64_t n);

/* Seconds as "H:MM:SS" from an hour on, else "M:SS". */
const char *text_clock(char buf[TEXT_NUMBER], double seconds);

#endif
