/*
 * May we trace a child of ours and write its memory through /proc/PID/mem, as heaptop does? Exit
 * code 0: yes, 77: no, with the reason on stderr. Asked by tests before they blame heaptop.
 *
 *	can-ptrace		ask
 *	can-ptrace hold		print the pid of a child that is being traced, until SIGTERM
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int no(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 77;
}

static int probe(pid_t child)
{
	static char byte;	/* same address in the child */
	char path[64];
	int status;

	if (ptrace(PTRACE_SEIZE, child, NULL, NULL))
		return no("PTRACE_SEIZE");
	if (ptrace(PTRACE_INTERRUPT, child, NULL, NULL))
		return no("PTRACE_INTERRUPT");
	if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status))
		return no("no stop");
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)child);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return no(path);
	ssize_t n = pwrite(fd, "x", 1, (off_t)(unsigned long)&byte);
	close(fd);
	return n == 1 ? 0 : no(path);
}

int main(int argc, char **argv)
{
	pid_t child = fork();

	if (child < 0)
		return no("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(90);
		for (;;)
			pause();
	}
	int rc = probe(child);
	if (rc == 0 && argc > 1 && strcmp(argv[1], "hold") == 0) {
		printf("%d\n", (int)child);
		fflush(stdout);
		alarm(60);
		pause();
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	return rc;
}
