/* name/names.c - from the keys in a directory back to names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/name/names.h"
#include "hf/sys/io.h"
#include "holdfast/name.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void hf_names_done(struct hf_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

int hf_names_add(struct hf_names *names, const char *name)
{
	char **grown = reallocarray(names->list, names->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	names->list = grown;
	grown[names->n] = strdup(name);
	return grown[names->n] ? (names->n++, 0) : -ENOMEM;
}

void hf_names_sort(struct hf_names *names)
{
	if (names->n > 0)
		qsort(names->list, names->n, sizeof(*names->list), by_name);
}

int hf_names_has(const struct hf_names *names, size_t n, const char *name)
{
	return n > 0 && bsearch(&name, names->list, n, sizeof(*names->list), by_name) != NULL;
}

int hf_names_read(int dirfd, struct hf_names *ret)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = dirfd < 0 ? 0 : hf_open_dir(dirfd, ".", &dir);

	while (r == 0 && dir && (entry = readdir(dir))) {
		char name[HF_NAME_MAX + 1] = "";

		if (hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL) == (int)strlen(name))
			r = hf_names_add(ret, name);
	}
	hf_names_sort(ret);
	return r;
}
