/* See bpf.h. */
#include "target/bpf.h"

#include <string.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/mem.h"

static int to_log(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level != LIBBPF_DEBUG) {
		CLEANUP_FREE char *text = xvasprintf(fmt, args);
		text[strcspn(text, "\n")] = '\0';
		log_line("%s", text);
	}
	return 0;
}

void bpf_say_to_log(void)
{
	libbpf_set_print(to_log);
}
