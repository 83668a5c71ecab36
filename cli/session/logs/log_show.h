/*
 * cli/session/logs/log_show.h - selects lines of logs, and shows them with time, name and colour.
 *
 * A line belongs to one session and one stream. Output of another session or stream splits it, so that each shown line has its own time,
 * name and colour.
 */
#ifndef CLI_SESSION_LOGS_LOG_SHOW_H
#define CLI_SESSION_LOGS_LOG_SHOW_H

#include "session/session.h"
#include "screen/visible.h"

/* The selected lines and their form. */
struct log_format {
	struct cli *cli;
	int safe;            /* on a terminal: control bytes are shown as text */
	int times;
	int colour;          /* show standard error in colour */
	int name_width;      /* width of the longest name, which precedes each line; 0: no names */
	int64_t since_ns, until_ns; /* wall clock; -1: not given */
	uint64_t attempt;    /* 0: all */
	int only_err, only_out;
};

/* One log and the position in it. */
struct log_source {
	const char *name;
	struct hf_log *log;
	struct visible visible;
	uint64_t told;       /* dropped bytes that were reported */
	int shown;           /* some output was shown */
	int unknown;         /* some output was not shown because its time, attempt or stream is unknown */
	int ended;
	int notify;          /* descriptor to poll with --follow */
};

struct log_show {
	struct log_format format;
	uint64_t skip;       /* number of selected lines to skip */
	int count_only;
	uint64_t lines;      /* number of selected lines */
	/* The unfinished line. */
	const struct log_source *open;
	enum hf_log_stream stream;
	int showing;
	struct hf_log_span span;
	struct hf_buf text;  /* its text, with --json */
};

/* Returns 1 if the format copies bytes unchanged. */
int log_is_plain(const struct log_format *format);

/* Shows the rest of a log. Returns HF_EXIT_DONE, or the exit status after reporting why. *ret_gone: the reader of stdout is gone. */
int log_show_rest(struct log_show *show, struct log_source *source, int *ret_gone);

/* End one source, and the whole output. */
void log_show_end(struct log_show *show, struct log_source *source);
void log_show_done(struct log_show *show);

#endif
