/*
 * holdfast/hook.h - work mode, and answers to the hooks of a client.
 *
 * Calling sequence of a stop hook:
 *
 *     const char *text = "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\"}";
 *     struct hf_hooks *hooks;
 *     struct hf_hook_event *event;
 *     struct hf_stop_answer answer;
 *     r = hf_hooks_open(state, journal, &hooks, &err);
 *     r = hf_hook_read(text, strlen(text), &event, &err);
 *     r = hf_hook_stop(hooks, hf_hook_session_id(event), event, &answer, &err);
 *     if (r == 0 && answer.block)
 *             puts(answer.reason);
 *     hf_hook_event_free(event);
 *     hf_hooks_free(hooks);
 *
 * Words. A client is a program that runs an agent (Claude Code, Codex, Copilot, Gemini). It
 * calls hooks: commands that read one JSON object from their standard input. A turn is the
 * work that follows one prompt of the user. Work mode belongs to one session id: while it is
 * on, the stop hook asks the client to continue.
 *
 * Session id. The caller chooses the first of: the id that the user named, $HOLDFAST_SESSION,
 * the client's id (hf_hook_session_id). Never guess it from a time or take another session's.
 * Without an id, let the client stop.
 *
 * Decision (hf_hook_stop). The first condition that applies decides:
 *
 *     1  work mode is off                                         let it stop
 *     2  its own Holdfast session is stopping, past its deadline,
 *        over, or another run has its name                        let it stop
 *     3  work mode is older than its ttl                          end work mode, let it stop
 *     4  this turn was blocked `max` times                        let it stop once, report it
 *     5  HF_KEEP_IDLE blocks in a row without progress            let it stop, report it
 *     6  the until command succeeds within its time               end work mode, let it stop
 *     7  otherwise                                                block, with the goal
 *
 * Progress is a tool call that was reported to hf_hook_tool, or a background task that still
 * runs. The client's transcript is not read, because it is written late.
 *
 * A stop that is delivered twice (registered twice, run in parallel, or sent again) counts
 * once and gets the same answer. Two deliveries are the same stop if their bytes are equal,
 * and in addition either the second hook started before the first had answered, or the bytes
 * contain the client's own time.
 *
 * Hooks fail open: if any function here returns an error, the caller lets the client continue.
 *
 * Storage. modes/KEY in the state directory is one small file for each id (docs/FORMATS.md).
 * It contains the goal, which is not journalled. Prompts, answers and the environment are
 * neither stored nor journalled.
 *
 * Settings. hf_hook_install inserts the hooks into the files from which a client reads them,
 * and hf_hook_uninstall removes them. Both edit text, so every other byte stays.
 *
 * Ownership: free a context by hf_hooks_free before its state and journal.
 * Threads: one thread at a time uses a context.
 * Fork: hf_hook_stop runs the until command and reaps it with every process that it started;
 * no other function forks. A child may only free an inherited context.
 * Crash: one write under a flock changes a record. An unreadable record is quarantined and
 * counts as missing.
 */
#ifndef HOLDFAST_HOOK_H
#define HOLDFAST_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"
#include "holdfast/proc.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_KEEP_TTL_NS     (INT64_C(24) * 3600 * HF_SEC)
#define HF_KEEP_MAX        7         /* blocks of one turn; two clients overrule the ninth in a row */
#define HF_KEEP_IDLE       3         /* blocks without progress */
#define HF_KEEP_UNTIL_NS   (20 * HF_SEC) /* time limit of the until command: clients wait at least 30 s */
#define HF_KEEP_UNTIL_LONGEST_NS (540 * HF_SEC) /* maximum of that limit: installed hooks have 600 s */
#define HF_KEEP_GOAL_MAX   1000      /* bytes of a goal */
#define HF_KEEP_UNTIL_MAX  1000      /* bytes of an until command */
#define HF_HOOK_INPUT_MAX  (16 << 20) /* bytes of an event; a larger one is refused */
#define HF_HOOK_REASON_MAX 2400
#define HF_HOOK_TASKS_MAX  16
#define HF_HOOK_END_TASKS_MAX 3    /* rounds of ending tasks in one attempt: an agent may restart them */
#define HF_HOOK_TASK_GRACE_NS (3 * HF_SEC)

/* clang-format off */
#define HF_CLIENT_LIST(X)          \
	X(UNKNOWN, 0, "unknown")   \
	X(CLAUDE,  1, "claude")    \
	X(CODEX,   2, "codex")     \
	X(COPILOT, 3, "copilot")   \
	X(GEMINI,  4, "gemini")
/* clang-format on */

enum hf_client {
#define HF_CLIENT_ENUM(name, number, word) HF_CLIENT_##name = number,
	HF_CLIENT_LIST(HF_CLIENT_ENUM)
#undef HF_CLIENT_ENUM
};

/* Returns the word of a client ("claude"), or "unknown" for an invalid number. */
HF_API const char *hf_client_word(enum hf_client client);

/* Returns the client of a word, or -EINVAL, also for "unknown". */
HF_API int hf_client_of(const char *word);

/* Returns the client whose hook this process is, judged by the environment that the client gives to its hooks. */
HF_API enum hf_client hf_client_here(void);

struct hf_hooks; /* the work modes of one state directory */

/* Opens a context. `journal` may be NULL: then no events are written. */
HF_API int hf_hooks_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_hooks **ret_hooks, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_hooks_free(struct hf_hooks *hooks);

/* -- events of a client ----------------------------------------------------------- */

enum hf_hook_kind {
	HF_HOOK_OTHER = 0,         /* an event that Holdfast does not use, or without a name */
	HF_HOOK_STOP = 1,          /* the agent wants to stop */
	HF_HOOK_SUBAGENT_STOP = 2, /* a subagent wants to stop: never blocked */
	HF_HOOK_STOP_FAILURE = 3,  /* an error stopped the agent: never blocked */
	HF_HOOK_TOOL_BEFORE = 4,
	HF_HOOK_TOOL_AFTER = 5,
	HF_HOOK_SESSION_START = 6,
	HF_HOOK_SESSION_END = 7,
	HF_HOOK_ASKS = 8,          /* it needs a permission or an answer */
	HF_HOOK_WAITS = 9,         /* it waits for its user */
};

/* A background task of the client. A text is "" if the client did not send it. */
struct hf_hook_task {
	const char *id;
	const char *type;    /* "shell" */
	const char *command; /* or its description */
};

/* A parsed event. A text is "" if the client did not send it. */
struct hf_hook_event {
	enum hf_hook_kind kind;
	const char *name;    /* the client's name of the event */
	const char *session; /* the client's id of its session */
	const char *turn;    /* the client's id of the turn */
	const char *cwd;
	const char *tool;    /* of a tool call: the tool's name */
	const char *path;    /* the file that the tool would write */
	int was_blocked;     /* stop_hook_active: 1 or 0; -1 if missing */
	const char *command; /* of a tool call: the shell command */
	const char *message; /* of a notification */
	int background;      /* number of running background tasks */
	const struct hf_hook_task *tasks; /* the first HF_HOOK_TASKS_MAX of these */
	int dated;           /* contains the client's own time, so the bytes of each event differ */
	uint64_t digest;     /* of its bytes */
	void *memory;
};

/*
 * Parses one event: a JSON object of at most HF_HOOK_INPUT_MAX bytes, with or without a byte
 * order mark. Unknown members are skipped. A member of an unexpected type counts as missing.
 * So does an id that no client would make (HF_E_STORED_ID: empty, with '/', "..", a control
 * byte, or longer than HF_NAME_MAX). Returns 0; HF_E_SYNTAX if the text is not a JSON object;
 * -E2BIG; -ENOMEM.
 */
HF_API int hf_hook_read(const char *text, size_t len, struct hf_hook_event **ret_event,
			struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. */
HF_API void hf_hook_event_free(struct hf_hook_event *event);

/*
 * Returns the client's id of the session of this process, or NULL. The id is from `event` (may
 * be NULL), otherwise from the variables that clients set for their hooks and tools:
 * CLAUDE_CODE_SESSION_ID, GEMINI_SESSION_ID, AMPLIHACK_SESSION_ID.
 */
HF_API const char *hf_hook_session_id(const struct hf_hook_event *event);

/* -- work mode -------------------------------------------------------------------- */

struct hf_keep_opts {
	size_t size;       /* sizeof(struct hf_keep_opts) */
	const char *goal;  /* the text for the client; NULL: its work is not done */
	const char *until; /* run by sh -c in `cwd`; exit status 0 ends work mode; NULL: no command */
	const char *cwd;   /* NULL: the caller's directory */
	int64_t ttl_ns;    /* 0: HF_KEEP_TTL_NS */
	uint32_t max;      /* 0: HF_KEEP_MAX */
	int64_t until_ns;  /* time limit of `until`; 0: HF_KEEP_UNTIL_NS; at most HF_KEEP_UNTIL_LONGEST_NS */
};

/*
 * Enables work mode for `id`, or changes its options, and restarts its time and counts.
 * Returns 1 if it was on before, otherwise 0; HF_E_NAME; HF_E_STORED_ID; -EINVAL (a text is
 * too long, or a duration is negative or too long); -errno.
 */
HF_API int hf_keep_on(struct hf_hooks *hooks, const char *id, const struct hf_keep_opts *opts,
		      struct hf_err *err) HF_MUST_CHECK;

/* Disables it. Returns 1, or 0 if it was off. */
HF_API int hf_keep_off(struct hf_hooks *hooks, const char *id, struct hf_err *err) HF_MUST_CHECK;

struct hf_keep_info {
	const char *id;
	const char *goal;  /* "" */
	const char *until; /* "" */
	const char *cwd;
	struct hf_wall since;
	int64_t left_ns;   /* of its ttl; 0: it ends at the next stop */
	uint32_t max;
	uint32_t blocks;   /* of the last turn that was blocked */
	uint32_t idle;     /* blocks in a row without progress */
	uint64_t tools;    /* reported tool calls */
	uint64_t total;    /* blocks since it was enabled */
	int64_t until_ns;  /* time limit of `until` */
};

typedef void hf_keep_fn(void *arg, const struct hf_keep_info *info);

/* Calls `fn`, unless it is NULL, with the work mode of `id`. Returns 1, or 0 if it is off. */
HF_API int hf_keep_look(struct hf_hooks *hooks, const char *id, hf_keep_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* Calls `fn` for each id with work mode on, sorted by id. Returns their number. */
HF_API int hf_keep_list(struct hf_hooks *hooks, hf_keep_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* -- hooks ------------------------------------------------------------------------- */

struct hf_stop_answer {
	int block;                       /* 1: the client should continue */
	char reason[HF_HOOK_REASON_MAX]; /* the text for the client; UTF-8, "" if it may stop */
	const char *why;                 /* the decision: "off", "stopping", "expired", "limit", "idle", "done", "goal" */
};

/*
 * Decides whether the client of session `id` may stop; see above. Returns 0 with the answer;
 * on an error the client may stop, too. Blocks: at most for the time limit of the until
 * command.
 */
HF_API int hf_hook_stop(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event,
			struct hf_stop_answer *ret_answer, struct hf_err *err) HF_MUST_CHECK;

/*
 * Records for the Holdfast session of this process what its client waits for after a stop: its
 * background tasks, with one event, or its user. If the session has HF_RUN_END_BACKGROUND and all
 * tasks are shells, ends their processes: TERM, and KILL after HF_HOOK_TASK_GRACE_NS, in at most
 * HF_HOOK_END_TASKS_MAX rounds per attempt. A task is found by its output, which the client sends
 * to a file with the id of the task in its name, or by its command. A task that is not found is
 * not ended. Returns the number of processes that got a signal, or an error.
 */
HF_API int hf_hook_stopped(struct hf_hooks *hooks, const struct hf_hook_event *event, struct hf_err *err) HF_MUST_CHECK;

/*
 * Records for the Holdfast session of this process that its client needs a permission or an answer
 * (hf_session_set_activity), if a person can give it. Returns 0 or an error.
 */
HF_API int hf_hook_asks(struct hf_hooks *hooks, const struct hf_hook_event *event, struct hf_err *err) HF_MUST_CHECK;

/*
 * Reports the start or end of a tool call: progress for the work mode of `id`, and a heartbeat
 * of the Holdfast session of this process (hf_session_beat), which waits for its user no longer.
 * Returns 0 or an error.
 */
HF_API int hf_hook_tool(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Finds the process of the client whose hook this is: the nearest ancestor that is not a
 * shell. If the client keeps a register of its processes (Claude), the register must list the
 * process with this session and the same start time. *ret_proof names the proof. Returns 0 or
 * HF_E_GONE.
 */
HF_API int hf_hook_client_process(enum hf_client client, const char *session, struct hf_proc_id *ret_id,
				  const char **ret_proof, struct hf_err *err) HF_MUST_CHECK;

/* -- hooks in the settings of a client ---------------------------------------------- */

/* The scope of settings. */
enum hf_hook_scope {
	HF_SCOPE_USER = 0,    /* this user, in all directories */
	HF_SCOPE_PROJECT = 1, /* one directory, for all users; the client must start in it, parents do not count */
	HF_SCOPE_LOCAL = 2,   /* one directory, for this user; Claude only */
};

struct hf_settings_opts {
	size_t size;              /* sizeof(struct hf_settings_opts) */
	enum hf_client client;
	enum hf_hook_scope scope;
	const char *project;      /* of HF_SCOPE_PROJECT and HF_SCOPE_LOCAL; NULL: the caller's directory */
	const char *program;      /* the program that the hooks call: a path, or "holdfast" to search for */
	const char *dir;          /* the state directory in the hooks; NULL: their default */
	int guard;                /* hf_hook_install: install the guard, too */
	int fix;                  /* hf_hook_install: fix a file that the client cannot read */
	int dry_run;              /* only report the changes */
	int64_t wait_ns;          /* for the file's lock; 0: HF_FILE_WAIT_NS */
};

enum hf_settings_state {
	HF_SETTINGS_ABSENT = 0,    /* no Holdfast hooks, or no file */
	HF_SETTINGS_INSTALLED = 1, /* exactly the hooks that hf_hook_install would write */
	HF_SETTINGS_DIFFERENT = 2, /* Holdfast hooks of another program or version */
};

struct hf_settings_report {
	const char *path;   /* the file */
	const char *other;  /* hf_hook_install: another file with the hooks that the client reads here, too; otherwise "" */
	const char *text;   /* the file's content, with dry_run the new content; "": no file */
	enum hf_settings_state state;
	int changed;        /* changed, or with dry_run would be */
	int fixed;          /* by opts.fix; the previous version is kept as FILE.~1~ */
	int disabled;       /* this file disables all hooks */
	void *memory;
};

/*
 * Inserts hooks into the settings of a client, under the file's lock (file.h). Every byte
 * outside the hooks stays. hf_hook_uninstall restores the same bytes, and removes a file that
 * had nothing else. Directories are created where needed. A symlink is followed inside the
 * user's or the project's directory.
 *
 * Does nothing if the hooks exist in this file, or in another file that this client reads
 * here, too, because the client might run them twice.
 *
 * *ret_report (may be NULL) is set after a success; free it with hf_settings_report_done.
 * Returns 1: changed; 0: nothing to do; HF_E_FORMAT: the client cannot read the file, or its
 * form cannot be edited; HF_E_KIND; HF_E_OUTSIDE; -EACCES: the file is read-only; -EINVAL; the
 * errors of file.h.
 */
HF_API int hf_hook_install(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
			   struct hf_settings_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/*
 * Removes the hooks again, whichever holdfast they call. Returns 1: changed; 0: no hooks
 * found; errors as above.
 */
HF_API int hf_hook_uninstall(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
			     struct hf_settings_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/*
 * Reports the state of the settings without a lock. Returns 0, or HF_E_FORMAT as above;
 * *ret_report is set in both cases.
 */
HF_API int hf_hook_settings(const struct hf_settings_opts *opts, struct hf_settings_report *ret_report,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns `argv` with the hooks among its arguments, so that an agent that edits its settings
 * keeps them:
 *
 *   - Claude: --settings;
 *   - Codex: -c, if the command has --dangerously-bypass-hook-trust, because
 *     Codex skips the hooks without it;
 *   - Copilot: --plugin-dir, a directory in the state directory `state` (NULL:
 *     refused).
 *
 * Gemini has no such option, and reads its settings once. The name of argv[0] identifies the
 * client. Returns 0, with *ret_argv to free with hf_hook_command_free; -EINVAL with the
 * reason: the command is not a client, the client has no such option, or the command's options
 * contradict it; -ENOMEM; the errors of writing the plugin.
 */
HF_API int hf_hook_command(struct hf_state *state, const char *program, char *const *argv, char ***ret_argv,
			   struct hf_err *err) HF_MUST_CHECK;
HF_API void hf_hook_command_free(char **argv);

/* Frees the content of a report. */
HF_API void hf_settings_report_done(struct hf_settings_report *report);

HF_C_END

#endif
