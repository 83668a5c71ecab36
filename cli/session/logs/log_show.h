/*
 * cli/session/logs/log_show.h - lines of logs: which are shown, and what stands in front of them.
 *
 * A line belongs to one session and one stream. Where another one comes in the middle of it, its rest is a line of its own, so that each
 * line that is shown has its own time, name and colour.
 */
#ifndef CLI_SESSION_LOGS_LOG_SHOW_H
#define CLI_SESSION_LOGS_LOG_SHOW_H

#include "session/session.h"
#include "screen/visible.h"

/* Which lines, and how. */
struct log_format {
	struct cli *cli;
	int safe;            /* on a terminal: control bytes are shown, not obeyed */
	int times;
	int colour;          /* of standard error */
	int name_width;      /* of the longest name, in front of each line; 0: none */
	int64_t since_ns, until_ns; /* wall clock; -1: not given */
	uint64_t attempt;    /* 0: all */
	int only_err, only_out;
};

/* One log, and where it is. */
struct log_source {
	const char *name;
	struct hf_log *log;
	struct visible visible;
	uint64_t told;       /* of what was dropped */
	int shown;           /* something was */
	int unknown;         /* something was left out because it is not known when it came, or from which stream */
	int ended;
	int notify;          /* what to poll, with --follow */
};

struct log_show {
	struct log_format format;
	uint64_t skip;       /* lines that would be shown and are not */
	int count_only;
	uint64_t lines;      /* that were to be shown */
	/* The line that was begun and has not ended. */
	const struct log_source *open;
	enum hf_log_stream stream;
	int showing;
	struct hf_log_span span;
	struct hf_buf text;  /* of it, with --json */
};

/* Is it one that only copies bytes? */
int log_is_plain(const struct log_format *format);

/* Shows what there is. HF_EXIT_DONE, or the status after saying why; *ret_gone: nobody reads it. */
int log_show_rest(struct log_show *show, struct log_source *source, int *ret_gone);

/* The end of a source, and of all. */
void log_show_end(struct log_show *show, struct log_source *source);
void log_show_done(struct log_show *show);

#endif
