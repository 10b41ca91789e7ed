/* Errors as values; see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* Paths, patterns, names out of files: what they put into a text is made harmless here, once for all. */
static struct err *err_make(enum err_code code, int errnum, char *text)
{
	struct err *err = xcalloc(1, sizeof(*err));

	text_sanitize(text);
	err->code = code;
	err->errnum = errnum;
	err->text = text;
	return err;
}

struct err *err_new(enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = xvasprintf(fmt, ap);
	va_end(ap);
	return err_make(code, 0, text);
}

static enum err_code code_of_errno(int errnum)
{
	switch (errnum) {
	case ESRCH:
		return ERR_GONE;
	case EPERM:
	case EACCES:
		return ERR_DENIED;
	case ENOENT:
		return ERR_NOT_FOUND;
	default:
		return ERR_OS;
	}
}

struct err *err_errno(int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *what = xvasprintf(fmt, ap);
	va_end(ap);
	char *text = xasprintf("%s: %s", what, strerror(errnum));
	free(what);
	return err_make(code_of_errno(errnum), errnum, text);
}

struct err *err_prefix(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return NULL;
	va_start(ap, fmt);
	char *what = xvasprintf(fmt, ap);
	va_end(ap);
	char *text = xasprintf("%s: %s", what, err->text);
	free(what);
	free(err->text);
	text_sanitize(text);
	err->text = text;
	return err;
}

void err_free(struct err *err)
{
	if (!err)
		return;
	free(err->text);
	free(err);
}

struct err *err_join(struct err *first, struct err *second)
{
	if (!first || !second)
		return first ? first : second;
	char *text = xasprintf("%s\n%s", first->text, second->text);
	free(first->text);
	first->text = text;
	err_free(second);
	return first;
}
