/*
 * Completions; see completion.h. The program's word and what follows it go to the shell's own completion of
 * commands. Names of processes are the kernel's 15 bytes as anyone may set them: what isn't printable in one
 * becomes a question mark before a terminal sees it.
 */
#include "completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli_options.h"
#include "report/groups.h"
#include "report/report.h"
#include "ui/action.h"
#include "ui/columns.h"
#include "ui/graph.h"
#include "ui/theme.h"

enum kind { NOTHING, WORDS, FILES, PIDS, NAMES, VALUES, COLUMNS, GRAPHS, THEMES, VIEWS, GROUPS };

/* What an option's argument may be; of the others nothing is known. */
static const struct {
	const char *option;
	enum kind kind;
	const char *words;
} arguments[] = {
	{ "pid", PIDS, NULL }, { "name", NAMES, NULL }, { "process", WORDS, "sum all" },
	{ "input", FILES, NULL }, { "base", FILES, NULL }, { "output", FILES, NULL },
	{ "config", FILES, NULL }, { "record-stacks", FILES, NULL },
	{ "rate", WORDS, "auto" }, { "preset", WORDS, "cpython glib apr" },
	{ "sort", VALUES, NULL }, { "value", VALUES, NULL }, { "view", VIEWS, NULL },
	{ "group", GROUPS, NULL }, { "probe", WORDS, "agent uprobe" },
	{ "fail-if", WORDS, "live> peak> leaked> growth> blocks> site~" }, { "on-exit", WORDS, "kill detach" },
	{ "dump", WORDS, "exit peak every= signal" },
	{ "io", WORDS, "pane inherit null" },
	{ "columns", COLUMNS, NULL }, { "graph", GRAPHS, NULL }, { "theme", THEMES, NULL },
	{ "copy", WORDS, "auto terminal file" }, { "completion", WORDS, "bash zsh fish" },
};

static enum kind kind_of(const char *option, const char **ret_words)
{
	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++)
		if (!strcmp(arguments[i].option, option)) {
			*ret_words = arguments[i].words;
			return arguments[i].kind;
		}
	return NOTHING;
}

/* The words there are to choose from, blanks between; NULL if they aren't words. The caller frees. */
static char *words_of(const char *option)
{
	const char *words = NULL;
	enum kind kind = kind_of(option, &words);
	char *ret = NULL;
	size_t size;

	if (kind == NOTHING || kind == FILES || kind == PIDS || kind == NAMES)
		return NULL;
	FILE *out = open_memstream(&ret, &size);
	if (kind == WORDS)
		fputs(words, out);
	for (enum report_value v = 0; kind == VALUES && v < REPORT_VALUES; v++)
		fprintf(out, "%s%s", v ? " " : "", report_value_name(v));
	for (enum column_id id = 0; kind == COLUMNS && id < COLUMN_IDS; id++)
		if (columns_name(id))
			fprintf(out, "%s ", columns_name(id));
	for (enum graph_kind g = GRAPH_BRAILLE; kind == GRAPHS && g <= GRAPH_ASCII; g++)
		fprintf(out, "%s%s", g ? " " : "", graph_kind_name(g));
	for (enum report_group g = 0; kind == GROUPS && g < REPORT_GROUPS; g++)
		fprintf(out, "%s%s", g ? " " : "", report_group_name(g));
	/* a screen is called what the key that shows it is */
	for (int v = 0; kind == VIEWS && v < UI_VIEWS; v++)
		fprintf(out, "%s%s", v ? " " : "", action_def(ACT_SITES + v)->name);
	if (kind == THEMES) {
		struct themes themes;
		themes_init(&themes);
		for (size_t i = 0; i < themes.n; i++)
			fprintf(out, "%s%s", i ? " " : "", themes.list[i]->name);
		themes_deinit(&themes);
	}
	fclose(out);
	size_t n = strlen(ret);
	while (n && ret[n - 1] == ' ')
		ret[--n] = '\0';
	return ret;
}

/* ---- bash ---- */

/* "-p|--pid" */
static void put_pattern(const struct cli_option *o, const char *between)
{
	if (o->o.val < 256)
		printf("-%c%s", o->o.val, between);
	printf("--%s", o->o.name);
}

static void print_bash(const struct cli_option *opts, size_t n)
{
	const char *words;

	fputs("# bash completion for heaptop; made by heaptop --completion=bash\n\n"
	      "_heaptop_processes() {\n"
	      "\t# $1: what is typed; $2: pid or name. Several are shown with their names, one is completed\n"
	      "\tlocal dir name pid\n"
	      "\tCOMPREPLY=()\n"
	      "\tfor dir in /proc/[0-9]*; do\n"
	      "\t\tpid=${dir#/proc/}\n"
	      "\t\t[[ $pid != \"$$\" && -e $dir/exe && ( $EUID == 0 || -O $dir ) ]] || continue\n"
	      "\t\tread -r name 2>/dev/null <\"$dir/comm\" || continue\n"
	      "\t\tname=${name//[^[:print:]]/?}\n"
	      "\t\t[[ $pid == \"$1\"* || $name == \"$1\"* ]] || continue\n"
	      "\t\tif [[ $2 == name ]]; then COMPREPLY+=(\"$name\"); else COMPREPLY+=(\"$pid  $name\"); fi\n"
	      "\tdone\n"
	      "\t[[ ${#COMPREPLY[@]} == 1 && $2 == pid ]] && COMPREPLY=(\"${COMPREPLY[0]%%  *}\")\n"
	      "\treturn 0\n"
	      "}\n\n"
	      "_heaptop() {\n"
	      "\tlocal i=1 word cur=${COMP_WORDS[COMP_CWORD]} option=\n"
	      "\tCOMPREPLY=()\n"
	      "\twhile ((i < COMP_CWORD)); do\n"
	      "\t\tword=${COMP_WORDS[i]}\n"
	      "\t\tif [[ $word == -- ]]; then\n"
	      "\t\t\t((i++))\n"
	      "\t\t\tbreak\n"
	      "\t\tfi\n"
	      "\t\t[[ $word == -* ]] || break\n"
	      "\t\tif [[ ${COMP_WORDS[i + 1]-} == = ]]; then\n"
	      "\t\t\toption=$word\n"
	      "\t\t\t((i += 3, i > COMP_CWORD)) && break\n"
	      "\t\t\toption=\n"
	      "\t\t\tcontinue\n"
	      "\t\tfi\n"
	      "\t\tcase $word in\n\t\t", stdout);
	bool first = true;
	for (size_t i = 0; i < n; i++)
		if (opts[i].arg) {
			printf("%s", first ? "" : "|");
			put_pattern(&opts[i], "|");
			first = false;
		}
	fputs(")\n"
	      "\t\t\toption=$word\n"
	      "\t\t\t((i += 2, i > COMP_CWORD)) && break\n"
	      "\t\t\toption= ;;\n"
	      "\t\t*) ((i++)) ;;\n"
	      "\t\tesac\n"
	      "\tdone\n"
	      "\t[[ $cur == = ]] && cur=\n"
	      "\tif [[ -z $option && ( $i -lt $COMP_CWORD || $cur != -* || ( $i -gt 1 && ${COMP_WORDS[i - 1]} == -- ) ) ]]; then\n"
	      "\t\t# the program and its own arguments\n"
	      "\t\tif ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
	      "\t\t\t_command_offset \"$i\"\n"
	      "\t\telif ((i < COMP_CWORD)); then\n"
	      "\t\t\tcompopt -o filenames 2>/dev/null\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\t\telse\n"
	      "\t\t\tcompopt -o filenames 2>/dev/null\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -d -- \"$cur\")\n"
	      "\t\tfi\n"
	      "\t\treturn 0\n"
	      "\tfi\n"
	      "\tcase $option in\n", stdout);
	for (size_t i = 0; i < n; i++) {
		CLEANUP_FREE char *list = words_of(opts[i].o.name);
		enum kind kind = kind_of(opts[i].o.name, &words);
		if (kind == NOTHING)
			continue;
		printf("\t");
		put_pattern(&opts[i], "|");
		printf(") ");
		if (kind == FILES)
			printf("compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n");
		else if (kind == PIDS || kind == NAMES)
			printf("_heaptop_processes \"$cur\" %s ;;\n", kind == PIDS ? "pid" : "name");
		else
			printf("mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\") ;;\n", list);
	}
	fputs("\t'') mapfile -t COMPREPLY < <(compgen -W '", stdout);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i ? " " : "");
		put_pattern(&opts[i], " ");
		printf("%s", opts[i].arg ? "=" : "");
	}
	fputs("' -- \"$cur\")\n"
	      "\t\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null ;;\n"
	      "\tesac\n"
	      "\treturn 0\n"
	      "}\n\n"
	      "complete -F _heaptop heaptop\n", stdout);
}

/* ---- zsh, fish ---- */

/* Within single quotes; `special` characters get a backslash in front. */
static void put_quoted(const char *s, const char *special, const char *quote)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs(quote, stdout);
		else if (strchr(special, *s))
			printf("\\%c", *s);
		else
			putchar(*s);
	}
}

static void print_zsh(const struct cli_option *opts, size_t n)
{
	const char *words;

	fputs("#compdef heaptop\n"
	      "# zsh completion for heaptop; made by heaptop --completion=zsh\n\n"
	      "_heaptop_pids() {\n"
	      "  local dir name; local -a list\n"
	      "  for dir in /proc/[0-9]*(N/); do\n"
	      "    [[ -e $dir/exe && ( $EUID == 0 || -O $dir ) ]] || continue\n"
	      "    read -r name 2>/dev/null <$dir/comm || continue\n"
	      "    list+=(\"${dir#/proc/}:${name//[^[:print:]]/?}\")\n"
	      "  done\n"
	      "  _describe -V process list\n"
	      "}\n\n"
	      "_heaptop_names() {\n"
	      "  local file name; local -aU list\n"
	      "  for file in /proc/[0-9]*/comm(N); do\n"
	      "    read -r name 2>/dev/null <$file && list+=(\"${name//[^[:print:]]/?}\")\n"
	      "  done\n"
	      "  compadd -a list\n"
	      "}\n\n"
	      "_heaptop() {\n"
	      "  _arguments -s -S \\\n", stdout);
	for (size_t i = 0; i < n; i++) {
		const struct cli_option *o = &opts[i];
		CLEANUP_FREE char *list = words_of(o->o.name);
		enum kind kind = kind_of(o->o.name, &words);
		/* -p may come several times, and so may what adds to a list */
		bool again = kind == PIDS || !strcmp(o->o.name, "fail-if") || !strcmp(o->o.name, "alloc") ||
			!strcmp(o->o.name, "free") || !strcmp(o->o.name, "realloc") || !strcmp(o->o.name, "preset") ||
			!strcmp(o->o.name, "wrapper");
		for (int form = o->o.val < 256 ? 0 : 1; form < 2; form++) {
			printf("    '");
			if (again)
				printf("*");
			else if (o->o.val < 256)
				printf("(-%c --%s)", o->o.val, o->o.name);
			if (form)
				printf("--%s%s", o->o.name, o->arg ? "=" : "");
			else
				printf("-%c%s", o->o.val, o->arg ? "+" : "");
			printf("[");
			put_quoted(o->help, "[]\\", "'\\''");
			printf("]");
			if (o->arg) {
				printf(":");
				put_quoted(o->arg, ":\\", "'\\''");
				printf(":");
				if (list)
					printf("(%s)", list);
				else if (kind == FILES)
					printf("_files");
				else if (kind == PIDS || kind == NAMES)
					printf("_heaptop_%s", kind == PIDS ? "pids" : "names");
			}
			printf("' \\\n");
		}
	}
	fputs("    '(-):program:_command_names -e' \\\n"
	      "    '*::argument:_normal'\n"
	      "}\n\n"
	      "_heaptop \"$@\"\n", stdout);
}

static void print_fish(const struct cli_option *opts, size_t n)
{
	const char *words;

	fputs("# fish completion for heaptop; made by heaptop --completion=fish\n\n"
	      "complete -c heaptop -x -a '(__fish_complete_subcommand --", stdout);
	for (size_t i = 0; i < n; i++)
		if (opts[i].arg) {
			printf(" ");
			put_pattern(&opts[i], " ");
		}
	fputs(")'\n", stdout);
	for (size_t i = 0; i < n; i++) {
		const struct cli_option *o = &opts[i];
		CLEANUP_FREE char *list = words_of(o->o.name);
		enum kind kind = kind_of(o->o.name, &words);
		printf("complete -c heaptop");
		if (o->o.val < 256)
			printf(" -s %c", o->o.val);
		printf(" -l %s -d '", o->o.name);
		put_quoted(o->help, "\\", "\\'");
		printf("'");
		if (o->arg)
			printf(kind == FILES ? " -r -F" : " -x");
		if (list)
			printf(" -a '%s'", list);
		else if (kind == PIDS)
			printf(" -a '(__fish_complete_pids)'");
		else if (kind == NAMES)
			printf(" -a '(__fish_complete_proc)'");
		printf("\n");
	}
}

bool completion_print(const char *shell)
{
	static const struct {
		const char *name;
		void (*print)(const struct cli_option *opts, size_t n);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
	size_t n;
	const struct cli_option *opts = cli_options(&n);

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(shells[i].name, shell)) {
			shells[i].print(opts, n);
			return true;
		}
	return false;
}
