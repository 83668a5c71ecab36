/* cli/cmd_proc.c - proc id, check, signal: a safe replacement for `kill $(cat pidfile)`. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/parse.h"
#include "cli.h"
#include "holdfast/journal.h"
#include "holdfast/proc.h"

int cmd_proc_id(struct cli *cli, int argc, char **argv)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_proc_id id;
	char text[HF_PROC_TEXT_MAX];
	uint64_t pid = (uint64_t)getppid();
	int n = cli_options(cli, NULL, argc, argv, 0, 1);

	if (n < 0)
		return cli_options_status(n);
	if (n == 1 && hf_parse_u64(argv[0], strlen(argv[0]), INT32_MAX, &pid) < 0)
		return cli_usage(cli, "'%s' is not a pid", argv[0]);
	if (hf_proc_identify((int32_t)pid, &id, &err) < 0)
		return cli_fail(cli, &err);
	(void)hf_proc_format(&id, text);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "id", json_string(text));
		cli_set(object, "pid", json_integer(id.pid));
		cli_set(object, "pidfs_inode", json_integer((json_int_t)id.pidfs_inode));
		cli_set(object, "start_ticks", json_integer((json_int_t)id.start_ticks));
		cli_set(object, "pid_ns", json_integer((json_int_t)id.pid_ns));
		cli_set(object, "boot_id", json_string(id.boot_id));
		cli_print_json(object);
	} else {
		puts(text);
	}
	return HF_EXIT_DONE;
}

/* Reads an identity from the command line. Reports an error. */
static int read_id(const struct cli *cli, const char *text, struct hf_proc_id *ret)
{
	struct hf_err err = HF_ERR_INIT;

	if (hf_proc_parse(text, strlen(text), ret, &err) == 0)
		return HF_EXIT_DONE;
	if (text[0] && text[strspn(text, "0123456789")] == '\0')
		cli_say(cli, "'%s' is a pid, which another process may have by now; give the identity that "
			     "'holdfast proc id %s' printed while the process was alive",
			text, text);
	return cli_fail(cli, &err);
}

int cmd_proc_check(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *word;
		int status;
	} answers[] = { [HF_ALIVE] = { "alive", HF_EXIT_DONE },
			[HF_DEAD] = { "dead", HF_EXIT_NO },
			[HF_UNKNOWN] = { "unknown", HF_EXIT_REFUSED } };
	char evidence[HF_EVIDENCE_MAX];
	struct hf_proc_id id;
	enum hf_liveness answer;
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int status;

	if (n < 0)
		return cli_options_status(n);
	status = read_id(cli, argv[0], &id);
	if (status != HF_EXIT_DONE)
		return status;
	answer = hf_proc_liveness(&id, 0, evidence);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "liveness", json_string(answers[answer].word));
		cli_set(object, "evidence", json_string(evidence));
		cli_set(object, "pid", json_integer(id.pid));
		cli_print_json(object);
	} else {
		printf("%s: ", answers[answer].word);
		cli_print_shown(evidence);
		putchar('\n');
	}
	return answers[answer].status;
}

int cli_signal(const char *word)
{
	uint64_t number;

	if (hf_parse_u64(word, strlen(word), (uint64_t)SIGRTMAX, &number) == 0)
		return (int)number;
	if (strncmp(word, "SIG", 3) == 0)
		word += 3;
	for (int sig = 1; sig < SIGRTMIN; sig++) {
		const char *name = sigabbrev_np(sig);

		if (name && strcmp(name, word) == 0)
			return sig;
	}
	return -1;
}

/* Writes an event for the signal or its refusal (L8). A failure is only reported. */
static void journal_signal(struct cli *cli, const char *target, const char *sig_name,
			   const struct hf_err *refusal)
{
	struct hf_journal *journal = NULL;
	struct hf_err err = HF_ERR_INIT;
	char reason[HF_ERR_TEXT_MAX] = "", text[HF_ERR_TEXT_MAX];
	int status = HF_EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	if (!state)
		return;
	if (refusal)
		(void)hf_err_format(refusal, reason, sizeof(reason));
	struct hf_field fields[] = { HF_FIELD_TEXT("target", target),
				     HF_FIELD_TEXT("signal", sig_name),
				     HF_FIELD_TEXT("reason", reason) };
	if (hf_journal_open(state, NULL, &journal, &err) < 0 ||
	    hf_journal_append(journal, refusal ? HF_EV_SIGNAL_REFUSED : HF_EV_SIGNAL_SENT, NULL,
			      fields, refusal ? 3 : 2, 0, &err) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		cli_say(cli, "not journalled: %s", text);
	}
	hf_journal_free(journal);
}

int cmd_proc_signal(struct cli *cli, int argc, char **argv)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_proc_id id;
	char sig_name[16] = "TERM";
	int n = cli_options(cli, NULL, argc, argv, 1, 2);
	int sig = SIGTERM, status, r;

	if (n < 0)
		return cli_options_status(n);
	if (n == 2)
		sig = cli_signal(argv[1]);
	if (sig < 0)
		return cli_usage(cli, "'%s' is not a signal (TERM, SIGTERM or 15)", argv[1]);
	if (sig != SIGTERM && sigabbrev_np(sig))
		(void)snprintf(sig_name, sizeof(sig_name), "%s", sigabbrev_np(sig));
	else if (sig != SIGTERM)
		(void)snprintf(sig_name, sizeof(sig_name), "%d", sig);
	status = read_id(cli, argv[0], &id);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_proc_signal(&id, sig, 0, &err);
	if (sig != 0)
		journal_signal(cli, argv[0], sig_name, r < 0 ? &err : NULL);
	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "signal", json_string(sig_name));
		cli_set(object, "pid", json_integer(id.pid));
		cli_print_json(object);
	}
	return HF_EXIT_DONE;
}
