/* view/doctor/doctor.c - the state directory looked at, then all probes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/record/token.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"
#include "hf/view/doctor/probes.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

/* How many files in quarantine are named. */
#define QUARANTINE_NAMED 3

static const struct {
	const char *name;
	enum hf_finding (*probe)(char text[HF_DOCTOR_TEXT_MAX]);
	const char *gives;
	const char *instead;
} probes[] = {
	{ "kernel", hf_probe_kernel, "the system calls that everything needs", "nothing: 5.10 is needed" },
	{ "proc", hf_probe_proc, "process identity", "nothing: mount /proc" },
	{ "pidfd", hf_probe_pidfd, "signals that cannot reach a recycled pid",
	  "liveness from /proc; signals are refused" },
	{ "pidfs", hf_probe_pidfs, "an identity that is never reused within a boot",
	  "the start time, which repeats within 10 ms" },
	{ "cgroup", hf_probe_cgroup, "ending whole process trees at once",
	  "a subreaper and a walk over the process tree" },
	{ "reflink", hf_probe_reflink, "copies that share blocks, in this directory", "plain copies" },
	{ "inotify", hf_probe_inotify, "following the journal without polling",
	  "nothing: 'journal follow' does not work" },
};

static const struct {
	const char *name;
	enum hf_finding (*probe)(const char *dir, char text[HF_DOCTOR_TEXT_MAX]);
	const char *gives;
	const char *instead;
} sandbox_probes[] = {
	{ "userns", hf_probe_userns, "sandboxes without root", "sandboxes by reflink or copy" },
	{ "overlay", hf_probe_overlay, "sandboxes made at once, whatever the tree's size",
	  "sandboxes by reflink or copy" },
	{ "rename", hf_probe_rename, "renaming directories inside sandboxes",
	  "EXDEV inside, as between two file systems" },
};

struct examination {
	const char *dir;
	hf_checkup_fn *fn;
	void *arg;
};

static void tell(const struct examination *e, const char *name, enum hf_finding found, const char *text, const char *gives,
		 const char *instead)
{
	e->fn(e->arg, &(struct hf_checkup){ name, found, text, gives, instead });
}

static void check_file_system(const struct examination *e, const struct hf_state *state)
{
	struct statfs fs;

	if (hf_state_is_shared(state)) {
		tell(e, "storage", HF_FOUND_WARN,
			"a network, cluster or FUSE file system",
			"owners of another boot proven dead",
			"they count as unknown; only a lease or 'lock break' ends their locks");
		return;
	}
	if (fstatfs(hf_state_dirfd(state), &fs) == 0 && fs.f_blocks > 0 &&
	    fs.f_bavail * 100 < fs.f_blocks)
		tell(e, "storage", HF_FOUND_WARN, "local, but less than 1 % of it is free",
			NULL, NULL);
	else
		tell(e, "storage", HF_FOUND_OK, "a local file system", NULL, NULL);
}

static void check_journal(const struct examination *e, const struct hf_state *state)
{
	struct hf_verify_result result;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_DOCTOR_TEXT_MAX];

	if (hf_journal_verify(state, NULL, NULL, &result, &err) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		tell(e, "journal", HF_FOUND_FAIL, text, NULL, NULL);
		return;
	}
	(void)snprintf(text, sizeof(text), "%llu record(s), %llu problem(s), %llu lost%s",
		       (unsigned long long)result.records, (unsigned long long)result.problems,
		       (unsigned long long)result.lost,
		       result.problems ? "; see 'holdfast journal verify'" : "");
	tell(e, "journal", result.problems || result.lost ? HF_FOUND_WARN : HF_FOUND_OK, text,
		NULL, NULL);
}

static void check_quarantine(const struct examination *e, const struct hf_state *state)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_DOCTOR_TEXT_MAX];
	struct dirent *entry;
	unsigned count = 0;
	AUTO(hf_buf_done) struct hf_buf names = HF_BUF_INIT;
	AUTO_FD fd = -1;
	AUTO_DIR dir = NULL;
	int r;

	r = hf_state_subdir(state, "quarantine", 0, &fd, &err);
	if (r == -ENOENT) {
		tell(e, "quarantine", HF_FOUND_OK, "empty", NULL, NULL);
		return;
	}
	if (r < 0 || hf_open_dir(fd, ".", &dir) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		tell(e, "quarantine", HF_FOUND_FAIL, text, NULL, NULL);
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
	tell(e, "quarantine", count ? HF_FOUND_WARN : HF_FOUND_OK, text, NULL, NULL);
}

/* The directories in it must be ours, too: one that is not makes its verbs fail. */
static void check_rooms(const struct examination *e, const struct hf_state *state)
{
	static const char *const rooms[] = { "locks", "sessions", "journal" };

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct hf_err err = HF_ERR_INIT;
		char text[HF_DOCTOR_TEXT_MAX];
		AUTO_FD fd = -1;
		int r = hf_state_subdir(state, rooms[i], 0, &fd, &err);

		if (r == 0 || r == -ENOENT)
			continue;
		(void)hf_err_format(&err, text, sizeof(text));
		tell(e, rooms[i], HF_FOUND_FAIL, text, NULL, NULL);
	}
}

/* The next acquisition finds a damaged note, too, and puts it away. */
static void check_tokens(const struct examination *e, const struct hf_state *state)
{
	AUTO_FD locks = -1;

	if (hf_state_subdir(state, "locks", 0, &locks, NULL) < 0)
		return;
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		const char *kind = hf_lock_kind_word((enum hf_lock_kind)i), *note;
		AUTO_FD fd = hf_open_at(locks, kind, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		char text[HF_DOCTOR_TEXT_MAX];

		note = fd < 0 ? NULL : hf_token_damaged_note(fd);
		if (!note)
			continue;
		(void)snprintf(text, sizeof(text),
			       "locks/%s/%s, the token clock, is damaged; the next lock quarantines it", kind, note);
		tell(e, "tokens", HF_FOUND_WARN, text, NULL, NULL);
	}
}

/* Returns the status that a refused directory has, else 0. */
static int check_directory(const struct examination *e)
{
	struct hf_state *state = NULL;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];
	char path[sizeof(err.subject)];
	int r = hf_state_open(e->dir, HF_STATE_NO_CREATE, &state, &err);

	hf_copy_text(path, sizeof(path), err.subject);
	/* Tried, not guessed: permissions, a read-only or full file system, a quota. */
	if (r == 0 || r == -ENOENT) {
		int tried = hf_state_try(e->dir, &err);

		if (tried < 0)
			r = tried;
		else if (r == -ENOENT) {
			(void)snprintf(text, sizeof(text),
				       "%s: does not exist yet; the first use makes it", path);
			tell(e, "directory", HF_FOUND_OK, text, NULL, NULL);
			return 0;
		}
	}
	if (r < 0) {
		hf_state_free(state);
		(void)hf_err_format(&err, text, sizeof(text));
		tell(e, "directory", HF_FOUND_FAIL, text, NULL, NULL);
		return hf_err_exit_status(r);
	}
	(void)snprintf(text, sizeof(text), "%.400s: yours alone, format %d", hf_state_path(state),
		       HF_STATE_FORMAT);
	tell(e, "directory", HF_FOUND_OK, text, NULL, NULL);
	check_rooms(e, state);
	check_file_system(e, state);
	check_journal(e, state);
	check_tokens(e, state);
	check_quarantine(e, state);
	hf_state_free(state);
	return 0;
}

int hf_doctor_examine(const char *dir, hf_checkup_fn *fn, void *arg)
{
	const struct examination e = { dir, fn, arg };
	int status = check_directory(&e);

	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		char text[HF_DOCTOR_TEXT_MAX] = "";
		enum hf_finding found = probes[i].probe(text);

		tell(&e, probes[i].name, found, text, probes[i].gives, probes[i].instead);
	}
	for (size_t i = 0; i < sizeof(sandbox_probes) / sizeof(sandbox_probes[0]); i++) {
		char text[HF_DOCTOR_TEXT_MAX] = "";
		enum hf_finding found = sandbox_probes[i].probe(dir, text);

		tell(&e, sandbox_probes[i].name, found, text, sandbox_probes[i].gives, sandbox_probes[i].instead);
	}
	return status;
}
