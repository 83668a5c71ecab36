/* journal/put_away.c - moving a damaged file to quarantine. */
#include "hf/journal/put_away.h"
#include "hf/sys/state/state.h"

int hf_put_away(const struct hf_put_away *what, int dirfd, const char *file, struct hf_err *err)
{
	char moved[HF_QUARANTINE_NAME_MAX];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", what->shown), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", what->reason) };
	int r = hf_state_quarantine_from(what->state, dirfd, what->label, file, moved, err);

	if (r == 0 && what->journal)
		(void)hf_journal_append(what->journal, HF_EV_RECORD_QUARANTINED, what->subject, fields, 3, 0, NULL);
	return r;
}
