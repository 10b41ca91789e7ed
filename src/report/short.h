/*
 * Function names without their bulk: demangled C++ and Rust names run to tens of thousands of
 * characters, nearly all of it template and function arguments. One pass, linear. Pure.
 */
#ifndef HEAPTOP_REPORT_SHORT_H
#define HEAPTOP_REPORT_SHORT_H

#include <stddef.h>

#define SHORT_MAX 512	/* bytes a skeleton has at most, with NUL; longer ones are cut */

/*
 * What wrapper rules are compared with: the name without return type, all arguments, ABI tags, inline
 * namespaces, "__GI_" and suffixes of compiler-made clones: "std::allocator<Foo>::allocate(unsigned long)"
 * -> "std::allocator::allocate", "operator new(unsigned long)" -> "operator new".
 */
void short_skeleton(const char *function, char buf[SHORT_MAX]);

#endif
