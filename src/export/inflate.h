/*
 * Gzipped bytes unpacked, within a bound. Pure.
 */
#ifndef HEAPTOP_EXPORT_INFLATE_H
#define HEAPTOP_EXPORT_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Does it begin like gzip (RFC 1952)? */
bool inflate_is_gzip(const uint8_t *bytes, size_t len);
/* All members of a gzip file; at most `max` bytes come out. The caller frees *ret. */
struct err *inflate_gzip(const uint8_t *bytes, size_t len, size_t max, uint8_t **ret,
			 size_t *ret_len);

#endif
