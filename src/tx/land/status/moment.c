/* tx/land/status/moment.c - what git's answer depends on besides the tree: HEAD, index and settings. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/plan/target/base.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/git/repository.h"
#include "hf/tx/land/status/remembered.h"

#define CONFIG_MAX ((size_t)64 << 10)

struct taking {
	const struct hf_moment *moment;
	uint64_t sum;
	int is_settled; /* 0: one of them was changed just now */
	int is_known;   /* 0: they name others, which are not looked at */
};

static void add(struct taking *taking, const void *bytes, size_t len)
{
	taking->sum = XXH3_64bits_withSeed(bytes, len, taking->sum);
}

/*
 * A sandbox pins the index by a second name, which changes its ctime. But git never writes into it, it replaces the file; and its last bytes are a sum of
 * the whole.
 */
static void add_index(struct taking *taking, const char *git_dir)
{
	char path[PATH_MAX], last[32] = "";
	AUTO_FD fd = -1;
	uint64_t facts[5] = { 0 };
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/index", git_dir) < (int)sizeof(path))
		fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || hf_sys.fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(last) ||
	    hf_pread_all(fd, last, sizeof(last), st.st_size - (off_t)sizeof(last)) != sizeof(last)) {
		taking->is_settled = 0;
		return;
	}
	facts[0] = (uint64_t)st.st_dev;
	facts[1] = (uint64_t)st.st_ino;
	facts[2] = (uint64_t)st.st_size;
	facts[3] = (uint64_t)st.st_mtim.tv_sec;
	facts[4] = (uint64_t)st.st_mtim.tv_nsec;
	st.st_ctim = st.st_mtim;
	if (!hf_stamped_before(&st, taking->moment->t0.real_ns))
		taking->is_settled = 0;
	add(taking, facts, sizeof(facts));
	add(taking, last, sizeof(last));
}

/* The file that the path leads to: people link their settings from elsewhere. One that is not there counts as well. */
static void add_file(struct taking *taking, const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	uint64_t facts[6] = { 0 };

	add(taking, name, strlen(name));
	if (!dir)
		return;
	add(taking, dir, strlen(dir));
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path)) {
		taking->is_settled = 0;
		return;
	}
	if (hf_sys.fstatat(AT_FDCWD, path, &st, 0) == 0) {
		facts[0] = (uint64_t)st.st_dev;
		facts[1] = (uint64_t)st.st_ino;
		facts[2] = (uint64_t)st.st_size;
		facts[3] = (uint64_t)st.st_ctim.tv_sec;
		facts[4] = (uint64_t)st.st_ctim.tv_nsec;
		facts[5] = 1;
		if (!hf_stamped_before(&st, taking->moment->t0.real_ns))
			taking->is_settled = 0;
	}
	add(taking, facts, sizeof(facts));
}

/* The value behind "key =" in a line, or NULL. */
static char *value_of(char *line, const char *key)
{
	char *end;

	line += strspn(line, " \t");
	if (strncasecmp(line, key, strlen(key)) != 0)
		return NULL;
	line += strlen(key);
	line += strspn(line, " \t");
	if (*line++ != '=')
		return NULL;
	line += strspn(line, " \t");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return line;
}

/* A file that settings name, absolute or in the home directory; any other form is not understood. */
static void add_named(struct taking *taking, const char *value)
{
	const char *home = getenv("HOME");

	if (value[0] == '/')
		add_file(taking, "", value + 1);
	else if (strncmp(value, "~/", 2) == 0 && home)
		add_file(taking, home, value + 2);
	else if (value[0])
		taking->is_known = 0;
	if (strpbrk(value, "\\\"#;%"))
		taking->is_known = 0;
}

/* Settings, and the files that they name. */
static void add_config(struct taking *taking, const char *dir, const char *name)
{
	AUTO_FREE char *text = malloc(CONFIG_MAX + 1);
	char path[PATH_MAX], *value;
	ssize_t n = -1;

	add_file(taking, dir, name);
	if (dir && text && snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		n = hf_read_file(AT_FDCWD, path, text, CONFIG_MAX);
	if (!text || n == -E2BIG)
		taking->is_known = 0;
	if (n < 0 || !text)
		return;
	text[n] = '\0';
	if (strcasestr(text, "[include") || strlen(text) != (size_t)n)
		taking->is_known = 0;
	for (char *line = text, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if ((value = value_of(line, "excludesfile")) || (value = value_of(line, "attributesfile")))
			add_named(taking, value);
		else if (strcasestr(line, "excludesfile") || strcasestr(line, "attributesfile"))
			taking->is_known = 0;
	}
}

static void add_settings(struct taking *taking, const struct hf_land_place *place)
{
	static const char *const of_repository[] = { "info/exclude", "info/attributes", "info/sparse-checkout" };
	static const char *const of_user[] = { "git/ignore", "git/attributes" };
	const char *home = getenv("HOME"), *settings = getenv("XDG_CONFIG_HOME");
	char usual[PATH_MAX];

	if (!settings || !settings[0]) {
		(void)snprintf(usual, sizeof(usual), "%s/.config", home ? home : "");
		settings = home ? usual : NULL;
	}
	for (size_t i = 0; i < sizeof(of_repository) / sizeof(of_repository[0]); i++)
		add_file(taking, place->common, of_repository[i]);
	for (size_t i = 0; i < sizeof(of_user) / sizeof(of_user[0]); i++)
		add_file(taking, settings, of_user[i]);
	add_config(taking, place->common, "config");
	add_config(taking, settings, "git/config");
	add_config(taking, home, ".gitconfig");
	add_config(taking, "/etc", "gitconfig");
	add_config(taking, "/usr/local/etc", "gitconfig");
}

/* The commit that HEAD is at now, where files tell it; else those files themselves. */
static void add_head(struct taking *taking, const struct hf_land_place *place)
{
	char oid[HF_LAND_OID_MAX], branch[HF_GIT_REF_MAX];

	if (hf_repository_head(place, oid, branch, sizeof(branch))) {
		add(taking, oid, strlen(oid));
		return;
	}
	add_file(taking, place->git_dir, "HEAD");
	add_file(taking, place->common, "packed-refs");
	taking->is_settled = 0;
}

int hf_moment_take(const struct hf_land_place *place, struct hf_moment *ret)
{
	struct hf_moment moment = { 0 };
	struct taking taking = { .moment = &moment, .is_settled = 1, .is_known = 1 };
	struct stat st;
	int r = hf_t0_take(&moment.t0, NULL);

	if (r < 0)
		return r;
	if (hf_sys.fstatat(AT_FDCWD, place->top, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	moment.dev = (uint64_t)st.st_dev;
	moment.ino = (uint64_t)st.st_ino;
	add_head(&taking, place);
	add(&taking, place->top, strlen(place->top));
	add_index(&taking, place->git_dir);
	add_settings(&taking, place);
	moment.around = taking.sum;
	*ret = moment;
	return !taking.is_known ? -ENOTSUP : taking.is_settled;
}

void hf_remembered_name(const struct hf_moment *moment, const char *suffix, char out[HF_REMEMBERED_NAME_MAX])
{
	(void)snprintf(out, HF_REMEMBERED_NAME_MAX, ".status-%llx-%llx%s", (unsigned long long)moment->dev,
		       (unsigned long long)moment->ino, suffix);
}

uint64_t hf_remembered_sum(const struct hf_remembered_head *head, const char *body)
{
	uint64_t seed = XXH3_64bits(head, offsetof(struct hf_remembered_head, sum));

	return XXH3_64bits_withSeed(body, (size_t)head->bytes, seed);
}
