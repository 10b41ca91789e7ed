/*
 * The pool behind reach_pool.c. Any thread; pool_get returns NULL where there is no memory left.
 */
#ifndef HEAPTOP_TESTS_VICTIMS_REACH_POOL_H
#define HEAPTOP_TESTS_VICTIMS_REACH_POOL_H

#include <stddef.h>

#ifdef __cplusplus
#define EXTERN_C extern "C"
#else
#define EXTERN_C
#endif

EXTERN_C void *pool_get(size_t size);
EXTERN_C void pool_put(void *block);

#endif
