/* See prompt.h. */
#include "ui/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void prompt_open(struct prompt *p, enum prompt_kind kind, const char *text)
{
	p->kind = kind;
	if (!text)
		text = "";
	p->len = strnlen(text, PROMPT_MAX - 1);
	memcpy(p->text, text, p->len);
	p->text[p->len] = '\0';
	p->at = p->len;
	memcpy(p->before, p->text, p->len + 1);
	p->recall = p->nhistory[kind];
}

void prompt_deinit(struct prompt *p)
{
	for (int k = 0; k < PROMPT_KINDS; k++)
		for (size_t i = 0; i < p->nhistory[k]; i++)
			free(p->history[k][i]);
	memset(p, 0, sizeof(*p));
}

static void remember(struct prompt *p)
{
	char **lines = p->history[p->kind];
	size_t *n = &p->nhistory[p->kind];

	if (!p->len || (*n && !strcmp(lines[*n - 1], p->text)))
		return;
	if (*n == PROMPT_HISTORY) {
		free(lines[0]);
		memmove(lines, lines + 1, (PROMPT_HISTORY - 1) * sizeof(*lines));
		--*n;
	}
	lines[(*n)++] = xstrdup(p->text);
}

static size_t previous(const struct prompt *p, size_t at)
{
	while (at > 0 && ((unsigned char)p->text[--at] & 0xc0) == 0x80)
		;
	return at;
}

static size_t next(const struct prompt *p, size_t at)
{
	if (at < p->len)
		at++;
	while (at < p->len && ((unsigned char)p->text[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static enum prompt_result cut(struct prompt *p, size_t from, size_t to)
{
	if (from == to)
		return PROMPT_SAME;
	memmove(p->text + from, p->text + to, p->len - to + 1);
	p->len -= to - from;
	p->at = from;
	return PROMPT_CHANGED;
}

static enum prompt_result insert(struct prompt *p, uint32_t key)
{
	char bytes[4];
	size_t n;

	if (key < 0x80) {
		bytes[0] = key;
		n = 1;
	} else if (key < 0x800) {
		bytes[0] = 0xc0 | key >> 6;
		bytes[1] = 0x80 | (key & 0x3f);
		n = 2;
	} else if (key < 0x10000) {
		bytes[0] = 0xe0 | key >> 12;
		bytes[1] = 0x80 | (key >> 6 & 0x3f);
		bytes[2] = 0x80 | (key & 0x3f);
		n = 3;
	} else {
		bytes[0] = 0xf0 | key >> 18;
		bytes[1] = 0x80 | (key >> 12 & 0x3f);
		bytes[2] = 0x80 | (key >> 6 & 0x3f);
		bytes[3] = 0x80 | (key & 0x3f);
		n = 4;
	}
	if (p->len + n >= PROMPT_MAX)
		return PROMPT_SAME;
	memmove(p->text + p->at + n, p->text + p->at, p->len - p->at + 1);
	memcpy(p->text + p->at, bytes, n);
	p->len += n;
	p->at += n;
	return PROMPT_CHANGED;
}

static enum prompt_result recall(struct prompt *p, bool back)
{
	size_t n = p->nhistory[p->kind];

	if (back ? p->recall == 0 : p->recall >= n)
		return PROMPT_SAME;
	p->recall += back ? -1 : 1;
	const char *text = p->recall < n ? p->history[p->kind][p->recall] : "";
	p->len = p->at = strlen(text);
	memcpy(p->text, text, p->len + 1);
	return PROMPT_CHANGED;
}

enum prompt_result prompt_key(struct prompt *p, uint32_t key)
{
	switch (key) {
	case UKEY_ENTER:
	case '\n':
		remember(p);
		p->kind = PROMPT_NONE;
		return PROMPT_DONE;
	case UKEY_ESC:
	case KEY_CTRL_('c'):
	case KEY_CTRL_('g'):
		p->kind = PROMPT_NONE;
		return PROMPT_CANCELLED;
	case UKEY_LEFT:
	case KEY_CTRL_('b'):
		p->at = previous(p, p->at);
		return PROMPT_SAME;
	case UKEY_RIGHT:
	case KEY_CTRL_('f'):
		p->at = next(p, p->at);
		return PROMPT_SAME;
	case UKEY_HOME:
	case KEY_CTRL_('a'):
		p->at = 0;
		return PROMPT_SAME;
	case UKEY_END:
	case KEY_CTRL_('e'):
		p->at = p->len;
		return PROMPT_SAME;
	case UKEY_BACKSPACE:
	case 8:
	case 127:
		if (!p->len) {
			p->kind = PROMPT_NONE;
			return PROMPT_CANCELLED;
		}
		return cut(p, previous(p, p->at), p->at);
	case UKEY_DELETE:
		return cut(p, p->at, next(p, p->at));
	case KEY_CTRL_('u'):
		return cut(p, 0, p->at);
	case KEY_CTRL_('k'):
		return cut(p, p->at, p->len);
	case KEY_CTRL_('w'): {
		size_t from = p->at;
		while (from && p->text[from - 1] == ' ')
			from--;
		while (from && p->text[from - 1] != ' ')
			from--;
		return cut(p, from, p->at);
	}
	case UKEY_UP:
		return recall(p, true);
	case UKEY_DOWN:
		return recall(p, false);
	default:
		if (key >= 0x20 && key != 127 && key <= 0x10ffff && !(key >= 0xd800 && key < 0xe000))
			return insert(p, key);
		return PROMPT_SAME;
	}
}

void prompt_draw(const struct prompt *p, struct canvas *c, int y, int x, int cols, const char *hint)
{
	static const char *const signs[] = {
		[PROMPT_FIND] = "/", [PROMPT_FILTER] = "\\", [PROMPT_COMMAND] = ":",
	};
	char head[PROMPT_MAX];

	canvas_clip(c, y, x, 1, cols);
	canvas_fill(c, y, x, cols, STYLE_PROMPT, ' ');
	memcpy(head, p->text, p->at);
	head[p->at] = '\0';
	int column = canvas_width(c, head);
	/* the cursor stays inside: scroll the text */
	int shift = column + 2 > cols ? column + 2 - cols : 0;
	canvas_put(c, y, x + 1 - shift, STYLE_PROMPT, p->text);
	canvas_put(c, y, x, STYLE_PROMPT | STYLE_STRONG, signs[p->kind]);
	canvas_restyle(c, y, x + 1 + column - shift, 1, 0, STYLE_SELECTED);
	int free_from = x + 3 + canvas_width(c, p->text);
	int width = hint ? canvas_width(c, hint) : 0;
	if (width && !shift && free_from + width < x + cols)
		canvas_put(c, y, x + cols - width, STYLE_DIM, hint);
	canvas_clip_all(c);
}
