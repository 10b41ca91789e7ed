/* assert_fine(call): the call returns no error; else its text is printed and the test fails. After cmocka.h. */
#ifndef HEAPTOP_TESTS_FINE_H
#define HEAPTOP_TESTS_FINE_H

#include "base/err.h"

#define assert_fine(call) check_fine(call, #call, __FILE__, __LINE__)
static inline void check_fine(struct err *err, const char *what, const char *file, int line)
{
	if (!err)
		return;
	print_error("%s: %s\n", what, err->text);
	err_free(err);
	_fail(file, line);
}

#endif
