/*
 * The theme. Colours are chosen so that text stays readable on dark and on light grounds: no
 * background is painted under plain text, and where one is (flame, tabs) the text's colour is
 * given too. Nothing is said by colour alone. With 8 colours hues are told apart by foreground;
 * without colours bold is the user's own code, reverse the cursor, underline a match.
 */
#include "ui/style.h"

#include <string.h>

#include "base/mem.h"
#include "report/system.h"

enum { B = 1, D = 2, U = 4, R = 8 };

struct look_def {
	char letter;
	int16_t fg256, bg256;
	int8_t fg8, bg8;
	uint8_t attr256, attr8, mono;
};

static const struct look_def looks[STYLE_IDS] = {
	[STYLE_TEXT] =		{ '.', -1, -1, -1, -1, 0, 0, 0 },
	[STYLE_TITLE] =		{ 't', -1, -1, -1, -1, B, B, B },
	[STYLE_LABEL] =		{ 'l', 244, -1, -1, -1, 0, 0, 0 },
	[STYLE_NUMBER] =	{ 'n', -1, -1, -1, -1, B, B, B },
	[STYLE_DIM] =		{ 'd', 244, -1, -1, -1, 0, D, 0 },
	[STYLE_GOOD] =		{ 'g', 34, -1, 2, -1, B, B, B },
	[STYLE_WARN] =		{ 'w', 172, -1, 3, -1, B, B, B },
	[STYLE_BAD] =		{ 'b', 231, 160, 7, 1, B, B, R },
	[STYLE_GREW] =		{ 'r', 167, -1, 1, -1, 0, 0, B },
	[STYLE_SHRANK] =	{ 's', 68, -1, 4, -1, 0, 0, 0 },
	[STYLE_FROZEN] =	{ 'z', 16, 178, 0, 3, B, 0, R },
	[STYLE_GRAPH] =		{ 'G', 37, -1, 6, -1, 0, 0, 0 },
	[STYLE_GRAPH_SCALE] =	{ 'c', 244, -1, -1, -1, 0, D, 0 },
	[STYLE_TAB] =		{ 'a', 244, -1, -1, -1, 0, 0, 0 },
	[STYLE_TAB_ACTIVE] =	{ 'A', 231, 24, 7, 4, B, B, R },
	[STYLE_HEADING] =	{ 'h', 244, -1, -1, -1, U, U, U },
	[STYLE_HEADING_SORT] =	{ 'H', -1, -1, -1, -1, U | B, U | B, U | B },
	[STYLE_GUIDE] =		{ 'i', 242, -1, -1, -1, 0, D, 0 },
	[STYLE_KEY] =		{ 'k', -1, -1, -1, -1, B, B, B },
	[STYLE_KEY_TEXT] =	{ 'K', 244, -1, -1, -1, 0, 0, 0 },
	[STYLE_STATUS] =	{ 'u', -1, -1, -1, -1, 0, 0, 0 },
	[STYLE_PROMPT] =	{ 'p', -1, -1, -1, -1, B, B, B },
	[STYLE_BOX] =		{ 'x', 231, 237, 7, 4, 0, 0, R },
	[STYLE_CODE_MAIN] =	{ 'M', -1, -1, -1, -1, B, B, B },
	[STYLE_CODE_0] =	{ '0', 68, -1, 4, -1, 0, B, 0 },
	[STYLE_CODE_1] =	{ '1', 71, -1, 2, -1, 0, 0, 0 },
	[STYLE_CODE_2] =	{ '2', 136, -1, 3, -1, 0, 0, 0 },
	[STYLE_CODE_3] =	{ '3', 133, -1, 5, -1, 0, 0, 0 },
	[STYLE_CODE_4] =	{ '4', 37, -1, 6, -1, 0, 0, 0 },
	[STYLE_CODE_5] =	{ '5', 167, -1, 1, -1, 0, 0, 0 },
	[STYLE_CODE_SYSTEM] =	{ 'y', 244, -1, -1, -1, 0, 0, 0 },
	[STYLE_CODE_UNKNOWN] =	{ '?', 244, -1, -1, -1, 0, D, 0 },
	[STYLE_FLAME_MAIN] =	{ 'M', 231, 130, 7, 3, 0, 0, B },
	[STYLE_FLAME_0] =	{ '0', 231, 25, 7, 4, 0, 0, 0 },
	[STYLE_FLAME_1] =	{ '1', 231, 28, 0, 2, 0, 0, 0 },
	[STYLE_FLAME_2] =	{ '2', 231, 94, 0, 3, 0, 0, 0 },
	[STYLE_FLAME_3] =	{ '3', 231, 90, 7, 5, 0, 0, 0 },
	[STYLE_FLAME_4] =	{ '4', 231, 30, 0, 6, 0, 0, 0 },
	[STYLE_FLAME_5] =	{ '5', 231, 124, 7, 1, 0, 0, 0 },
	[STYLE_FLAME_SYSTEM] =	{ 'y', 231, 240, 0, 7, 0, 0, 0 },
	[STYLE_FLAME_UNKNOWN] =	{ '?', -1, -1, -1, -1, 0, 0, 0 },
};

static struct style_look look_ansi(style_t style, enum style_depth depth)
{
	struct style_look look = {
		.fg = (int16_t)style_ansi_fg(style) - 1,
		.bg = (int16_t)style_ansi_bg(style) - 1,
		.bold = style_ansi_bold(style),
		.dim = style_ansi_dim(style) && depth != STYLE_DEPTH_MONO,
		.underline = style_ansi_underline(style),
		.reverse = style_ansi_reverse(style),
	};

	if (depth == STYLE_DEPTH_MONO) {
		look.fg = look.bg = -1;
	} else if (depth == STYLE_DEPTH_8) {
		if (look.fg >= 8) {
			look.fg -= 8;
			look.bold = true;
		}
		if (look.bg >= 8)
			look.bg -= 8;
	}
	return look;
}

static bool is_flame(unsigned id)
{
	return id >= STYLE_FLAME_MAIN && id <= STYLE_FLAME_UNKNOWN;
}

struct style_look style_look(style_t style, enum style_depth depth)
{
	if (style & STYLE_ANSI)
		return look_ansi(style, depth);

	unsigned id = style & STYLE_ID_MASK;
	if (id >= STYLE_IDS)
		id = STYLE_TEXT;
	const struct look_def *def = &looks[id];
	unsigned attr = depth == STYLE_DEPTH_256 ? def->attr256 :
		depth == STYLE_DEPTH_8 ? def->attr8 : def->mono;
	struct style_look look = {
		.fg = depth == STYLE_DEPTH_256 ? def->fg256 : depth == STYLE_DEPTH_8 ? def->fg8 : -1,
		.bg = depth == STYLE_DEPTH_256 ? def->bg256 : depth == STYLE_DEPTH_8 ? def->bg8 : -1,
		.bold = attr & B, .dim = attr & D, .underline = attr & U, .reverse = attr & R,
	};

	if (style & STYLE_FADED && !(style & STYLE_SELECTED)) {
		look.bold = false;
		if (depth == STYLE_DEPTH_256) {
			look.fg = 244;
			look.bg = is_flame(id) ? 235 : -1;
		} else if (depth == STYLE_DEPTH_8) {
			look.dim = true;
			if (is_flame(id))
				look.fg = look.bg = -1;
		}
	}
	if (style & STYLE_STRONG)
		look.bold = true;
	if (style & STYLE_UNDERLINED)
		look.underline = true;
	if (style & STYLE_MATCH) {
		look.underline = true;
		look.bold = true;
		if (depth == STYLE_DEPTH_256) {
			look.fg = is_flame(id) ? 16 : 178;
			look.bg = is_flame(id) ? 220 : -1;
		} else if (depth == STYLE_DEPTH_8) {
			look.fg = is_flame(id) ? 0 : 3;
			look.bg = is_flame(id) ? 3 : -1;
		}
	}
	if (style & STYLE_SELECTED) {
		/* one look for the cursor whatever lies under it: never ambiguous */
		look.reverse = true;
		look.dim = false;
		look.fg = look.bg = -1;
		look.bold = look.bold || is_flame(id);
	}
	return look;
}

char style_letter(style_t style)
{
	if (style & STYLE_ANSI)
		return '&';
	if (style & STYLE_SELECTED)
		return '>';
	if (style & STYLE_MATCH)
		return '*';
	if (style & STYLE_FADED)
		return '~';
	unsigned id = style & STYLE_ID_MASK;
	return id < STYLE_IDS ? looks[id].letter : '!';
}

enum style_id style_of_module(const char *module, bool unknown, const char *main_module)
{
	if (unknown || !module || !*module)
		return STYLE_CODE_UNKNOWN;
	if (main_module && !strcmp(module, main_module))
		return STYLE_CODE_MAIN;
	if (system_library(module))
		return STYLE_CODE_SYSTEM;
	/* FNV-1a: the same module has the same hue in every run */
	uint32_t hash = 2166136261u;
	for (; *module; module++)
		hash = (hash ^ (unsigned char)*module) * 16777619u;
	return STYLE_CODE_0 + (hash ^ hash >> 16) % 6;
}
