/* Careful files; see file.h. */
#include "export/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

struct new_file {
	char *path;
	char *name;		/* last component */
	char *temp;		/* name it has while it is written */
	int dir;
	FILE *stream;
};

char *file_expand(const char *path, int pid)
{
	char *out = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&out, &len);
	char text[256];

	if (!stream)
		return xstrdup(path);
	for (const char *s = path; *s; s++) {
		if (*s != '%' || !s[1]) {
			fputc(*s, stream);
			continue;
		}
		switch (*++s) {
		case 'p':
			fprintf(stream, "%d", pid);
			break;
		case 'h':
			if (gethostname(text, sizeof(text)))
				strcpy(text, "localhost");
			text[sizeof(text) - 1] = '\0';
			for (char *c = text; *c; c++)
				if (*c == '/')
					*c = '_';
			fputs(text, stream);
			break;
		case 't': {
			time_t now = time(NULL);
			struct tm tm;
			if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm))
				fputs(text, stream);
			break;
		}
		case '%':
			fputc('%', stream);
			break;
		default:
			fputc('%', stream);
			fputc(*s, stream);
		}
	}
	fclose(stream);
	return out;
}

static void new_file_free(struct new_file *file)
{
	if (file->stream)
		fclose(file->stream);
	if (file->dir >= 0)
		close(file->dir);
	free(file->path);
	free(file->name);
	free(file->temp);
	free(file);
}

static struct err *check_place(const struct new_file *file)
{
	struct stat st;

	if (!*file->name || !strcmp(file->name, ".") || !strcmp(file->name, ".."))
		return err_new(ERR_BAD_INPUT, "%s: this is a folder, not a file name", file->path);
	if (fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? NULL : err_errno(errno, "%s", file->path);
	if (S_ISLNK(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: a symbolic link; not followed: remove it or name "
			       "its target", file->path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: exists and is no regular file", file->path);
	return NULL;
}

static struct err *open_temp(struct new_file *file)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		uint64_t number;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			number = (uint64_t)attempt << 32 | (uint32_t)getpid();
		free(file->temp);
		/* names have 255 bytes at most: don't add to a long one */
		file->temp = xasprintf(".%.200s.%08llx", file->name,
				       (unsigned long long)(number & 0xffffffff));
		int fd = openat(file->dir, file->temp,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd >= 0) {
			file->stream = fdopen(fd, "w");
			if (file->stream)
				return NULL;
			close(fd);
			unlinkat(file->dir, file->temp, 0);
			return err_errno(errno, "%s", file->path);
		}
		if (errno != EEXIST)
			break;
	}
	return err_errno(errno, "%s", file->path);
}

struct err *file_begin(const char *path, struct new_file **ret, FILE **ret_stream)
{
	struct new_file *file = xcalloc(1, sizeof(*file));
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *dir = slash == path ? xstrdup("/")
		: slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
	struct err *err = NULL;

	file->path = xstrdup(path);
	file->name = xstrdup(slash ? slash + 1 : path);
	file->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->dir < 0)
		err = err_errno(errno, "%s", path);
	if (!err)
		err = check_place(file);
	if (!err)
		err = open_temp(file);
	if (err) {
		new_file_free(file);
		return err;
	}
	*ret = file;
	*ret_stream = file->stream;
	return NULL;
}

void file_abandon(struct new_file *file)
{
	unlinkat(file->dir, file->temp, 0);
	new_file_free(file);
}

struct err *file_commit(struct new_file *file)
{
	struct err *err = NULL;
	FILE *stream = file->stream;

	file->stream = NULL;
	errno = 0;
	bool failed = ferror(stream);
	if (fclose(stream) || failed)
		err = err_errno(errno ? errno : EIO, "%s", file->path);
	if (!err)
		err = check_place(file);
	/* rename replaces a link itself, should one have been put there since */
	if (!err && renameat(file->dir, file->temp, file->dir, file->name))
		err = err_errno(errno, "%s", file->path);
	if (err)
		unlinkat(file->dir, file->temp, 0);
	new_file_free(file);
	return err;
}

struct err *file_read_all(const char *path, size_t max, uint8_t **ret, size_t *ret_len)
{
	CLEANUP_CLOSE int fd = !strcmp(path, "-") ? dup(STDIN_FILENO)
		: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	uint8_t *bytes = NULL;
	size_t n = 0, cap = 0;

	if (fd < 0)
		return err_errno(errno, "%s", path);
	for (;;) {
		if (n == cap) {
			cap = cap ? cap * 2 : 65536;
			bytes = xreallocarray(bytes, cap, 1);
		}
		ssize_t got = read(fd, bytes + n, cap - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || n + (size_t)got > max) {
			int errnum = errno;
			free(bytes);
			if (got < 0)
				return err_errno(errnum, "%s", path);
			return err_new(ERR_BAD_INPUT, "%s: larger than %zu MiB", path, max >> 20);
		}
		if (!got)
			break;
		n += (size_t)got;
	}
	*ret = bytes;
	*ret_len = n;
	return NULL;
}
