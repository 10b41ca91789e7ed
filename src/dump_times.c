/* See dump_times.h. */
#include "dump_times.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#define EVERY_MIN 0.1		/* seconds */
#define EVERY_MAX 1e7

static struct err *parse_word(const char *word, struct dump_times *times)
{
	if (!strcmp(word, "exit"))
		times->exit = true;
	else if (!strcmp(word, "peak"))
		times->peak = true;
	else if (!strcmp(word, "signal"))
		times->on_signal = true;
	else if (strncmp(word, "every=", 6))
		return err_new(ERR_BAD_INPUT, "'%s' is none of peak, exit, every=TIME, signal", word);
	else if (!text_parse_time(word + 6, &times->every) || times->every < EVERY_MIN || times->every > EVERY_MAX)
		return err_new(ERR_BAD_INPUT, "'%s' is no time such as 10s or 5m", word + 6);
	return NULL;
}

struct err *dump_parse(const char *list, struct dump_times *ret)
{
	CLEANUP_FREE char *copy = xstrdup(list);
	struct dump_times times = { 0 };
	char *save = NULL;
	bool any = false;

	for (char *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		struct err *err = parse_word(word, &times);
		if (err)
			return err;
		any = true;
	}
	if (!any)
		return err_new(ERR_BAD_INPUT, "give some of peak, exit, every=TIME, signal");
	*ret = times;
	return NULL;
}

bool dump_goes_on(const struct dump_times *times)
{
	return times->peak || times->on_signal || times->every > 0;
}
