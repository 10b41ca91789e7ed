# Required things, looked for one after the other; what is missing is collected, so that the
# user learns of all of it at once and under the names of the package managers.
#
# HEAPTOP_MISSING(what, debian, fedora, arch): note that `what` isn't there.
# HEAPTOP_NEED_PKG(VAR, module, debian, fedora, arch): by pkg-config; sets VAR_CFLAGS, VAR_LIBS.
# HEAPTOP_NEED_LIB(VAR, header, library, function, other libs, debian, fedora, arch): where there
#	is no .pc file. Sets VAR_LIBS.
# HEAPTOP_NEED_CHECK: stop if anything was missing.

AC_DEFUN([HEAPTOP_MISSING],
[heaptop_missing="$heaptop_missing
    $1"
heaptop_missing_debian="$heaptop_missing_debian $2"
heaptop_missing_fedora="$heaptop_missing_fedora $3"
heaptop_missing_arch="$heaptop_missing_arch $4"])

AC_DEFUN([HEAPTOP_NEED_PKG],
[PKG_CHECK_MODULES([$1], [$2], [], [HEAPTOP_MISSING([$2], [$3], [$4], [$5])])])

AC_DEFUN([HEAPTOP_NEED_LIB],
[heaptop_found=yes
AC_CHECK_HEADER([$2], [], [heaptop_found=no])
AS_IF([test $heaptop_found = yes],
	[heaptop_save_LIBS=$LIBS
	AC_CHECK_LIB([$3], [$4], [], [heaptop_found=no], [$5])
	LIBS=$heaptop_save_LIBS])
AS_IF([test $heaptop_found = yes],
	[$1_LIBS="-l$3 $5"],
	[HEAPTOP_MISSING([$2 (-l$3)], [$6], [$7], [$8])])
AC_SUBST([$1_LIBS])])

AC_DEFUN([HEAPTOP_NEED_CHECK],
[AS_IF([test -n "$heaptop_missing"],
	[AC_MSG_ERROR([not found:$heaptop_missing
  Debian, Ubuntu: apt-get install$heaptop_missing_debian
  Fedora:         dnf install$heaptop_missing_fedora
  Arch:           pacman -S$heaptop_missing_arch
  or let ./bootstrap do it.])])])
