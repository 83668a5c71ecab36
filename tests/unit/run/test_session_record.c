/* unit/run/test_session_record.c - a session's line: read back as written, and nothing else is believed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/run/session/record/store.h"

#define SUM_TAIL (sizeof(",\"x\":\"0123456789abcdef\"}") - 1)

static struct hf_session_record full_record(void)
{
	struct hf_session_record r = { .token = 1700000000000000,
				       .phase = HF_PHASE_RUNNING,
				       .attempt = 3,
				       .failures = 2,
				       .same = 7,
				       .kills = 1,
				       .loop = 1,
				       .logged = 1,
				       .cgroup_inode = 4711,
				       .mark = (UINT64_C(1) << 62) + 5,
				       .around = (UINT64_C(1) << 62) + 7,
				       .started = { 1700000000 * HF_SEC },
				       .began_ns = 12345,
				       .deadline_ns = 67890,
				       .hang_ns = 600 * HF_SEC,
				       .grace_ns = 5 * HF_SEC,
				       .outcome = HF_OUTCOME_FAILED,
				       .exit_status = 7,
				       .ended = { 1700000001 * HF_SEC },
				       .ran_ns = HF_SEC,
				       .outlived = 3,
				       .options = 4712 };
	struct hf_proc_id self;

	ASSERT_OK(hf_proc_self(&self, ERR));
	r.supervisor = r.keeper = r.leader = self;
	strcpy(r.name, "fix-160");
	strcpy(r.cgroup, "/sys/fs/cgroup/user/holdfast-1");
	strcpy(r.command, "claude -p \"fix \\ it\"");
	strcpy(r.cause, "exit 7");
	strcpy(r.outlived_names, "sleep (2), node");
	return r;
}

/* The line without its newline; in a static buffer. */
static const char *line_of(const struct hf_session_record *r, size_t *ret_len)
{
	static char line[2 * HF_SESSION_LINE_MAX];
	AUTO(hf_buf_done) struct hf_buf buf = HF_BUF_INIT;

	hf_session_encode(r, &buf);
	assert_int_equal(buf.err, 0);
	assert_in_range(buf.len, 100, HF_SESSION_LINE_MAX);
	assert_int_equal(buf.s[buf.len - 1], '\n');
	assert_null(memchr(buf.s, '\n', buf.len - 1));
	memcpy(line, buf.s, buf.len - 1);
	line[buf.len - 1] = '\0';
	*ret_len = buf.len - 1;
	return line;
}

static int decode(const char *line, size_t len)
{
	struct hf_session_record into = { .attempt = 4711 };
	const char *why = "unset";
	/* Of exactly that size, so that a sanitizer sees a step beyond it. */
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, line, len);
	r = hf_session_decode(copy, len, &into, &why);
	free(copy);
	if (r == 0) {
		assert_null(why);
		return 0;
	}
	assert_int_equal(r, HF_E_FORMAT);
	assert_non_null(why);
	assert_int_equal(into.attempt, 4711);
	return r;
}

/* Puts the right checksum behind the object `text`, which lacks it, and decodes that. */
static int decode_summed(const char *text)
{
	char line[2 * HF_SESSION_LINE_MAX];
	size_t len = strlen(text) - 1;

	assert_int_equal(text[len], '}');
	len = (size_t)snprintf(line, sizeof(line), "%.*s,\"x\":\"%016llx\"}", (int)len, text,
			       (unsigned long long)XXH3_64bits(text, len));
	return decode(line, len);
}

static void assert_same_record(const struct hf_session_record *a, const struct hf_session_record *b)
{
	assert_string_equal(a->name, b->name);
	assert_true(a->token == b->token && a->phase == b->phase && a->attempt == b->attempt);
	assert_true(a->failures == b->failures && a->same == b->same && a->kills == b->kills);
	assert_true(a->loop == b->loop && a->logged == b->logged);
	assert_memory_equal(&a->supervisor, &b->supervisor, sizeof(a->supervisor));
	assert_memory_equal(&a->keeper, &b->keeper, sizeof(a->keeper));
	assert_memory_equal(&a->leader, &b->leader, sizeof(a->leader));
	assert_string_equal(a->cgroup, b->cgroup);
	assert_true(a->cgroup_inode == b->cgroup_inode);
	assert_true(a->mark == b->mark && a->around == b->around);
	assert_string_equal(a->command, b->command);
	assert_string_equal(a->cause, b->cause);
	assert_true(a->started.ns == b->started.ns && a->ended.ns == b->ended.ns);
	assert_true(a->began_ns == b->began_ns && a->deadline_ns == b->deadline_ns);
	assert_true(a->hang_ns == b->hang_ns && a->grace_ns == b->grace_ns && a->ran_ns == b->ran_ns);
	assert_true(a->outcome == b->outcome && a->exit_status == b->exit_status);
}

static void round_trip(const struct hf_session_record *r)
{
	struct hf_session_record again;
	const char *why = NULL;
	size_t len;
	const char *line = line_of(r, &len);

	if (hf_session_decode(line, len, &again, &why) < 0) {
		print_error("%s: %s\n", why, line);
		fail();
	}
	assert_same_record(r, &again);
}

static void a_record_is_read_back_as_it_was_written(void **state)
{
	struct hf_session_record r = full_record();

	(void)state;
	round_trip(&r);
	for (int phase = HF_PHASE_STARTING; phase <= HF_PHASE_ENDED; phase++)
		for (int outcome = HF_OUTCOME_NONE; outcome <= HF_OUTCOME_NOT_STARTED; outcome++) {
			r.phase = (enum hf_phase)phase;
			r.outcome = (enum hf_outcome)outcome;
			round_trip(&r);
		}
	r.token = INT64_MAX;
	r.attempt = r.failures = r.same = UINT32_MAX;
	r.began_ns = r.deadline_ns = r.hang_ns = r.grace_ns = r.ran_ns = INT64_MAX;
	r.cgroup_inode = INT64_MAX;
	r.exit_status = 255;
	round_trip(&r);
	memset(&r.leader, 0, sizeof(r.leader));
	r.cgroup[0] = r.command[0] = r.cause[0] = '\0';
	r.cgroup_inode = 0;
	r.started.ns = r.ended.ns = 0;
	r.attempt = r.failures = r.same = 0;
	r.exit_status = 0;
	round_trip(&r);
	/* The longest of everything that the keeper can store. */
	memset(r.name, '/', HF_NAME_MAX);
	memset(r.command, '"', HF_RUN_COMMAND_MAX);
	memset(r.cause, '\\', HF_RUN_CAUSE_MAX - 1);
	memset(r.cgroup, '/', HF_CGROUP_PATH_MAX - 1);
	r.cgroup_inode = 1;
	round_trip(&r);
}

static void a_name_may_hold_any_bytes(void **state)
{
	struct hf_session_record r = full_record();

	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		snprintf(r.name, sizeof(r.name), "%cx%c", byte, byte);
		round_trip(&r);
	}
}

static void cut_at_every_length_it_is_refused(void **state)
{
	struct hf_session_record r = full_record();
	size_t len;
	const char *line = line_of(&r, &len);

	(void)state;
	assert_int_equal(decode(line, len), 0);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(decode(line, n), HF_E_FORMAT);
}

static void with_any_byte_changed_it_is_refused(void **state)
{
	struct hf_session_record r = full_record();
	char changed[2 * HF_SESSION_LINE_MAX];
	size_t len;
	const char *line = line_of(&r, &len);

	(void)state;
	memcpy(changed, line, len);
	for (size_t i = 0; i < len; i++)
		for (int bit = 0; bit < 8; bit++) {
			changed[i] ^= (char)(1 << bit);
			assert_int_equal(decode(changed, len), HF_E_FORMAT);
			changed[i] ^= (char)(1 << bit);
		}
	/* Added or doubled bytes, too. */
	changed[len] = ' ';
	assert_int_equal(decode(changed, len + 1), HF_E_FORMAT);
	memcpy(changed + len, line, len);
	assert_int_equal(decode(changed, 2 * len), HF_E_FORMAT);
}

/* The line without its checksum, with the value of `key` replaced; NULL: the key taken out. */
static const char *with(const char *key, const char *value)
{
	static char text[2 * HF_SESSION_LINE_MAX];
	struct hf_session_record r = full_record();
	char quoted[32];
	size_t len;
	const char *line = line_of(&r, &len), *at, *end;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(line, quoted);
	assert_non_null(at);
	end = at + strlen(quoted);
	if (*end == '"')
		for (end++; *end != '"'; end++)
			end += *end == '\\';
	while (*end != ',' && *end != '}')
		end++;
	len -= SUM_TAIL;
	if (value)
		snprintf(text, sizeof(text), "%.*s%s%s%.*s}", (int)(at - line), line, quoted, value,
			 (int)(line + len - end), end);
	else
		snprintf(text, sizeof(text), "%.*s%.*s}", (int)(at - line) - 1, line,
			 (int)(line + len - end), end);
	return text;
}

static void with_its_checksum_right_each_hostile_value_is_refused(void **state)
{
	static const char *const numbers[] = { "token", "attempt", "failures", "same", "kills", "loop",
					       "logged", "cgroup_inode", "began_ns", "deadline_ns",
					       "hang_ns", "grace_ns", "exit", "ran_ns", "v", "mark",
					       "around" };
	static const char *const processes[] = { "supervisor", "keeper", "leader" };
	static const char *const made[] = { "keeper", "leader" };
	static const char *const first[] = { "\"p1:1:5:7:1:1:8843df5e-d433-4008-8733-cf1b640eef89\"" };
	static const char *const times[] = { "started", "ended" };
	static const char *const texts[] = { "key", "phase", "command", "outcome", "cause", "cgroup" };
	static const char *const no_numbers[] = { "\"7\"", "[7]", "{}", "-1", "true", "null", "1.5",
						  "9223372036854775808", "1e3", "\"\"" };
	static const char *const no_processes[] = {
		"4711", "\"4711\"", "[4711]", "-1", "0", "1", "true", "null", "\"\"", "{}",
		"\"p1:0:5:7:1:1:8843df5e-d433-4008-8733-cf1b640eef89\"",
		"\"p1:-1:5:7:1:1:8843df5e-d433-4008-8733-cf1b640eef89\"",
		"\"p1:99999999999:5:7:1:1:8843df5e-d433-4008-8733-cf1b640eef89\"",
		"\"p1:77:5:7:1:1:no-boot-id\"", "\"p2:77:5:7:1:1:8843df5e-d433-4008-8733-cf1b640eef89\"",
	};
	static const char *const no_times[] = { "\"2026-01-02T03:04:05\"", "\"yesterday\"", "0",
						"\"9999-12-31T23:59:59.000000Z\"", "true", "[]", "\"\"",
						"1700000000" };
	static const char *const no_texts[] = { "7", "[]", "true", "null", "\"a\\u0000b\"" };

	(void)state;
	assert_int_equal(decode_summed(with("attempt", "3")), 0);
#define EACH_REFUSED(keys, values)                                                         \
	for (size_t k = 0; k < sizeof(keys) / sizeof((keys)[0]); k++)                      \
		for (size_t v = 0; v < sizeof(values) / sizeof((values)[0]); v++)          \
			if (decode_summed(with((keys)[k], (values)[v])) == 0) {            \
				print_error("%s: %s was taken\n", (keys)[k], (values)[v]); \
				fail();                                                    \
			}
	EACH_REFUSED(numbers, no_numbers)
	EACH_REFUSED(processes, no_processes)
	/* Only the supervisor can be the first process of a container. */
	EACH_REFUSED(made, first)
	assert_int_equal(decode_summed(with("supervisor", first[0])), 0);
	EACH_REFUSED(times, no_times)
	EACH_REFUSED(texts, no_texts)
#undef EACH_REFUSED
	assert_int_equal(decode_summed(with("v", "2")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("v", "0")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("token", "0")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("exit", "256")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("loop", "2")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("phase", "\"dancing\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("outcome", "\"great\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("key", "\"../up\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("key", "\"\"")), HF_E_FORMAT);
	/* Limits that are not marks would find processes that are nobody's. */
	assert_int_equal(decode_summed(with("mark", "0")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("mark", "1000")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("around", "4611686018427387903")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("cgroup", "\"relative\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("cgroup", "\"/a/../b\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("cgroup", "\"/a/..\"")), HF_E_FORMAT);
}

static void missing_extra_and_doubled_keys_are_refused(void **state)
{
	static const char *const needed[] = { "v", "key", "token", "phase", "attempt", "failures",
					      "same", "kills", "loop", "logged", "supervisor", "keeper",
					      "cgroup", "cgroup_inode", "command", "began_ns",
					      "deadline_ns", "hang_ns", "grace_ns", "outcome", "exit",
					      "cause", "ran_ns" };
	static const char *const optional[] = { "leader", "started", "ended", "mark", "around" };

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (strcmp(needed[i], "v") != 0 && decode_summed(with(needed[i], NULL)) == 0) {
			print_error("%s may be missing\n", needed[i]);
			fail();
		}
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		assert_int_equal(decode_summed(with(optional[i], NULL)), 0);
	assert_int_equal(decode_summed(with("attempt", "3,\"more\":1")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("attempt", "3,\"attempt\":4")), HF_E_FORMAT);
	assert_int_equal(decode_summed(with("attempt", "3,\"x\":\"0123456789abcdef\"")), HF_E_FORMAT);
	assert_int_equal(decode_summed("[1,2}"), HF_E_FORMAT);
	assert_int_equal(decode_summed("{}"), HF_E_FORMAT);
}

/* -- the file ------------------------------------------------------------------ */

struct store {
	struct hf_sessions *sessions;
	struct hf_lock *lock;
	struct hf_session_record record;
	char path[512];
};

static void store_open(struct store *s)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };

	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &s->sessions, ERR));
	ASSERT_OK(hf_lock_acquire(s->sessions->locks, "fix-160", &opts, &s->lock, NULL, ERR));
	s->record = full_record();
	s->record.token = hf_lock_token(s->lock);
	snprintf(s->path, sizeof(s->path), "%s", hf_test_path("state/sessions/fix-160/session.jsonl"));
}

static void store_close(struct store *s)
{
	ASSERT_OK(hf_lock_release(s->lock, ERR));
	hf_lock_free(s->lock);
	hf_sessions_free(s->sessions);
}

static int store_save(struct store *s, uint32_t attempt)
{
	s->record.attempt = attempt;
	return hf_session_save(s->sessions, &s->record, s->record.token, ERR);
}

#define FILE_BYTES 65536 /* lines in front, zeros behind them */

/* Bytes of lines. */
static long long size_of(const char *path)
{
	char text[FILE_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text));

	close(fd);
	return n < 0 ? -1 : (long long)strnlen(text, (size_t)n);
}

/* As a crash leaves it: the last line ends at `size`, behind it are zeros as before. */
static void cut_to(const char *path, long long size)
{
	assert_int_equal(truncate(path, (off_t)size), 0);
	assert_int_equal(truncate(path, FILE_BYTES), 0);
}

static void cut_at_any_byte_the_file_gives_the_line_before(void **state)
{
	struct hf_session_record got;
	struct store s;
	long long one, two;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	one = size_of(s.path);
	ASSERT_OK(store_save(&s, 2));
	two = size_of(s.path);
	for (long long cut = two - 1; cut >= one; cut--) {
		cut_to(s.path, cut);
		ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
		assert_int_equal(got.attempt, 1);
		/* The same when the zeros are gone too. */
		assert_int_equal(truncate(s.path, (off_t)cut), 0);
		ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
		assert_int_equal(got.attempt, 1);
	}
	/* The first line was never whole: then nothing was started. */
	for (long long cut = one - 1; cut >= 0; cut--) {
		assert_int_equal(truncate(s.path, (off_t)cut), 0);
		ASSERT_ERR(hf_session_load(s.sessions, "fix-160", &got, ERR), HF_E_NO_SESSION);
	}
	store_close(&s);
}

static void after_a_torn_line_the_next_one_counts_and_the_torn_one_never_does(void **state)
{
	struct hf_session_record got;
	struct store s;
	long long one, two;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	one = size_of(s.path);
	ASSERT_OK(store_save(&s, 2));
	two = size_of(s.path);
	for (long long cut = one + 1; cut < two; cut += cut < two - 4 ? 37 : 1) {
		if (cut > two - 1)
			break;
		assert_int_equal(truncate(s.path, 0), 0);
		ASSERT_OK(store_save(&s, 1));
		ASSERT_OK(store_save(&s, 2));
		cut_to(s.path, cut);
		ASSERT_OK(store_save(&s, 3));
		ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
		assert_int_equal(got.attempt, 3);
		/* And the torn one, now closed, is not taken when the third is torn as well. */
		cut_to(s.path, size_of(s.path) - 1);
		ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
		assert_int_equal(got.attempt, 1);
	}
	store_close(&s);
}

/* Of a long record only the end is read; unless what counts stands before that. */
static void last_whole_line_is_found_behind_any_number_of_lines_and_before_any_of_torn_ones(void **state)
{
	struct hf_session_record got;
	struct store s;
	uint32_t attempt = 1;
	int fd;

	(void)state;
	store_open(&s);
	for (; attempt == 1 || size_of(s.path) < 20 * 1024; attempt++)
		ASSERT_OK(store_save(&s, attempt));
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, attempt - 1);
	/* What was read says where the next line goes. */
	assert_int_equal(got.tail.end, size_of(s.path));
	s.record.tail = got.tail;
	ASSERT_OK(store_save(&s, attempt));
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, attempt);
	fd = open(s.path, O_WRONLY | O_CLOEXEC);
	while (size_of(s.path) < 50 * 1024)
		assert_int_equal(pwrite(fd, "{\"v\":1,\"torn!\n", 14, size_of(s.path)), 14);
	close(fd);
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, attempt);
	store_close(&s);
}

/* A power cut may leave a later part of a line and not its beginning. */
static void what_stands_behind_the_zeros_is_neither_read_nor_kept(void **state)
{
	struct hf_session_record got;
	struct store s;
	int fd;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	fd = open(s.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "rest of a line\n", 15, size_of(s.path) + 512), 15);
	close(fd);
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, 1);
	ASSERT_OK(store_save(&s, 2));
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, 2);
	store_close(&s);
}

static void a_damaged_last_line_is_put_away_once_and_then_there_is_none(void **state)
{
	struct hf_session_record got;
	struct store s;
	int fd;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	fd = open(s.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 30), 1);
	close(fd);
	ASSERT_ERR(hf_session_load(s.sessions, "fix-160", &got, ERR), HF_E_FORMAT);
	ASSERT_ERR(hf_session_load(s.sessions, "fix-160", &got, ERR), HF_E_NO_SESSION);
	ASSERT_OK(store_save(&s, 2));
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, 2);
	store_close(&s);
}

struct look {
	enum hf_session_state state;
	int64_t age_ns;
};

static void keep_look(void *arg, const struct hf_session_info *info)
{
	struct look *look = arg;

	look->state = info->state;
	look->age_ns = info->age_ns;
}

/* The clock was more than a day ahead when it started, and is right now. */
static void session_from_a_clock_that_was_ahead_is_shown_and_not_put_away_L4(void **state)
{
	struct look look = { 0 };
	struct store s;

	(void)state;
	store_open(&s);
	s.record.loop = 0;
	s.record.started.ns = s.record.ended.ns = hf_wall_now().ns + INT64_C(40) * 86400 * HF_SEC;
	ASSERT_OK(store_save(&s, 1));
	ASSERT_OK(hf_session_look(s.sessions, "fix-160", keep_look, &look, ERR));
	assert_int_equal(look.state, HF_SESSION_RUNNING);
	assert_true(look.age_ns == -1);
	assert_int_equal(access(s.path, F_OK), 0);
	store_close(&s);
}

static void the_file_stays_small_however_often_it_is_written(void **state)
{
	struct hf_session_record got;
	struct store s;

	(void)state;
	store_open(&s);
	for (uint32_t i = 1; i <= 1500; i++)
		ASSERT_OK(store_save(&s, i));
	assert_in_range(size_of(s.path), 100, FILE_BYTES);
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &got, ERR));
	assert_int_equal(got.attempt, 1500);
	store_close(&s);
}

static void a_writer_that_knows_its_end_writes_over_nothing_but_zeros(void **state)
{
	struct hf_session_record found;
	struct store s;
	int fd;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	ASSERT_OK(store_save(&s, 2));
	assert_true(s.record.tail.inode != 0 && s.record.tail.end > 0);
	/* Bytes behind its own last line, and then a newline less in front of them. */
	for (int i = 0; i < 2; i++) {
		fd = open(s.path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, "x", 1, s.record.tail.end + (i == 0 ? 7 : -1)), 1);
		(void)close(fd);
		ASSERT_OK(store_save(&s, 3 + (uint32_t)i));
		ASSERT_OK(hf_session_load(s.sessions, "fix-160", &found, ERR));
		assert_int_equal(found.attempt, 3 + i);
		ASSERT_OK(store_save(&s, 3 + (uint32_t)i));
	}
	/* Another file under that name. */
	assert_int_equal(unlink(s.path), 0);
	ASSERT_OK(store_save(&s, 9));
	ASSERT_OK(hf_session_load(s.sessions, "fix-160", &found, ERR));
	assert_int_equal(found.attempt, 9);
	store_close(&s);
}

static void a_token_that_is_not_current_writes_nothing(void **state)
{
	struct store s;
	long long size;

	(void)state;
	store_open(&s);
	ASSERT_OK(store_save(&s, 1));
	size = size_of(s.path);
	s.record.attempt = 2;
	ASSERT_ERR(hf_session_save(s.sessions, &s.record, s.record.token - 1, ERR), HF_E_STALE);
	ASSERT_ERR(hf_session_save(s.sessions, &s.record, s.record.token + 1, ERR), HF_E_STALE);
	assert_int_equal(size_of(s.path), size);
	store_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_record_is_read_back_as_it_was_written),
		HF_TEST(a_name_may_hold_any_bytes),
		HF_TEST(cut_at_every_length_it_is_refused),
		HF_TEST(with_any_byte_changed_it_is_refused),
		HF_TEST(with_its_checksum_right_each_hostile_value_is_refused),
		HF_TEST(missing_extra_and_doubled_keys_are_refused),
		HF_TEST(cut_at_any_byte_the_file_gives_the_line_before),
		HF_TEST(after_a_torn_line_the_next_one_counts_and_the_torn_one_never_does),
		HF_TEST(last_whole_line_is_found_behind_any_number_of_lines_and_before_any_of_torn_ones),
		HF_TEST(what_stands_behind_the_zeros_is_neither_read_nor_kept),
		HF_TEST(a_damaged_last_line_is_put_away_once_and_then_there_is_none),
		HF_TEST(session_from_a_clock_that_was_ahead_is_shown_and_not_put_away_L4),
		HF_TEST(the_file_stays_small_however_often_it_is_written),
		HF_TEST(a_writer_that_knows_its_end_writes_over_nothing_but_zeros),
		HF_TEST(a_token_that_is_not_current_writes_nothing),
	};

	return hf_run_tests("session_record", tests);
}
