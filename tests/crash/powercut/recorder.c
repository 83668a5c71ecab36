/*
 * crash/powercut/recorder.c - a file in memory as a disk, with a log of every write and flush.
 *
 *     helper-recorder MOUNTPOINT IMAGE LOG
 *
 * Mounts a FUSE file system with one file, "disk", the content of which is IMAGE. A loop device on it is
 * a disk whose order of writes and flushes is known, so that each state a power cut could leave can
 * be made from LOG: records of three 64-bit numbers, 'W' offset length and the bytes, or 'S' 0 0 for
 * a flush. Speaks to /dev/fuse itself: two dozen lines against a library. Ends when it is unmounted. Root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DISK_NODE 2
#define WRITE_MAX ((uint32_t)1 << 20)
#define FOR_EVER  1000

static int fuse_fd, log_fd;
static char *disk;
static uint64_t disk_size;

static void die(const char *what)
{
	fprintf(stderr, "helper-recorder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void reply(uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + len), .error = error,
					.unique = unique };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)(uintptr_t)data, len } };

	if (writev(fuse_fd, parts, len ? 2 : 1) < 0 && errno != ENOENT)
		die("reply");
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096, .mode = S_IFDIR | 0755 };

	if (node == DISK_NODE) {
		attr.mode = S_IFREG | 0600;
		attr.size = disk_size;
		attr.blocks = disk_size / 512;
	}
	return attr;
}

static void note(uint64_t kind, uint64_t offset, const void *bytes, size_t len)
{
	uint64_t head[3] = { kind, offset, len };
	struct iovec parts[] = { { head, sizeof(head) }, { (void *)(uintptr_t)bytes, len } };

	if (writev(log_fd, parts, len ? 2 : 1) != (ssize_t)(sizeof(head) + len))
		die("log");
}

static void answer(const struct fuse_in_header *in, const void *body)
{
	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *init = body;
		struct fuse_init_out out = { .major = 7, .minor = 31, .max_readahead = init->max_readahead,
					     .flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES,
					     .max_background = 64, .congestion_threshold = 48,
					     .max_write = WRITE_MAX, .max_pages = 256, .time_gran = 1 };

		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = { .nodeid = DISK_NODE, .entry_valid = FOR_EVER,
					      .attr_valid = FOR_EVER, .attr = attr_of(DISK_NODE) };

		if (strcmp(body, "disk") != 0)
			reply(in->unique, -ENOENT, NULL, 0);
		else
			reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR:
	case FUSE_SETATTR: {
		struct fuse_attr_out out = { .attr_valid = FOR_EVER, .attr = attr_of(in->nodeid) };

		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR: {
		struct fuse_open_out out = { .fh = 1 };

		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ: {
		const struct fuse_read_in *read_in = body;
		uint64_t len = read_in->offset >= disk_size ? 0 : read_in->size;

		if (read_in->offset + len > disk_size)
			len = disk_size - read_in->offset;
		reply(in->unique, 0, disk + read_in->offset, len);
		break;
	}
	case FUSE_WRITE: {
		const struct fuse_write_in *write_in = body;
		struct fuse_write_out out = { .size = write_in->size };

		memcpy(disk + write_in->offset, write_in + 1, write_in->size);
		note('W', write_in->offset, write_in + 1, write_in->size);
		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_FSYNC:
		note('S', 0, NULL, 0);
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_STATFS: {
		struct fuse_statfs_out out = { .st = { .bsize = 4096, .blocks = disk_size / 4096,
						       .namelen = 255 } };

		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	case FUSE_FALLOCATE:
		reply(in->unique, -EOPNOTSUPP, NULL, 0);
		break;
	default:
		reply(in->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	static char request[2 * WRITE_MAX];

	for (;;) {
		ssize_t n = read(fuse_fd, request, sizeof(request));

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < 0 && errno == ENODEV)
			return; /* unmounted */
		if (n < 0)
			die("read");
		answer((const void *)request, request + sizeof(struct fuse_in_header));
	}
}

int main(int argc, char **argv)
{
	char options[96];
	struct stat st;
	int image;

	if (argc != 4) {
		fprintf(stderr, "usage: helper-recorder MOUNTPOINT IMAGE LOG\n");
		return 2;
	}
	image = open(argv[2], O_RDWR | O_CLOEXEC);
	if (image < 0 || fstat(image, &st) < 0)
		die(argv[2]);
	disk_size = (uint64_t)st.st_size;
	disk = mmap(NULL, disk_size, PROT_READ | PROT_WRITE, MAP_SHARED, image, 0);
	log_fd = open(argv[3], O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (disk == MAP_FAILED || log_fd < 0 || fuse_fd < 0)
		die("open");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	if (mount("recorder", argv[1], "fuse", MS_NODEV | MS_NOSUID, options) < 0)
		die("mount");
	/* The caller goes on once it is mounted. */
	switch (fork()) {
	case -1:
		die("fork");
		break;
	case 0:
		/* The caller may wait for the end of our output. */
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			return 1;
		serve();
		return 0;
	default:
		return 0;
	}
	return 0;
}
