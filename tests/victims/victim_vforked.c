/*
 * Children made by clone(2) with CLONE_VFORK and without CLONE_VM: they have a copy of the memory, and the parent waits
 * for their ends (tests/target/vforked.sh). parent_site: 10 blocks of 100 bytes, child_site: 30 of 10 in each of
 * three children, one after the other. Ends with 7.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE static __attribute__((noinline, noclone))

static void *volatile keep;

SITE void parent_site(void)
{
	keep = malloc(100);
}

SITE void child_site(void)
{
	keep = malloc(10);
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		int status;
		long pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0L, 0L, 0L, 0L);

		if (pid < 0)
			return 2;
		if (!pid) {
			for (int k = 0; k < 30; k++)
				child_site();
			_exit(3);
		}
		if (waitpid((pid_t)pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
			return 2;
	}
	for (int i = 0; i < 10; i++)
		parent_site();
	return 7;
}
