/* Names of keys; see key.h. */
#include "ui/key.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static const struct {
	uint32_t key;
	const char *name;
} names[] = {
	{ UKEY_TAB, "Tab" }, { UKEY_ENTER, "Enter" }, { UKEY_ESC, "Esc" }, { ' ', "Space" },
	{ UKEY_UP, "Up" }, { UKEY_DOWN, "Down" }, { UKEY_LEFT, "Left" }, { UKEY_RIGHT, "Right" },
	{ UKEY_PGUP, "PgUp" }, { UKEY_PGDN, "PgDn" }, { UKEY_HOME, "Home" }, { UKEY_END, "End" },
	{ UKEY_INSERT, "Ins" }, { UKEY_DELETE, "Del" }, { UKEY_BACKSPACE, "Backspace" },
	{ UKEY_BACKTAB, "S-Tab" },
	{ UKEY_F1, "F1" }, { UKEY_F2, "F2" }, { UKEY_F3, "F3" }, { UKEY_F4, "F4" },
	{ UKEY_F5, "F5" }, { UKEY_F6, "F6" }, { UKEY_F7, "F7" }, { UKEY_F8, "F8" },
	{ UKEY_F9, "F9" }, { UKEY_F10, "F10" }, { UKEY_F11, "F11" }, { UKEY_F12, "F12" },
};

uint32_t key_parse(const char *name)
{
	uint32_t ch;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, name))
			return names[i].key;
	size_t len = strlen(name);
	if (len == 3 && name[0] == 'C' && name[1] == '-' && name[2] >= '@' && name[2] < 127)
		return name[2] & 31;
	if (len && text_utf8_decode(name, len, &ch) == len)
		return ch;
	return UKEY_NONE;
}
