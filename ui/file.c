/* See file.h. */
#include "ui/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

struct err *file_write(const char *path, const char *text)
{
	CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
	struct stat st;

	if (fd < 0)
		return err_errno(errno, "%s", path);
	if (fstat(fd, &st))
		return err_errno(errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: not a regular file", path);
	if (ftruncate(fd, 0))
		return err_errno(errno, "%s", path);
	for (size_t len = strlen(text); len;) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(n ? errno : EIO, "%s", path);
		text += n;
		len -= n;
	}
	return NULL;
}
