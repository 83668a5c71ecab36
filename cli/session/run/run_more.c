/* cli/session/run/run_more.c - run: limits, signals and the exit status. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/view/columns.h"
#include "session/run/run_more.h"

/* Parses "1.5" into hundredths. Returns 0 or -1. */
static int parse_cpus(const char *word, uint32_t *ret)
{
	const char *dot = strchr(word, '.');
	size_t whole_len = dot ? (size_t)(dot - word) : strlen(word), part_len = dot ? strlen(dot + 1) : 0;
	uint64_t whole = 0, part = 0;

	if (whole_len + part_len == 0 || part_len > 2 || (whole_len && hf_parse_u64(word, whole_len, 100000, &whole) < 0) ||
	    (part_len && hf_parse_u64(dot + 1, part_len, 99, &part) < 0))
		return -1;
	*ret = (uint32_t)(whole * 100 + (part_len == 1 ? part * 10 : part));
	return *ret > 0 ? 0 : -1;
}

/* Parses "A=B". Returns 0 or -1. */
static int parse_map(const char *word, uint64_t *ret_from, uint64_t *ret_to)
{
	const char *sign = strchr(word, '=');

	return sign && hf_parse_u64(word, (size_t)(sign - word), 255, ret_from) == 0 &&
			       hf_parse_u64(sign + 1, strlen(sign + 1), 255, ret_to) == 0
		       ? 0
		       : -1;
}

static int check_fd(struct cli *cli, struct run_more *more)
{
	uint64_t fd;

	more->json_fd = -1;
	if (!more->json_fd_word)
		return HF_EXIT_DONE;
	if (hf_parse_u64(more->json_fd_word, strlen(more->json_fd_word), INT32_MAX, &fd) < 0 || fd == 0 || fcntl((int)fd, F_GETFD) < 0)
		return cli_usage(cli, "--json-fd %s: not an open descriptor", more->json_fd_word);
	more->json_fd = (int)fd;
	/* The command must not inherit it, or its reader would wait for the end of everything that the command started. */
	if (fd > STDERR_FILENO)
		(void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	return HF_EXIT_DONE;
}

int run_more_check(struct cli *cli, struct run_more *more, int detach, struct hf_run_opts *o)
{
	int sig = more->signal ? cli_signal(more->signal) : 0;
	uint64_t from, to;

	if (sig < 0 || (more->signal && sig == 0))
		return cli_usage(cli, "--signal: '%s' is not a signal (TERM, SIGTERM or 15)", more->signal);
	if (more->cpus && parse_cpus(more->cpus, &o->cpus_centi) < 0)
		return cli_usage(cli, "--cpus: '%s' is not a number of CPUs (2, 0.5)", more->cpus);
	if (more->nice > 19)
		return cli_usage(cli, "--nice must be from 1 to 19");
	for (size_t i = 0; more->map_exit && more->map_exit[i]; i++)
		if (parse_map(more->map_exit[i], &from, &to) < 0)
			return cli_usage(cli, "--map-exit: '%s' is not A=B with two exit statuses", more->map_exit[i]);
	if (detach && (more->foreground || more->die_with_parent || more->map_exit))
		return cli_usage(cli, "--foreground, --die-with-parent and --map-exit cannot be combined with --detach");
	o->stop_signal = (uint32_t)sig;
	o->mem_max = more->mem;
	o->pids_max = (uint32_t)more->pids;
	o->nice = (uint32_t)more->nice;
	return check_fd(cli, more);
}

int run_more_begin(struct cli *cli, const struct run_more *more, int32_t parent)
{
	if (!more->die_with_parent)
		return HF_EXIT_DONE;
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* The parent may have ended before prctl(). */
	if (getppid() == parent)
		return HF_EXIT_DONE;
	cli_say(cli, "the parent process has ended (--die-with-parent)");
	return HF_EXIT_SIGNAL + SIGTERM;
}

void run_more_tell(const struct cli *cli, const struct run_more *more, const char *name, const struct hf_run_report *report)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (!more->verbose || report->outcome == HF_OUTCOME_NONE)
		return;
	hf_buf_add_format(&text, "%s: %s; ran ", hf_outcome_word(report->outcome), report->cause);
	hf_view_duration(&text, report->ran_ns);
	hf_buf_add_text(&text, ", CPU ");
	hf_view_duration(&text, report->cpu_ns);
	hf_buf_add_text(&text, ", peak memory ");
	hf_view_size(&text, report->memory_peak_bytes);
	hf_buf_add_text(&text, ", output ");
	hf_view_size(&text, report->output_bytes);
	if (text.err)
		cli_die_oom();
	cli_say(cli, "session '%s': %s", name, text.s);
}

int run_more_map(const struct run_more *more, int status)
{
	uint64_t from, to;

	for (size_t i = 0; more->map_exit && more->map_exit[i]; i++)
		if (parse_map(more->map_exit[i], &from, &to) == 0 && (int)from == status)
			return (int)to;
	return status;
}

char *run_dump(json_t *object, size_t *ret_len)
{
	json_t *whole = json_object();
	char *text = NULL;

	if (whole && json_object_set_new(whole, "v", json_integer(1)) == 0 && json_object_update(whole, object) == 0)
		text = json_dumps(whole, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(whole);
	if (!text)
		cli_die_oom();
	*ret_len = strlen(text) + 1;
	text[*ret_len - 1] = '\n'; /* in the place of its NUL */
	return text;
}

int run_more_json(const struct cli *cli, const struct run_more *more, json_t *object)
{
	struct cli_talk talk;
	char *text;
	size_t len;
	ssize_t n;

	if (more->json_fd < 0)
		return HF_EXIT_DONE;
	text = run_dump(object, &len);
	cli_talk_begin(&talk); /* a closed reader must not kill us */
	n = write(more->json_fd, text, len);
	cli_talk_end(&talk);
	free(text);
	if (n == (ssize_t)len)
		return HF_EXIT_DONE;
	cli_say(cli, "--json-fd %d: %s", more->json_fd, n < 0 ? strerrordesc_np(errno) : "not all of it could be written");
	return HF_EXIT_OS;
}
