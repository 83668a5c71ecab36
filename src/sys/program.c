/* sys/program.c - where the parts are that are loaded or started when they are needed, and whether they may be trusted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/program.h"

#ifndef HF_LIBEXECDIR
#error "the build sets the directory of such programs"
#endif

/* The object that has the code at `address`: its path, "" when it is the program itself. */
struct own_object {
	uintptr_t address;
	char path[PATH_MAX];
};

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct own_object *own = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && own->address >= begin && own->address < begin + part->p_memsz) {
			hf_copy_text(own->path, sizeof(own->path), info->dlpi_name ? info->dlpi_name : "");
			return 1;
		}
	}
	return 0;
}

/* The file that this code runs from, program or shared library. 0 or -errno. */
static int own_path(char path[PATH_MAX])
{
	struct own_object own = { .address = (uintptr_t)own_path };
	ssize_t n;

	if (dl_iterate_phdr(find_object, &own) && own.path[0] == '/') {
		memcpy(path, own.path, PATH_MAX);
		return 0;
	}
	/* A library by a relative path is not found here: the directory may have changed since. */
	if (own.path[0])
		return -ENOENT;
	n = hf_sys.readlinkat(AT_FDCWD, "/proc/self/exe", path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

/* Opens it and checks what was opened, not what has that name later. `owner`: one more that is trusted. */
static int open_trusted(const char *path, uid_t owner, int *ret_fd, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	int r;

	if (fd < 0)
		return hf_fail_sys(err, -fd, "open", path);
	r = hf_stat_at(fd, "", &st);
	if (r < 0)
		return hf_fail_sys(err, -r, "stat", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return FAIL(err, HF_E_UNTRUSTED, "start", path, "it is not an executable program");
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != owner)
		return FAIL(err, HF_E_UNTRUSTED, "start", path, "it belongs to uid %u", (unsigned)st.st_uid);
	if (st.st_mode & 022)
		return FAIL(err, HF_E_UNTRUSTED, "start", path, "users other than its owner can change it (mode %04o)",
			    (unsigned)st.st_mode & 07777);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* In ../libexec beside our own file. -ENOENT when there is none. */
static int open_beside(const char *name, int *ret_fd, char path[PATH_MAX], struct hf_err *err)
{
	char own[PATH_MAX];
	struct stat st;
	char *slash;
	int r = own_path(own);

	path[0] = '\0';
	if (r < 0 || stat(own, &st) < 0)
		return -ENOENT;
	slash = strrchr(own, '/');
	if (!slash || (size_t)snprintf(path, PATH_MAX, "%.*s/../libexec/%s", (int)(slash - own), own,
				       name) >= PATH_MAX)
		return -ENOENT;
	return open_trusted(path, st.st_uid, ret_fd, err);
}

int hf_program_open(const char *name, const char *purpose, int *ret_fd, struct hf_err *err)
{
	/* secure_getenv: a program with more rights than its caller does not let that one choose what it runs. */
	const char *directory = secure_getenv(HF_LIBEXEC_VARIABLE);
	char path[PATH_MAX];
	int r;

	if (directory && directory[0]) {
		if (directory[0] != '/')
			return FAIL(err, -EINVAL, "start", HF_LIBEXEC_VARIABLE, "'%s' is not an absolute path", directory);
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >= sizeof(path))
			return hf_fail_sys(err, ENAMETOOLONG, "start", HF_LIBEXEC_VARIABLE);
		r = open_trusted(path, 0, ret_fd, err);
		return r == -ENOENT ? FAIL(err, r, "start", path, "%s names this place", HF_LIBEXEC_VARIABLE) : r;
	}
	r = open_beside(name, ret_fd, path, err);
	if (r != -ENOENT && r != -ENOTDIR)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", HF_LIBEXECDIR, name);
	r = open_trusted(path, 0, ret_fd, err);
	if (r == -ENOENT)
		return FAIL(err, r, "start", path, "%s; install it, or set %s to its directory", purpose, HF_LIBEXEC_VARIABLE);
	return r;
}
