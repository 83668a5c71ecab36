/*
 * view/session/needs.h - which session needs a person, why, and what to type.
 *
 * A closed list of codes, each computed from what is known of the session and from nothing else; docs/JSON.md has
 * the table. Pure. An empty list for most sessions; a run that was seen (`holdfast seen NAME`) needs nobody.
 */
#ifndef VIEW_SESSION_NEEDS_H
#define VIEW_SESSION_NEEDS_H

#include "hf/base/buf.h"
#include "hf/view/session/facts.h"
#include "hf/view/json.h"
#include "holdfast/run.h"

#define HF_NEED_TEXT_MAX 320
#define HF_NEEDS_MAX     4

#define HF_NEED_ENDED_NS   (INT64_C(86400) * HF_SEC) /* how long a failed session needs a person, if it left no work */
#define HF_NEED_ASKS_NS    (30 * HF_SEC)             /* silent for so long behind what looks like a question */
#define HF_NEED_SILENT_NS  (600 * HF_SEC)            /* silent for so long, where there is no idle limit */
#define HF_NEED_STUCK_NS   (600 * HF_SEC)            /* waits so long for a silent holder */
#define HF_NEED_IDLE_PERMILLE 10                     /* less of a processor than this is no work */

struct hf_need {
	const char *code;   /* "verify-failed" */
	const char *action; /* the verb: "resume", "logs", … */
	struct hf_wall since; /* ns 0: not known */
	char text[HF_NEED_TEXT_MAX];  /* "verify failed 6 min ago: exit 2" */
	char brief[HF_NEED_TEXT_MAX]; /* the part of it that the other columns of a row do not say: "exit 2" */
};

struct hf_needs {
	struct hf_need list[HF_NEEDS_MAX]; /* the most pressing one first */
	size_t n;
};

/* `facts` may be NULL: nothing else is known. */
void hf_needs_find(const struct hf_session_info *info, const struct hf_view_facts *facts, struct hf_needs *ret);

/* Adds "answered; waits for its background task 'npm run dev'". Returns 0 for other sessions. */
int hf_session_add_background(const struct hf_session_info *info, struct hf_buf *out);

/* Is no output or heartbeat come for long, and no work done? */
int hf_session_is_silent(const struct hf_session_info *info);

/* Returns the cause without "verify failed: ", for text that has the outcome already. */
const char *hf_need_reason(const struct hf_session_info *info);

/* The member `needs`: a list, empty for most. */
json_t *hf_view_needs(const struct hf_needs *needs);

/* "holdfast run fix-160 --resume": what the action is typed as, with the name quoted where a shell wants that. */
void hf_need_command(const struct hf_need *need, const struct hf_session_info *info, const struct hf_view_facts *facts,
		     struct hf_buf *out);

#endif
