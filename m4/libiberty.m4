# HEAPTOP_LIB_IBERTY: demangling of C++ and Rust. The headers lie in libiberty/ everywhere.
AC_DEFUN([HEAPTOP_LIB_IBERTY],
[HEAPTOP_NEED_LIB([IBERTY], [libiberty/demangle.h], [iberty], [cplus_demangle], [],
	[libiberty-dev], [binutils-devel], [binutils])])
