/*
 * A program without an allocator: nothing to hook, though it may be traced. Built by its test, without a libc
 * (-nostdlib -static); it waits until it is killed.
 */
#include <sys/syscall.h>

void _start(void)
{
	for (;;) {
		long ret = SYS_pause;
		__asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
	}
}
