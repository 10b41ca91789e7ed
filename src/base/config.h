/*
 * Files of settings: lines "key = value", blank lines, and comments behind "#" at a line's beginning. Reading
 * them, changing a text of that kind with everything else in it kept, and the folders they lie in. What the
 * keys mean is for others to know. A file is the user's own, yet any bytes are allowed. Any thread.
 */
#ifndef HEAPTOP_BASE_CONFIG_H
#define HEAPTOP_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define CONFIG_MAX_BYTES (256u << 10)	/* of a file */

/*
 * Take the next line off a text (in place: the line and its halves end with NUL). Returns the text behind
 * it, NULL at the end; *ret_key NULL: nothing to look at in this line. *ret_value NULL: it has no "=". A key
 * ends at the first "=", but at the last if it begins with "bind ": that is a key of the keyboard. Blanks around
 * both, and quotes around the value ("..."), are cut off. Nothing is sanitised.
 */
char *config_next(char *text, char **ret_key, char **ret_value);

struct config_setting {
	const char *key, *value;	/* value NULL: there shall be none */
};

/*
 * The text with these settings: each stands where it stood (the last place, which is what counted; others of
 * that key go), or at the end. Everything else stays as it is. The caller frees.
 */
char *config_change(const char *text, const struct config_setting *settings, size_t n);

/* A regular file of at most CONFIG_MAX_BYTES, NUL behind it; the caller frees. ERR_NOT_FOUND: there is none. */
struct err *config_read(const char *path, char **ret);

/* NAME in the user's folder of that kind, $XDG_CONFIG_HOME/heaptop or ~/.config/heaptop, and $XDG_STATE_HOME/heaptop
 * or ~/.local/state/heaptop; NULL: there is no such folder. The caller frees. */
char *config_user_path(const char *name);
char *config_state_path(const char *name);

/* Make the folders above this file, as mkdir -p would, for the user alone. */
struct err *config_make_dirs(const char *path);

#endif
