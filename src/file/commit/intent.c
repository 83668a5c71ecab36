/* file/commit/intent.c - writing and reading what an exchange is about to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/parse.h"
#include "hf/file/content.h"
#include "hf/file/commit/intent.h"
#include "hf/file/commit/temp.h"
#include "hf/sys/calls.h"

/* "holdfast-1 PROCESS OLD MADE", each version "INODE SIZE SECONDS NANOSECONDS". */
#define VERSION    "holdfast-1"
#define STAMP_MAX  84
#define INTENT_MAX (sizeof(VERSION) + HF_PROC_TEXT_MAX + 2 * STAMP_MAX)

static void format_stamp(const struct hf_stamp *stamp, char out[STAMP_MAX])
{
	(void)snprintf(out, STAMP_MAX, "%llu %lld %lld %ld", (unsigned long long)stamp->ino,
		       (long long)stamp->size, (long long)stamp->mtime.tv_sec,
		       stamp->mtime.tv_nsec);
}

int hf_intent_make(struct hf_file *file)
{
	const struct hf_version *version = &file->version;
	struct hf_stamp old_stamp = { version->ino, version->size, version->mtime };
	char name[NAME_MAX + 1], text[INTENT_MAX], process[HF_PROC_TEXT_MAX];
	char old[STAMP_MAX], made[STAMP_MAX];
	struct hf_proc_id self;
	int r = hf_proc_self(&self, NULL);

	if (r < 0)
		return r;
	(void)hf_proc_format(&self, process);
	format_stamp(&old_stamp, old);
	format_stamp(&file->made, made);
	(void)snprintf(text, sizeof(text), VERSION " %s %s %s", process, old, made);
	hf_temp_intent_name(file, file->slot, name);
	if (hf_sys.symlinkat(text, file->dirfd, name) < 0)
		return -errno;
	file->has_intent = 1;
	return 0;
}

/* The next word; its length is 0 at the end. */
static size_t next_word(const char **at, const char **ret_word)
{
	size_t len;

	*ret_word = *at;
	len = strcspn(*at, " ");
	*at += len + ((*at)[len] == ' ');
	return len;
}

static int parse_stamp(const char **at, struct hf_stamp *ret)
{
	int64_t numbers[4];

	for (int i = 0; i < 4; i++) {
		const char *word;
		size_t len = next_word(at, &word);
		uint64_t inode;

		if (i == 0 && hf_parse_u64(word, len, UINT64_MAX, &inode) == 0)
			numbers[i] = (int64_t)inode;
		else if (i == 0 || hf_parse_i64(word, len, &numbers[i]) < 0)
			return HF_E_FORMAT;
	}
	*ret = (struct hf_stamp){ (ino_t)(uint64_t)numbers[0], (off_t)numbers[1],
				  { (time_t)numbers[2], (long)numbers[3] } };
	return 0;
}

int hf_intent_read(const struct hf_file *file, int slot, struct hf_intent *ret)
{
	char name[NAME_MAX + 1], text[INTENT_MAX];
	const char *at = text, *word;
	struct hf_intent intent;
	ssize_t n;
	size_t len;

	hf_temp_intent_name(file, slot, name);
	n = hf_sys.readlinkat(file->dirfd, name, text, sizeof(text) - 1);
	if (n < 0)
		return errno == EINVAL ? HF_E_FORMAT : -errno;
	text[n] = '\0';
	len = next_word(&at, &word);
	if (len != strlen(VERSION) || memcmp(word, VERSION, len) != 0)
		return HF_E_FORMAT;
	len = next_word(&at, &word);
	if (hf_proc_parse(word, len, &intent.process, NULL) < 0 ||
	    parse_stamp(&at, &intent.old) < 0 || parse_stamp(&at, &intent.made) < 0 || *at)
		return HF_E_FORMAT;
	*ret = intent;
	return 0;
}

void hf_intent_remove(const struct hf_file *file, int slot)
{
	char name[NAME_MAX + 1];

	hf_temp_intent_name(file, slot, name);
	(void)hf_sys.unlinkat(file->dirfd, name, 0);
}
