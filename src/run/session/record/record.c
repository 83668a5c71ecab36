/* run/session/record/record.c - a session's line of JSON, and back. */
#include <string.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/base/words.h"
#include "hf/exec/marks.h"
#include "hf/journal/object.h"
#include "hf/run/session/record/record.h"

static const char *const phase_words[] = {
	[HF_PHASE_STARTING] = "starting", [HF_PHASE_RUNNING] = "running",
	[HF_PHASE_VERIFYING] = "verifying", [HF_PHASE_WAITING] = "waiting",
	[HF_PHASE_STOPPING] = "stopping", [HF_PHASE_ENDED] = "ended",
	[HF_PHASE_LANDING] = "landing",
};

#define N_PHASES (sizeof(phase_words) / sizeof(phase_words[0]))

const char *hf_phase_word(enum hf_phase phase)
{
	return (size_t)phase < N_PHASES && phase_words[phase] ? phase_words[phase] : "unknown";
}

static const struct hf_word outcomes[] = { HF_OUTCOME_LIST(HF_WORD) { 0 } };
static const struct hf_word states[] = { HF_SESSION_LIST(HF_WORD) { 0 } };
static const struct hf_word activities[] = { HF_ACTIVITY_LIST(HF_WORD) { 0 } };

const char *hf_outcome_word(enum hf_outcome outcome)
{
	return hf_word_of(outcomes, (int)outcome);
}

enum hf_outcome hf_outcome_of(const char *word)
{
	int number = hf_word_number(outcomes, word);

	return number < 0 ? HF_OUTCOME_NONE : (enum hf_outcome)number;
}

const char *hf_session_word(enum hf_session_state state)
{
	return hf_word_of(states, (int)state);
}

const char *hf_activity_word(enum hf_activity activity)
{
	return hf_word_of(activities, (int)activity);
}

/* -- writing ------------------------------------------------------------------ */

static void add_process(struct hf_buf *out, const char *key, const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX];

	if (id->pid == 0)
		return;
	(void)hf_proc_format(id, text);
	hf_object_add_text(out, key, text);
}

static void write_time(struct hf_buf *out, const char *key, struct hf_wall time)
{
	if (time.ns != 0)
		hf_object_add_time(out, key, time);
}

void hf_session_encode(const struct hf_session_record *r, struct hf_buf *out)
{
	char key[HF_NAME_KEY_MAX] = "";
	size_t start = out->len;

	/* A name may hold any bytes; its key is what JSON can carry. */
	if (hf_name_key(r->name, strlen(r->name), key, NULL) < 0)
		key[0] = '\0';
	hf_buf_add_text(out, "{\"v\":1");
	hf_object_add_text(out, "key", key);
	hf_object_add_number(out, "token", (int64_t)r->token);
	hf_object_add_text(out, "phase", hf_phase_word(r->phase));
	hf_object_add_number(out, "attempt", r->attempt);
	hf_object_add_number(out, "failures", r->failures);
	hf_object_add_number(out, "same", r->same);
	hf_object_add_number(out, "kills", r->kills);
	hf_object_add_number(out, "loop", r->loop);
	hf_object_add_number(out, "logged", r->logged);
	if (r->log)
		hf_object_add_number(out, "log", (int64_t)r->log);
	add_process(out, "supervisor", &r->supervisor);
	add_process(out, "keeper", &r->keeper);
	add_process(out, "leader", &r->leader);
	if (r->cgroup[0]) {
		hf_object_add_text(out, "cgroup", r->cgroup);
		hf_object_add_number(out, "cgroup_inode", (int64_t)r->cgroup_inode);
	}
	if (r->mark)
		hf_object_add_number(out, "mark", (int64_t)r->mark);
	if (r->around)
		hf_object_add_number(out, "around", (int64_t)r->around);
	hf_object_add_text(out, "command", r->command);
	write_time(out, "started", r->started);
	hf_object_add_number(out, "began_ns", r->began_ns);
	hf_object_add_number(out, "deadline_ns", r->deadline_ns);
	hf_object_add_number(out, "hang_ns", r->hang_ns);
	hf_object_add_number(out, "grace_ns", r->grace_ns);
	hf_object_add_text(out, "outcome", hf_outcome_word(r->outcome));
	hf_object_add_number(out, "exit", r->exit_status);
	hf_object_add_text(out, "cause", r->cause);
	write_time(out, "ended", r->ended);
	hf_object_add_number(out, "ran_ns", r->ran_ns);
	if (r->outlived) {
		hf_object_add_number(out, "outlived", r->outlived);
		hf_object_add_text(out, "outlived_names", r->outlived_names);
	}
	if (r->kept)
		hf_object_add_number(out, "kept", r->kept);
	if (r->next_ns)
		hf_object_add_number(out, "next_ns", r->next_ns);
	if (r->measured) {
		hf_object_add_number(out, "cpu_ns", r->cpu_ns);
		hf_object_add_number(out, "peak_bytes", r->peak_bytes);
		if (r->output_bytes >= 0)
			hf_object_add_number(out, "output_bytes", r->output_bytes);
	}
	if (r->limited)
		hf_object_add_number(out, "limited", r->limited);
	if (r->options)
		hf_object_add_number(out, "options", (int64_t)r->options);
	hf_object_seal(out, start);
}

/* -- reading ------------------------------------------------------------------ */

/* One that is not there stays 0. */
static void read_time(struct hf_object *reader, const char *key, struct hf_wall *ret)
{
	if (json_object_get(reader->root, key))
		hf_object_take_time(reader, key, ret);
}

/* `least`: pid 1 is the supervisor at most, as the first process of a container. It is not killed. */
static void take_process(struct hf_object *reader, const char *key, int32_t least, struct hf_proc_id *ret)
{
	json_t *value = hf_object_take(reader, key);

	if (!value)
		return;
	if (!json_is_string(value) ||
	    hf_proc_parse(json_string_value(value), json_string_length(value), ret, NULL) < 0 ||
	    ret->pid < least)
		hf_object_wrong(reader, "a process identity is invalid");
}

/* A limit mark, or 0 where there is none. */
static uint64_t take_mark(struct hf_object *reader, const char *key)
{
	uint64_t mark;

	if (!json_object_get(reader->root, key))
		return 0;
	mark = (uint64_t)hf_object_take_number(reader, key, INT64_MAX);
	if (!hf_limit_mark_in(mark))
		hf_object_wrong(reader, "a limit mark is out of its range");
	return mark;
}

static void take_phase(struct hf_object *reader, enum hf_phase *ret)
{
	char word[16] = "";

	hf_object_take_text(reader, "phase", word, sizeof(word));
	for (size_t i = 0; i < N_PHASES; i++)
		if (phase_words[i] && strcmp(phase_words[i], word) == 0)
			*ret = (enum hf_phase)i;
	if (*ret == 0)
		hf_object_wrong(reader, "unknown phase");
}

static void take_outcome(struct hf_object *reader, enum hf_outcome *ret)
{
	char word[16] = "";

	hf_object_take_text(reader, "outcome", word, sizeof(word));
	*ret = hf_outcome_of(word);
	if (*ret == HF_OUTCOME_NONE && strcmp(word, hf_outcome_word(HF_OUTCOME_NONE)) != 0)
		hf_object_wrong(reader, "unknown outcome");
}

/* It is killed by its inode; the path only finds it, and does not wander. */
static int is_group_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && !strstr(path, "/../") && (len < 3 || strcmp(path + len - 3, "/..") != 0);
}

static void read_figures(struct hf_object *reader, struct hf_session_record *r)
{
	r->measured = 1;
	r->cpu_ns = hf_object_take_number(reader, "cpu_ns", INT64_MAX);
	r->peak_bytes = hf_object_take_number(reader, "peak_bytes", INT64_MAX);
	r->output_bytes = -1;
	if (json_object_get(reader->root, "output_bytes"))
		r->output_bytes = hf_object_take_number(reader, "output_bytes", INT64_MAX);
}

static void read_all(struct hf_object *reader, struct hf_session_record *r)
{
	char key[HF_NAME_KEY_MAX] = "";

	if (hf_object_take_number(reader, "v", 1) != 1)
		hf_object_wrong(reader, "unknown version");
	hf_object_take_text(reader, "key", key, sizeof(key));
	if (!reader->why && hf_name_unkey(key, strlen(key), r->name, NULL) != (int)strlen(r->name))
		reader->why = "its key is invalid";
	r->token = (uint64_t)hf_object_take_number(reader, "token", INT64_MAX);
	take_phase(reader, &r->phase);
	r->attempt = (uint32_t)hf_object_take_number(reader, "attempt", UINT32_MAX);
	r->failures = (uint32_t)hf_object_take_number(reader, "failures", UINT32_MAX);
	r->same = (uint32_t)hf_object_take_number(reader, "same", UINT32_MAX);
	r->kills = (uint32_t)hf_object_take_number(reader, "kills", 1);
	r->loop = (int)hf_object_take_number(reader, "loop", 1);
	r->logged = (int)hf_object_take_number(reader, "logged", 1);
	if (json_object_get(reader->root, "log"))
		r->log = (uint64_t)hf_object_take_number(reader, "log", INT64_MAX);
	take_process(reader, "supervisor", 1, &r->supervisor);
	take_process(reader, "keeper", 2, &r->keeper);
	take_process(reader, "leader", 2, &r->leader);
	if (json_object_get(reader->root, "cgroup")) {
		hf_object_take_text(reader, "cgroup", r->cgroup, sizeof(r->cgroup));
		r->cgroup_inode = (uint64_t)hf_object_take_number(reader, "cgroup_inode", INT64_MAX);
		if (!is_group_path(r->cgroup))
			hf_object_wrong(reader, "not the path of a cgroup");
	}
	r->mark = take_mark(reader, "mark");
	r->around = take_mark(reader, "around");
	hf_object_take_text(reader, "command", r->command, sizeof(r->command));
	read_time(reader, "started", &r->started);
	r->began_ns = hf_object_take_number(reader, "began_ns", INT64_MAX);
	r->deadline_ns = hf_object_take_number(reader, "deadline_ns", INT64_MAX);
	r->hang_ns = hf_object_take_number(reader, "hang_ns", INT64_MAX);
	r->grace_ns = hf_object_take_number(reader, "grace_ns", INT64_MAX);
	take_outcome(reader, &r->outcome);
	r->exit_status = (int)hf_object_take_number(reader, "exit", 255);
	hf_object_take_text(reader, "cause", r->cause, sizeof(r->cause));
	read_time(reader, "ended", &r->ended);
	r->ran_ns = hf_object_take_number(reader, "ran_ns", INT64_MAX);
	if (json_object_get(reader->root, "outlived")) {
		r->outlived = (uint32_t)hf_object_take_number(reader, "outlived", UINT32_MAX);
		hf_object_take_text(reader, "outlived_names", r->outlived_names, sizeof(r->outlived_names));
	}
	if (json_object_get(reader->root, "kept"))
		r->kept = (int)hf_object_take_number(reader, "kept", 1);
	if (json_object_get(reader->root, "next_ns"))
		r->next_ns = hf_object_take_number(reader, "next_ns", INT64_MAX);
	if (json_object_get(reader->root, "cpu_ns"))
		read_figures(reader, r);
	if (json_object_get(reader->root, "limited"))
		r->limited = (unsigned)hf_object_take_number(reader, "limited", HF_LIMITED_MEMORY | HF_LIMITED_CPUS | HF_LIMITED_PIDS);
	if (json_object_get(reader->root, "options"))
		r->options = (uint64_t)hf_object_take_number(reader, "options", INT64_MAX);
	(void)hf_object_take(reader, "x");
	if (!reader->why && reader->used != json_object_size(reader->root))
		reader->why = "it has unknown fields";
	if (!reader->why && (r->token == 0 || r->keeper.pid == 0 || r->supervisor.pid == 0))
		reader->why = "it lacks a token or its processes";
}

int hf_session_decode(const char *line, size_t len, struct hf_session_record *ret,
		      const char **ret_why)
{
	struct hf_session_record record = { 0 };
	struct hf_object reader;

	hf_object_parse(&reader, line, len);
	if (!reader.why)
		read_all(&reader, &record);
	hf_object_done(&reader);
	*ret_why = reader.why;
	if (reader.why)
		return HF_E_FORMAT;
	*ret = record;
	return 0;
}
