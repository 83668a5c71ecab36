/*
 * journal/read/verify.c - is every record there, whole, once and in order?
 *
 * The highest acknowledged number is read before the lines: a record is written
 * before that number is, so whatever writers do meanwhile, the lines must reach
 * it. Segments removed by the size limit are told by journal_pruned records;
 * a beginning that no such record explains is a gap. The counters are read again
 * behind the lines: nobody but a hand makes them say less than what was written
 * before the last record.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/line.h"
#include "hf/journal/read/scan.h"
#include "hf/journal/write/counters.h"

struct verify {
	struct hf_scan scan;
	void (*report)(void *arg, const struct hf_problem_info *problem);
	void *arg;
	struct hf_verify_result result;
	uint64_t pruned_through; /* the highest number that a journal_pruned record names */
	uint64_t counted;        /* the counters say at least this: only what was written last may be uncounted */
	int own;                 /* the last record was one of the journal's own */
	struct hf_scan_line start; /* where the first record stands */
	char start_file[HF_SEGMENT_NAME_MAX];
	struct hf_buf gaps; /* of struct gap: told at the end, when the pruning is known */
};

struct gap {
	uint64_t from, to; /* the numbers that are missing */
	struct hf_scan_line at;
	char file[HF_SEGMENT_NAME_MAX];
};

static void tell(struct verify *v, enum hf_problem problem, const char *file,
		 const struct hf_scan_line *at, uint64_t seq, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

static void tell(struct verify *v, enum hf_problem problem, const char *file,
		 const struct hf_scan_line *at, uint64_t seq, const char *format, ...)
{
	char text[256];
	struct hf_problem_info info = { .problem = problem, .file = file, .seq = seq, .text = text };
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (at) {
		info.line = at->line;
		info.offset = at->offset;
	}
	if (problem == HF_PROBLEM_TORN)
		v->result.torn++;
	else
		v->result.problems++;
	if (v->report)
		v->report(v->arg, &info);
}

static void check_order(struct verify *v, const struct hf_scan_line *line, uint64_t seq)
{
	uint64_t last = v->result.last;

	if (last == 0) {
		v->result.first = seq;
		v->start = *line;
		hf_copy_text(v->start_file, sizeof(v->start_file), v->scan.file);
	} else if (seq <= last) {
		tell(v, HF_PROBLEM_REPEAT, v->scan.file, line, seq,
		     "sequence number %llu comes after %llu", (unsigned long long)seq,
		     (unsigned long long)last);
		return;
	} else if (seq > last + 1) {
		struct gap gap = { .from = last + 1, .to = seq - 1, .at = *line };

		hf_copy_text(gap.file, sizeof(gap.file), v->scan.file);
		hf_buf_add(&v->gaps, &gap, sizeof(gap));
	}
	v->result.last = seq;
}

/* Segments removed while we read are no gap: a journal_pruned record further on says so. */
static int tell_gaps(struct verify *v)
{
	for (size_t at = 0; at < v->gaps.len; at += sizeof(struct gap)) {
		struct gap gap;

		memcpy(&gap, v->gaps.s + at, sizeof(gap));
		if (gap.to > v->pruned_through)
			tell(v, HF_PROBLEM_GAP, gap.file, &gap.at, gap.to + 1,
			     "%llu record(s) missing: %llu to %llu",
			     (unsigned long long)(gap.to - gap.from + 1),
			     (unsigned long long)gap.from, (unsigned long long)gap.to);
	}
	return v->gaps.err;
}

/*
 * The beginning of a record without its end, or zeros: what a crash or a power
 * cut leaves of a write. It was never acknowledged; had it been, the sequence
 * numbers would show a gap.
 */
static int is_torn(const struct hf_scan_line *line)
{
	static const char head[] = "{\"v\":1,\"seq\":";
	size_t len = line->len, n;
	int ended = len > 0 && line->text[len - 1] == HF_TORN_END[0];

	len -= (size_t)ended;
	n = len < sizeof(head) - 1 ? len : sizeof(head) - 1;
	if (len > 0 && line->text[0] == '\0')
		return line->text[len - 1] == '\0';
	return memcmp(line->text, head, n) == 0 &&
	       (ended || len < 2 || memcmp(line->text + len - 2, "\"}", 2) != 0);
}

/* One that a writer puts before the record it was asked for. */
static int is_own(enum hf_event event)
{
	return event == HF_EV_JOURNAL_ROTATED || event == HF_EV_JOURNAL_PRUNED || event == HF_EV_JOURNAL_LOST;
}

static void check_line(struct verify *v, const struct hf_scan_line *line)
{
	struct hf_record record;
	json_t *root = NULL;
	int64_t through;

	if (hf_line_decode(line->text, line->len, &record, &root) < 0) {
		if (is_torn(line))
			tell(v, HF_PROBLEM_TORN, v->scan.file, line, 0,
			     "%zu bytes of an unfinished record", line->len);
		else
			tell(v, HF_PROBLEM_DAMAGED, v->scan.file, line, 0,
			     "%zu bytes that are not a record, or were changed", line->len);
		return;
	}
	v->result.records++;
	/* The journal writes its own records and the one behind them at once, and counts them once. */
	if (!v->own)
		v->counted = v->result.last;
	check_order(v, line, record.seq);
	v->own = record.info && is_own(record.info->event);
	if (!record.info)
		tell(v, HF_PROBLEM_EVENT, v->scan.file, line, record.seq, "unknown event '%.40s'",
		     record.event);
	else if (record.info->event == HF_EV_JOURNAL_PRUNED &&
		 hf_record_int(&record, "through", &through) && through > 0 &&
		 (uint64_t)through > v->pruned_through)
		v->pruned_through = (uint64_t)through;
	json_decref(root);
}

/* A missing or lowered number hides that records are missing at the end. */
static int check_counters(struct verify *v, struct hf_err *err)
{
	struct hf_counters counters = { 0 };
	AUTO_FD fd = -1;
	int r;

	if (v->result.records == 0)
		return 0;
	r = hf_counters_open(v->scan.dirfd, 0, &fd, err);
	if (r == 0)
		r = hf_counters_read(fd, &counters);
	if (r == -ENOENT)
		tell(v, HF_PROBLEM_COUNTERS, "counters", NULL, 0,
		     "missing, so lost records at the end cannot be detected");
	else if (r == 0 && counters.seq < v->counted)
		tell(v, HF_PROBLEM_COUNTERS, "counters", NULL, counters.seq,
		     "it records %llu as the last record, but %llu exists: it was changed, or a power cut lost its last change",
		     (unsigned long long)counters.seq, (unsigned long long)v->result.last);
	return r == -ENOENT ? 0 : r;
}

static void auto_scan_done(struct verify *v)
{
	hf_scan_done(&v->scan);
	hf_buf_done(&v->gaps);
}

int hf_journal_verify(const struct hf_state *state,
		      void (*report)(void *arg, const struct hf_problem_info *problem), void *arg,
		      struct hf_verify_result *ret_result, struct hf_err *err)
{
	AUTO(auto_scan_done) struct verify v = { .report = report, .arg = arg, .gaps = HF_BUF_INIT };
	struct hf_journal_totals totals;
	struct hf_scan_line line = { 0 };
	int r;

	if (!state || !ret_result)
		return FAIL(err, -EINVAL, "arguments", "hf_journal_verify", "NULL");
	v.scan = (struct hf_scan){ .dirfd = -1, .fd = -1, .left_fd = -1, .buf = HF_BUF_INIT };
	r = hf_journal_totals(state, &totals, err);
	if (r < 0)
		return r;
	r = hf_scan_open(state, &v.scan, err);
	if (r < 0)
		return r;
	while ((r = hf_scan_next(&v.scan, &line, err)) > 0) {
		if (r == HF_SCAN_LINE)
			check_line(&v, &line);
		else if (r == HF_SCAN_PIECE)
			tell(&v, HF_PROBLEM_DAMAGED, v.scan.file, &line, 0,
			     "%zu bytes without an end", line.len);
		else if (r == HF_SCAN_HOLE)
			tell(&v, HF_PROBLEM_DAMAGED, v.scan.file, &line, 0, "a hole of %zu bytes",
			     line.len);
		else if (r == HF_SCAN_TORN)
			tell(&v, HF_PROBLEM_TORN, v.scan.file, &line, 0,
			     "%zu bytes of an unfinished record", line.len);
		else
			tell(&v, HF_PROBLEM_FILE, v.scan.file, NULL, 0, "%s",
			     err && err->detail[0] ? err->detail : "cannot be opened");
	}
	if (r < 0)
		return r;
	r = tell_gaps(&v);
	if (r < 0)
		return hf_fail_sys(err, -r, "memory", "journal");
	if (hf_scan_pending(&v.scan) > 0)
		tell(&v, HF_PROBLEM_TORN, v.scan.file, NULL, 0,
		     "%zu bytes of an unfinished record at the end", hf_scan_pending(&v.scan));
	if (v.result.first > v.pruned_through + 1)
		tell(&v, HF_PROBLEM_GAP, v.start_file, &v.start, v.result.first,
		     "%llu record(s) missing before the first, and no record shows that they were pruned",
		     (unsigned long long)(v.result.first - v.pruned_through - 1));
	if (totals.seq > v.result.last)
		tell(&v, HF_PROBLEM_TAIL, HF_SEGMENT_ACTIVE, NULL, totals.seq,
		     "%llu record(s) missing at the end: %llu was acknowledged",
		     (unsigned long long)(totals.seq - v.result.last),
		     (unsigned long long)totals.seq);
	r = check_counters(&v, err);
	if (r < 0)
		return r;
	v.result.lost = totals.lost;
	*ret_result = v.result;
	return 0;
}
