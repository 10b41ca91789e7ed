/*
 * Any command line: it is refused with one clean line, or what comes out keeps to what cli.h says.
 * Arguments end with a newline. Nothing may be started, attached to or written.
 */
#include <getopt.h>

#include "base/mem.h"
#include "cli.h"
#include "tests/fuzz/fuzz.h"

#define ARGS 16

static void check(const struct cli *cli)
{
	FUZZ_ASSERT(cli->mode != CLI_RUN || cli->argv[0]);
	FUZZ_ASSERT(cli->mode != CLI_ATTACH || (cli->npids && cli->pids[0] > 0));
	FUZZ_ASSERT(cli->mode != CLI_INPUT || cli->input);
	FUZZ_ASSERT(cli->auto_rate || (cli->rate >= 1 && cli->rate <= 1ull << 40));
	FUZZ_ASSERT(cli->overhead > 0 && cli->overhead <= 1);
	FUZZ_ASSERT(cli->delay >= 0.05 && cli->delay <= 3600 && cli->duration >= 0 && cli->duration < 1e12);
	FUZZ_ASSERT(cli->iterations >= 0);
}

static void run_cli(const uint8_t *data, size_t len)
{
	CLEANUP_FREE char *text = fuzz_string(data, len);
	CLEANUP_FREE char *said = NULL;
	char *argv[ARGS + 2] = { (char *)"heaptop" };
	size_t size = 0;
	FILE *real_out = stdout, *real_err = stderr;
	struct cli cli;
	int argc = 1;

	for (char *at = text; at && *at && argc <= ARGS; argc++) {
		argv[argc] = at;
		at = strchr(at, '\n');
		if (at)
			*at++ = '\0';
	}
	stdout = fopen("/dev/null", "w");
	stderr = open_memstream(&said, &size);
	optind = 0;	/* glibc: begin again */
	bool fine = cli_parse(argc, argv, &cli);
	fclose(stdout);
	fclose(stderr);
	stdout = real_out;
	stderr = real_err;
	if (fine)
		check(&cli);
	else
		FUZZ_ASSERT(size && said[size - 1] == '\n');
	cli_deinit(&cli);
}

const struct fuzz_target fuzz_cli = { "cli", 512, run_cli };
