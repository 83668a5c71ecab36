/*
 * cli/doctor/doctor.c - doctor: is the state directory sound, and what does this
 * machine offer? For what is missing it says what is used instead.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "cli.h"
#include "doctor/doctor.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"
#include "hf/lock/local/record/token.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

/* How many files in quarantine are named. */
#define QUARANTINE_NAMED 3

static const struct {
	const char *name;
	enum finding (*probe)(char text[DOCTOR_TEXT_MAX]);
	const char *gives;
	const char *instead;
} probes[] = {
	{ "kernel", probe_kernel, "the calls that everything rests on", "nothing: 5.10 is needed" },
	{ "proc", probe_proc, "process identity", "nothing: mount /proc" },
	{ "pidfd", probe_pidfd, "signals that cannot hit a recycled pid",
	  "liveness from /proc; signals are refused" },
	{ "pidfs", probe_pidfs, "an identity that is never reused within a boot",
	  "the start time, which repeats within 10 ms" },
	{ "cgroup", probe_cgroup, "whole process trees ended at once",
	  "subreaper and a walk over the tree by identity" },
	{ "reflink", probe_reflink, "copies that share blocks, in this directory", "plain copies" },
	{ "inotify", probe_inotify, "following the journal without polling",
	  "nothing: 'journal follow' does not work" },
};

static const struct {
	const char *name;
	enum finding (*probe)(const char *dir, char text[DOCTOR_TEXT_MAX]);
	const char *gives;
	const char *instead;
} sandbox_probes[] = {
	{ "userns", probe_userns, "sandboxes without root", "sandboxes by reflink or copy" },
	{ "overlay", probe_overlay, "sandboxes made in an instant, whatever the tree's size",
	  "sandboxes by reflink or copy" },
	{ "rename", probe_rename, "directories renamed inside sandboxes as outside",
	  "EXDEV inside, as between two file systems" },
};

struct doctor {
	const struct cli *cli;
	json_t *rows;
	enum finding worst;
};

static const struct {
	const char *word;
	const char *colour;
} looks[] = { [FOUND_OK] = { "ok", "32" },
	      [FOUND_ABSENT] = { "absent", "33" },
	      [FOUND_WARN] = { "warn", "1;33" },
	      [FOUND_FAIL] = { "FAIL", "1;31" } };

static void add_row(struct doctor *doctor, const char *name, enum finding found, const char *text,
		    const char *gives, const char *instead)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

	if (found > doctor->worst)
		doctor->worst = found;
	if (doctor->cli->json) {
		json_t *row = json_object();

		cli_set(row, "check", json_string(name));
		cli_set(row, "status", json_string(looks[found].word));
		cli_set(row, "found", cli_text(text));
		if (gives)
			cli_set(row, "gives", json_string(gives));
		if (instead && found != FOUND_OK)
			cli_set(row, "instead", json_string(instead));
		if (json_array_append_new(doctor->rows, row) < 0)
			cli_die_oom();
		return;
	}
	hf_buf_add_shown(&shown, text, strlen(text));
	cli_colour(doctor->cli, looks[found].colour);
	printf("%-6s", looks[found].word);
	cli_colour(doctor->cli, NULL);
	printf("  %-10s  %s\n", name, shown.s);
	if (gives)
		printf("%20s%s: %s\n", "", found == FOUND_OK ? "gives" : "would give", gives);
	if (instead && found != FOUND_OK)
		printf("%20sinstead: %s\n", "", instead);
}

static void check_file_system(struct doctor *doctor, const struct hf_state *state)
{
	struct statfs fs;

	if (hf_state_is_shared(state)) {
		add_row(doctor, "storage", FOUND_WARN,
			"a network, cluster or FUSE file system",
			"owners of another boot proven dead",
			"they count as unknown, so only a lease or a break ends their locks");
		return;
	}
	if (fstatfs(hf_state_dirfd(state), &fs) == 0 && fs.f_blocks > 0 &&
	    fs.f_bavail * 100 < fs.f_blocks)
		add_row(doctor, "storage", FOUND_WARN, "local, but less than 1 % of it is free",
			NULL, NULL);
	else
		add_row(doctor, "storage", FOUND_OK, "a local file system", NULL, NULL);
}

static void check_journal(struct doctor *doctor, const struct hf_state *state)
{
	struct hf_verify_result result;
	struct hf_err err = HF_ERR_INIT;
	char text[DOCTOR_TEXT_MAX];

	if (hf_journal_verify(state, NULL, NULL, &result, &err) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		add_row(doctor, "journal", FOUND_FAIL, text, NULL, NULL);
		return;
	}
	(void)snprintf(text, sizeof(text), "%llu record(s), %llu problem(s), %llu lost%s",
		       (unsigned long long)result.records, (unsigned long long)result.problems,
		       (unsigned long long)result.lost,
		       result.problems ? "; see 'holdfast journal verify'" : "");
	add_row(doctor, "journal", result.problems || result.lost ? FOUND_WARN : FOUND_OK, text,
		NULL, NULL);
}

static void check_quarantine(struct doctor *doctor, const struct hf_state *state)
{
	struct hf_err err = HF_ERR_INIT;
	char text[DOCTOR_TEXT_MAX];
	struct dirent *entry;
	unsigned count = 0;
	AUTO(hf_buf_done) struct hf_buf names = HF_BUF_INIT;
	AUTO_FD fd = -1;
	AUTO_DIR dir = NULL;
	int r;

	r = hf_state_subdir(state, "quarantine", 0, &fd, &err);
	if (r == -ENOENT) {
		add_row(doctor, "quarantine", FOUND_OK, "empty", NULL, NULL);
		return;
	}
	if (r < 0 || hf_open_dir(fd, ".", &dir) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		add_row(doctor, "quarantine", FOUND_FAIL, text, NULL, NULL);
		return;
	}
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (count++ < QUARANTINE_NAMED)
			hf_buf_add_format(&names, "%s%s", names.len ? ", " : "", entry->d_name);
	}
	(void)snprintf(text, sizeof(text),
		       count ? "%u record(s) that failed their checks: %.300s%s; see 'journal query --event "
			       "record_quarantined'"
			     : "empty",
		       count, names.s, count > QUARANTINE_NAMED ? ", ..." : "");
	add_row(doctor, "quarantine", count ? FOUND_WARN : FOUND_OK, text, NULL, NULL);
}

/* The directories in it must be ours, too: one that is not makes its verbs fail. */
static void check_rooms(struct doctor *doctor, const struct hf_state *state)
{
	static const char *const rooms[] = { "locks", "sessions", "journal" };

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct hf_err err = HF_ERR_INIT;
		char text[DOCTOR_TEXT_MAX];
		AUTO_FD fd = -1;
		int r = hf_state_subdir(state, rooms[i], 0, &fd, &err);

		if (r == 0 || r == -ENOENT)
			continue;
		(void)hf_err_format(&err, text, sizeof(text));
		add_row(doctor, rooms[i], FOUND_FAIL, text, NULL, NULL);
	}
}

/* The next acquisition finds a damaged note, too, and puts it away. */
static void check_tokens(struct doctor *doctor, const struct hf_state *state)
{
	AUTO_FD locks = -1;

	if (hf_state_subdir(state, "locks", 0, &locks, NULL) < 0)
		return;
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		const char *kind = hf_lock_kind_word((enum hf_lock_kind)i), *note;
		AUTO_FD fd = hf_open_at(locks, kind, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		char text[DOCTOR_TEXT_MAX];

		note = fd < 0 ? NULL : hf_token_damaged_note(fd);
		if (!note)
			continue;
		(void)snprintf(text, sizeof(text),
			       "locks/%s/%s, the clock of tokens, is damaged; the next lock puts it away", kind, note);
		add_row(doctor, "tokens", FOUND_WARN, text, NULL, NULL);
	}
}

/* Returns the status that a refused directory has, else HF_EXIT_DONE. */
static int check_directory(struct doctor *doctor)
{
	struct hf_state *state = NULL;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];
	char path[sizeof(err.subject)];
	int r = hf_state_open(doctor->cli->dir, HF_STATE_NO_CREATE, &state, &err);

	hf_copy_text(path, sizeof(path), err.subject);
	/* Tried, not guessed: permissions, a read-only or full file system, a quota. */
	if (r == 0 || r == -ENOENT) {
		int tried = hf_state_try(doctor->cli->dir, &err);

		if (tried < 0)
			r = tried;
		else if (r == -ENOENT) {
			(void)snprintf(text, sizeof(text),
				       "%s: not there yet; made when it is first needed", path);
			add_row(doctor, "directory", FOUND_OK, text, NULL, NULL);
			return HF_EXIT_DONE;
		}
	}
	if (r < 0) {
		hf_state_free(state);
		(void)hf_err_format(&err, text, sizeof(text));
		add_row(doctor, "directory", FOUND_FAIL, text, NULL, NULL);
		return hf_err_exit_status(r);
	}
	(void)snprintf(text, sizeof(text), "%.400s: yours alone, format 1", hf_state_path(state));
	add_row(doctor, "directory", FOUND_OK, text, NULL, NULL);
	check_rooms(doctor, state);
	check_file_system(doctor, state);
	check_journal(doctor, state);
	check_tokens(doctor, state);
	check_quarantine(doctor, state);
	hf_state_free(state);
	return HF_EXIT_DONE;
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
	struct doctor doctor = { .cli = cli };
	int n = cli_options(cli, NULL, argc, argv, 0, 0);
	int status;

	if (n < 0)
		return cli_options_status(n);
	doctor.rows = json_array();
	status = check_directory(&doctor);
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		char text[DOCTOR_TEXT_MAX] = "";
		enum finding found = probes[i].probe(text);

		add_row(&doctor, probes[i].name, found, text, probes[i].gives, probes[i].instead);
	}
	for (size_t i = 0; i < sizeof(sandbox_probes) / sizeof(sandbox_probes[0]); i++) {
		char text[DOCTOR_TEXT_MAX] = "";
		enum finding found = sandbox_probes[i].probe(cli->dir, text);

		add_row(&doctor, sandbox_probes[i].name, found, text, sandbox_probes[i].gives,
			sandbox_probes[i].instead);
	}
	if (status == HF_EXIT_DONE && doctor.worst == FOUND_FAIL)
		status = HF_EXIT_OS;
	else if (status == HF_EXIT_DONE && doctor.worst == FOUND_WARN)
		status = HF_EXIT_NO;
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "checks", doctor.rows);
		cli_set(object, "exit", json_integer(status));
		cli_print_json(object);
	} else {
		json_decref(doctor.rows);
	}
	return status;
}
