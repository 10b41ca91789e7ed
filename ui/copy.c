/* See copy.h. */
#include "ui/copy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "export/file.h"

#define SCREEN_PIECE 700u	/* screen drops strings of more than 768 bytes */

static void put_base64(FILE *out, const char *text, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = 0;
		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < len ? (unsigned char)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			fputc(i + k <= len ? digits[v >> (18 - 6 * k) & 63] : '=', out);
	}
}

static char *plain(const char *text, size_t len)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	fputs("\033]52;c;", out);
	put_base64(out, text, len);
	fputc('\a', out);
	fclose(out);
	return ret;
}

char *copy_sequence(const char *text, size_t len, enum copy_through through)
{
	char *seq = plain(text, len), *ret = NULL;
	size_t size, n = strlen(seq);

	if (through == COPY_PLAIN)
		return seq;
	FILE *out = open_memstream(&ret, &size);
	if (through == COPY_TMUX) {
		/* an ESC within is doubled; there is only the first */
		fprintf(out, "%s\033Ptmux;\033%s\033\\", seq, seq);
	} else {
		for (size_t i = 0; i < n; i += SCREEN_PIECE)
			fprintf(out, "\033P%.*s\033\\", (int)SCREEN_PIECE, seq + i);
	}
	fclose(out);
	free(seq);
	return ret;
}

enum copy_through copy_way(const char *tmux, const char *sty)
{
	return tmux && *tmux ? COPY_TMUX : sty && *sty ? COPY_SCREEN : COPY_PLAIN;
}

bool copy_terminal_can(const char *term)
{
	return term && *term && strcmp(term, "linux") && strcmp(term, "dumb") && strncmp(term, "vt", 2);
}

struct err *copy_file(const char *path, const char *text)
{
	struct new_file *file;
	FILE *out;

	struct err *err = config_make_dirs(path);
	if (!err)
		err = file_begin(path, &file, &out);
	if (err)
		return err;
	fchmod(fileno(out), 0600);
	fputs(text, out);
	return file_commit(file);
}
