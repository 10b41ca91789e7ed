/*
 * Every form of operator new and delete a known number of times, each with a size nothing else uses; such as
 * fail: bad_alloc is caught, nothrow gives NULL, and a new-handler is asked. Then C's functions. Writes
 * "SITE SIZE BLOCKS LIVE" per size to the file named, and "ok" if all the exceptions came. With another argument none fails: some
 * allocators abort where they should throw.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

/* Not through the compiler's eyes: it may leave out pairs of new and delete. */
static void *volatile keep;
static volatile std::size_t huge = PTRDIFF_MAX;
static int caught, asked, nulls;

#define TIMES(n, ...) for (int i = 0; i < (n); i++) { __VA_ARGS__; }
static void told(const char *site, unsigned size, unsigned blocks, unsigned live)
{
	std::printf("%s %u %u %u\n", site, size, blocks, live);
}

static void handler()
{
	if (++asked % 3 == 0)
		throw std::bad_alloc();
}

static void site_plain()
{
	TIMES(2000, keep = ::operator new(1601); ::operator delete(keep));
	told(__func__, 1601, 2000, 0);
	TIMES(300, keep = ::operator new(1602));
	told(__func__, 1602, 300, 300);
	TIMES(700, keep = ::operator new[](1603); ::operator delete[](keep));
	told(__func__, 1603, 700, 0);
	TIMES(400, keep = ::operator new(1604, std::nothrow); ::operator delete(keep, std::nothrow));
	told(__func__, 1604, 400, 0);
	TIMES(410, keep = ::operator new[](1605, std::nothrow); ::operator delete[](keep, std::nothrow));
	told(__func__, 1605, 410, 0);
	TIMES(420, keep = ::operator new(1606); ::operator delete(keep, std::size_t(1606)));
	told(__func__, 1606, 420, 0);
	TIMES(430, keep = ::operator new[](1607); ::operator delete[](keep, std::size_t(1607)));
	told(__func__, 1607, 430, 0);
}

static void site_aligned()
{
	const std::align_val_t a{128};

	TIMES(500, keep = ::operator new(1664, a); ::operator delete(keep, a));
	told(__func__, 1664, 500, 0);
	TIMES(510, keep = ::operator new[](1792, a); ::operator delete[](keep, a));
	told(__func__, 1792, 510, 0);
	TIMES(520, keep = ::operator new(1920, a, std::nothrow); ::operator delete(keep, a, std::nothrow));
	told(__func__, 1920, 520, 0);
	TIMES(530, keep = ::operator new[](2048, a, std::nothrow); ::operator delete[](keep, a, std::nothrow));
	told(__func__, 2048, 530, 0);
	TIMES(540, keep = ::operator new(2176, a); ::operator delete(keep, std::size_t(2176), a));
	told(__func__, 2176, 540, 0);
	TIMES(550, keep = ::operator new[](2304, a); ::operator delete[](keep, std::size_t(2304), a));
	told(__func__, 2304, 580, 30);
	TIMES(30, keep = ::operator new[](2304, a));
}

/* An exception through here must find its way past whatever called the allocator. */
__attribute__((noinline)) static void site_failing(int how)
{
	try {
		keep = how == 0 ? ::operator new(huge) : how == 1 ? ::operator new[](huge) :
			how == 2 ? ::operator new(huge, std::align_val_t(64)) :
			::operator new[](huge, std::align_val_t(64));
	} catch (const std::bad_alloc &) {
		caught++;
	}
}

static void failures()
{
	for (int i = 0; i < 400; i++)
		site_failing(i % 4);
	for (int i = 0; i < 100; i++) {
		nulls += !::operator new(huge, std::nothrow);
		nulls += !::operator new[](huge, std::nothrow);
	}
	std::set_new_handler(handler);
	for (int i = 0; i < 100; i++)
		site_failing(i % 2);
	std::set_new_handler(nullptr);
}

static void site_c()
{
	TIMES(600, keep = std::malloc(1401); std::free(keep));
	told(__func__, 1401, 600, 0);
	TIMES(610, keep = std::calloc(3, 501); std::free(keep));
	told(__func__, 1503, 610, 0);
	TIMES(20, keep = std::realloc(nullptr, 1403); keep = std::realloc(keep, 1404));
	told(__func__, 1403, 20, 0);
	told(__func__, 1404, 20, 20);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !std::freopen(argv[1], "w", stdout))
		return 1;
	setvbuf(stdout, nullptr, _IOFBF, 4096);
	site_plain();
	site_aligned();
	site_c();
	if (argc < 3)
		failures();
	if (argc < 3 && (caught != 500 || nulls != 200 || !asked))
		std::printf("caught %d, %d NULL, handler asked %d times\n", caught, nulls, asked);
	else
		std::puts("ok");
	std::fflush(stdout);
	std::_Exit(3);
}
