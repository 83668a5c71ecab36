/*
 * helper/staged.c - staged [--fail WHAT] NAME [--verify CMD] [--resume] -- CMD...: a session with a stage that notes its calls.
 *
 * Each call is a line in the file $STAGED: "recover TOKEN", "begin ATTEMPT", "enter", "end OUTCOME", with one write, so
 * that lines of several processes stay whole. --fail makes one of them fail with ENOSPC; --hang makes it wait until the
 * file $STAGED.go is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/run/stage.h"

static const char *path, *failing = "", *hanging = "";

static int note(const char *what, const char *text)
{
	char line[128], go[512];
	int n = snprintf(line, sizeof(line), "%s%s%s\n", what, text[0] ? " " : "", text);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		_exit(99);
	(void)close(fd);
	(void)snprintf(go, sizeof(go), "%s.go", path);
	while (strcmp(hanging, what) == 0 && access(go, F_OK) < 0)
		(void)poll(NULL, 0, 10);
	return strcmp(failing, what) == 0 ? -ENOSPC : 0;
}

static int recover(void *arg, uint64_t token, struct hf_err *err)
{
	char text[32];

	(void)err;
	(void)arg;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)token);
	return note("recover", text);
}

static int begin(void *arg, uint32_t attempt, struct hf_err *err)
{
	char text[32];

	(void)err;
	(void)arg;
	(void)snprintf(text, sizeof(text), "%u", attempt);
	return note("begin", text);
}

static int enter(void *arg)
{
	(void)arg;
	return note("enter", "");
}

static int end(void *arg, enum hf_outcome outcome)
{
	(void)arg;
	return note("end", hf_outcome_word(outcome));
}

int main(int argc, char **argv)
{
	const struct hf_stage stage = { .recover = recover, .begin = begin, .enter = enter, .end = end };
	struct hf_run_opts o = { .size = sizeof(o), .grace_ns = 100 * HF_MSEC, .backoff_ns = HF_MSEC };
	struct hf_run_report report = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_state *state = NULL;
	const char *name = NULL;
	char text[HF_ERR_TEXT_MAX];
	int at = 1;

	path = getenv("STAGED");
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		if (strcmp(argv[at], "--fail") == 0)
			failing = argv[++at];
		else if (strcmp(argv[at], "--hang") == 0)
			hanging = argv[++at];
		else if (strcmp(argv[at], "--verify") == 0)
			o.verify = argv[++at];
		else if (strcmp(argv[at], "--until") == 0)
			o.until = argv[++at];
		else if (strcmp(argv[at], "--resume") == 0)
			o.flags |= HF_RUN_RESUME;
		else
			name = argv[at];
	}
	o.argv = at < argc ? argv + at + 1 : NULL;
	if (!path || hf_state_open(NULL, 0, &state, &err) < 0)
		return 98;
	if (hf_run_supervise_staged(state, name, &o, &stage, &report, &err) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		report.exit_status = 97;
	}
	hf_state_free(state);
	return report.exit_status;
}
