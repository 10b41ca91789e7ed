/*
 * Which files are open: one elf_file for a file, however many processes, or images of one process
 * after an exec, have it mapped. The table holds no references: a file is in it as long as somebody
 * else holds one.
 *
 * It is the one table of its kind in heaptop, as there is one file system: passed in, it would have to
 * go through each module table, whose whole point is to know nothing of the others.
 */
#include <string.h>
#include <sys/stat.h>

#include "elf/internal.h"

#define BUCKETS 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct elf_file *buckets[BUCKETS];	/* linked by next_shared */

static struct elf_file **bucket_of(uint64_t dev, uint64_t inode)
{
	return &buckets[(inode ^ inode >> 10 ^ dev * 31) % BUCKETS];
}

/*
 * An inode number isn't given out again while our descriptor keeps the file; size and time tell
 * whether it was written to since. The path is part of it for what is found beside the file.
 */
static bool is_file(const struct elf_file *f, const struct stat *st, const char *path)
{
	return f->inode == st->st_ino && f->dev == st->st_dev && f->size == (uint64_t)st->st_size &&
	       f->mtime.tv_sec == st->st_mtim.tv_sec && f->mtime.tv_nsec == st->st_mtim.tv_nsec &&
	       !strcmp(f->path, path);
}

static struct elf_file *find(const struct stat *st, const char *path)
{
	struct elf_file *f = *bucket_of(st->st_dev, st->st_ino);

	while (f && !is_file(f, st, path))
		f = f->next_shared;
	return f ? elf_file_ref(f) : NULL;
}

struct elf_file *elf_shared_find(const struct stat *st, const char *path)
{
	pthread_mutex_lock(&lock);
	struct elf_file *f = find(st, path);
	pthread_mutex_unlock(&lock);
	return f;
}

struct elf_file *elf_shared_add(struct elf_file *file, const struct stat *st)
{
	struct elf_file **bucket = bucket_of(file->dev, file->inode);

	pthread_mutex_lock(&lock);
	struct elf_file *other = find(st, file->path);
	if (!other) {
		file->next_shared = *bucket;
		*bucket = file;
	}
	pthread_mutex_unlock(&lock);
	return other;
}

bool elf_shared_drop(struct elf_file *file)
{
	int refs = __atomic_load_n(&file->refs, __ATOMIC_RELAXED);

	while (refs > 1)
		if (__atomic_compare_exchange_n(&file->refs, &refs, refs - 1, true, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return false;
	/* Perhaps the last one: nobody may find the file in the table meanwhile. */
	pthread_mutex_lock(&lock);
	bool last = !__atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL);
	for (struct elf_file **f = bucket_of(file->dev, file->inode); last && *f;
	     f = &(*f)->next_shared) {
		if (*f == file) {
			*f = file->next_shared;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return last;
}
