/*
 * Allocation wrappers; see wrappers.h. Rules are compared with a name's skeleton (short.h), so no
 * template or function arguments in them. A trailing '*' matches any rest. Data structures that
 * grow (vector::_M_realloc_insert, strbuf_grow, sdsMakeRoomFor) are no wrappers: they are what
 * the user wants to see.
 */
#include "report/wrappers.h"

#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "report/short.h"

static const char *const rules[] = {
	/* C library */
	"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign",
	"valloc", "pvalloc", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_reallocarray",
	"__libc_memalign", "__libc_valloc", "__libc_pvalloc", "__posix_memalign", "__malloc",
	"__calloc", "__realloc", "__rtld_malloc", "__rtld_calloc", "__rtld_realloc",
	"malloc_hook_ini", "realloc_hook_ini", "strdup", "__strdup", "strndup", "__strndup",
	"wcsdup", "__wcsdup", "asprintf", "__asprintf", "vasprintf", "__vasprintf",
	"__asprintf_chk", "__vasprintf_chk", "___asprintf_chk", "___vasprintf_chk",
	"__vasprintf_internal", "_obstack_begin*", "_obstack_newchunk", "rpl_obstack_newchunk",
	"default_malloc",
	/* what touches memory for others: page faults are their callers' */
	"memset", "memcpy", "memmove", "__memset_*", "__memcpy_*", "__memmove_*", "__mempcpy_*", "__memset", "__memcpy",
	"__memmove",
	/* and glibc's malloc from within, which writes sizes before and behind its blocks */
	"_int_malloc", "_int_realloc", "_int_memalign", "_int_free*", "_mid_memalign", "sysmalloc*", "tcache_init",
	"arena_get2", "new_heap", "malloc_consolidate", "ptmalloc_init*",
	/* the habit of every C program */
	"xmalloc*", "xcalloc*", "xrealloc*", "xreallocarray", "xzalloc", "xzmalloc", "xnmalloc",
	"xnrealloc", "xstrdup", "xstrndup", "xmemdup", "xmemdupz", "xasprintf", "xvasprintf",
	"x2realloc", "x2nrealloc", "do_xmalloc*", "safe_malloc", "safe_calloc", "safe_realloc",
	"checked_malloc", "emalloc", "ecalloc", "erealloc", "estrdup", "my_malloc", "my_realloc",
	/* C++: operators, allocators, what containers call to get a node or an array */
	"operator new", "operator new[]", "std::allocator::allocate", "std::allocator_traits::allocate",
	"std::__new_allocator::allocate", "__gnu_cxx::new_allocator::allocate",
	"__gnu_cxx::malloc_allocator::allocate", "__gnu_cxx::__alloc_traits::allocate",
	"__gnu_cxx::__pool_alloc::allocate", "__gnu_cxx::__mt_alloc::allocate",
	"std::_Vector_base::_M_allocate", "std::_Vector_base::_M_create_storage",
	"std::_Vector_base::_Vector_base", "std::_Bvector_base::_M_allocate",
	"std::_Deque_base::_M_allocate_node", "std::_Deque_base::_M_allocate_map",
	"std::_Deque_base::_M_create_nodes", "std::_Deque_base::_M_initialize_map",
	"std::_List_base::_M_get_node", "std::list::_M_create_node",
	"std::_Fwd_list_base::_M_get_node", "std::_Fwd_list_base::_M_create_node",
	"std::_Rb_tree::_M_get_node", "std::_Rb_tree::_M_create_node",
	"std::_Rb_tree::_Auto_node::_Auto_node",
	"std::_Rb_tree::_Reuse_or_alloc_node::operator()", "std::_Rb_tree::_Alloc_node::operator()",
	"std::__detail::_Hashtable_alloc::*", "std::__detail::_AllocNode::operator()",
	"std::_Hashtable::_M_allocate_buckets", "std::_Hashtable::_M_allocate_node",
	"std::_Hashtable::_Scoped_node::_Scoped_node",
	"std::basic_string::_M_create", "std::basic_string::_Rep::_S_create",
	"std::basic_string::_Rep::_M_clone", "std::string::_Rep::_S_create",
	"std::string::_Rep::_M_clone",
	"std::__allocate_guarded", "std::__shared_count::__shared_count",
	"std::__shared_ptr::__shared_ptr", "std::shared_ptr::shared_ptr", "std::allocate_shared",
	"std::get_temporary_buffer", "std::__detail::__get_temporary_buffer",
	"std::_Temporary_buffer::_Temporary_buffer", "std::__allocate_at_least",
	"std::__libcpp_allocate", "std::__libcpp_operator_new", "std::__split_buffer::__split_buffer",
	"std::vector::__vallocate", "std::pmr::polymorphic_allocator::allocate",
	"std::pmr::memory_resource::allocate", "std::pmr::*::do_allocate",
	/* Rust */
	"__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rdl_alloc", "__rdl_alloc_zeroed",
	"__rdl_realloc", "__rg_alloc", "__rg_alloc_zeroed", "__rg_realloc", "alloc::alloc::*",
	"alloc::raw_vec::*", "std::alloc::*", "std::sys::alloc::*", "std::sys::unix::alloc::*",
	"std::sys::pal::unix::alloc::*", "<alloc::alloc::Global as *",
	"<std::alloc::System as *",
	/* GLib */
	"g_malloc*", "g_try_malloc*", "g_realloc*", "g_try_realloc*", "g_aligned_alloc*",
	"g_slice_alloc*", "g_slice_copy", "g_strdup*", "g_strndup", "g_memdup*",
	"standard_malloc", "standard_calloc", "magazine_chain_*", "slab_allocator_alloc_chunk",
	/* CPython */
	"PyMem_*", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "_PyMem_*",
	"_PyObject_Malloc", "_PyObject_Calloc", "_PyObject_Realloc", "_PyObject_Arena*",
	"_PyObject_GC_*", "_PyObject_New", "_PyObject_NewVar", "PyType_GenericAlloc",
	"_PyType_AllocNoTrack", "pymalloc_alloc", "pymalloc_realloc", "allocate_from_new_pool",
	"new_arena", "gc_alloc",
	/* SQLite */
	"sqlite3MemMalloc", "sqlite3MemRealloc", "sqlite3Malloc*", "sqlite3Realloc", "sqlite3_malloc*",
	"sqlite3_realloc*", "sqlite3DbMalloc*", "sqlite3DbRealloc*", "sqlite3DbStrDup",
	"sqlite3DbStrNDup", "sqlite3DbSpanDup", "sqlite3_mprintf", "sqlite3_vmprintf",
	"sqlite3MPrintf", "sqlite3VMPrintf", "dbMallocRawFinish", "dbReallocFinish",
	"mallocWithAlarm", "sqlite3PageMalloc", "pcache1Alloc", "sqlite3StatAlloc",
	/* Redis */
	"zmalloc*", "zcalloc*", "zrealloc*", "ztrymalloc*", "ztrycalloc*", "ztryrealloc*", "zstrdup",
	"extend_to_usable", "hi_malloc*", "hi_calloc*", "hi_realloc*", "hi_strdup",
	/* GCC */
	"ggc_internal_alloc*", "ggc_internal_cleared_alloc*", "ggc_alloc*", "ggc_cleared_alloc*",
	"ggc_realloc", "ggc_vec_alloc*", "alloc_page", "alloc_anon", "va_heap::reserve",
	"va_gc::reserve", "va_gc_atomic::reserve", "mallocator::*", "memory_block_pool::allocate",
	"base_pool_allocator::allocate", "base_pool_allocator::allocate_raw",
	"object_allocator::allocate", "data_alloc",
	/* V8, Node, libuv */
	"node::Malloc", "node::Calloc", "node::Realloc", "node::UncheckedMalloc",
	"node::UncheckedCalloc", "node::UncheckedRealloc", "uv__malloc", "uv__calloc",
	"uv__realloc", "uv__reallocf", "uv__strdup", "uv__strndup", "v8::base::Malloc",
	"v8::base::Calloc", "v8::base::Realloc", "v8::base::AlignedAlloc",
	"v8::internal::Malloced::operator new", "v8::internal::AlignedAlloc*",
	"v8::internal::AllocWithRetry", "v8::internal::NewArray",
	"v8::internal::AccountingAllocator::AllocateSegment", "v8::internal::Zone::New*",
	"v8::internal::Zone::Expand", "v8::internal::Zone::Allocate*",
	/* other runtimes and libraries with an allocator of their own */
	"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_clear_realloc", "CRYPTO_strdup",
	"CRYPTO_strndup", "CRYPTO_memdup", "CRYPTO_aligned_alloc", "av_malloc*", "av_calloc",
	"av_realloc*", "av_strdup", "Perl_safesys*", "ruby_xmalloc*", "ruby_xcalloc*",
	"ruby_xrealloc*", "objspace_xmalloc*", "objspace_xcalloc*", "objspace_xrealloc*",
	"_emalloc*", "_ecalloc*", "_erealloc*", "_estrdup*", "__zend_malloc", "__zend_calloc",
	"__zend_realloc", "palloc*", "repalloc*", "pstrdup", "AllocSetAlloc*", "AllocSetRealloc",
	"MemoryContextAlloc*", "Tcl_Alloc", "Tcl_Realloc", "TclpAlloc", "TclpRealloc", "l_alloc",
	"luaM_malloc_", "luaM_realloc_", "luaM_saferealloc_", "luaM_growaux_", "_talloc_*",
	"__talloc*", "talloc_strdup", "talloc_named_const", "apr_palloc", "mi_malloc*",
	"mi_new*", "je_malloc*", "tc_new*", "tc_malloc*",
};

struct user_rule {
	regex_t regex;
	bool none;	/* what matches is no wrapper */
};

struct wrappers {
	struct user_rule *user;
	size_t nuser, cap;
};

struct wrappers *wrappers_create(void)
{
	return xcalloc(1, sizeof(struct wrappers));
}

void wrappers_destroy(struct wrappers *wrappers)
{
	if (!wrappers)
		return;
	for (size_t i = 0; i < wrappers->nuser; i++)
		regfree(&wrappers->user[i].regex);
	free(wrappers->user);
	free(wrappers);
}

struct err *wrappers_add(struct wrappers *wrappers, const char *rule)
{
	struct user_rule user = { .none = *rule == '!' };
	const char *regex = rule + user.none;

	if (!*regex)
		return err_new(ERR_BAD_INPUT, "the wrapper rule is empty");
	struct err *err = pattern_compile(regex, false, &user.regex);
	if (err)
		return err_prefix(err, "wrapper rule '%s'", regex);
	VEC_GROW(wrappers->user, wrappers->nuser, wrappers->cap);
	wrappers->user[wrappers->nuser++] = user;
	return NULL;
}

/* `rule` may hold one '*': inside, or at its end. */
static bool rule_matches(const char *rule, const char *name, size_t len)
{
	const char *star = strchr(rule, '*');

	if (!star)
		return !strcmp(rule, name);
	size_t head = (size_t)(star - rule), tail = strlen(star + 1);
	return len >= head + tail && !memcmp(rule, name, head)
		&& !memcmp(star + 1, name + len - tail, tail);
}

bool wrappers_match(const struct wrappers *wrappers, const char *function)
{
	char skeleton[SHORT_MAX];

	for (size_t i = wrappers ? wrappers->nuser : 0; i-- > 0;)
		if (pattern_matches(&wrappers->user[i].regex, function))
			return !wrappers->user[i].none;
	short_skeleton(function, skeleton);
	size_t len = strlen(skeleton);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i][0] == skeleton[0] && rule_matches(rules[i], skeleton, len))
			return true;
	return false;
}

void wrappers_print(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		fprintf(out, "%s\n", rules[i]);
}
