# HEAPTOP_LIB_CMOCKA: --with-cmocka=auto|yes|no, the unit tests' harness. Without it `make check`
# runs only the tests that need no harness.
AC_DEFUN([HEAPTOP_LIB_CMOCKA],
[AC_ARG_WITH([cmocka],
	[AS_HELP_STRING([--with-cmocka=auto|yes|no], [build the unit tests (default: auto)])],
	[], [with_cmocka=auto])
have_cmocka=no
AS_IF([test "x$with_cmocka" != xno],
	[PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5], [have_cmocka=yes],
		[AS_IF([test "x$with_cmocka" = xyes],
			[HEAPTOP_MISSING([cmocka], [libcmocka-dev], [libcmocka-devel], [cmocka])])])])
AM_CONDITIONAL([HAVE_CMOCKA], [test $have_cmocka = yes])])
