/* tx/land/candidate/names.c - opening landings, and the names of their locks, plans and refs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/room.h"
#include "hf/sys/state/state.h"
#include "hf/tx/land/candidate/land.h"

int hf_landings_open(struct hf_state *state, struct hf_journal *journal, struct hf_plans *plans,
		     struct hf_landings **ret_landings, struct hf_err *err)
{
	AUTO_FREE struct hf_landings *landings = NULL;
	int r;

	if (!state || !plans || !ret_landings)
		return FAIL(err, -EINVAL, "arguments", "hf_landings_open", "NULL");
	landings = calloc(1, sizeof(*landings));
	if (!landings)
		return hf_fail_sys(err, ENOMEM, "memory", "landings");
	landings->state = state;
	landings->journal = journal;
	landings->plans = plans;
	r = hf_room_open(state, journal, "landings", &landings->dirfd, &landings->locks, err);
	if (r < 0)
		return r;
	*ret_landings = ptr_take(&landings);
	return 0;
}

void hf_landings_free(struct hf_landings *landings)
{
	if (!landings)
		return;
	hf_locks_free(landings->locks);
	hf_auto_close(&landings->dirfd);
	free(landings);
}

void hf_land_event(const struct hf_landings *landings, enum hf_event event, const char *name,
		   const struct hf_field *fields, size_t n)
{
	if (landings->journal)
		(void)hf_journal_append(landings->journal, event, name, fields, n, 0, NULL);
}

const char *hf_land_short(const char *branch)
{
	return strncmp(branch, "refs/heads/", 11) == 0 ? branch + 11 : branch;
}

void hf_land_ref(const char *name, char out[HF_NAME_KEY_MAX + 32])
{
	char key[HF_NAME_KEY_MAX] = "";

	/* Letters, digits, '_', '-' and '%': all of which a ref may have. */
	(void)!hf_name_key(name, strlen(name), key, NULL);
	(void)snprintf(out, HF_NAME_KEY_MAX + 32, "refs/holdfast/%s", key);
}

/* '~' is in no branch's name and begins no candidate's lock: the short form meets no other. */
static void lock_name(const char *prefix, const char *text, char out[HF_NAME_MAX + 1])
{
	if (snprintf(out, HF_NAME_MAX + 1, "%s:%s", prefix, text) > HF_NAME_MAX)
		(void)snprintf(out, HF_NAME_MAX + 1, "%s~%016llx", prefix,
			       (unsigned long long)XXH3_64bits(text, strlen(text)));
}

void hf_land_lock_name(const char *name, char out[HF_NAME_MAX + 1])
{
	lock_name("n", name, out);
}

void hf_land_branch_lock_name(const struct hf_landing *landing, char out[HF_NAME_MAX + 1])
{
	char prefix[64];

	(void)snprintf(prefix, sizeof(prefix), "b:%llx:%llx", (unsigned long long)landing->dev,
		       (unsigned long long)landing->ino);
	lock_name(prefix, hf_land_short(landing->branch), out);
}

void hf_land_plan_name(const char *name, char what, char out[HF_NAME_MAX + 1])
{
	(void)snprintf(out, HF_NAME_MAX + 1, ".land-%016llx-%c",
		       (unsigned long long)XXH3_64bits(name, strlen(name)), what);
}
