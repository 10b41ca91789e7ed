/*
 * Numbers in fixed widths: right aligned, the same number of columns whatever the value, so that
 * nothing jitters from one refresh to the next. On top of base/text.h's formats. No locale.
 */
#ifndef HEAPTOP_UI_FORMAT_H
#define HEAPTOP_UI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

#define FORMAT_BUF 40

/* Bytes in `width` (>= 5) columns: "412.3M", " 1023K", "     0". Width 1: as wide as needed. */
const char *format_bytes(char buf[FORMAT_BUF], uint64_t bytes, int width);
/* Counts: " 1.21M". */
const char *format_count(char buf[FORMAT_BUF], uint64_t n, int width);
/* Signed bytes: " +61.0M", "   -3.2M", "     0". `plus`: put a + before growth. */
const char *format_delta(char buf[FORMAT_BUF], double bytes, int width, bool plus);
/* part of whole with one decimal in `width` (>= 5): " 34.0", "100.0"; blank if whole is 0. */
const char *format_percent(char buf[FORMAT_BUF], double part, double whole, int width);
/* The same with its sign, as wide as needed: "34.0%"; "0%" of nothing. */
const char *format_share(char buf[FORMAT_BUF], double part, double whole);
/* A report value of its kind (bytes or count). */
const char *format_value(char buf[FORMAT_BUF], double value, enum report_value kind, int width);
/* Relative standard error se / value: " ±6%", "±31%", " >±1" hundred beyond; blank if exact. */
const char *format_error(char buf[FORMAT_BUF], double se, double value, bool unicode);
/* double to uint64_t without undefined behaviour: NaN and negatives are 0. */
uint64_t format_clamp(double v);

#endif
