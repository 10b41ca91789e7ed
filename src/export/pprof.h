/*
 * A view as pprof profile and back; profile.proto has the format. Sample types: alloc_objects,
 * alloc_space, inuse_objects, inuse_space (the default), as Go's heap profiles have them, then
 * peak_objects, peak_space (held at the process's peak), temp_objects, temp_space (freed within
 * 10 ms); and where anything is known of them resident_space, swapped_space (of inuse_space) and touched_space (of
 * pages whose first touch the stack is). Any thread.
 */
#ifndef HEAPTOP_EXPORT_PPROF_H
#define HEAPTOP_EXPORT_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;
struct modules;
struct names;
struct report;
struct view;

/* Limits of reading: what is beyond is an error, so hostile files cost bounded memory. */
#define PPROF_MAX_FILE (256u << 20)	/* bytes of the file */
#define PPROF_MAX_BYTES (1u << 30)	/* of the profile unpacked */
#define PPROF_MAX_RATIO 1032u		/* deflate's own limit is 1032:1 (zlib's technical notes) */
#define PPROF_MAX_MEMORY (2ull << 30)	/* of the parsed messages */
#define PPROF_MAX_MESSAGES (4u << 20)	/* samples, and locations, and functions */
#define PPROF_MAX_NODES (16u << 20)	/* tree nodes made of it */
#define PPROF_MAX_LINES 64u		/* functions of one location; more are cut off outside */

/* The traces that pass the report's filter. Waits for names. gzip: compressed. */
struct err *pprof_write(FILE *out, struct report *report, struct names *names,
			const struct modules *mods, bool gzip);

/* From bytes, compressed or not. `what` names the source in errors. */
struct err *pprof_read(const void *bytes, size_t len, const char *what, struct view **ret_view,
		       struct names **ret_names);
/* The same with a table of names that is there already; after an error it has some of them. */
struct err *pprof_read_into(const void *bytes, size_t len, const char *what, struct names *names,
			    struct view **ret_view);

#endif
