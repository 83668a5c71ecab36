/*
 * holdfast/hook.h - work mode, and what a client's hooks ask and tell.
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
 * Words. A client is a program that runs an agent (Claude Code, Codex, Copilot, Gemini). It calls
 * hooks: commands that get one JSON object on their standard input. A turn is what follows one prompt
 * of the user. Work mode belongs to one session id: while it is on, the stop hook asks the client to
 * go on.
 *
 * Which id. The caller decides, in this order: what the user named, $HOLDFAST_SESSION, the id that the
 * client gave (hf_hook_session_id). Never a time, never another session's: without an id the answer
 * is to let the client stop.
 *
 * The order of a decision (hf_hook_stop); the first that applies decides:
 *
 *     1  work mode is off                                         let it stop
 *     2  its own Holdfast session is stopping, past its deadline,
 *        over, or another run has its name                        let it stop
 *     3  work mode is older than its ttl                          end work mode, let it stop
 *     4  this turn was blocked `max` times                        let it stop once, say so
 *     5  HF_KEEP_IDLE blocks in a row without progress            let it stop, say so
 *     6  the until command succeeds within its time               end work mode, let it stop
 *     7  otherwise                                                block, with the goal
 *
 * Progress is a tool call that hf_hook_tool was told of, or a background task that still runs. It is
 * not read from the client's transcript, which is written late.
 *
 * The same stop delivered twice (registered twice, run beside each other, or sent again) counts once,
 * and gets the same answer. Two deliveries are the same when their bytes are, and when the second
 * hook was started before the first one had answered, or the bytes hold the client's own time.
 *
 * Hooks fail open: a caller that gets an error from any function here lets the client go on.
 *
 * What is stored: modes/KEY in the state directory, one small file for each id (docs/FORMATS.md).
 * Prompts, answers and the environment are never stored or journalled; the goal is stored, and not
 * journalled.
 *
 * Settings. hf_hook_install puts the hooks into the files from which a client reads them, and
 * hf_hook_uninstall takes them out: as text, so that every other byte stays.
 *
 * Ownership: a context is freed by hf_hooks_free, before the state and journal it was opened with.
 * Threads: a context is used by one thread at a time. Fork: hf_hook_stop runs the until command
 * and reaps it, with all that it started; nothing else forks. A child may only free what it inherited.
 * Crash: a record is changed by one write under a flock; one that cannot be read is put away and
 * counts as none.
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
#define HF_KEEP_UNTIL_NS   (20 * HF_SEC) /* what the until command may take: clients wait 30 s at least */
#define HF_KEEP_UNTIL_LONGEST_NS (540 * HF_SEC) /* and what it may be given: installed hooks have 600 s */
#define HF_KEEP_GOAL_MAX   1000      /* bytes of a goal */
#define HF_KEEP_UNTIL_MAX  1000      /* bytes of an until command */
#define HF_HOOK_INPUT_MAX  (16 << 20) /* bytes of an event; a larger one is refused */
#define HF_HOOK_REASON_MAX 2400

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

/* The word of a client ("claude"); "unknown" for a number that is none. */
HF_API const char *hf_client_word(enum hf_client client);

/* The client of a word, or -EINVAL. "unknown" is none. */
HF_API int hf_client_of(const char *word);

/* The client whose hook this process is, judged by the environment that it gives to its hooks. */
HF_API enum hf_client hf_client_here(void);

struct hf_hooks; /* the work modes of one state directory */

/* Opens them. `journal` may be NULL: then no events are written. */
HF_API int hf_hooks_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_hooks **ret_hooks, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_hooks_free(struct hf_hooks *hooks);

/* -- events of a client ----------------------------------------------------------- */

enum hf_hook_kind {
	HF_HOOK_OTHER = 0,         /* an event without meaning for us, or without a name */
	HF_HOOK_STOP = 1,          /* the agent wants to stop */
	HF_HOOK_SUBAGENT_STOP = 2, /* a part of it does: never blocked */
	HF_HOOK_STOP_FAILURE = 3,  /* it was stopped by an error: never blocked */
	HF_HOOK_TOOL_BEFORE = 4,
	HF_HOOK_TOOL_AFTER = 5,
	HF_HOOK_SESSION_START = 6,
	HF_HOOK_SESSION_END = 7,
};

/* One event, as far as it is understood. Texts are "" where the client gave none. */
struct hf_hook_event {
	enum hf_hook_kind kind;
	const char *name;    /* the client's own name of the event */
	const char *session; /* the client's id of its session */
	const char *turn;    /* its id of the turn */
	const char *cwd;
	const char *tool;    /* of a tool call: its name */
	const char *path;    /* the file that it would write */
	int was_blocked;     /* stop_hook_active: 1, 0; -1 not said */
	int background;      /* tasks that run in the background */
	int dated;           /* it holds the client's own time: no two events have the same bytes */
	uint64_t digest;     /* of its bytes */
	void *memory;
};

/*
 * Reads one event: a JSON object, at most HF_HOOK_INPUT_MAX bytes, with or without a byte order mark.
 * HF_E_SYNTAX: it is none; -E2BIG; -ENOMEM. Unknown members are skipped. A member of an unexpected
 * type, or an id that a client would not make (HF_E_STORED_ID: empty, with '/', "..", a control byte,
 * or longer than HF_NAME_MAX), counts as not given.
 */
HF_API int hf_hook_read(const char *text, size_t len, struct hf_hook_event **ret_event,
			struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. */
HF_API void hf_hook_event_free(struct hf_hook_event *event);

/*
 * The client's id of the session that this process is in: of `event` (may be NULL), else of the
 * variables that clients set for their hooks and tools: CLAUDE_CODE_SESSION_ID, GEMINI_SESSION_ID,
 * AMPLIHACK_SESSION_ID. NULL: there is none.
 */
HF_API const char *hf_hook_session_id(const struct hf_hook_event *event);

/* -- work mode -------------------------------------------------------------------- */

struct hf_keep_opts {
	size_t size;       /* sizeof(struct hf_keep_opts) */
	const char *goal;  /* what the client is told; NULL: that its work is not done */
	const char *until; /* run by sh -c in `cwd`: its exit 0 ends work mode; NULL: none */
	const char *cwd;   /* NULL: the caller's directory */
	int64_t ttl_ns;    /* 0: HF_KEEP_TTL_NS */
	uint32_t max;      /* 0: HF_KEEP_MAX */
	int64_t until_ns;  /* what `until` may take; 0: HF_KEEP_UNTIL_NS; at most HF_KEEP_UNTIL_LONGEST_NS */
};

/*
 * Switches work mode on for `id`, or gives it new options, and begins its time and counts anew.
 * Returns 1 when it was on before, else 0; HF_E_NAME; HF_E_STORED_ID; -EINVAL (a text is too long, a
 * duration negative or too long); -errno.
 */
HF_API int hf_keep_on(struct hf_hooks *hooks, const char *id, const struct hf_keep_opts *opts,
		      struct hf_err *err) HF_MUST_CHECK;

/* Switches it off. Returns 1, or 0 when it was off. */
HF_API int hf_keep_off(struct hf_hooks *hooks, const char *id, struct hf_err *err) HF_MUST_CHECK;

struct hf_keep_info {
	const char *id;
	const char *goal;  /* "" */
	const char *until; /* "" */
	const char *cwd;
	struct hf_wall since;
	int64_t left_ns;   /* of its ttl; 0: it ends with the next stop */
	uint32_t max;
	uint32_t blocks;   /* of the turn that was last blocked */
	uint32_t idle;     /* blocks in a row without progress */
	uint64_t tools;    /* tool calls that were told */
	uint64_t total;    /* blocks since it was switched on */
	int64_t until_ns;  /* what `until` may take */
};

typedef void hf_keep_fn(void *arg, const struct hf_keep_info *info);

/* Calls `fn` with the work mode of `id`. Returns 1, or 0 when it is off. With NULL as `fn` it is not read. */
HF_API int hf_keep_look(struct hf_hooks *hooks, const char *id, hf_keep_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* The same for each that is on, in the order of the ids. Returns how many. */
HF_API int hf_keep_list(struct hf_hooks *hooks, hf_keep_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* -- hooks ------------------------------------------------------------------------- */

struct hf_stop_answer {
	int block;                       /* 1: the client is to go on */
	char reason[HF_HOOK_REASON_MAX]; /* what to tell it; UTF-8, "" when it may stop */
	const char *why;                 /* the decision in words: "off", "stopping", "expired", "limit", "idle", "done", "goal" */
};

/*
 * Decides whether the client of session `id` may stop; see above. Returns 0 with the answer, or an
 * error: then the client may stop. Blocks: as long as the until command may take.
 */
HF_API int hf_hook_stop(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event,
			struct hf_stop_answer *ret_answer, struct hf_err *err) HF_MUST_CHECK;

/*
 * A tool call begins or ends: progress of the work mode of `id`, and a heartbeat of the Holdfast
 * session that this process is in (hf_session_beat). Returns 0 or an error.
 */
HF_API int hf_hook_tool(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * The process of the client whose hook this is: the nearest ancestor that is no shell and, where the
 * client keeps a register of its processes (Claude), stands there with this session and its own start
 * time. *ret_proof says what proves it. HF_E_GONE: there is none.
 */
HF_API int hf_hook_client_process(enum hf_client client, const char *session, struct hf_proc_id *ret_id,
				  const char **ret_proof, struct hf_err *err) HF_MUST_CHECK;

/* -- hooks in the settings of a client ---------------------------------------------- */

/* Whose settings. */
enum hf_hook_scope {
	HF_SCOPE_USER = 0,    /* those of this user, everywhere */
	HF_SCOPE_PROJECT = 1, /* those of one directory, for everybody: where the client is started, no parent counts */
	HF_SCOPE_LOCAL = 2,   /* those of one directory, for this user: Claude only */
};

struct hf_settings_opts {
	size_t size;              /* sizeof(struct hf_settings_opts) */
	enum hf_client client;
	enum hf_hook_scope scope;
	const char *project;      /* of HF_SCOPE_PROJECT and HF_SCOPE_LOCAL; NULL: the caller's directory */
	const char *program;      /* what the hooks call: a path, or "holdfast" to be looked up */
	const char *dir;          /* the state directory that they name; NULL: theirs by themselves */
	int guard;                /* hf_hook_install: the guard as well */
	int fix;                  /* hf_hook_install: put right what keeps the client from reading the file */
	int dry_run;              /* only find out what would be done */
	int64_t wait_ns;          /* for the file's lock; 0: HF_FILE_WAIT_NS */
};

enum hf_settings_state {
	HF_SETTINGS_ABSENT = 0,    /* it has no Holdfast hooks, or there is no file */
	HF_SETTINGS_INSTALLED = 1, /* it has exactly those that hf_hook_install would put there */
	HF_SETTINGS_DIFFERENT = 2, /* it has Holdfast hooks of another program or version */
};

struct hf_settings_report {
	const char *path;   /* the file */
	const char *other;  /* hf_hook_install: a file that the client reads here as well and that has them; else "" */
	const char *text;   /* what the file is, or with dry_run would be; "": there is none */
	enum hf_settings_state state;
	int changed;        /* it was, or would be */
	int fixed;          /* by opts.fix; the version before is beside it, as FILE.~1~ */
	int disabled;       /* this file switches all hooks off */
	void *memory;
};

/*
 * Puts hooks into the settings of a client, under the file's lock (file.h). Every byte that is not of our
 * hooks stays; hf_hook_uninstall gives the same bytes again, and removes a file that had nothing else. Does
 * nothing when the hooks are there, or in another file that this client reads here as well: a client
 * may run them twice then. Directories are made where needed; a symlink is followed inside the user's or
 * the project's directory.
 * Returns 1: changed; 0: nothing to do; HF_E_FORMAT: the client cannot read the file, or it is written in a
 * way that cannot be edited; HF_E_KIND; HF_E_OUTSIDE; -EACCES: the file is read-only; -EINVAL; the errors of file.h.
 * *ret_report (may be NULL) is set after a success, and freed by hf_settings_report_done.
 */
HF_API int hf_hook_install(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
			   struct hf_settings_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/* Takes them out again, whichever holdfast they call. Returns 1: changed; 0: there were none; errors as above. */
HF_API int hf_hook_uninstall(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
			     struct hf_settings_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/* Looks, and takes no lock. Returns 0, or HF_E_FORMAT as above: then *ret_report is set as well. */
HF_API int hf_hook_settings(const struct hf_settings_opts *opts, struct hf_settings_report *ret_report,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * `argv` with our hooks among its arguments, so that an agent which edits its settings does not lose them: --settings for
 * Claude, -c for Codex, if the command has --dangerously-bypass-hook-trust, without which Codex skips them, and
 * --plugin-dir for Copilot, a directory in the state directory `state` (NULL: refused). Gemini has no such option, and
 * reads its settings once.
 * The client is known by the name of argv[0]. Returns 0, with *ret_argv for hf_hook_command_free; -EINVAL, and
 * why: a command that is no client, a client without such an option, a command that has options against it; -ENOMEM;
 * the errors of writing the plugin.
 */
HF_API int hf_hook_command(struct hf_state *state, const char *program, char *const *argv, char ***ret_argv,
			   struct hf_err *err) HF_MUST_CHECK;
HF_API void hf_hook_command_free(char **argv);

/* Frees what a report has. */
HF_API void hf_settings_report_done(struct hf_settings_report *report);

HF_C_END

#endif
