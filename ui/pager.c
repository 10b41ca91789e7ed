/* Scrollable, searchable text over the screen; see modal.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/modal.h"

#define PAGER_ROWS 20000

void pager_clear(struct pager *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->lines[i].text);
	p->n = 0;
}

static void pager_destroy(struct modal *m)
{
	struct pager *p = (struct pager *)m;

	pager_clear(p);
	free(p->lines);
	free(p);
}

static size_t last_top(const struct pager *p)
{
	size_t rows = p->rows > 0 ? p->rows : 1;

	return p->n > rows ? p->n - rows : 0;
}

static void scroll_to(struct pager *p, size_t top)
{
	p->top = top < last_top(p) ? top : last_top(p);
}

static bool matches(const struct pager *p, size_t i)
{
	return p->search[0] && strcasestr(p->lines[i].text, p->search);
}

static void pager_draw(struct ui *ui, struct modal *m)
{
	struct pager *p = (struct pager *)m;
	struct canvas *c = ui->canvas;
	char pos[48];

	canvas_clip_all(c);
	p->rows = c->rows > 2 ? c->rows - 2 : 1;
	scroll_to(p, p->top);
	for (int y = 0; y < c->rows; y++)
		canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	int first = c->rows > 2 ? 1 : 0;
	if (first) {
		canvas_fill(c, 0, 0, c->cols, STYLE_TAB_ACTIVE, ' ');
	}
	for (int y = 0; y < p->rows && p->top + y < p->n; y++) {
		const struct pager_line *l = &p->lines[p->top + y];
		style_t style = l->style | (matches(p, p->top + y) ? STYLE_MATCH : 0);
		canvas_put_max(c, first + y, 1, c->cols - 1, style, l->text);
	}
	if (!first)
		return;
	if (p->searching)
		canvas_printf(c, c->rows - 1, 0, STYLE_PROMPT, "/%s_", p->search);
	else
		canvas_put_cut(c, c->rows - 1, 0, c->cols, STYLE_KEY_TEXT,
			       "q Close  / Find  n Next  Up Down PgUp PgDn g G Move");
	size_t last = p->top + p->rows < p->n ? p->top + p->rows : p->n;
	snprintf(pos, sizeof(pos), "%zu-%zu/%zu", p->n ? p->top + 1 : 0, last, p->n);
	int width = canvas_width(c, pos);
	bool room = width + 12 < c->cols;
	canvas_put_max(c, 0, 1, c->cols - 1 - (room ? width + 3 : 0), STYLE_TAB_ACTIVE, p->title);
	if (room)
		canvas_put(c, 0, c->cols - width - 1, STYLE_TAB_ACTIVE, pos);
}

static void search(struct pager *p, size_t from)
{
	for (size_t i = 0; i < p->n; i++) {
		size_t k = (from + i) % p->n;
		if (matches(p, k)) {
			scroll_to(p, k);
			return;
		}
	}
}

static bool type(struct pager *p, uint32_t key)
{
	size_t len = strlen(p->search);

	if (key == UKEY_ENTER || key == UKEY_ESC) {
		p->searching = false;
		if (key == UKEY_ESC)
			p->search[0] = '\0';
	} else if (key == UKEY_BACKSPACE || key == 127 || key == 8) {
		if (len)
			p->search[len - 1] = '\0';
		else
			p->searching = false;
	} else if (key >= 32 && key < 127 && len + 1 < sizeof(p->search)) {
		p->search[len] = (char)key;
		p->search[len + 1] = '\0';
	}
	search(p, p->top);
	return true;
}

static bool pager_key(struct ui *ui, struct modal *m, const struct key_event *ev)
{
	struct pager *p = (struct pager *)m;
	size_t page = p->rows > 1 ? p->rows - 1 : 1;

	if (p->searching && ev->key != UKEY_MOUSE)
		return type(p, ev->key);
	if (ev->key == UKEY_MOUSE) {
		if (ev->button == MOUSE_WHEEL_UP)
			scroll_to(p, p->top > 3 ? p->top - 3 : 0);
		else if (ev->button == MOUSE_WHEEL_DOWN)
			scroll_to(p, p->top + 3);
		return ev->button != MOUSE_RIGHT;
	}
	if (ev->key == '/') {
		p->searching = true;
		p->search[0] = '\0';
		return true;
	}
	if (ev->key == 'n') {
		search(p, p->top + 1);
		return true;
	}
	switch (action_of_key(ev->key, ui->screen)) {
	case ACT_UP:
		scroll_to(p, p->top ? p->top - 1 : 0);
		return true;
	case ACT_DOWN:
		scroll_to(p, p->top + 1);
		return true;
	case ACT_PAGE_UP:
	case ACT_HALF_UP:
		scroll_to(p, p->top > page ? p->top - page : 0);
		return true;
	case ACT_PAGE_DOWN:
	case ACT_HALF_DOWN:
	case ACT_FREEZE:
		scroll_to(p, p->top + page);
		return true;
	case ACT_TOP:
		scroll_to(p, 0);
		return true;
	case ACT_BOTTOM:
		scroll_to(p, p->n);
		return true;
	case ACT_REDRAW:
		ui->clear = true;
		return true;
	case ACT_SUSPEND:
		ui->suspend = true;
		return true;
	case ACT_QUIT:
	case ACT_BACK:
	case ACT_HELP:
	case ACT_LOG:
	case ACT_MEMORY:
	case ACT_DETAILS:
	case ACT_OPEN:
		return false;
	default:
		return true;
	}
}

struct pager *pager_create(const char *title, const struct canvas *c)
{
	struct pager *p = xcalloc(1, sizeof(*p));

	p->modal = (struct modal){
		.draw = pager_draw, .key = pager_key, .destroy = pager_destroy,
	};
	p->title = title;
	p->canvas = c;
	return p;
}

static void add_row(struct pager *p, style_t style, int indent, const char *text, size_t len)
{
	VEC_GROW(p->lines, p->n, p->cap);
	p->lines[p->n++] = (struct pager_line){
		xasprintf("%*s%.*s", indent, "", (int)len, text), style,
	};
}

void pager_add_indented(struct pager *p, style_t style, int indent, const char *text)
{
	int cols = p->canvas->cols - 1;

	/* broken between words where there is one in the row */
	for (bool first = true; first || *text; first = false) {
		int room = first ? cols : cols - indent;
		size_t n = canvas_fit(p->canvas, text, room < 8 ? 8 : room), cut = n;
		while (text[n] && cut && text[cut] != ' ')
			cut--;
		if (text[n] && strspn(text, " ") >= cut)
			cut = n ? n : 1;
		add_row(p, style, first ? 0 : indent, text, cut);
		text += cut;
		while (*text == ' ')
			text++;
		if (p->n > PAGER_ROWS)
			break;
	}
}

void pager_add(struct pager *p, style_t style, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP_FREE char *text = xvasprintf(fmt, ap);
	va_end(ap);
	pager_add_indented(p, style, (int)strspn(text, " ") + 2, text);
}
