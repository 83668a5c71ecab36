/* proc/stat.c - reading /proc/PID/stat, status and a pidfd's fdinfo. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/parse.h"
#include "holdfast/err.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* Numbers of the fields that are used, counted as in proc(5). */
enum {
	FIELD_STATE = 3,
	FIELD_PPID = 4,
	FIELD_UTIME = 14,
	FIELD_STIME = 15,
	FIELD_CUTIME = 16,
	FIELD_CSTIME = 17,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_RSS = 24
};

int hf_stat_parse(const char *text, size_t len, struct hf_stat *ret)
{
	struct hf_stat st = { 0 };
	const char *open = len ? memchr(text, '(', len) : NULL;
	const char *close = len ? memrchr(text, ')', len) : NULL;
	const char *at, *end = text + len;
	uint64_t value;
	int field = FIELD_STATE;

	if (!open || !close || close < open || open - text < 2 || open[-1] != ' ')
		return HF_E_FORMAT;
	if (hf_parse_u64(text, (size_t)(open - text - 1), INT32_MAX, &value) < 0)
		return HF_E_FORMAT;
	st.pid = (int32_t)value;

	at = close + 1;
	for (; field <= FIELD_RSS; field++) {
		const char *stop;
		size_t size;

		/* What stands behind the start time is for show. */
		if (field > FIELD_START && (at >= end || *at != ' '))
			break;
		if (at >= end || *at != ' ')
			return HF_E_FORMAT;
		at++;
		stop = at;
		while (stop < end && *stop != ' ' && *stop != '\n')
			stop++;
		size = (size_t)(stop - at);
		switch (field) {
		case FIELD_STATE:
			if (size != 1 || *at < 'A' || *at > 'z')
				return HF_E_FORMAT;
			st.state = *at;
			break;
		case FIELD_PPID:
			if (hf_parse_u64(at, size, INT32_MAX, &value) < 0)
				return HF_E_FORMAT;
			st.ppid = (int32_t)value;
			break;
		case FIELD_UTIME:
		case FIELD_STIME:
			if (hf_parse_u64(at, size, INT64_MAX, &value) < 0)
				return HF_E_FORMAT;
			st.cpu_ticks += value;
			break;
		case FIELD_CUTIME:
		case FIELD_CSTIME:
			if (size == 0)
				return HF_E_FORMAT;
			if (hf_parse_u64(at, size, INT64_MAX, &value) == 0)
				st.waited_ticks += value;
			break;
		case FIELD_RSS:
			if (hf_parse_u64(at, size, INT64_MAX / 65536, &st.rss_pages) < 0)
				st.rss_pages = 0;
			break;
		case FIELD_THREADS:
			if (hf_parse_u64(at, size, INT32_MAX, &st.threads) < 0)
				return HF_E_FORMAT;
			break;
		case FIELD_START:
			if (hf_parse_u64(at, size, UINT64_MAX, &st.start_ticks) < 0)
				return HF_E_FORMAT;
			break;
		default:
			if (size == 0)
				return HF_E_FORMAT;
		}
		/* A field that ends with the text may have been cut in the middle. */
		if (stop == end && field > FIELD_START) {
			st.rss_pages = 0;
			break;
		}
		if (stop == end)
			return HF_E_FORMAT;
		at = stop;
	}
	*ret = st;
	return 0;
}

int hf_stat_is_dead(const struct hf_stat *st)
{
	return st->state == 'X' || (st->state == 'Z' && st->threads <= 1);
}

/* The first word behind `label` at the start of a line. */
static int find_word(const char *text, size_t len, const char *label, const char **ret_word,
		     size_t *ret_len)
{
	size_t label_len = strlen(label);
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		if ((size_t)(stop - at) > label_len && memcmp(at, label, label_len) == 0) {
			const char *word = at + label_len, *word_end = word;

			while (word_end < stop && *word_end != '\t' && *word_end != ' ')
				word_end++;
			/* The text may have been cut in the middle of it. */
			if (word_end == end)
				return HF_E_FORMAT;
			*ret_word = word;
			*ret_len = (size_t)(word_end - word);
			return 0;
		}
		at = stop + 1;
	}
	return HF_E_FORMAT;
}

/* The number behind `key`, at most `max`. */
static int find_number(const char *text, size_t len, const char *key, uint64_t max, uint64_t *ret)
{
	const char *word;
	size_t word_len;

	if (find_word(text, len, key, &word, &word_len) < 0 || hf_parse_u64(word, word_len, max, ret) < 0)
		return HF_E_FORMAT;
	return 0;
}

int hf_status_parse_uid(const char *text, size_t len, uint32_t *ret)
{
	uint64_t value;

	/* "Uid:\tREAL\tEFFECTIVE\tSAVED\tFS" */
	if (find_number(text, len, "Uid:\t", UINT32_MAX, &value) < 0)
		return HF_E_FORMAT;
	*ret = (uint32_t)value;
	return 0;
}

int hf_status_parse_tgid(const char *text, size_t len, int32_t *ret)
{
	uint64_t value;

	if (find_number(text, len, "Tgid:\t", INT32_MAX, &value) < 0)
		return HF_E_FORMAT;
	*ret = (int32_t)value;
	return 0;
}

int hf_status_parse_switches(const char *text, size_t len, char *ret_state, uint64_t *ret)
{
	const char *state;
	size_t state_len;
	uint64_t own, other;

	if (find_word(text, len, "State:\t", &state, &state_len) < 0 || state_len != 1 ||
	    find_number(text, len, "voluntary_ctxt_switches:\t", INT64_MAX, &own) < 0 ||
	    find_number(text, len, "nonvoluntary_ctxt_switches:\t", INT64_MAX, &other) < 0)
		return HF_E_FORMAT;
	*ret_state = *state;
	*ret = own + other;
	return 0;
}

int hf_fdinfo_parse_pid(const char *text, size_t len, int32_t *ret)
{
	const char *word;
	size_t word_len;
	int64_t value;

	if (find_word(text, len, "Pid:\t", &word, &word_len) < 0 ||
	    hf_parse_i64(word, word_len, &value) < 0 || value < -1 || value > INT32_MAX)
		return HF_E_FORMAT;
	*ret = (int32_t)value;
	return 0;
}

int hf_status_parse_inner(const char *text, size_t len, int32_t pid, int *ret)
{
	const char *word, *end = text + len;
	size_t word_len;
	uint64_t number;
	int found = 0;

	/* "NSpid:\tOURS\tBELOW\t...": one number for each namespace, from /proc's down. */
	if (find_number(text, len, "NSpid:\t", INT32_MAX, &number) < 0 ||
	    find_word(text, len, "NSpid:\t", &word, &word_len) < 0)
		return HF_E_FORMAT;
	for (word += word_len; word < end && *word == '\t'; word += word_len) {
		word++;
		word_len = 0;
		while (word + word_len < end && word[word_len] != '\t' && word[word_len] != '\n')
			word_len++;
		if (hf_parse_u64(word, word_len, INT32_MAX, &number) < 0)
			return HF_E_FORMAT;
		found |= number == (uint64_t)pid;
	}
	if (word >= end || *word != '\n')
		return HF_E_FORMAT;
	*ret = found;
	return 0;
}

static ssize_t read_proc(int32_t pid, const char *leaf, char *to, size_t cap)
{
	char path[64];

	if (pid == 0)
		(void)snprintf(path, sizeof(path), "/proc/self/%s", leaf);
	else
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, leaf);
	return hf_read_file(AT_FDCWD, path, to, cap);
}

int hf_stat_read(int32_t pid, struct hf_stat *ret)
{
	char text[1024]; /* 52 numbers and a command of at most 64 bytes */
	ssize_t n = read_proc(pid, "stat", text, sizeof(text));

	return n < 0 ? (int)n : hf_stat_parse(text, (size_t)n, ret);
}

static ssize_t read_status(int32_t pid, char *to, size_t cap)
{
	ssize_t n = read_proc(pid, "status", to, cap);

	return n == -E2BIG ? (ssize_t)cap : n;
}

int hf_status_read_uid(int32_t pid, uint32_t *ret)
{
	char text[16384]; /* grows with the number of groups, but Uid is near the top */
	ssize_t n = read_status(pid, text, sizeof(text));

	return n < 0 ? (int)n : hf_status_parse_uid(text, (size_t)n, ret);
}

int hf_status_is_thread(int32_t pid)
{
	char text[1024]; /* Tgid is near the top */
	ssize_t n = read_status(pid, text, sizeof(text));
	int32_t tgid = 0;
	int r = n < 0 ? (int)n : hf_status_parse_tgid(text, (size_t)n, &tgid);

	return r < 0 ? r : tgid != pid;
}

int hf_status_has_inner_pid(int32_t number, int32_t pid)
{
	char text[16384];
	ssize_t n = read_status(number, text, sizeof(text));
	int found = 0;
	int r = n < 0 ? (int)n : hf_status_parse_inner(text, (size_t)n, pid, &found);

	return r < 0 ? r : found;
}

/*
 * That /proc/self reads as getpid() would not prove it: the two may coincide. NSpid
 * lists one number for each namespace from /proc's down to ours.
 */
int hf_proc_is_ours(void)
{
	char text[16384];
	ssize_t n = read_status(0, text, sizeof(text));
	const char *word;
	size_t len;
	uint64_t shown;

	return n > 0 && find_word(text, (size_t)n, "NSpid:\t", &word, &len) == 0 &&
	       word + len < text + n && word[len] == '\n' &&
	       hf_parse_u64(word, len, INT32_MAX, &shown) == 0 && (pid_t)shown == getpid();
}

int hf_proc_number(int pidfd, int32_t pid, int32_t *ret)
{
	char leaf[32], text[1024];
	int32_t number;
	ssize_t n;
	int r;

	/* A pidfd's own number is right whosever /proc this is, and cheaper than asking that. */
	if (pidfd < 0) {
		if (!hf_proc_is_ours())
			return HF_E_UNKNOWN;
		*ret = pid;
		return 0;
	}
	(void)snprintf(leaf, sizeof(leaf), "fdinfo/%d", pidfd);
	n = read_proc(0, leaf, text, sizeof(text));
	if (n < 0)
		return (int)n;
	r = hf_fdinfo_parse_pid(text, (size_t)n, &number);
	if (r < 0)
		return r;
	if (number < 0)
		return HF_E_GONE;
	if (number == 0)
		return HF_E_UNKNOWN;
	*ret = number;
	return 0;
}
