/* run/supervisor/remains/hunt_marks.c - whose limit mark is it: of the run that is hunted, of a session inside it, of another? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/exec/marks.h"
#include "hf/run/supervisor/remains/hunt_marks.h"

static int note_marks(void *arg, const char *name)
{
	struct hf_hunt *hunt = arg;
	struct hf_session_record record;

	/* The limits of another boot are gone. */
	if (hf_session_load(hunt->sessions, name, &record, NULL) < 0 || !record.mark ||
	    strcmp(record.keeper.boot_id, hunt->here.boot_id) != 0)
		return 0;
	if (hunt->n_others == hunt->room) {
		size_t room = hunt->room * 2 + 16;
		struct hf_hunt_marks *more = realloc(hunt->others, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		hunt->others = more;
		hunt->room = room;
	}
	hunt->others[hunt->n_others++] = (struct hf_hunt_marks){ record.mark, record.around, 0,
							   strcmp(name, hunt->session) == 0 };
	return 0;
}

/* A mark of the run itself? Of one that is not known, every mark of its name. */
static int is_own_mark(const struct hf_hunt *hunt, uint64_t mark)
{
	return hunt->only ? mark == hunt->limit : hf_limit_mark_name_of(mark) == hunt->name;
}

static int is_inner_mark(const struct hf_hunt *hunt, uint64_t mark)
{
	for (size_t i = 0; i < hunt->n_others; i++)
		if (hunt->others[i].hunted && hunt->others[i].own == mark)
			return 1;
	return 0;
}

/* Reads which sessions are inside the one that is hunted, and inside those. */
static int read_others(struct hf_hunt *hunt)
{
	int r, found = 1;

	hunt->n_others = 0;
	hunt->others_read = 1;
	r = hf_session_each(hunt->sessions, 0, note_marks, hunt, NULL);
	while (r == 0 && found) {
		found = 0;
		for (size_t i = 0; i < hunt->n_others; i++) {
			struct hf_hunt_marks *marks = &hunt->others[i];

			if (marks->hunted || !marks->around ||
			    !(is_own_mark(hunt, marks->around) || is_inner_mark(hunt, marks->around)))
				continue;
			marks->hunted = found = 1;
		}
	}
	return r;
}

int hf_hunt_is_hunted_mark(struct hf_hunt *hunt, uint64_t mark)
{
	int r;

	if (!mark || (hunt->only && !hunt->limit))
		return 0;
	if (is_own_mark(hunt, mark))
		return 1;
	r = hunt->others_read ? 0 : read_others(hunt);
	return r < 0 ? r : is_inner_mark(hunt, mark);
}

int hf_hunt_is_shared_mark(struct hf_hunt *hunt, uint64_t mark)
{
	int r = hunt->others_read ? 0 : read_others(hunt);

	for (size_t i = 0; r == 0 && i < hunt->n_others; i++)
		if (hunt->others[i].own == mark && !hunt->others[i].is_self && !hunt->others[i].hunted)
			return 1;
	return r;
}
