# HEAPTOP_LIB_ZYDIS: the instruction decoder. Debian 12's package has no .pc file, others do.
AC_DEFUN([HEAPTOP_LIB_ZYDIS],
[PKG_CHECK_MODULES([ZYDIS], [zydis >= 4.0], [],
	[HEAPTOP_NEED_LIB([ZYDIS], [Zydis/Zydis.h], [Zydis], [ZydisDecoderDecodeFull], [],
		[libzydis-dev], [zydis-devel], [zydis])])])
