/* Packed rows in a bounded queue; see vt_lines.h. */
#include "ui/vt_lines.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"

/* From cell `start` on the row has this style. */
struct run {
	uint16_t start;
	style_t style;
};

struct vt_line {
	uint16_t width;		/* cells */
	uint16_t n_runs;
	bool wrapped;
	uint32_t n_text;	/* bytes */
	struct run runs[];	/* then the text; a row in plain style has no run */
};

/* What malloc and the queue's slot add to a row. */
#define LINE_OVERHEAD (16 + sizeof(struct vt_line *))

static char *line_text(const struct vt_line *line)
{
	return (char *)(line->runs + line->n_runs);
}

static size_t line_bytes(const struct vt_line *line)
{
	return sizeof(*line) + line->n_runs * sizeof(line->runs[0]) + line->n_text + LINE_OVERHEAD;
}

void vt_lines_init(struct vt_lines *lines, size_t max_bytes)
{
	memset(lines, 0, sizeof(*lines));
	lines->max_bytes = max_bytes;
}

static struct vt_line **line_at(const struct vt_lines *lines, size_t k)
{
	return &lines->ring[(lines->head + k) & (lines->cap - 1)];
}

void vt_lines_deinit(struct vt_lines *lines)
{
	for (size_t k = 0; k < lines->n; k++)
		free(*line_at(lines, k));
	free(lines->ring);
	memset(lines, 0, sizeof(*lines));
}

static void drop_oldest(struct vt_lines *lines)
{
	struct vt_line *line = *line_at(lines, 0);

	lines->bytes -= line_bytes(line);
	free(line);
	lines->head = (lines->head + 1) & (lines->cap - 1);
	lines->n--;
	lines->dropped++;
}

static void grow(struct vt_lines *lines)
{
	size_t cap = lines->cap ? lines->cap * 2 : 64;
	struct vt_line **ring = xcalloc(cap, sizeof(*ring));

	for (size_t k = 0; k < lines->n; k++)
		ring[k] = *line_at(lines, k);
	free(lines->ring);
	lines->ring = ring;
	lines->head = 0;
	lines->cap = cap;
}

static struct vt_line *pack(const struct cell *cells, size_t n, bool wrapped)
{
	size_t n_runs = 0, n_text = 0;
	style_t style = STYLE_TEXT;
	char utf8[4];

	for (size_t i = 0; i < n; i++) {
		if (cells[i].style != style) {
			style = cells[i].style;
			n_runs++;
		}
		if (cells[i].ch)
			n_text += vt_encode(cells[i].ch, utf8);
	}

	struct vt_line *line = xmalloc(sizeof(*line) + n_runs * sizeof(line->runs[0]) + n_text);
	line->width = (uint16_t)n;
	line->n_runs = (uint16_t)n_runs;
	line->wrapped = wrapped;
	line->n_text = (uint32_t)n_text;
	char *text = line_text(line);
	struct run *run = line->runs;
	style = STYLE_TEXT;
	for (size_t i = 0; i < n; i++) {
		if (cells[i].style != style) {
			style = cells[i].style;
			*run++ = (struct run){ .start = (uint16_t)i, .style = style };
		}
		if (cells[i].ch) {
			size_t len = vt_encode(cells[i].ch, utf8);
			memcpy(text, utf8, len);
			text += len;
		}
	}
	return line;
}

void vt_lines_push(struct vt_lines *lines, const struct cell *cells, size_t n, bool wrapped)
{
	struct vt_line *line = pack(cells, n, wrapped);
	size_t bytes = line_bytes(line);

	while (lines->n && lines->bytes + bytes > lines->max_bytes)
		drop_oldest(lines);
	if (lines->n == lines->cap)
		grow(lines);
	*line_at(lines, lines->n) = line;
	lines->n++;
	lines->bytes += bytes;
}

size_t vt_lines_width(const struct vt_lines *lines, size_t k)
{
	return (*line_at(lines, k))->width;
}

bool vt_lines_wrapped(const struct vt_lines *lines, size_t k)
{
	return (*line_at(lines, k))->wrapped;
}

size_t vt_lines_cells(const struct vt_lines *lines, size_t k, struct cell *cells, size_t max)
{
	const struct vt_line *line = *line_at(lines, k);
	const char *text = line_text(line), *end = text + line->n_text;
	const struct run *run = line->runs, *runs_end = run + line->n_runs;
	style_t style = STYLE_TEXT;
	size_t n = line->width < max ? line->width : max;

	for (size_t i = 0; i < n;) {
		uint32_t ch;
		size_t len = text_utf8_decode(text, (size_t)(end - text), &ch);
		if (!len)
			return i;
		text += len;
		for (int w = vt_char_width(ch); w > 0 && i < n; w--, i++) {
			while (run < runs_end && run->start <= i)
				style = run++->style;
			cells[i] = (struct cell){ .ch = ch, .style = style };
			ch = 0;
		}
	}
	return n;
}

/* ---- code points ---- */

int vt_char_width(uint32_t ch)
{
	if (ch >= 0x20 && ch < 0x7f)
		return 1;
	if (ch == 0xb7)
		return 1;	/* our replacement, in any locale */

	/* what may reach a terminal is decided in one place, and that one takes text */
	char utf8[5] = { 0 }, safe[5];
	vt_encode(ch, utf8);
	memcpy(safe, utf8, sizeof(safe));
	text_sanitize(safe);
	if (memcmp(utf8, safe, sizeof(safe)) != 0)
		return 0;
	int width = wcwidth((wchar_t)ch);
	return width == 1 || width == 2 ? width : 0;
}

size_t vt_encode(uint32_t ch, char buf[4])
{
	if (ch < 0x80) {
		buf[0] = (char)ch;
		return 1;
	}
	if (ch < 0x800) {
		buf[0] = (char)(0xc0 | ch >> 6);
		buf[1] = (char)(0x80 | (ch & 0x3f));
		return 2;
	}
	if (ch < 0x10000) {
		buf[0] = (char)(0xe0 | ch >> 12);
		buf[1] = (char)(0x80 | (ch >> 6 & 0x3f));
		buf[2] = (char)(0x80 | (ch & 0x3f));
		return 3;
	}
	buf[0] = (char)(0xf0 | ch >> 18);
	buf[1] = (char)(0x80 | (ch >> 12 & 0x3f));
	buf[2] = (char)(0x80 | (ch >> 6 & 0x3f));
	buf[3] = (char)(0x80 | (ch & 0x3f));
	return 4;
}
