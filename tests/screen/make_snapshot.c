/*
 * make_snapshot FILE [RATE [hostile]]: the made-up heap of tests/lib/fakeheap.c as a snapshot file, in the
 * format of FILE's suffix: something that is always the same to open with -i.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "export/export.h"
#include "heap/view.h"
#include "tests/lib/fakeheap.h"

int main(int argc, char **argv)
{
	struct fakeheap_config config = { .rate = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, .snapshot = true };
	struct export_options options = { .value = REPORT_LIVE_BYTES };
	char *path = NULL;

	config.hostile = argc > 3;
	if (argc < 2)
		return 2;
	struct fakeheap *f = fakeheap_create(&config);
	for (int i = 0; i < 20; i++) {
		fakeheap_step(f);
		view_unref(fakeheap_view(f));
	}
	struct view *view = fakeheap_view(f);
	struct err *err = export_write(argv[1], view, fakeheap_names(f), NULL, &options, &path);
	if (err)
		fprintf(stderr, "%s\n", err->text);
	int status = err ? 1 : 0;
	err_free(err);
	free(path);
	view_unref(view);
	fakeheap_destroy(f);
	return status;
}
