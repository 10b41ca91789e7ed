/*
 * A program that keeps whoever touches its memory: when SIGUSR1 comes it takes the pages of each mapping that a fork
 * would wipe (heaptop's agent has one) out, and hands the faults there to a userfaultfd(2) that nobody reads. Prints
 * "ready", and "laid N" with the number of them, -1 if the kernel refuses. Until SIGKILL.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int lay(int fd, unsigned long from, unsigned long to)
{
	struct uffdio_register range = {
		.range = { .start = from, .len = to - from }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return !ioctl(fd, UFFDIO_REGISTER, &range) && !madvise((void *)from, to - from, MADV_DONTNEED);
}

/* No stdio: a malloc would be the first to wait. */
static int lay_all(void)
{
	static char text[1 << 20];
	struct uffdio_api api = { .api = UFFD_API };
	unsigned long from = 0, to = 0, a, b;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), n = 0;
	int smaps = open("/proc/self/smaps", O_RDONLY);
	size_t len = 0;
	ssize_t got;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		return -1;
	while ((got = read(smaps, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)got;
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			from = a;
			to = b;
		} else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " wf")) {
			n += lay(fd, from, to);
		}
		line = end + 1;
	}
	return n;
}

int main(void)
{
	sigset_t set;
	char said[32];
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	free(malloc(100));
	if (write(1, "ready\n", 6) != 6)
		return 1;
	sigwait(&set, &sig);
	int n = snprintf(said, sizeof(said), "laid %d\n", lay_all());
	if (write(1, said, (size_t)n) != n)
		return 1;
	for (;;)
		pause();
}
