/* hook/client.c - the clients: their words, how a hook tells which one called it, and the client's process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/proc/stat.h"
#include "hf/sys/io.h"
#include "holdfast/hook.h"
#include "holdfast/name.h"

#define REGISTER_MAX  8192 /* bytes of an entry in Claude's register of processes */
#define ANCESTORS_MAX 32

static const char *const words[] = {
#define CLIENT_WORD(name, number, word) [number] = word,
	HF_CLIENT_LIST(CLIENT_WORD)
#undef CLIENT_WORD
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))

const char *hf_client_word(enum hf_client client)
{
	return (unsigned)client < N_WORDS ? words[client] : words[HF_CLIENT_UNKNOWN];
}

int hf_client_of(const char *word)
{
	for (unsigned i = HF_CLIENT_UNKNOWN + 1; word && i < N_WORDS; i++)
		if (strcmp(word, words[i]) == 0)
			return (int)i;
	return -EINVAL;
}

/*
 * Copilot and Gemini set CLAUDE_PROJECT_DIR as well, so their own marks come first. Codex sets nothing: a
 * hook of its cannot be told from any other program by its environment.
 */
enum hf_client hf_client_here(void)
{
	if (getenv("COPILOT_CLI"))
		return HF_CLIENT_COPILOT;
	if (getenv("GEMINI_SESSION_ID"))
		return HF_CLIENT_GEMINI;
	if (getenv("CLAUDECODE") || getenv("CLAUDE_CODE_SESSION_ID"))
		return HF_CLIENT_CLAUDE;
	return HF_CLIENT_UNKNOWN;
}

const char *hf_hook_session_id(const struct hf_hook_event *event)
{
	static const char *const variables[] = { "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID",
						 "AMPLIHACK_SESSION_ID" };

	if (event && event->session[0])
		return event->session;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value && hf_name_check_stored(value, strlen(value), NULL) == 0 &&
		    strlen(value) <= HF_NAME_MAX)
			return value;
	}
	return NULL;
}

/* -- the client's process ------------------------------------------------------------ */

/* A shell that a client puts between itself and the hook. */
static int is_shell(const char *comm)
{
	static const char *const shells[] = { "sh", "dash", "bash", "zsh", "ksh", "fish", "ash", "busybox" };

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(comm, shells[i]) == 0)
			return 1;
	return 0;
}

static void read_comm(int32_t pid, char *out, size_t cap)
{
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = hf_read_file(AT_FDCWD, path, out, cap - 1);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Does Claude's register have this very process, with this session? */
static int is_registered(const struct hf_stat *stat, const char *session)
{
	const char *config = getenv("CLAUDE_CONFIG_DIR"), *home = getenv("HOME");
	char path[4096], text[REGISTER_MAX];
	json_t *entry;
	const char *id, *start;
	uint64_t ticks;
	ssize_t n;
	int is;

	if (config && config[0] == '/')
		n = snprintf(path, sizeof(path), "%s/sessions/%d.json", config, stat->pid);
	else if (home && home[0] == '/')
		n = snprintf(path, sizeof(path), "%s/.claude/sessions/%d.json", home, stat->pid);
	else
		return 0;
	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	n = hf_read_file(AT_FDCWD, path, text, sizeof(text));
	entry = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	id = json_string_value(json_object_get(entry, "sessionId"));
	start = json_string_value(json_object_get(entry, "procStart"));
	is = id && session && strcmp(id, session) == 0 && start &&
	     hf_parse_u64(start, strlen(start), UINT64_MAX, &ticks) == 0 && ticks == stat->start_ticks;
	json_decref(entry);
	return is;
}

int hf_hook_client_process(enum hf_client client, const char *session, struct hf_proc_id *ret_id,
			   const char **ret_proof, struct hf_err *err)
{
	int32_t pid = (int32_t)getppid(), nearest = 0;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		struct hf_stat stat;
		char comm[32] = "";

		if (hf_stat_read(pid, &stat) < 0)
			break;
		read_comm(pid, comm, sizeof(comm));
		if ((client == HF_CLIENT_CLAUDE || client == HF_CLIENT_UNKNOWN) && is_registered(&stat, session)) {
			*ret_proof = "the client's register has this process and session";
			return hf_proc_identify(pid, ret_id, err);
		}
		if (!nearest && !is_shell(comm))
			nearest = pid;
		pid = stat.ppid;
	}
	if (!nearest)
		return FAIL(err, HF_E_GONE, "client", "the client's process", "all ancestors are shells");
	*ret_proof = "the nearest ancestor that is not a shell";
	return hf_proc_identify(nearest, ret_id, err);
}
