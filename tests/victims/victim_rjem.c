/*
 * jemalloc as Rust programs have it, every function prefixed with _rjem_, beside the C library's own: known
 * numbers of calls of both. Writes "SITE SIZE BLOCKS LIVE" per size to the file named.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *_rjem_malloc(size_t size);
void *_rjem_calloc(size_t n, size_t size);
void *_rjem_realloc(void *p, size_t size);
void _rjem_free(void *p);
int _rjem_posix_memalign(void **p, size_t align, size_t size);
void *_rjem_mallocx(size_t size, int flags);
void *_rjem_rallocx(void *p, size_t size, int flags);
size_t _rjem_xallocx(void *p, size_t size, size_t extra, int flags);
void _rjem_dallocx(void *p, int flags);
void _rjem_sdallocx(void *p, size_t size, int flags);

static void *volatile keep;

#define TIMES(n, ...) for (int i = 0; i < (n); i++) { __VA_ARGS__; }
#define TOLD(size, blocks, live) printf("%s %d %d %d\n", __func__, size, blocks, live)

static void site_standard(void)
{
	void *p = NULL;

	TIMES(900, keep = _rjem_malloc(1101); _rjem_free(keep));
	TOLD(1101, 900, 0);
	TIMES(50, keep = _rjem_calloc(3, 401));
	TOLD(1203, 50, 50);
	TIMES(60, keep = _rjem_realloc(NULL, 1305); keep = _rjem_realloc(keep, 9000); _rjem_free(keep));
	TOLD(1305, 60, 0);
	TOLD(9000, 60, 0);
	TIMES(70, if (_rjem_posix_memalign(&p, 256, 1408)) exit(1); _rjem_free(p));
	TOLD(1408, 70, 0);
}

static void site_own(void)
{
	int grown = 0;

	TIMES(800, keep = _rjem_mallocx(1501, 0); _rjem_dallocx(keep, 0));
	TOLD(1501, 800, 0);
	TIMES(40, keep = _rjem_mallocx(1602, 0); keep = _rjem_rallocx(keep, 7000, 0); _rjem_sdallocx(keep, 7000, 0));
	TOLD(1602, 40, 0);
	TOLD(7000, 40, 0);
	/* in place: within its size class it can, far beyond it can't */
	TIMES(30, keep = _rjem_mallocx(1700, 0); grown += _rjem_xallocx(keep, 1710, 0, 0) >= 1710;
	      if (_rjem_xallocx(keep, 1 << 26, 0, 0) >= 1 << 26) exit(1); _rjem_dallocx(keep, 0));
	TOLD(1700, 30, 0);
	TOLD(1710, grown, 0);
}

static void site_c(void)
{
	TIMES(100, keep = malloc(1801));
	TOLD(1801, 100, 100);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !freopen(argv[1], "w", stdout))
		return 1;
	setvbuf(stdout, NULL, _IOFBF, 4096);
	site_standard();
	site_own();
	site_c();
	puts("ok");
	fflush(stdout);
	_exit(3);
}
