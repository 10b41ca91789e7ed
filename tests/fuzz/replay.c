/*
 * The saved inputs of all fuzz targets, one after the other, without a fuzzer: seeds, and those that
 * once crashed something. Speaks TAP, one result a target; FILE... : only these, of target NAME.
 *
 *	replay [NAME FILE...]
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (1u << 20)
#define SECONDS 20	/* of one input, on a busy machine under a sanitizer; a hang takes for ever */

static char current[4096];	/* what a crash is reported with */

static void on_signal(int sig)
{
	static const char how[] = "Bail out! signal or time-out at ";

	if (write(STDOUT_FILENO, how, sizeof(how) - 1) > 0 &&
	    write(STDOUT_FILENO, current, strlen(current)) > 0 && write(STDOUT_FILENO, "\n", 1) > 0)
		fsync(STDOUT_FILENO);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void run_file(const struct fuzz_target *target, const char *path)
{
	CLEANUP_FREE uint8_t *data = xmalloc(INPUT_MAX);
	FILE *file = fopen(path, "re");

	if (!file) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(1);
	}
	size_t len = fread(data, 1, INPUT_MAX, file);
	fclose(file);
	snprintf(current, sizeof(current), "%s", path);
	/* as long as it is, so that a sanitizer sees what is read behind it */
	CLEANUP_FREE uint8_t *exact = xmalloc(len ? len : 1);
	memcpy(exact, data, len);
	alarm(SECONDS);
	target->run(exact, len);
	alarm(0);
}

static size_t run_folder(const struct fuzz_target *target, const char *top)
{
	CLEANUP_FREE char *path = xasprintf("%s/tests/data/fuzz/%s", top, target->name);
	DIR *dir = opendir(path);
	size_t ret = 0;

	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (d->d_name[0] == '.')
			continue;
		CLEANUP_FREE char *file = xasprintf("%s/%s", path, d->d_name);
		run_file(target, file);
		ret++;
	}
	if (dir)
		closedir(dir);
	target->run((const uint8_t *)"", 0);
	return ret;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	const char *top = getenv("abs_top_srcdir");
	int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], on_signal);
	if (argc > 1) {
		const struct fuzz_target *target = fuzz_find(argv[1]);
		if (!target) {
			fprintf(stderr, "replay: no fuzz target is called '%s'\n", argv[1]);
			return 2;
		}
		for (int i = 2; i < argc; i++)
			run_file(target, argv[i]);
		return 0;
	}
	printf("1..%zu\n", fuzz_ntargets);
	for (size_t i = 0; i < fuzz_ntargets; i++) {
		size_t n = run_folder(fuzz_targets[i], top ? top : ".");
		/* a target without seeds is one whose folder got lost */
		printf("%sok %zu - %s: %zu inputs\n", n ? "" : "not ", i + 1, fuzz_targets[i]->name, n);
		fflush(stdout);
		bad |= !n;
	}
	return bad;
}
