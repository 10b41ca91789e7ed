/*
 * A program's output. However it is cut into pieces, the same rows come out; cells hold what may be
 * shown, no row is wider than the terminal was, the cursor is within it, memory within its bound. The
 * byte 0xff, which is in no text, changes the width to what the next one says.
 */
#include <locale.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "ui/vt.h"

#define BYTES_MAX 4096u
#define COLS 128u

static void check(const struct vt *vt, size_t cols, size_t widest)
{
	struct cell cells[COLS];

	FUZZ_ASSERT(vt_cursor(vt) < cols && vt_first(vt) < vt_end(vt));
	FUZZ_ASSERT(vt_bytes(vt) <= BYTES_MAX);
	for (uint64_t row = vt_first(vt); row < vt_end(vt); row++) {
		size_t width = vt_width(vt, row), n = vt_cells(vt, row, cells, COLS);
		FUZZ_ASSERT(width <= widest && n == width);
		for (size_t i = 0; i < n; i++) {
			if (!cells[i].ch) {
				FUZZ_ASSERT(i && wcwidth((wchar_t)cells[i - 1].ch) == 2);
				continue;
			}
			int w = wcwidth((wchar_t)cells[i].ch);
			FUZZ_ASSERT(w == 1 || (w == 2 && i + 1 < n && !cells[i + 1].ch));
		}
		char *text = vt_text(vt, row);
		FUZZ_ASSERT(fuzz_is_clean(text));
		free(text);
	}
}

static void compare(const struct vt *a, const struct vt *b)
{
	FUZZ_ASSERT(vt_first(a) == vt_first(b) && vt_end(a) == vt_end(b) && vt_cursor(a) == vt_cursor(b));
	FUZZ_ASSERT(vt_addressing(a) == vt_addressing(b) && vt_app_cursor(a) == vt_app_cursor(b));
	for (uint64_t row = vt_first(a); row < vt_end(a); row++) {
		CLEANUP_FREE char *x = vt_text(a, row);
		CLEANUP_FREE char *y = vt_text(b, row);
		FUZZ_ASSERT(!strcmp(x, y) && vt_wrapped(a, row) == vt_wrapped(b, row));
	}
}

static void run_vt(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };

	setlocale(LC_CTYPE, "C.UTF-8");
	size_t cols = 2 + fuzz_take(&in, 1) % (COLS - 1), widest = cols;
	struct vt *whole = vt_create(cols, BYTES_MAX), *pieces = vt_create(cols, BYTES_MAX);
	while (fuzz_more(&in)) {
		const uint8_t *end = memchr(in.at, 0xff, (size_t)(in.end - in.at));
		if (!end)
			end = in.end;
		vt_feed(whole, in.at, (size_t)(end - in.at));
		for (const uint8_t *p = in.at; p < end; p++)
			vt_feed(pieces, p, 1);
		in.at = end;
		if (!fuzz_more(&in))
			break;
		fuzz_take(&in, 1);
		cols = 2 + fuzz_take(&in, 1) % (COLS - 1);
		widest = cols > widest ? cols : widest;
		vt_set_cols(whole, cols);
		vt_set_cols(pieces, cols);
	}
	check(whole, cols, widest);
	compare(whole, pieces);
	vt_destroy(whole);
	vt_destroy(pieces);
}

const struct fuzz_target fuzz_vt = { "vt", 4096, run_vt };
