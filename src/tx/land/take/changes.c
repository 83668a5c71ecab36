/* tx/land/take/changes.c - what differs between two commits. The steps of a landing ask for the same two, mostly. */
#include <stdlib.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/git.h"

void hf_land_work_done(struct hf_land_work *work)
{
	hf_land_transaction_done(&work->refs);
	hf_buf_done(&work->changes);
	hf_landing_done(&work->landing);
}

int hf_land_changes(struct hf_land_work *work, const char *from, const char *to, struct hf_buf *said, struct hf_err *err)
{
	struct hf_git git = { .dir = work->landing.common, .out = &work->changes, .said = said };
	int r;

	if (strcmp(work->changes_from, from) == 0 && strcmp(work->changes_to, to) == 0)
		return 0;
	work->changes_from[0] = '\0';
	r = hf_git(&git, err, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--full-index", from, to, NULL);
	if (r != 0)
		return r < 0 ? r : 1;
	hf_copy_text(work->changes_from, sizeof(work->changes_from), from);
	hf_copy_text(work->changes_to, sizeof(work->changes_to), to);
	return 0;
}

static unsigned octal(const char *digits)
{
	unsigned value = 0;

	for (; *digits >= '0' && *digits <= '7'; digits++)
		value = value * 8 + (unsigned)(*digits - '0');
	return value;
}

/* ":OLDMODE NEWMODE OLDOID NEWOID S", NUL, path, NUL. */
int hf_land_next_change(const struct hf_land_work *work, const char **at, struct hf_land_change *ret)
{
	const char *end = work->changes.s + work->changes.len;
	const char *row = *at ? *at : work->changes.s;
	const char *path = row < end ? row + strlen(row) + 1 : end;
	size_t len;

	if (row >= end || path >= end || row[0] != ':' || strlen(row) < 96 || row[7] != ' ' || row[14] != ' ')
		return 0;
	ret->old_mode = octal(row + 1);
	ret->new_mode = octal(row + 8);
	len = strcspn(row + 15, " ");
	if (len >= HF_LAND_OID_MAX || strlen(row) < 15 + 2 * len + 3)
		return 0;
	memcpy(ret->old_oid, row + 15, len);
	memcpy(ret->new_oid, row + 15 + len + 1, len);
	ret->old_oid[len] = ret->new_oid[len] = '\0';
	ret->path = path;
	*at = path + strlen(path) + 1;
	return 1;
}

void hf_land_count_changes(struct hf_land_work *work)
{
	struct hf_landing *landing = &work->landing;
	struct hf_land_change change;
	const char *at = NULL;

	landing->files = landing->added = landing->deleted = 0;
	while (hf_land_next_change(work, &at, &change)) {
		landing->files++;
		landing->added += change.old_mode == 0;
		landing->deleted += change.new_mode == 0;
	}
}
