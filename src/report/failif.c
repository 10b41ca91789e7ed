/* See failif.h. */
#include "report/failif.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "base/text.h"
#include "report/report.h"

enum what { LIVE, BLOCKS, PEAK, LEAKED, GROWTH, SITE, WHATS };

static const char *const names[] = {
	[LIVE] = "live", [BLOCKS] = "blocks", [PEAK] = "peak", [LEAKED] = "leaked", [GROWTH] = "growth",
};

struct failif {
	char *text;		/* as given */
	enum what what;
	bool more, equal;	/* > or <; with = behind it */
	uint64_t amount;
	bool by_site;
	regex_t site;
};

static char *trimmed(const char *s, size_t n)
{
	while (n && *s == ' ')
		s++, n--;
	while (n && s[n - 1] == ' ')
		n--;
	return xstrndup(s, n);
}

static struct err *parse_site(struct failif *f, const char *regex)
{
	if (!*regex)
		return err_new(ERR_BAD_INPUT, "'%s': a pattern is missing behind site~", f->text);
	struct err *err = pattern_compile(regex, false, &f->site);
	f->by_site = !err;
	return err_prefix(err, "'%s'", f->text);
}

/* "live", "live(site~RE)" */
static struct err *parse_what(struct failif *f, char *left)
{
	size_t n = strcspn(left, "("), len = strlen(left);
	CLEANUP_FREE char *name = trimmed(left, n);

	for (f->what = 0; f->what < ARRAY_SIZE(names); f->what++)
		if (!strcmp(names[f->what], name))
			break;
	if (f->what == ARRAY_SIZE(names))
		return err_new(ERR_BAD_INPUT, "'%s' begins with none of live, peak, leaked, growth, blocks, site~", f->text);
	if (!left[n])
		return NULL;
	if (left[len - 1] != ')' || strncmp(left + n, "(site~", 6))
		return err_new(ERR_BAD_INPUT, "'%s': in parentheses goes site~REGEX", f->text);
	if (f->what == GROWTH)
		return err_new(ERR_BAD_INPUT, "'%s': growth is of the whole program, not of sites", f->text);
	left[len - 1] = '\0';
	return parse_site(f, left + n + 6);
}

static bool parse_amount(struct failif *f, const char *text)
{
	char *end;

	if (f->what != BLOCKS)
		return text_parse_size(text, &f->amount);
	errno = 0;
	f->amount = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !errno && !*end;
}

/* The last of < and > is the operator: a pattern before it may have them, too. */
static const char *find_operator(const char *text)
{
	for (const char *at = text + strlen(text); at > text; at--)
		if (at[-1] == '<' || at[-1] == '>')
			return at - 1;
	return NULL;
}

static struct err *parse(struct failif *f)
{
	if (!strncmp(f->text, "site~", 5)) {
		f->what = SITE;
		return parse_site(f, f->text + 5);
	}
	const char *op = find_operator(f->text);
	if (!op)
		return err_new(ERR_BAD_INPUT, "'%s' is no condition such as live>50M or live(site~parse)>1M", f->text);
	CLEANUP_FREE char *left = trimmed(f->text, (size_t)(op - f->text));
	f->more = *op == '>';
	f->equal = op[1] == '=';
	const char *right = op + 1 + f->equal;
	CLEANUP_FREE char *amount = trimmed(right, strlen(right));
	struct err *err = parse_what(f, left);
	if (err)
		return err;
	if (!parse_amount(f, amount))
		return f->what == BLOCKS ? err_new(ERR_BAD_INPUT, "'%s': '%s' is no number of blocks", f->text, amount) :
			err_new(ERR_BAD_INPUT, "'%s': '%s' is no size such as 50M", f->text, amount);
	return NULL;
}

struct err *failif_parse(const char *text, struct failif **ret)
{
	struct failif *f = xcalloc(1, sizeof(*f));

	f->text = trimmed(text, strlen(text));
	struct err *err = parse(f);
	if (err) {
		failif_destroy(f);
		return err;
	}
	*ret = f;
	return NULL;
}

void failif_destroy(struct failif *f)
{
	if (!f)
		return;
	if (f->by_site)
		regfree(&f->site);
	free(f->text);
	free(f);
}

static bool matches(const struct failif *f, const struct report_site *site)
{
	return pattern_matches(&f->site, site->function) || (site->file && pattern_matches(&f->site, site->file)) ||
		(site->module && pattern_matches(&f->site, site->module));
}

/* The figures it is about: of all, or of the sites that match; *ret_first: the largest of them. */
static struct trace_stats sum_of(const struct failif *f, struct report *report, const char **ret_first)
{
	struct trace_stats sum = { 0 };
	size_t n;

	*ret_first = NULL;
	if (!f->by_site)
		return report_view(report)->totals.s;
	const struct report_site *sites = report_sites(report, f->what == PEAK ? REPORT_PEAK_BYTES : REPORT_LIVE_BYTES,
						       false, &n);
	for (size_t i = 0; i < n; i++) {
		if (!matches(f, &sites[i]))
			continue;
		if (!*ret_first)
			*ret_first = sites[i].function;
		trace_stats_add(&sum, &sites[i].s);
	}
	return sum;
}

/* Bytes a second over the second half of the points; false: there are too few. */
static bool growth(const struct view *view, double *ret)
{
	if (view->npoints < 3)
		return false;
	const struct view_point *last = &view->points[view->npoints - 1], *from = &view->points[view->npoints / 2];
	if (from == last)
		from--;
	double seconds = (double)last->time - (double)from->time;
	*ret = seconds > 0 ? ((double)last->live_bytes - (double)from->live_bytes) / seconds : 0;
	return seconds > 0;
}

static bool compare(const struct failif *f, double value)
{
	double amount = (double)f->amount;

	return (f->equal && value == amount) || (f->more ? value > amount : value < amount);
}

static enum failif_verdict verdict(const struct failif *f, double value, const char *said, bool estimate, char **ret_text)
{
	*ret_text = xasprintf("%s: %s is %s%s", f->text, names[f->what], said, estimate ? " (an estimate)" : "");
	return compare(f, value) ? FAILIF_TRUE : FAILIF_FINE;
}

static enum failif_verdict unknown(const struct failif *f, const char *why, char **ret_text)
{
	*ret_text = xasprintf("%s: not to be said: %s", f->text, why);
	return FAILIF_UNKNOWN;
}

enum failif_verdict failif_judge(const struct failif *f, struct report *report, char **ret_text)
{
	const struct view *view = report_view(report);
	const char *first;
	char buf[TEXT_NUMBER];
	double value;

	if (!view)
		return unknown(f, "nothing was measured", ret_text);
	struct trace_stats s = sum_of(f, report, &first);
	bool estimate = s.live_var > 0 || s.alloc_var > 0;
	switch (f->what) {
	case LEAKED:
		if (view->info.state != VIEW_EXITED && view->info.state != VIEW_SNAPSHOT)
			return unknown(f, "the program hasn't ended", ret_text);
		/* fall through */
	case LIVE:
		return verdict(f, (double)s.live_bytes, text_bytes(buf, s.live_bytes), estimate, ret_text);
	case PEAK:
		return verdict(f, (double)s.peak_bytes, text_bytes(buf, s.peak_bytes), estimate, ret_text);
	case BLOCKS:
		return verdict(f, (double)s.live_q10 / 1024, text_count(buf, q10_round(s.live_q10)), estimate, ret_text);
	case GROWTH: {
		if (!growth(view, &value))
			return unknown(f, "it was watched for too short a time", ret_text);
		char said[TEXT_NUMBER + 8];
		snprintf(said, sizeof(said), "%s%s/s", value < 0 ? "-" : "",
			 text_bytes(buf, (uint64_t)((value < 0 ? -value : value) + 0.5)));
		return verdict(f, value, said, estimate, ret_text);
	}
	case SITE:
		if (!s.live_bytes) {
			*ret_text = xasprintf("%s: no such site holds memory", f->text);
			return FAILIF_FINE;
		}
		*ret_text = xasprintf("%s: %.200s holds %s", f->text, first ? first : "it", text_bytes(buf, s.live_bytes));
		return FAILIF_TRUE;
	case WHATS:
		break;
	}
	return FAILIF_FINE;
}
