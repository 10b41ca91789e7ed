/* The stack recorder; see record.h. */
#include "collect/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

struct recorder {
	FILE *file;	/* NULL once a write has failed */
};

struct err *recorder_create(const char *path, struct recorder **ret)
{
	FILE *file = fopen(path, "wxe");

	if (!file)
		return err_errno(errno, "%s", path);
	struct recorder *r = xcalloc(1, sizeof(*r));
	r->file = file;
	fwrite("HTSTACK1", 1, 8, file);
	*ret = r;
	return NULL;
}

void recorder_stack(struct recorder *r, const uint64_t *addrs, size_t n)
{
	if (!r || !r->file || !n)
		return;
	uint16_t count = n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
	if (fwrite(&count, sizeof(count), 1, r->file) == 1
	    && fwrite(addrs, sizeof(*addrs), count, r->file) == count)
		return;
	log_line("recording stacks: %s", strerror(errno));
	fclose(r->file);
	r->file = NULL;
}

void recorder_destroy(struct recorder *r)
{
	if (!r)
		return;
	if (r->file && fclose(r->file))
		log_line("recording stacks: %s", strerror(errno));
	free(r);
}
