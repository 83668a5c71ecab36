/* plan/inside/serve.c - one rename that the helper is asked for: which caller, which places, and the answer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/plan/inside/helper.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define PATH_BYTES 4096

struct request {
	pid_t pid;
	int old_at, new_at;
	unsigned flags;
	char old_path[PATH_BYTES], new_path[PATH_BYTES];
};

/* A NUL-ended text of another process. 0 or -errno. */
static int read_text(int mem, uint64_t address, char out[PATH_BYTES])
{
	size_t len = 0;

	while (len < PATH_BYTES) {
		/* Not over the end of a page: what follows may not be there. */
		size_t want = 4096 - (address + len) % 4096;
		ssize_t n;

		if (want > PATH_BYTES - len)
			want = PATH_BYTES - len;
		n = hf_sys.pread(mem, out + len, want, (off_t)(address + len));
		if (n <= 0)
			return -EFAULT;
		if (memchr(out + len, '\0', (size_t)n))
			return 0;
		len += (size_t)n;
	}
	return -ENAMETOOLONG;
}

static int open_of(pid_t pid, const char *what)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return hf_open_at(AT_FDCWD, path, O_PATH, 0);
}

static int read_request(const struct seccomp_notif *notif, struct request *ret)
{
	const uint64_t *args = (const void *)notif->data.args;
	char path[64];
	AUTO_FD mem = -1;
	uint64_t old_address, new_address;
	int r;

	ret->pid = (pid_t)notif->pid;
	ret->old_at = ret->new_at = AT_FDCWD;
	ret->flags = 0;
#ifdef SYS_rename
	if (notif->data.nr == SYS_rename) {
		old_address = args[0];
		new_address = args[1];
	} else
#endif
	{
		ret->old_at = (int)args[0];
		old_address = args[1];
		ret->new_at = (int)args[2];
		new_address = args[3];
		if (notif->data.nr == SYS_renameat2)
			ret->flags = (unsigned)args[4];
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)notif->pid);
	mem = hf_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (mem < 0)
		return mem;
	r = read_text(mem, old_address, ret->old_path);
	return r < 0 ? r : read_text(mem, new_address, ret->new_path);
}

/*
 * Opens the directory that holds the last part of `path`, as the caller would, and leaves that
 * part in *leaf. Slashes behind it, which a directory may have, are cut.
 */
static int open_parent(pid_t pid, int at, char path[PATH_BYTES], const char **leaf)
{
	AUTO_FD base = -1;
	char what[32];
	char *slash;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	*leaf = slash ? slash + 1 : path;
	if ((*leaf)[0] == '\0' || strcmp(*leaf, ".") == 0 || strcmp(*leaf, "..") == 0)
		return -EBUSY;
	if (path[0] == '/') {
		if (slash == path)
			return hf_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
		*slash = '\0';
		return hf_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	}
	if (at == AT_FDCWD)
		(void)snprintf(what, sizeof(what), "cwd");
	else
		(void)snprintf(what, sizeof(what), "fd/%d", at);
	base = open_of(pid, what);
	if (base < 0 || !slash)
		return fd_take(&base);
	*slash = '\0';
	return hf_open_at(base, path, O_PATH | O_DIRECTORY, 0);
}

/* The hexadecimal or decimal number behind `label` in a status file. */
static uint64_t status_number(const char *text, const char *label, int hex)
{
	const char *at = strstr(text, label);
	uint64_t value = 0;

	if (!at)
		return 0;
	at += strlen(label);
	at += strspn(at, " \t");
	if (hex)
		return hf_parse_hex64(at, strcspn(at, " \t\n"), &value) == 0 ? value : 0;
	return hf_parse_u64(at, strcspn(at, " \t\n"), UINT64_MAX, &value) == 0 ? value : 0;
}

static int read_status(const char *pid, char *text, size_t cap)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	n = hf_read_file(AT_FDCWD, path, text, cap - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return 0;
}

/* The fourth number behind "Uid:" and "Gid:" is the one that counts for files. */
static uint64_t file_id(const char *text, const char *label)
{
	const char *at = strstr(text, label);
	uint64_t value = UINT64_MAX;

	if (!at)
		return value;
	at += strlen(label);
	for (int i = 0; i < 3; i++) {
		at += strspn(at, " \t");
		at += strcspn(at, " \t\n");
	}
	at += strspn(at, " \t");
	return hf_parse_u64(at, strcspn(at, " \t\n"), UINT32_MAX, &value) == 0 ? value : UINT64_MAX;
}

static int is_same_place(pid_t pid, const char *what)
{
	AUTO_FD theirs = open_of(pid, what);
	AUTO_FD ours = open_of(getpid(), what);
	struct stat a, b;

	return theirs >= 0 && ours >= 0 && hf_sys.fstat(theirs, &a) == 0 &&
	       hf_sys.fstat(ours, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * May we act for that process? Only if we can do nothing that it could not: same ids, no fewer
 * capabilities than ours, same root and mounts, and no sandbox of its own (Landlock needs
 * no_new_privs, and cannot be seen). Otherwise the kernel answers, with EXDEV.
 */
static int is_our_equal(pid_t pid)
{
	const uint64_t ptrace = UINT64_C(1) << 19; /* CAP_SYS_PTRACE, which only reads paths */
	char theirs[4096], ours[4096], number[16];

	(void)snprintf(number, sizeof(number), "%d", (int)pid);
	if (read_status(number, theirs, sizeof(theirs)) < 0 ||
	    read_status("self", ours, sizeof(ours)) < 0)
		return 0;
	if (file_id(theirs, "\nUid:") != file_id(ours, "\nUid:") ||
	    file_id(theirs, "\nGid:") != file_id(ours, "\nGid:"))
		return 0;
	if (status_number(ours, "\nCapEff:", 1) & ~ptrace & ~status_number(theirs, "\nCapEff:", 1))
		return 0;
	if (status_number(theirs, "\nNoNewPrivs:", 0) > status_number(ours, "\nNoNewPrivs:", 0))
		return 0;
	return is_same_place(pid, "ns/mnt") && is_same_place(pid, "ns/user") &&
	       is_same_place(pid, "root");
}

static int is_overlay(int fd)
{
	struct statfs fs;

	return hf_sys.fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static int is_same_mount(int a, int b)
{
	struct statx x, y;

	return hf_sys.statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 &&
	       hf_sys.statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) == 0 &&
	       (x.stx_mask & y.stx_mask & STATX_MNT_ID) && x.stx_mnt_id == y.stx_mnt_id;
}

static void reply(int listener, uint64_t id, int error, int go_on)
{
	struct seccomp_notif_resp response = { .id = id, .error = error };

	response.flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static int is_valid(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

#define APART_MAX 64

static struct apart {
	pid_t pid; /* of a child that renames; 0: a free place */
	uint64_t id;
} apart[APART_MAX];

static struct apart *find_apart(pid_t pid)
{
	for (size_t i = 0; i < APART_MAX; i++)
		if (apart[i].pid == pid)
			return &apart[i];
	return NULL;
}

int hf_helper_is_renaming(pid_t pid)
{
	return pid > 0 && find_apart(pid) != NULL;
}

void hf_helper_forget(int listener, pid_t pid)
{
	struct apart *place = pid > 0 ? find_apart(pid) : NULL;

	if (!place)
		return;
	/* The caller of a killed child would wait forever. */
	reply(listener, place->id, -EIO, 0);
	place->pid = 0;
}

/* Renames in another process, so that a large tree does not delay other renames. */
static void rename_apart(int listener, uint64_t id, int old_dir, const char *old_name, int new_dir,
			 const char *new_name, unsigned flags)
{
	struct apart *place = find_apart(0);
	pid_t pid = place ? hf_apart_fork() : -1;

	if (pid > 0) {
		*place = (struct apart){ pid, id };
		return;
	}
	reply(listener, id,
	      flags & RENAME_EXCHANGE
		      ? hf_exchange_directories(old_dir, old_name, new_dir, new_name)
		      : hf_rename_directory(old_dir, old_name, new_dir, new_name, flags & RENAME_NOREPLACE),
	      0);
	if (pid == 0)
		_exit(0);
}

/* 1 when the entry is a directory. */
static int is_directory(int dir, const char *name)
{
	struct stat st;

	return hf_sys.fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* 1 when it was answered (or will be); 0: the kernel shall go on with the call. */
static int serve_rename(int listener, const struct seccomp_notif *notif)
{
	static struct request request; /* 8 KiB; one at a time */
	AUTO_FD old_dir = -1;
	AUTO_FD new_dir = -1;
	const char *old_name, *new_name;
	int error;

	if (read_request(notif, &request) < 0 || request.flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return 0;
	old_dir = open_parent(request.pid, request.old_at, request.old_path, &old_name);
	if (old_dir < 0 || !is_overlay(old_dir) ||
	    (!(request.flags & RENAME_EXCHANGE) && !is_directory(old_dir, old_name)))
		return 0;
	new_dir = open_parent(request.pid, request.new_at, request.new_path, &new_name);
	if (new_dir < 0 || !is_same_mount(old_dir, new_dir) || !is_our_equal(request.pid) ||
	    (!is_directory(old_dir, old_name) && !is_directory(new_dir, new_name)))
		return 0;
	/* All that was read is of the process that waits: its pid was not given to another. */
	if (!is_valid(listener, notif->id))
		return 1;
	error = hf_sys.renameat2(old_dir, old_name, new_dir, new_name, request.flags) < 0 ? -errno : 0;
	if (error != -EXDEV)
		reply(listener, notif->id, error, 0);
	else
		rename_apart(listener, notif->id, old_dir, old_name, new_dir, new_name, request.flags);
	return 1;
}

void hf_helper_serve(int listener)
{
	/* Larger than any kernel's so far: it writes what it knows. */
	static union {
		struct seccomp_notif notif;
		char room[512];
	} message;

	memset(&message, 0, sizeof(message));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &message) < 0)
		return;
	if (!serve_rename(listener, &message.notif))
		reply(listener, message.notif.id, 0, 1);
}
