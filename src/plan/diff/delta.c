/* plan/diff/delta.c - the list of deltas. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/plan/diff/delta.h"

const char *hf_verdict_word(enum hf_verdict verdict)
{
	static const char *const words[] = {
#define WORD(name, word) [HF_VERDICT_##name] = word,
		HF_CONFLICT_LIST(WORD)
#undef WORD
	};

	return words[verdict];
}

void hf_deltas_done(struct hf_deltas *deltas)
{
	for (size_t i = 0; i < deltas->n; i++) {
		free(deltas->list[i].path);
		free(deltas->list[i].slot);
		free(deltas->list[i].shown);
		free(deltas->list[i].attrs);
		free(deltas->list[i].merged);
		free(deltas->list[i].base);
	}
	free(deltas->list);
	*deltas = (struct hf_deltas){ 0 };
}

struct hf_delta *hf_deltas_add(struct hf_deltas *deltas, const char *path)
{
	struct hf_delta *d;
	char *copy;

	if (deltas->n == deltas->room) {
		size_t room = deltas->room ? 2 * deltas->room : 16;
		struct hf_delta *grown = reallocarray(deltas->list, room, sizeof(*grown));

		if (!grown)
			return NULL;
		deltas->list = grown;
		deltas->room = room;
	}
	copy = strdup(path);
	if (!copy)
		return NULL;
	d = &deltas->list[deltas->n++];
	*d = (struct hf_delta){ .path = copy };
	return d;
}

void hf_side_take(struct hf_side *side, const struct stat *st)
{
	side->ino = (uint64_t)st->st_ino;
	side->size = (uint64_t)st->st_size;
	side->nlink = (uint64_t)st->st_nlink;
	side->mtime_ns = (int64_t)st->st_mtim.tv_sec * HF_SEC + st->st_mtim.tv_nsec;
	side->ctime_ns = (int64_t)st->st_ctim.tv_sec * HF_SEC + st->st_ctim.tv_nsec;
	side->mode = st->st_mode;
	side->uid = st->st_uid;
	side->gid = st->st_gid;
}

int hf_path_set(struct hf_buf *path, size_t len, const char *name)
{
	path->len = len;
	if (len)
		hf_buf_add_char(path, '/');
	hf_buf_add_text(path, name);
	return path->err;
}
