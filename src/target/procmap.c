/*
 * PROCMAP_QUERY; see procmap.h. The structure is declared here, since <linux/fs.h> of the systems
 * heaptop is built on is often older than the kernel it then runs on.
 */
#include "target/procmap.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "elf/modules.h"
#include "target/maps.h"

/* struct procmap_query of include/uapi/linux/fs.h. */
struct query {
	uint64_t size;		/* of this structure */
	uint64_t flags;		/* QUERY_*: only such mappings; 0 any, and only one that holds addr */
	uint64_t addr;
	uint64_t start, end;	/* from here on what the kernel answers */
	uint64_t prot;		/* QUERY_* */
	uint64_t page_size, offset, inode;
	uint32_t major, minor;
	uint32_t name_size;	/* room at name, then bytes written with the NUL; 0: it has no name */
	uint32_t build_id_size;
	uint64_t name, build_id;	/* addresses of ours */
};

#define QUERY_READABLE 0x01u
#define QUERY_WRITABLE 0x02u
#define QUERY_EXECUTABLE 0x04u
#define QUERY_SHARED 0x08u
#define QUERY _IOWR('f', 17, struct query)

int procmap_query(int fd, uint64_t addr, char *path, struct mapping *ret)
{
	struct query q = {
		.size = sizeof(q),
		.addr = addr,
		.name_size = PROCMAP_PATH,
		.name = (uintptr_t)path,
	};

	if (ioctl(fd, QUERY, &q))
		return errno;
	if (!q.name_size || q.name_size > PROCMAP_PATH)
		q.name_size = 1;
	path[q.name_size - 1] = '\0';
	*ret = (struct mapping){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.dev = makedev(q.major, q.minor),
		.inode = q.inode,
		.prot = (uint8_t)((q.prot & QUERY_READABLE ? PROT_READ : 0) |
				  (q.prot & QUERY_WRITABLE ? PROT_WRITE : 0) |
				  (q.prot & QUERY_EXECUTABLE ? PROT_EXEC : 0)),
		.shared = q.prot & QUERY_SHARED,
	};
	maps_set_path(ret, path);
	return 0;
}
