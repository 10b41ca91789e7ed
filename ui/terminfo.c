/* See terminfo.h. */
#include "ui/terminfo.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ui/terminfo-entry.h"	/* made from heaptop.ti: TERMINFO_ENTRY */

static char **theirs;	/* the environment between begin and end; NULL else */

bool terminfo_may_replace(const char *term)
{
	/* not terminals, or none that places a cursor: what editors and terminal servers say */
	static const char *const none[] = { "dumb", "emacs", "unknown", "network", "ethernet", "dialup", "plugboard", "switch" };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (!strcmp(term, none[i]))
			return false;
	return *term;
}

/*
 * Not setenv: it would move what another thread is reading. A pointer is exchanged in one go, and both
 * arrays stay: ours for good, since a reader may be in it for as long as it likes.
 */
void terminfo_begin(void)
{
	static char entry[] = "TERMINFO=" TERMINFO_ENTRY;
	static char **ours;
	static char **copied;
	size_t n = 0, at = 0;

	theirs = environ;
	if (!ours || copied != environ) {
		while (environ[n])
			n++;
		ours = xcalloc(n + 2, sizeof(*ours));
		for (size_t i = 0; i < n; i++)
			if (strncmp(environ[i], "TERMINFO=", 9) && strncmp(environ[i], "TERMINFO_DIRS=", 14))
				ours[at++] = environ[i];
		ours[at] = entry;
		copied = environ;
	}
	environ = ours;
}

void terminfo_end(void)
{
	if (theirs)
		environ = theirs;
	theirs = NULL;
}
