/* run/session/log/log_last.c - the last line of a log as plain text. */
#include <string.h>

#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/run/session/log/log.h"

/* The end of a longer line is kept. Most of the output of a full-screen program is escape sequences. */
#define KEPT 8192

/* Reads the end of the last line. Returns its length, or 0. */
static size_t read_end(struct hf_sessions *sessions, const char *name, char line[KEPT])
{
	struct hf_log *log = NULL;
	char chunk[KEPT];
	size_t len = 0;
	int n;

	if (hf_session_log(sessions, name, 0, &log, NULL) < 0)
		return 0;
	n = hf_log_tail(log, 1, NULL) < 0 ? -1 : hf_log_read(log, chunk, sizeof(chunk), NULL);
	for (; n > 0; n = hf_log_read(log, chunk, sizeof(chunk), NULL)) {
		size_t got = (size_t)n, drop = len + got > KEPT ? len + got - KEPT : 0;

		memmove(line, line + drop, len - drop);
		len -= drop;
		memcpy(line + len, chunk, got);
		len += got;
	}
	hf_log_free(log);
	return len;
}

/* The text after the last carriage return replaces the text before. */
static size_t last_return(const char *line, size_t len)
{
	while (len > 0 && line[len - 1] != '\r')
		len--;
	return len;
}

/* The longest end of `text` that fits, without a partial character. */
static const char *end_of(const char *text, size_t len)
{
	size_t at = len < HF_LOG_LAST_MAX ? 0 : len - (HF_LOG_LAST_MAX - 1);

	while ((text[at] & 0xc0) == 0x80)
		at++;
	return text + at;
}

int hf_log_last_line(struct hf_sessions *sessions, const char *name, char out[HF_LOG_LAST_MAX], int *ret_partial)
{
	char line[KEPT], plain[KEPT + 1];
	size_t len = read_end(sessions, name, line), from, n;

	*ret_partial = len > 0 && line[len - 1] != '\n';
	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	from = last_return(line, len);
	n = hf_plain_text(plain, sizeof(plain), line + from, len - from);
	hf_copy_text(out, HF_LOG_LAST_MAX, end_of(plain, n));
	return n > 0;
}
