/* run/session/record.c - a session's line of JSON, and back. */
#include <string.h>

#include <jansson.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/exec/marks.h"
#include "hf/run/session/record.h"

#define SUM_LABEL ",\"x\":\""
#define SUM_LEN   (sizeof(SUM_LABEL) - 1 + 16 + 2) /* label, digits, quote and brace */

static const char *const phase_words[] = {
	[HF_PHASE_STARTING] = "starting", [HF_PHASE_RUNNING] = "running",
	[HF_PHASE_VERIFYING] = "verifying", [HF_PHASE_WAITING] = "waiting",
	[HF_PHASE_STOPPING] = "stopping", [HF_PHASE_ENDED] = "ended",
};

#define N_PHASES (sizeof(phase_words) / sizeof(phase_words[0]))

const char *hf_phase_word(enum hf_phase phase)
{
	return (size_t)phase < N_PHASES && phase_words[phase] ? phase_words[phase] : "unknown";
}

const char *hf_outcome_word(enum hf_outcome outcome)
{
	switch (outcome) {
#define WORD(name, number, word)    \
	case HF_OUTCOME_##name: \
		return word;
		HF_OUTCOME_LIST(WORD)
#undef WORD
	default:
		return "unknown";
	}
}

enum hf_outcome hf_outcome_of(const char *word)
{
#define OF(name, number, text)       \
	if (strcmp(word, text) == 0) \
		return HF_OUTCOME_##name;
	HF_OUTCOME_LIST(OF)
#undef OF
	return HF_OUTCOME_NONE;
}

const char *hf_session_word(enum hf_session_state state)
{
	switch (state) {
#define WORD(name, number, word)    \
	case HF_SESSION_##name: \
		return word;
		HF_SESSION_LIST(WORD)
#undef WORD
	default:
		return "unknown";
	}
}

/* -- writing ------------------------------------------------------------------ */

static void add_key(struct hf_buf *out, const char *key)
{
	hf_buf_add_text(out, ",\"");
	hf_buf_add_text(out, key);
	hf_buf_add_text(out, "\":");
}

static void add_text(struct hf_buf *out, const char *key, const char *text)
{
	add_key(out, key);
	(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
}

static void add_number(struct hf_buf *out, const char *key, int64_t number)
{
	add_key(out, key);
	hf_buf_add_i64(out, number);
}

static void add_process(struct hf_buf *out, const char *key, const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX];

	if (id->pid == 0)
		return;
	(void)hf_proc_format(id, text);
	add_text(out, key, text);
}

static void add_time(struct hf_buf *out, const char *key, struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	if (time.ns == 0)
		return;
	hf_wall_format(time, text);
	add_text(out, key, text);
}

void hf_session_encode(const struct hf_session_record *r, struct hf_buf *out)
{
	char key[HF_NAME_KEY_MAX] = "";
	size_t start = out->len;

	/* A name may hold any bytes; its key is what JSON can carry. */
	if (hf_name_key(r->name, strlen(r->name), key, NULL) < 0)
		key[0] = '\0';
	hf_buf_add_text(out, "{\"v\":1");
	add_text(out, "key", key);
	add_number(out, "token", (int64_t)r->token);
	add_text(out, "phase", hf_phase_word(r->phase));
	add_number(out, "attempt", r->attempt);
	add_number(out, "failures", r->failures);
	add_number(out, "same", r->same);
	add_number(out, "kills", r->kills);
	add_number(out, "loop", r->loop);
	add_number(out, "logged", r->logged);
	add_process(out, "supervisor", &r->supervisor);
	add_process(out, "keeper", &r->keeper);
	add_process(out, "leader", &r->leader);
	if (r->cgroup[0]) {
		add_text(out, "cgroup", r->cgroup);
		add_number(out, "cgroup_inode", (int64_t)r->cgroup_inode);
	}
	if (r->mark)
		add_number(out, "mark", (int64_t)r->mark);
	if (r->around)
		add_number(out, "around", (int64_t)r->around);
	add_text(out, "command", r->command);
	add_time(out, "started", r->started);
	add_number(out, "began_ns", r->began_ns);
	add_number(out, "deadline_ns", r->deadline_ns);
	add_number(out, "hang_ns", r->hang_ns);
	add_number(out, "grace_ns", r->grace_ns);
	add_text(out, "outcome", hf_outcome_word(r->outcome));
	add_number(out, "exit", r->exit_status);
	add_text(out, "cause", r->cause);
	add_time(out, "ended", r->ended);
	add_number(out, "ran_ns", r->ran_ns);
	if (r->outlived) {
		add_number(out, "outlived", r->outlived);
		add_text(out, "outlived_names", r->outlived_names);
	}
	if (r->options)
		add_number(out, "options", (int64_t)r->options);
	if (out->err)
		return;
	hf_buf_add_text(out, SUM_LABEL);
	hf_buf_add_hex64(out, XXH3_64bits(out->s + start, out->len - start - (sizeof(SUM_LABEL) - 1)));
	hf_buf_add_text(out, "\"}\n");
}

/* -- reading ------------------------------------------------------------------ */

/* The first thing that is wrong stays; later reads do nothing. */
struct reader {
	json_t *root;
	const char *why;
	size_t used; /* keys that were read: all must be */
};

static json_t *take(struct reader *reader, const char *key)
{
	json_t *value = reader->why ? NULL : json_object_get(reader->root, key);

	reader->used += value != NULL;
	return value;
}

static int64_t take_number(struct reader *reader, const char *key, int64_t max)
{
	json_t *value = take(reader, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max) {
		reader->why = reader->why ? reader->why : "a number is missing or out of range";
		return 0;
	}
	return json_integer_value(value);
}

static void take_text(struct reader *reader, const char *key, char *out, size_t cap)
{
	json_t *value = take(reader, key);

	if (!json_is_string(value) || json_string_length(value) >= cap ||
	    strlen(json_string_value(value)) != json_string_length(value)) {
		reader->why = reader->why ? reader->why : "a text is missing or too long";
		return;
	}
	memcpy(out, json_string_value(value), json_string_length(value) + 1);
}

static void take_process(struct reader *reader, const char *key, struct hf_proc_id *ret)
{
	json_t *value = take(reader, key);

	if (!value)
		return;
	/* Never pid 1 or below: nothing of ours runs there, and nothing else is signalled. */
	if (!json_is_string(value) ||
	    hf_proc_parse(json_string_value(value), json_string_length(value), ret, NULL) < 0 ||
	    ret->pid <= 1)
		reader->why = reader->why ? reader->why : "a process is not an identity";
}

/* Of any date: the clock may have been wrong when it was written, or is wrong now. */
static void take_time(struct reader *reader, const char *key, struct hf_wall *ret)
{
	json_t *value = take(reader, key);

	if (!value)
		return;
	if (!json_is_string(value) ||
	    hf_wall_parse(json_string_value(value), json_string_length(value), ret) < 0)
		reader->why = reader->why ? reader->why : "a time is none";
}

/* A limit mark, or 0 where there is none. */
static uint64_t take_mark(struct reader *reader, const char *key)
{
	uint64_t mark;

	if (!json_object_get(reader->root, key))
		return 0;
	mark = (uint64_t)take_number(reader, key, INT64_MAX);
	if (!hf_limit_mark_in(mark))
		reader->why = reader->why ? reader->why : "a limit mark is none";
	return mark;
}

static void take_phase(struct reader *reader, enum hf_phase *ret)
{
	char word[16] = "";

	take_text(reader, "phase", word, sizeof(word));
	for (size_t i = 0; i < N_PHASES; i++)
		if (phase_words[i] && strcmp(phase_words[i], word) == 0)
			*ret = (enum hf_phase)i;
	if (*ret == 0)
		reader->why = reader->why ? reader->why : "there is no such phase";
}

static void take_outcome(struct reader *reader, enum hf_outcome *ret)
{
	char word[16] = "";

	take_text(reader, "outcome", word, sizeof(word));
	*ret = hf_outcome_of(word);
	if (*ret == HF_OUTCOME_NONE && strcmp(word, hf_outcome_word(HF_OUTCOME_NONE)) != 0)
		reader->why = reader->why ? reader->why : "there is no such outcome";
}

/* It is killed by its inode; the path only finds it, and does not wander. */
static int is_group_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && !strstr(path, "/../") && (len < 3 || strcmp(path + len - 3, "/..") != 0);
}

static void read_all(struct reader *reader, struct hf_session_record *r)
{
	char key[HF_NAME_KEY_MAX] = "";

	if (take_number(reader, "v", 1) != 1)
		reader->why = reader->why ? reader->why : "not a version that is known";
	take_text(reader, "key", key, sizeof(key));
	if (!reader->why && hf_name_unkey(key, strlen(key), r->name, NULL) != (int)strlen(r->name))
		reader->why = "its key is not one";
	r->token = (uint64_t)take_number(reader, "token", INT64_MAX);
	take_phase(reader, &r->phase);
	r->attempt = (uint32_t)take_number(reader, "attempt", UINT32_MAX);
	r->failures = (uint32_t)take_number(reader, "failures", UINT32_MAX);
	r->same = (uint32_t)take_number(reader, "same", UINT32_MAX);
	r->kills = (uint32_t)take_number(reader, "kills", 1);
	r->loop = (int)take_number(reader, "loop", 1);
	r->logged = (int)take_number(reader, "logged", 1);
	take_process(reader, "supervisor", &r->supervisor);
	take_process(reader, "keeper", &r->keeper);
	take_process(reader, "leader", &r->leader);
	if (json_object_get(reader->root, "cgroup")) {
		take_text(reader, "cgroup", r->cgroup, sizeof(r->cgroup));
		r->cgroup_inode = (uint64_t)take_number(reader, "cgroup_inode", INT64_MAX);
		if (!is_group_path(r->cgroup))
			reader->why = reader->why ? reader->why : "not the path of a cgroup";
	}
	r->mark = take_mark(reader, "mark");
	r->around = take_mark(reader, "around");
	take_text(reader, "command", r->command, sizeof(r->command));
	take_time(reader, "started", &r->started);
	r->began_ns = take_number(reader, "began_ns", INT64_MAX);
	r->deadline_ns = take_number(reader, "deadline_ns", INT64_MAX);
	r->hang_ns = take_number(reader, "hang_ns", INT64_MAX);
	r->grace_ns = take_number(reader, "grace_ns", INT64_MAX);
	take_outcome(reader, &r->outcome);
	r->exit_status = (int)take_number(reader, "exit", 255);
	take_text(reader, "cause", r->cause, sizeof(r->cause));
	take_time(reader, "ended", &r->ended);
	r->ran_ns = take_number(reader, "ran_ns", INT64_MAX);
	if (json_object_get(reader->root, "outlived")) {
		r->outlived = (uint32_t)take_number(reader, "outlived", UINT32_MAX);
		take_text(reader, "outlived_names", r->outlived_names, sizeof(r->outlived_names));
	}
	if (json_object_get(reader->root, "options"))
		r->options = (uint64_t)take_number(reader, "options", INT64_MAX);
	(void)take(reader, "x");
	if (!reader->why && reader->used != json_object_size(reader->root))
		reader->why = "it has fields that nobody wrote";
	if (!reader->why && (r->token == 0 || r->keeper.pid == 0 || r->supervisor.pid == 0))
		reader->why = "it lacks a token or its processes";
}

static int sum_is_right(const char *line, size_t len)
{
	const char *sum = line + len - SUM_LEN;
	uint64_t value;

	return len > SUM_LEN && memcmp(sum, SUM_LABEL, sizeof(SUM_LABEL) - 1) == 0 &&
	       memcmp(line + len - 2, "\"}", 2) == 0 &&
	       hf_parse_hex64(sum + sizeof(SUM_LABEL) - 1, 16, &value) == 0 &&
	       value == XXH3_64bits(line, len - SUM_LEN);
}

int hf_session_decode(const char *line, size_t len, struct hf_session_record *ret,
		      const char **ret_why)
{
	struct hf_session_record record = { 0 };
	struct reader reader = { 0 };

	*ret_why = NULL;
	if (!sum_is_right(line, len)) {
		*ret_why = "its checksum is wrong";
		return HF_E_FORMAT;
	}
	reader.root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(reader.root))
		reader.why = "not a JSON object";
	else
		read_all(&reader, &record);
	json_decref(reader.root);
	*ret_why = reader.why;
	if (reader.why)
		return HF_E_FORMAT;
	*ret = record;
	return 0;
}
