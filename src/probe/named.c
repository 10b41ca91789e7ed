/* What the user names: words and preset files; see named.h. */
#include "probe/named.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#define LINE_MAX_BYTES 4096
#define FILE_MAX_LINES 1000
#define NAMES_SHOWN 256		/* characters of the list of presets in a message */

static const char *const role_names[] = { "alloc", "free", "realloc" };

/* ---- WHERE ---- */

static bool parse_hex(const char *s, uint64_t *ret)
{
	char *end;

	if (strncmp(s, "0x", 2) || !s[2] || strspn(s + 2, "0123456789abcdefABCDEF") != strlen(s + 2))
		return false;
	errno = 0;
	*ret = strtoull(s, &end, 16);
	return !errno && !*end;
}

static struct err *parse_where(struct named *m, const char *where)
{
	const char *bang = strchr(where, '!'), *plus = strstr(where, "+0x");

	if (!strncmp(where, "0x", 2)) {
		if (!parse_hex(where, &m->offset) || !m->offset)
			return err_new(ERR_BAD_INPUT, "'%s' is no address", where);
		return NULL;
	}
	if (bang) {
		m->module = xstrndup(where, (size_t)(bang - where));
		m->symbol = xstrdup(bang + 1);
	} else if (plus) {
		m->module = xstrndup(where, (size_t)(plus - where));
		if (!parse_hex(plus + 1, &m->offset) || !m->offset)
			return err_new(ERR_BAD_INPUT, "'%s' is no offset in a module", plus + 1);
	} else {
		m->symbol = xstrdup(where);
	}
	if ((m->module && !*m->module) || (m->symbol && !*m->symbol))
		return err_new(ERR_BAD_INPUT, "name a function: symbol, module!symbol, module+0xOFFSET or 0xADDRESS");
	return NULL;
}

/* ---- KEY=VALUE ---- */

static struct err *parse_argument(const char *key, const char *value, uint8_t *ret)
{
	if (value[0] < '1' || value[0] > '0' + (char)WIRE_ARGS_MAX || value[1])
		return err_new(ERR_BAD_INPUT, "%s is the number of an argument, from 1 to %u", key, WIRE_ARGS_MAX);
	if (*ret)
		return err_new(ERR_BAD_INPUT, "%s is said twice", key);
	*ret = (uint8_t)(value[0] - '0');
	return NULL;
}

static struct err *parse_key(struct wire_args *args, char *word)
{
	char *value = strchr(word, '=');
	uint8_t align = 0;	/* changes nothing: the bytes asked for are what counts */
	uint64_t bytes;

	if (!strcmp(word, "int")) {
		args->flags |= WIRE_ARGS_INT;
		return NULL;
	}
	if (!value)
		return err_new(ERR_BAD_INPUT, "'%s' isn't of the form size=N", word);
	*value++ = 0;
	const struct {
		const char *key;
		uint8_t *to;
	} keys[] = { { "size", &args->size }, { "count", &args->count }, { "ptr", &args->pointer },
		     { "out", &args->out }, { "align", &align } };
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(word, keys[i].key))
			return parse_argument(word, value, keys[i].to);
	if (strcmp(word, "bytes"))
		return err_new(ERR_BAD_INPUT, "'%s' is none of size, count, ptr, out, align, bytes, int", word);
	if (!text_parse_size(value, &bytes) || !bytes || bytes > UINT32_MAX)
		return err_new(ERR_BAD_INPUT, "bytes: '%s' is no size such as 64 or 4K", value);
	args->bytes = (uint32_t)bytes;
	return NULL;
}

/* Do the keys together make sense for that role? */
static struct err *check_keys(enum named_role role, const struct wire_args *args)
{
	bool sized = args->size || args->bytes;

	if (args->size && args->bytes)
		return err_new(ERR_BAD_INPUT, "either size or bytes");
	if (args->count && !args->size)
		return err_new(ERR_BAD_INPUT, "count goes with size");
	if (role == NAMED_FREE)
		return !args->pointer ? err_new(ERR_BAD_INPUT, "ptr=N must say which argument is freed") :
		       sized || args->out ? err_new(ERR_BAD_INPUT, "a free has no other key than ptr") : NULL;
	if (!sized)
		return err_new(ERR_BAD_INPUT, "size=N must say which argument is the size, or bytes=N how much it is");
	if (role == NAMED_ALLOC && args->pointer)
		return err_new(ERR_BAD_INPUT, "ptr is for functions that free or reallocate");
	if (role == NAMED_REALLOC && !args->pointer)
		return err_new(ERR_BAD_INPUT, "ptr=N must say which argument is the old block");
	return NULL;
}

static enum wire_hook_kind kind_of(enum named_role role, const struct wire_args *args)
{
	switch (role) {
	case NAMED_FREE:
		return args->pointer == 1 ? WIRE_HOOK_FREE : WIRE_HOOK_RELEASE;
	case NAMED_REALLOC:
		return WIRE_HOOK_REALLOC;
	default:
		return WIRE_HOOK_ALLOC;
	}
}

static void deinit(struct named *m)
{
	free(m->text);
	free(m->module);
	free(m->symbol);
}

static struct err *parse(struct named *m, enum named_role role, const char *text)
{
	const char *open = strchr(text, '(');
	size_t len = strlen(text);

	if (!open || text[len - 1] != ')')
		return err_new(ERR_BAD_INPUT, "write it as %s", role == NAMED_FREE ? "FUNCTION(ptr=N)" :
			       role == NAMED_ALLOC ? "FUNCTION(size=N)" : "FUNCTION(ptr=N,size=N)");
	CLEANUP_FREE char *where = xstrndup(text, (size_t)(open - text));
	CLEANUP_FREE char *keys = xstrndup(open + 1, len - (size_t)(open - text) - 2);
	struct err *err = parse_where(m, where);
	struct wire_args args = { 0 };

	char *rest = keys;
	for (char *word; !err && *keys && (word = strsep(&rest, ","));)
		err = parse_key(&args, word);
	if (!err)
		err = check_keys(role, &args);
	if (err)
		return err;
	if (args.out)
		args.returns = WIRE_RETURNS_STATUS;
	m->entry = (struct entry){ .kind = kind_of(role, &args), .args = args };
	return NULL;
}

struct err *named_add(struct named_list *list, enum named_role role, const char *text)
{
	struct named m = { .text = xstrdup(text) };

	/* blanks say nothing */
	size_t to = 0;
	for (const char *c = text; *c; c++)
		if (*c != ' ' && *c != '\t')
			m.text[to++] = *c;
	m.text[to] = 0;
	struct err *err = parse(&m, role, m.text);
	if (err) {
		deinit(&m);
		return err_prefix(err, "'%s'", text);
	}
	m.entry.name = m.symbol ? m.symbol : m.text;
	VEC_GROW(list->items, list->n, list->cap);
	list->items[list->n++] = m;
	return NULL;
}

/* ---- presets ---- */

static struct err *parse_line(struct named_list *list, const char *line)
{
	size_t blank = strspn(line, " \t");

	line += blank;
	if (!*line || *line == '#')
		return NULL;
	for (unsigned role = 0; role < ARRAY_SIZE(role_names); role++) {
		size_t len = strlen(role_names[role]);

		if (strncmp(line, role_names[role], len) || line[len] != '=')
			continue;
		struct err *err = named_add(list, (enum named_role)role, line + len + 1);
		if (!err)
			list->items[list->n - 1].optional = true;
		return err;
	}
	return err_new(ERR_BAD_INPUT, "a line begins with alloc=, free=, realloc= or #");
}

static struct err *read_file(struct named_list *list, FILE *file, const char *path)
{
	char line[LINE_MAX_BYTES];
	unsigned n = 0;

	while (fgets(line, sizeof(line), file)) {
		size_t len = strlen(line);

		if (++n > FILE_MAX_LINES || (len == sizeof(line) - 1 && line[len - 1] != '\n'))
			return err_new(ERR_BAD_INPUT, "%s is too long for a preset", path);
		while (len && strchr("\r\n \t", line[len - 1]))
			line[--len] = 0;
		struct err *err = parse_line(list, line);
		if (err)
			return err_prefix(err, "%s, line %u", path, n);
	}
	return ferror(file) ? err_errno(errno, "%s", path) : NULL;
}

static void list_dir(const char *path, char *out, size_t size)
{
	DIR *dir = path ? opendir(path) : NULL;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		size_t len = strlen(out);
		if (*e->d_name != '.' && len + strlen(e->d_name) + 3 < size)
			sprintf(out + len, "%s%s", len ? ", " : "", e->d_name);
	}
	if (dir)
		closedir(dir);
}

struct err *named_add_preset(struct named_list *list, const char *name, const char *dir)
{
	CLEANUP_FREE char *own = config_user_path("presets");
	const char *const dirs[] = { own, dir };

	if (!*name || strchr(name, '/') || *name == '.')
		return err_new(ERR_BAD_INPUT, "'%s' is no preset's name", name);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (!dirs[i])
			continue;
		CLEANUP_FREE char *path = xasprintf("%s/%s", dirs[i], name);
		FILE *file = fopen(path, "re");
		if (!file && errno == ENOENT)
			continue;
		if (!file)
			return err_errno(errno, "%s", path);
		struct stat st;
		struct err *err = fstat(fileno(file), &st) || !S_ISREG(st.st_mode) ?
			err_new(ERR_BAD_INPUT, "%s is no file", path) : read_file(list, file, path);
		fclose(file);
		return err;
	}
	char there[NAMES_SHOWN] = "";
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		list_dir(dirs[i], there, sizeof(there));
	return err_new(ERR_NOT_FOUND, "there is no preset '%s'; those there are: %s", name, *there ? there : "none");
}

/* "libapr-1" and "libapr-1.so.0.7.2" both say the latter. */
bool named_in_module(const struct named *m, const char *name)
{
	size_t len;

	if (!m->module)
		return true;
	len = strlen(m->module);
	return !strncmp(m->module, name, len) && (!name[len] || name[len] == '.');
}

void named_list_deinit(struct named_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		deinit(&list->items[i]);
	free(list->items);
	*list = (struct named_list){ 0 };
}
