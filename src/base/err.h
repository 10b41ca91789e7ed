/*
 * Errors as values: a fallible call returns a `struct err *`, NULL meaning fine.
 * The text is what the user reads, on the command line or in the status line,
 * so it names what is wrong and, where there is one, the remedy. Any thread.
 *
 *	struct err *err = thing_open(path, &thing);
 *	if (err)
 *		return err;		(pass it on)
 *	err_free(err);			(or end it; accepts NULL)
 */
#ifndef HEAPTOP_BASE_ERR_H
#define HEAPTOP_BASE_ERR_H

#include <stdarg.h>

enum err_code {
	ERR_OTHER,	/* anything without a class of its own */
	ERR_OS,		/* a system call failed; err->errnum says how */
	ERR_GONE,	/* the target has ended: an ordinary event */
	ERR_DENIED,	/* a right is missing; the text names it and the remedy */
	ERR_NOT_FOUND,	/* no such file, process, symbol */
	ERR_UNSUPPORTED,/* other architecture, 32-bit, kernel thread, old kernel */
	ERR_BUSY,	/* already traced by somebody else */
	ERR_BAD_INPUT,	/* malformed file, option or record */
	ERR_INTERRUPTED,/* heaptop was told to end meanwhile (ending.h) */
};

struct err {
	enum err_code code;
	int errnum;	/* errno at the time, 0 if none */
	char *text;	/* one line, sanitised (text.h), whatever was put into it */
};

/* A new error with printf-style text. Never fails, never returns NULL. */
struct err *err_new(enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/*
 * The same from errno `errnum`: ": " and strerror() are appended. The code is ERR_GONE for
 * ESRCH, ERR_DENIED for EPERM and EACCES, ERR_NOT_FOUND for ENOENT, else ERR_OS.
 */
struct err *err_errno(int errnum, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/* Put "text: " in front of the error's text; returns err (NULL stays NULL). */
struct err *err_prefix(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/* Release; NULL is fine. */
void err_free(struct err *err);

/* Both, a line each, with the first one's code; both are taken over, either may be NULL. The only way to a
 * text of more than a line. */
struct err *err_join(struct err *first, struct err *second);

#endif
