/* See foresee.h. */
#include "foresee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli.h"
#include "elf/modules.h"
#include "probe/probe.h"
#include "target/facts.h"
#include "target/target.h"

/*
 * How long the two stops take together: so much for any process, and so much more for each of its threads, on two
 * processors that others use as well (1 thread 4 ms, 200 threads 30, 1000 threads 95). It is an estimate: a thread that is
 * in the kernel may keep all the others waiting.
 */
#define STOP_MS 4.0
#define STOP_MS_THREAD 0.1

/* "libc.so.6 and 2 other modules", of those with something to hook. */
static void where_text(const struct probe *probe, const struct modules *mods, char *buf, size_t len, size_t *ret_hooks)
{
	size_t others = 0;
	uint32_t first = 0;

	*ret_hooks = 0;
	*buf = '\0';
	for (size_t i = 0; i < probe->nhooks; i++) {
		const struct probe_hook *h = &probe->hooks[i];
		if (!h->hooked)
			continue;
		(*ret_hooks)++;
		bool seen = false;
		for (size_t k = 0; k < i && !seen; k++)
			seen = probe->hooks[k].hooked && probe->hooks[k].module == h->module;
		if (!seen && !first)
			first = h->module;
		else if (!seen)
			others++;
	}
	const struct module *m = first ? module_get(mods, first) : NULL;
	if (m && others)
		snprintf(buf, len, "%.60s and %zu other module%s", m->name, others, others == 1 ? "" : "s");
	else if (m)
		snprintf(buf, len, "%.60s", m->name);
}

/* *ret_can: there is something to hook. */
static char *hooks_text(const struct cli *cli, struct target *t, bool *ret_can)
{
	const struct probe_config config = { .rate = 1, .mmap = cli->mmap, .named = &cli->named };
	struct modules *mods = modules_create();
	struct probe *probe = cli->uprobe ? probe_uprobe_create(&config) : probe_agent_create(&config);
	char where[120];
	size_t hooks;
	bool changed;

	struct err *err = target_refresh_modules(t, mods, &changed);
	if (!err)
		err = probe->ops->prepare(probe, t, mods);
	where_text(probe, mods, where, sizeof(where), &hooks);
	*ret_can = hooks > 0;
	const char *plural = hooks == 1 ? "" : "s";
	char *ret = !hooks && err ? xasprintf("It can't be attached to: %s.", err->text)
		: !hooks ? xasprintf("No allocator was found in it that can be hooked.")
		: cli->uprobe ? xasprintf("The kernel places probes at %zu function%s of %s; nothing is put into it.", hooks, plural, where)
		: xasprintf("Hooks %zu allocator function%s of %s.", hooks, plural, where);
	err_free(err);
	probe->ops->destroy(probe);
	modules_destroy(mods);
	return ret;
}

static char *stop_text(const struct cli *cli, unsigned threads)
{
	double ms = STOP_MS + STOP_MS_THREAD * threads;

	if (cli->uprobe)
		return xstrdup("It isn't stopped for that.");
	if (threads < 2)
		return xasprintf("It stands still for that twice, about %.0f ms together.", ms);
	return xasprintf("Its %u threads stand still for that twice, about %.0f ms together.", threads, ms);
}

static char *cost_text(const struct cli *cli)
{
	char size[TEXT_NUMBER];

	if (cli->paused)
		return xstrdup("Then nothing is recorded until collection is switched on.");
	if (cli->uprobe)
		return xstrdup("Then each call of them costs it one to five microseconds, sampled or not.");
	if (cli->exact)
		return xstrdup("Then every call is recorded, at 100 to 200 ns each.");
	if (!cli->auto_rate)
		return xasprintf("Then a block is recorded for every %s that it allocates, on average.", text_bytes(size, cli->rate));
	return xasprintf("Then samples, at a cost of %g%% of its processor time at most.", cli->overhead * 100);
}

char *foresee(const struct cli *cli, pid_t pid)
{
	struct process_facts facts = { 0 };
	struct target *t;

	struct err *err = target_observe(pid, &t);
	if (err) {
		char *ret = xasprintf("It can't be attached to: %s.", err->text);
		err_free(err);
		return ret;
	}
	bool can;
	char *hooks = hooks_text(cli, t, &can);
	target_destroy(t);
	text_sanitize(hooks);
	if (!can)
		return hooks;
	if (!process_facts(pid, &facts))
		facts.threads = 1;
	CLEANUP_FREE char *stop = stop_text(cli, facts.threads);
	CLEANUP_FREE char *cost = cost_text(cli);
	char *ret = xasprintf("%s\n%s\n%s\nAll of it is undone when you leave.", hooks, stop, cost);
	free(hooks);
	return ret;
}
