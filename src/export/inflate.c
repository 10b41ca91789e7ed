/* Unpacking gzip; see inflate.h. */
#include "export/inflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/err.h"

bool inflate_is_gzip(const uint8_t *bytes, size_t len)
{
	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

struct err *inflate_gzip(const uint8_t *bytes, size_t len, size_t max, uint8_t **ret,
			 size_t *ret_len)
{
	z_stream z = { .next_in = (uint8_t *)bytes };
	uint8_t *out = NULL;
	size_t n = 0, cap = 0;
	struct err *err = NULL;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return err_new(ERR_OTHER, "unpacking: out of memory");
	for (;;) {
		size_t used = (size_t)(z.next_in - bytes);
		if (n == cap) {
			size_t want = cap ? cap * 2 : 65536;
			if (want > max)
				want = max;
			uint8_t *bigger = want > cap ? realloc(out, want) : NULL;
			if (!bigger) {
				err = err_new(ERR_BAD_INPUT, "more than %zu bytes when unpacked", cap);
				break;
			}
			out = bigger;
			cap = want;
		}
		z.avail_in = len - used > UINT_MAX ? UINT_MAX : (uInt)(len - used);
		size_t room = cap - n;
		z.avail_out = room > UINT_MAX ? UINT_MAX : (uInt)room;
		z.next_out = out + n;
		int code = inflate(&z, Z_NO_FLUSH);
		n = (size_t)(z.next_out - out);
		if (code == Z_STREAM_END) {
			used = (size_t)(z.next_in - bytes);
			if (!inflate_is_gzip(bytes + used, len - used))
				break;
			inflateReset(&z);
		} else if (code == Z_BUF_ERROR && n < cap) {
			err = err_new(ERR_BAD_INPUT, "the compressed data is cut off");
			break;
		} else if (code != Z_OK && code != Z_BUF_ERROR) {
			err = err_new(ERR_BAD_INPUT, "the compressed data is damaged");
			break;
		}
	}
	inflateEnd(&z);
	if (err) {
		free(out);
		return err;
	}
	*ret = out;
	*ret_len = n;
	return NULL;
}
