/* cli/session.h - what the commands about sessions share. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli.h"
#include "holdfast/run.h"

#define STATUS_AROUND HF_EXIT_AROUND

struct session_context {
	struct hf_journal *journal; /* NULL when it is not to be had */
	struct hf_sessions *sessions;
};

/* Opens state, journal and sessions. Returns EXIT_DONE or the status after saying why. */
int session_open(struct cli *cli, struct session_context *ret);
void session_close(struct session_context *context);

/* A session as a JSON object; what is not known is null. */
json_t *session_json(const struct hf_session_info *info);

/* A process as {"pid":…,"id":…}, or null. */
json_t *session_process_json(const struct hf_proc_id *id);

/* "500K", "12M", or "-" when it is not known. */
void session_add_size(struct hf_buf *out, int64_t bytes);

/* "3m20s", or "-" when it is not known. */
void session_add_duration(struct hf_buf *out, int64_t ns);

#endif
