/* run/fleet/facts.c - what other machines are told about a session, and reading it. */
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/run/fleet/agent.h"
#include "holdfast/lock.h"

static void add_text(struct hf_buf *out, const char *key, const char *text)
{
	hf_buf_add_format(out, ",\"%s\":", key);
	(void)hf_buf_add_json(out, text, strlen(text), 1024);
}

void hf_fleet_facts(const struct hf_session_record *record, struct hf_buf *out)
{
	char host[HF_HOST_NAME_MAX + 1];
	int ended = record->phase == HF_PHASE_ENDED;

	if (gethostname(host, sizeof(host)) < 0)
		host[0] = '\0';
	host[sizeof(host) - 1] = '\0';
	hf_buf_add_format(out, "{\"v\":1,\"token\":\"%llu\",\"pid\":%d,\"attempt\":%u,\"started\":\"%lld\"", (unsigned long long)record->token,
			  (int)record->supervisor.pid, record->attempt, (long long)(record->started.ns / HF_MSEC));
	add_text(out, "host", host);
	add_text(out, "phase", hf_phase_word(record->phase));
	add_text(out, "command", record->command);
	/* Before that it is the run's before. */
	if (ended) {
		hf_buf_add_format(out, ",\"ended\":\"%lld\",\"status\":%d", (long long)(record->ended.ns / HF_MSEC), record->exit_status);
		add_text(out, "outcome", hf_outcome_word(record->outcome));
		add_text(out, "cause", record->cause);
	}
	hf_buf_add_char(out, '}');
}
