# HEAPTOP_SANITIZERS: --enable-asan, --enable-ubsan, --enable-tsan, --enable-werror. The flags go
# to SAN_CFLAGS and WERROR_CFLAGS, not to CFLAGS: the agent and the victims must never get them.
AC_DEFUN([HEAPTOP_SANITIZERS],
[AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make warnings errors])])
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer])])
AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [build with UBSan, stopping on errors])])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])])
SAN_CFLAGS=
AS_IF([test "x$enable_asan" = xyes],
	[SAN_CFLAGS="$SAN_CFLAGS -fsanitize=address -fno-omit-frame-pointer"])
AS_IF([test "x$enable_ubsan" = xyes],
	[SAN_CFLAGS="$SAN_CFLAGS -fsanitize=undefined -fno-sanitize-recover=undefined"])
AS_IF([test "x$enable_tsan" = xyes],
	[AS_IF([test "x$enable_asan" = xyes],
		[AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
	SAN_CFLAGS="$SAN_CFLAGS -fsanitize=thread"])
AS_IF([test -n "$SAN_CFLAGS"],
	[AC_MSG_CHECKING([whether$SAN_CFLAGS links])
	heaptop_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $SAN_CFLAGS"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([the sanitizers' run-time libraries are missing (Fedora: libasan libubsan libtsan; Debian and Arch have them in gcc)])])
	CFLAGS=$heaptop_save_CFLAGS])
AS_IF([test "x$enable_werror" = xyes], [WERROR_CFLAGS=-Werror], [WERROR_CFLAGS=])
AC_SUBST([SAN_CFLAGS])
AC_SUBST([WERROR_CFLAGS])])
