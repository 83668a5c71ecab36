"""The public headers as ctypes: constants, structs, functions. Made by tools/python-abi.py; do not edit."""
# fmt: off
# flake8: noqa
import enum
from ctypes import (POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, Dict, List, Tuple

HF_ACTIVITY_TEXT_MAX = 255
HF_BLOCK_ID_MAX = 80
HF_BLOCK_MARKER_MAX = 512
HF_BLOCK_TEXT_MAX = 67108864
HF_BOOT_ID_LEN = 36
HF_ERR_TEXT_MAX = 640
HF_EVENT_FIELDS_MAX = 6
HF_EVIDENCE_MAX = 192
HF_FILE_ATTEMPTS = 5
HF_FILE_BACKUPS_MAX = 99
HF_FILE_WAIT_NS = 30000000000
HF_FILE_WRITER_WAIT_NS = 2000000000
HF_HOOK_END_TASKS_MAX = 3
HF_HOOK_INPUT_MAX = 16777216
HF_HOOK_REASON_MAX = 2400
HF_HOOK_TASKS_MAX = 16
HF_HOOK_TASK_GRACE_NS = 3000000000
HF_HOST_NAME_MAX = 64
HF_JOURNAL_LINE_MAX = 65536
HF_JOURNAL_SEGMENT_MIN = 4096
HF_JOURNAL_TEXT_MAX = 1024
HF_JOURNAL_WAIT_NS = 100000000
HF_KEEP_GOAL_MAX = 1000
HF_KEEP_IDLE = 3
HF_KEEP_MAX = 7
HF_KEEP_TTL_NS = 86400000000000
HF_KEEP_UNTIL_LONGEST_NS = 540000000000
HF_KEEP_UNTIL_MAX = 1000
HF_KEEP_UNTIL_NS = 20000000000
HF_LAND_ALSO_MAX = 64
HF_LAND_OID_MAX = 65
HF_LAND_TARGETS_MAX = 4
HF_LAND_VERIFY_NS = 600000000000
HF_LOCK_CLAIMS_MAX = 256
HF_LOCK_KINDS = 6
HF_LOCK_PRIORITY_MAX = 1000
HF_LOCK_PRIORITY_NS = 60000000000
HF_LOCK_SLOTS_MAX = 64
HF_LOCK_TTL_MAX = 2592000000000000
HF_LOCK_TURN_NS = 2000000000
HF_MSEC = 1000000
HF_NAME_KEY_MAX = 241
HF_NAME_MAX = 80
HF_PLAN_COUNT_MAX = 10000
HF_PLAN_SANDBOXES_MAX = 64
HF_PLAN_WHY_MAX = 256
HF_PROC_TEXT_MAX = 160
HF_RUN_BACKOFF_MAX_NS = 300000000000
HF_RUN_BACKOFF_NS = 1000000000
HF_RUN_BUSY_NS = 3600000000000
HF_RUN_CAUSE_MAX = 704
HF_RUN_COMMAND_MAX = 200
HF_RUN_DEPTH_MAX = 32
HF_RUN_GRACE_NS = 5000000000
HF_RUN_HANG_NS = 600000000000
HF_RUN_INPUT_MAX = 16777216
HF_RUN_LOG_MAX = 67108864
HF_RUN_LOG_MIN = 65536
HF_RUN_LOG_UNLIMITED = 18446744073709551615
HF_RUN_NONE = -1
HF_RUN_OUTLIVED_MAX = 120
HF_RUN_RESUMED_MAX = 400
HF_RUN_START_NS = 30000000000
HF_RUN_TTL_NS = 60000000000
HF_RUN_VERIFY_NS = 600000000000
HF_SEC = 1000000000
HF_STATE_FORMAT = 2
HF_TX_CONFLICTS_MAX = 64
HF_TX_PATH_MAX = 512
HF_USEC = 1000
HF_WALL_TEXT_MAX = 28

# enum hf_code
HF_E_GONE = -8001
HF_E_RECYCLED = -8002
HF_E_FOREIGN = -8003
HF_E_PROTECTED = -8004
HF_E_UNKNOWN = -8005
HF_E_NAME = -8006
HF_E_STORED_ID = -8007
HF_E_UNTRUSTED = -8008
HF_E_FORMAT = -8009
HF_E_SYNTAX = -8010
HF_E_EVENT = -8011
HF_E_LOST = -8012
HF_E_FORKED = -8013
HF_E_BUSY = -8014
HF_E_TIMEOUT = -8015
HF_E_NOT_HELD = -8016
HF_E_NOT_OWNER = -8017
HF_E_STALE = -8018
HF_E_DEADLOCK = -8019
HF_E_MODE = -8020
HF_E_NO_SESSION = -8021
HF_E_FINISHED = -8022
HF_E_LIMIT = -8023
HF_E_REMAINS = -8024
HF_E_STORE = -8025
HF_E_NO_TERMINAL = -8026
HF_E_CANCELLED = -8030
HF_E_NO_DIRECTORY = -8031
HF_E_OUTSIDE = -8041
HF_E_KIND = -8042
HF_E_MARKERS = -8043
HF_E_CHANGED = -8044
HF_E_MOVED = -8045
HF_E_NO_PLAN = -8061
HF_E_NO_SANDBOX = -8062
HF_E_PLAN_STATE = -8063
HF_E_TARGET = -8064
HF_E_NO_OVERLAY = -8065
HF_E_DIRTY = -8066
HF_E_IN_USE = -8067
HF_E_CONFLICT = -8068
HF_E_TORN = -8069
HF_E_NO_CONFINE = -8070
HF_E_STDIO = -8071
HF_E_NO_LANDING = -8081
HF_E_LAND = -8082

# enum hf_event
HF_EV_NOTE = 0
HF_EV_JOURNAL_LOST = 1
HF_EV_JOURNAL_ROTATED = 2
HF_EV_JOURNAL_PRUNED = 3
HF_EV_RECORD_QUARANTINED = 4
HF_EV_ID_REJECTED = 5
HF_EV_SIGNAL_SENT = 6
HF_EV_SIGNAL_REFUSED = 7
HF_EV_LOCK_FAIL_OPEN = 8
HF_EV_LOCK_SKIPPED = 9
HF_EV_LOCK_TAKEN_OVER = 10
HF_EV_LOCK_EXPIRED = 11
HF_EV_LOCK_BROKEN = 12
HF_EV_LOCK_REFUSED = 13
HF_EV_LOCK_DEADLOCK = 14
HF_EV_SESSION_STARTED = 15
HF_EV_SESSION_STOPPING = 16
HF_EV_SESSION_KILLED = 17
HF_EV_SESSION_ENDED = 18
HF_EV_SESSION_REAPED = 19
HF_EV_SESSION_REFUSED = 20
HF_EV_SESSION_LEFT_RUNNING = 21
HF_EV_SESSION_NOTIFIED = 22
HF_EV_SESSION_OUTLIVED = 23
HF_EV_SESSION_GAVE_UP = 24
HF_EV_FILE_REFUSED = 25
HF_EV_FILE_ABANDONED = 26
HF_EV_FILE_KEPT = 27
HF_EV_PLAN_ADDED = 28
HF_EV_PLAN_ENTERED = 29
HF_EV_PLAN_REFUSED = 30
HF_EV_PLAN_ERRORED = 31
HF_EV_PLAN_REMOVED = 32
HF_EV_PLAN_CONFLICT = 33
HF_EV_PLAN_COMMITTED = 34
HF_EV_PLAN_ROLLED_BACK = 35
HF_EV_PLAN_UNDONE = 36
HF_EV_PLAN_RECOVERED = 37
HF_EV_LAND_KEPT = 38
HF_EV_LAND_LANDED = 39
HF_EV_LAND_REJECTED = 40
HF_EV_LAND_CONFLICT = 41
HF_EV_LAND_DROPPED = 42
HF_EV_LAND_RECOVERED = 43
HF_EV_RUN_COMMITTED = 44
HF_EV_RUN_CONFLICT = 45
HF_EV_RUN_KEPT = 46
HF_EV_RUN_MOVED = 47
HF_EV_KEEP_ON = 48
HF_EV_KEEP_ENDED = 49
HF_EV_STOP_BLOCKED = 50
HF_EV_STOP_ALLOWED = 51
HF_EV_HOOK_FAILED = 52
HF_EV_TOOL_REFUSED = 53
HF_EV_CLIENT_STARTED = 54
HF_EV_CLIENT_ENDED = 55
HF_EV_BACKGROUND_LEFT = 56
HF_EV_QUARANTINE_TRIMMED = 57
HF_EVENT_COUNT = 58

# enum hf_type
HF_TEXT = 1
HF_INT = 2
HF_BOOL = 3

# enum hf_exit
HF_EXIT_DONE = 0
HF_EXIT_NO = 1
HF_EXIT_USAGE = 2
HF_EXIT_REFUSED = 3
HF_EXIT_OS = 4
HF_EXIT_TIMED_OUT = 124
HF_EXIT_AROUND = 125
HF_EXIT_NO_EXEC = 126
HF_EXIT_NO_FILE = 127
HF_EXIT_SIGNAL = 128

# enum hf_state_flags
HF_STATE_NO_CREATE = 1

# enum hf_journal_flags
HF_JOURNAL_DURABLE = 1

# enum hf_problem
HF_PROBLEM_DAMAGED = 1
HF_PROBLEM_TORN = 2
HF_PROBLEM_GAP = 3
HF_PROBLEM_REPEAT = 4
HF_PROBLEM_EVENT = 5
HF_PROBLEM_TAIL = 6
HF_PROBLEM_FILE = 7
HF_PROBLEM_COUNTERS = 8

# enum hf_liveness
HF_ALIVE = 1
HF_DEAD = 2
HF_UNKNOWN = 3

# enum hf_proc_flags
HF_PROC_SHARED = 1

# enum hf_lock_kind
HF_LOCK_KIND_NAME = 0
HF_LOCK_KIND_GROUP = 1
HF_LOCK_KIND_FILE = 2
HF_LOCK_KIND_PLAN = 3
HF_LOCK_KIND_TARGET = 4
HF_LOCK_KIND_LAND = 5

# enum hf_lock_mode
HF_LOCK_EXCLUSIVE = 0
HF_LOCK_SHARED = 1
HF_LOCK_SLOTS = 2

# enum hf_lock_flags
HF_LOCK_REENTRANT = 1
HF_LOCK_FREE_ON_EXIT = 2

# enum hf_file_flags
HF_FILE_CREATE = 1
HF_FILE_REPLACE_SYMLINK = 2
HF_FILE_FOLLOW = 4
HF_FILE_BREAK_LINKS = 8
HF_FILE_FREE_ON_EXIT = 16
HF_FILE_SIDECAR = 32

# enum hf_block_style
HF_STYLE_AUTO = 0
HF_STYLE_HTML = 1
HF_STYLE_HASH = 2
HF_STYLE_SLASH = 3
HF_STYLE_DASH = 4
HF_STYLE_C = 5

# enum hf_log_stream
HF_LOG_UNKNOWN = 0
HF_LOG_OUT = 1
HF_LOG_ERR = 2
HF_LOG_BOTH = 3

# enum hf_attach_flags
HF_ATTACH_READ_ONLY = 1
HF_ATTACH_TAKE = 2

# enum hf_run_flags
HF_RUN_RESUME = 1
HF_RUN_LEAVE_RUNNING = 2
HF_RUN_LOG = 4
HF_RUN_LOOP = 8
HF_RUN_NO_LOG = 16
HF_RUN_TERMINAL = 32
HF_RUN_REMOVE = 64
HF_RUN_PRESERVE_STATUS = 128
HF_RUN_FOREGROUND = 256
HF_RUN_END_BACKGROUND = 512

# enum hf_run_tree
HF_TREE_DEFAULT = 0
HF_TREE_CGROUP = 1
HF_TREE_WALK = 2
HF_TREE_AUTO = 3

# enum hf_run_term
HF_TERM_DEFAULT = 0
HF_TERM_LEADER = 1
HF_TERM_TREE = 2

# enum hf_outcome
HF_OUTCOME_NONE = 0
HF_OUTCOME_SUCCEEDED = 1
HF_OUTCOME_FAILED = 2
HF_OUTCOME_VERIFY_FAILED = 3
HF_OUTCOME_TIMED_OUT = 4
HF_OUTCOME_STOPPED = 5
HF_OUTCOME_LOST_LOCK = 6
HF_OUTCOME_ABANDONED = 7
HF_OUTCOME_NOT_STARTED = 8
HF_OUTCOME_INTERRUPTED = 9
HF_OUTCOME_GAVE_UP = 10
HF_OUTCOME_CONFLICT = 11
HF_OUTCOME_DECLINED = 12

# enum hf_session_state
HF_SESSION_STARTING = 1
HF_SESSION_RUNNING = 2
HF_SESSION_HUNG = 3
HF_SESSION_VERIFYING = 4
HF_SESSION_WAITING = 5
HF_SESSION_FAILING = 6
HF_SESSION_STOPPING = 7
HF_SESSION_DONE = 8
HF_SESSION_FAILED = 9
HF_SESSION_VERIFY_FAILED = 10
HF_SESSION_STOPPED = 11
HF_SESSION_DEAD_UNREAPED = 12
HF_SESSION_UNREADABLE = 13
HF_SESSION_LANDING = 14
HF_SESSION_SUSPENDED = 15
HF_SESSION_QUEUED = 16

# enum hf_activity
HF_ACTIVITY_NONE = 0
HF_ACTIVITY_IDLE = 1
HF_ACTIVITY_WORKING = 2
HF_ACTIVITY_BLOCKED = 3
HF_ACTIVITY_DONE = 4
HF_ACTIVITY_ERROR = 5
HF_ACTIVITY_BACKGROUND = 6

# enum hf_limited_by
HF_LIMITED_MEMORY = 1
HF_LIMITED_CPUS = 2
HF_LIMITED_PIDS = 4

# enum hf_stop
HF_STOP_STOPPED = 0
HF_STOP_KILLED = 1
HF_STOP_ALREADY_GONE = 2

# enum hf_client
HF_CLIENT_UNKNOWN = 0
HF_CLIENT_CLAUDE = 1
HF_CLIENT_CODEX = 2
HF_CLIENT_COPILOT = 3
HF_CLIENT_GEMINI = 4

# enum hf_hook_kind
HF_HOOK_OTHER = 0
HF_HOOK_STOP = 1
HF_HOOK_SUBAGENT_STOP = 2
HF_HOOK_STOP_FAILURE = 3
HF_HOOK_TOOL_BEFORE = 4
HF_HOOK_TOOL_AFTER = 5
HF_HOOK_SESSION_START = 6
HF_HOOK_SESSION_END = 7
HF_HOOK_ASKS = 8
HF_HOOK_WAITS = 9

# enum hf_hook_scope
HF_SCOPE_USER = 0
HF_SCOPE_PROJECT = 1
HF_SCOPE_LOCAL = 2

# enum hf_settings_state
HF_SETTINGS_ABSENT = 0
HF_SETTINGS_INSTALLED = 1
HF_SETTINGS_DIFFERENT = 2

# enum hf_plan_state
HF_PLAN_CREATED = 1
HF_PLAN_ACTIVE = 2
HF_PLAN_PREPARED = 3
HF_PLAN_COMMITTED = 4
HF_PLAN_ROLLED_BACK = 5
HF_PLAN_ERRORED = 6
HF_PLAN_CLEANED = 7

# enum hf_strategy
HF_STRATEGY_AUTO = 0
HF_STRATEGY_OVERLAY = 1
HF_STRATEGY_CLONE = 2
HF_STRATEGY_COPY = 3

# enum hf_plan_add_flags
HF_PLAN_ADD_GIT_OUTSIDE = 1
HF_PLAN_ADD_UNTRIED = 2

# enum hf_plan_enter_flags
HF_PLAN_ENTER_NO_RENAME = 1
HF_PLAN_ENTER_NO_CENSUS = 2

# enum hf_plan_entered_flags
HF_ENTERED_JOINED = 1
HF_ENTERED_NO_RENAME = 2
HF_ENTERED_LEFT = 4
HF_ENTERED_ROOT = 8
HF_ENTERED_ELSEWHERE = 16
HF_ENTERED_LANDLOCK = 32

# enum hf_change_kind
HF_CHANGE_ADDED = 1
HF_CHANGE_CHANGED = 2
HF_CHANGE_DELETED = 3
HF_CHANGE_TYPE = 4
HF_CHANGE_MODE = 5
HF_CHANGE_SKIPPED = 6

# enum hf_plan_commit_flags
HF_PLAN_COMMIT_STRICT = 1
HF_PLAN_COMMIT_TORN = 2
HF_PLAN_COMMIT_MERGE = 4

# enum hf_plan_rm_flags
HF_PLAN_RM_DISCARD = 1

# enum hf_plan_gc_flags
HF_PLAN_GC_DRY_RUN = 1
HF_PLAN_GC_DISCARD = 2

# enum hf_land_state
HF_LAND_WORKING = 1
HF_LAND_QUEUED = 2
HF_LAND_REBASING = 3
HF_LAND_VERIFYING = 4
HF_LAND_LANDING = 5
HF_LAND_LANDED = 6
HF_LAND_REJECTED = 7
HF_LAND_CONFLICT = 8
HF_LAND_DROPPED = 9

# enum hf_land_merge
HF_LAND_MERGE_AS_BEFORE = 0
HF_LAND_MERGE = 1
HF_LAND_FF_ONLY = 2
HF_LAND_REBASE = 3

# enum hf_land_base
HF_LAND_BASE_HEAD = 0
HF_LAND_BASE_WORKTREE = 1

# enum hf_land_flags
HF_LAND_KEEP_PLAN = 1
HF_LAND_SIGN = 2

# enum hf_tx_keep
HF_TX_KEEP_DEFAULT = 0
HF_TX_KEEP_ON_FAILURE = 1
HF_TX_KEEP_ALWAYS = 2
HF_TX_KEEP_NEVER = 3

# enum hf_tx_commit
HF_TX_COMMIT_DEFAULT = 0
HF_TX_COMMIT_ON_SUCCESS = 1
HF_TX_COMMIT_ASK = 2
HF_TX_COMMIT_NEVER = 3

# enum hf_tx_flags
HF_TX_MERGE = 1
HF_TX_READONLY_REST = 2
HF_TX_NO_NETWORK = 4
HF_TX_REQUIRE_CHANGE = 8
HF_TX_SIGN = 16
HF_TX_DISCARD = 32


class hf_mono(Structure):
    _fields_ = [
        ("ns", c_int64),
    ]


class hf_boot(Structure):
    _fields_ = [
        ("ns", c_int64),
    ]


class hf_wall(Structure):
    _fields_ = [
        ("ns", c_int64),
    ]


class hf_err(Structure):
    _fields_ = [
        ("code", c_int),
        ("sys", c_int),
        ("op", c_char * 24),
        ("subject", c_char * 224),
        ("detail", c_char * 256),
    ]


class hf_err_info(Structure):
    _fields_ = [
        ("code", c_int),
        ("exit_status", c_int),
        ("name", c_char_p),
        ("text", c_char_p),
    ]


class hf_event_field(Structure):
    _fields_ = [
        ("key", c_char_p),
        ("type", c_int),
        ("required", c_int),
    ]


class hf_event_info(Structure):
    _fields_ = [
        ("event", c_int),
        ("name", c_char_p),
        ("summary", c_char_p),
        ("needs_name", c_int),
        ("fields", hf_event_field * 7),
    ]


class hf_field(Structure):
    _fields_ = [
        ("key", c_char_p),
        ("type", c_int),
        ("text", c_char_p),
        ("number", c_int64),
    ]


class hf_journal_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("segment_bytes", c_uint64),
        ("retain_bytes", c_uint64),
        ("wait_ns", c_int64),
    ]


class hf_journal_totals(Structure):
    _fields_ = [
        ("seq", c_uint64),
        ("lost", c_uint64),
        ("bytes", c_uint64),
        ("segments", c_uint64),
    ]


class hf_record(Structure):
    _fields_ = [
        ("seq", c_uint64),
        ("time", hf_wall),
        ("pid", c_int32),
        ("event", c_char_p),
        ("info", POINTER(hf_event_info)),
        ("name", c_char_p),
        ("line", c_char_p),
        ("line_len", c_size_t),
        ("fields", c_void_p),
    ]


class hf_problem_info(Structure):
    _fields_ = [
        ("problem", c_int),
        ("file", c_char_p),
        ("line", c_uint64),
        ("offset", c_uint64),
        ("seq", c_uint64),
        ("text", c_char_p),
    ]


class hf_verify_result(Structure):
    _fields_ = [
        ("records", c_uint64),
        ("first", c_uint64),
        ("last", c_uint64),
        ("problems", c_uint64),
        ("torn", c_uint64),
        ("lost", c_uint64),
    ]


class hf_proc_id(Structure):
    _fields_ = [
        ("pid", c_int32),
        ("pidfs_inode", c_uint64),
        ("start_ticks", c_uint64),
        ("time_ns", c_uint64),
        ("pid_ns", c_uint64),
        ("boot_id", c_char * 37),
    ]


class hf_lock_waiting(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char * 81),
        ("waited_ns", c_int64),
        ("place", c_uint32),
        ("of", c_uint32),
        ("slots", c_uint),
        ("holder", hf_proc_id),
    ]


class hf_lock_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("mode", c_int),
        ("slots", c_uint),
        ("wait_ns", c_int64),
        ("ttl_ns", c_int64),
        ("flags", c_uint),
        ("owner", POINTER(hf_proc_id)),
        ("cancel_fd", c_int),
        ("go_on", c_void_p),
        ("go_on_arg", c_void_p),
        ("waiting", c_void_p),
        ("waiting_arg", c_void_p),
        ("waiting_ns", c_int64),
        ("priority", c_uint),
    ]


class hf_holder(Structure):
    _fields_ = [
        ("id", hf_proc_id),
        ("thread", c_int32),
        ("token", c_uint64),
        ("since", hf_wall),
        ("lease_left_ns", c_int64),
        ("mode", c_int),
        ("count", c_uint),
        ("liveness", c_int),
        ("evidence", c_char * 192),
        ("host", c_char * 65),
    ]


class hf_lock_claim(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char_p),
        ("token", c_uint64),
    ]


class hf_waiter(Structure):
    _fields_ = [
        ("id", hf_proc_id),
        ("thread", c_int32),
        ("mode", c_int),
        ("waited_ns", c_int64),
        ("priority", c_uint),
        ("host", c_char * 65),
    ]


class hf_lock_info(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char_p),
        ("token", c_uint64),
        ("slots", c_uint),
        ("holders", POINTER(hf_holder)),
        ("n_holders", c_size_t),
        ("waiters", POINTER(hf_waiter)),
        ("n_waiters", c_size_t),
    ]


class hf_file_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("root", c_char_p),
        ("fence_name", c_char_p),
        ("fence_token", c_uint64),
        ("held_name", c_char_p),
        ("held_token", c_uint64),
        ("backups", c_uint),
        ("journal", c_void_p),
        ("writer_wait_ns", c_int64),
        ("fence_kind", c_int),
        ("cancel_fd", c_int),
        ("go_on", c_void_p),
        ("go_on_arg", c_void_p),
        ("mode", c_uint),
        ("fence_locks", c_void_p),
    ]


class hf_block(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("id", c_char_p),
        ("text", c_char_p),
        ("len", c_size_t),
        ("start", c_char_p),
        ("end", c_char_p),
        ("style", c_int),
    ]


class hf_log_span(Structure):
    _fields_ = [
        ("at", hf_wall),
        ("attempt", c_uint32),
        ("stream", c_int),
    ]


class hf_attach_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("rows", c_uint32),
        ("columns", c_uint32),
    ]


class hf_run_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("argv", POINTER(c_char_p)),
        ("flags", c_uint),
        ("tree", c_int),
        ("term", c_int),
        ("cwd", c_char_p),
        ("env", POINTER(c_char_p)),
        ("deadline_ns", c_int64),
        ("idle_ns", c_int64),
        ("hang_ns", c_int64),
        ("grace_ns", c_int64),
        ("wait_ns", c_int64),
        ("ttl_ns", c_int64),
        ("verify", c_char_p),
        ("verify_ns", c_int64),
        ("every_ns", c_int64),
        ("max_runs", c_uint32),
        ("until", c_char_p),
        ("backoff_ns", c_int64),
        ("backoff_max_ns", c_int64),
        ("notify", c_char_p),
        ("max_depth", c_uint32),
        ("group", c_char_p),
        ("max_active", c_uint32),
        ("log_max", c_uint64),
        ("resumed", c_void_p),
        ("resumed_arg", c_void_p),
        ("stage", c_char_p),
        ("start_ns", c_int64),
        ("input_fd", c_int),
        ("notify_on", c_char_p),
        ("resume_token", c_uint64),
        ("priority", c_uint32),
        ("waiting", c_void_p),
        ("waiting_arg", c_void_p),
        ("stop_signal", c_uint32),
        ("mem_max", c_uint64),
        ("cpus_centi", c_uint32),
        ("pids_max", c_uint32),
        ("nice", c_uint32),
        ("store", c_char_p),
        ("input", c_char_p),
    ]


class hf_run_report(Structure):
    _fields_ = [
        ("token", c_uint64),
        ("attempt", c_uint32),
        ("pid", c_int32),
        ("supervisor", hf_proc_id),
        ("outcome", c_int),
        ("exit_status", c_int),
        ("cause", c_char * 704),
        ("resumed", c_char * 400),
        ("outlived", c_uint32),
        ("outlived_names", c_char * 120),
        ("blocker", hf_holder),
        ("command_status", c_int),
        ("ran_ns", c_int64),
        ("cpu_ns", c_int64),
        ("memory_peak_bytes", c_int64),
        ("output_bytes", c_int64),
    ]


class hf_session_end(Structure):
    _fields_ = [
        ("outcome", c_int),
        ("exit_status", c_int),
        ("cause", c_char_p),
        ("ended", hf_wall),
        ("ran_ns", c_int64),
    ]


class hf_session_limits(Structure):
    _fields_ = [
        ("mem_max", c_uint64),
        ("cpus_centi", c_uint32),
        ("pids_max", c_uint32),
        ("nice", c_uint32),
        ("by_cgroup", c_uint),
    ]


class hf_session_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("state", c_int),
        ("outcome", c_int),
        ("exit_status", c_int),
        ("cause", c_char_p),
        ("last", hf_session_end),
        ("argv", POINTER(c_char_p)),
        ("cwd", c_char_p),
        ("group", c_char_p),
        ("command", c_char_p),
        ("token", c_uint64),
        ("attempt", c_uint32),
        ("failures", c_uint32),
        ("loop", c_int),
        ("pid", c_int32),
        ("supervisor", hf_proc_id),
        ("keeper", hf_proc_id),
        ("leader", hf_proc_id),
        ("tree", c_char_p),
        ("age_ns", c_int64),
        ("ran_ns", c_int64),
        ("deadline_ns", c_int64),
        ("outlived", c_uint32),
        ("outlived_names", c_char_p),
        ("deadline_left_ns", c_int64),
        ("output_age_ns", c_int64),
        ("processes", c_int64),
        ("memory_bytes", c_int64),
        ("cpu_ns", c_int64),
        ("log_bytes", c_int64),
        ("log_dropped_bytes", c_int64),
        ("started", hf_wall),
        ("ended", hf_wall),
        ("evidence", c_char * 192),
        ("idle_ns", c_int64),
        ("silent_ns", c_int64),
        ("next_in_ns", c_int64),
        ("cpu_permille", c_int32),
        ("memory_peak_bytes", c_int64),
        ("output_bytes", c_int64),
        ("last_line", c_char_p),
        ("last_line_partial", c_int),
        ("seen", c_int),
        ("max_active", c_uint32),
        ("priority", c_uint32),
        ("limits", hf_session_limits),
        ("activity", c_int),
        ("activity_text", c_char_p),
        ("activity_age_ns", c_int64),
        ("end_background", c_int),
        ("kept", c_int),
    ]


class hf_wait_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("wait_ns", c_int64),
        ("cancel_fd", c_int),
    ]


class hf_prune_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("older_ns", c_int64),
        ("max_bytes", c_uint64),
        ("keep", c_uint32),
        ("dry_run", c_int),
        ("removed", c_void_p),
        ("arg", c_void_p),
        ("kept", c_void_p),
    ]


class hf_fleet_session(Structure):
    _fields_ = [
        ("name", c_char * 81),
        ("host", c_char * 65),
        ("token", c_uint64),
        ("state", c_int),
        ("outcome", c_int),
        ("exit_status", c_int),
        ("cause", c_char * 704),
        ("pid", c_int32),
        ("attempt", c_uint32),
        ("started", hf_wall),
        ("ended", hf_wall),
        ("command", c_char * 201),
    ]


class hf_hook_task(Structure):
    _fields_ = [
        ("id", c_char_p),
        ("type", c_char_p),
        ("command", c_char_p),
    ]


class hf_hook_event(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char_p),
        ("session", c_char_p),
        ("turn", c_char_p),
        ("cwd", c_char_p),
        ("tool", c_char_p),
        ("path", c_char_p),
        ("was_blocked", c_int),
        ("command", c_char_p),
        ("message", c_char_p),
        ("background", c_int),
        ("tasks", POINTER(hf_hook_task)),
        ("dated", c_int),
        ("digest", c_uint64),
        ("memory", c_void_p),
    ]


class hf_keep_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("goal", c_char_p),
        ("until", c_char_p),
        ("cwd", c_char_p),
        ("ttl_ns", c_int64),
        ("max", c_uint32),
        ("until_ns", c_int64),
    ]


class hf_keep_info(Structure):
    _fields_ = [
        ("id", c_char_p),
        ("goal", c_char_p),
        ("until", c_char_p),
        ("cwd", c_char_p),
        ("since", hf_wall),
        ("left_ns", c_int64),
        ("max", c_uint32),
        ("blocks", c_uint32),
        ("idle", c_uint32),
        ("tools", c_uint64),
        ("total", c_uint64),
        ("until_ns", c_int64),
    ]


class hf_stop_answer(Structure):
    _fields_ = [
        ("block", c_int),
        ("reason", c_char * 2400),
        ("why", c_char_p),
    ]


class hf_settings_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("client", c_int),
        ("scope", c_int),
        ("project", c_char_p),
        ("program", c_char_p),
        ("dir", c_char_p),
        ("guard", c_int),
        ("fix", c_int),
        ("dry_run", c_int),
        ("wait_ns", c_int64),
    ]


class hf_settings_report(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("other", c_char_p),
        ("text", c_char_p),
        ("state", c_int),
        ("changed", c_int),
        ("fixed", c_int),
        ("disabled", c_int),
        ("memory", c_void_p),
    ]


class hf_plan_new_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("session", c_char_p),
    ]


class hf_plan_add_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("strategy", c_int),
        ("flags", c_uint),
        ("wait_ns", c_int64),
    ]


class hf_plan_added(Structure):
    _fields_ = [
        ("strategy", c_int),
        ("same_path", c_int),
        ("why", c_char * 256),
    ]


class hf_plan_enter_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("argv", POINTER(c_char_p)),
        ("flags", c_uint),
        ("wait_ns", c_int64),
        ("started", c_void_p),
        ("arg", c_void_p),
    ]


class hf_plan_entered(Structure):
    _fields_ = [
        ("exit_status", c_int),
        ("exec_error", c_int),
        ("flags", c_uint),
        ("why", c_char * 256),
    ]


class hf_sandbox_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("target", c_char_p),
        ("path", c_char_p),
        ("strategy", c_int),
        ("why", c_char_p),
        ("since", hf_wall),
        ("dirty", c_int),
        ("in_use", c_int),
        ("settled", c_int),
        ("dev", c_uint64),
        ("ino", c_uint64),
        ("files", c_int64),
        ("bytes", c_int64),
    ]


class hf_plan_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("state", c_int),
        ("reason", c_char_p),
        ("session", c_char_p),
        ("created", hf_wall),
        ("changed", hf_wall),
        ("token", c_uint64),
        ("dirty", c_int),
        ("in_use", c_int),
        ("sandboxes", POINTER(hf_sandbox_info)),
        ("n_sandboxes", c_size_t),
    ]


class hf_change(Structure):
    _fields_ = [
        ("sandbox", c_char_p),
        ("path", c_char_p),
        ("kind", c_int),
        ("old_mode", c_uint),
        ("new_mode", c_uint),
        ("old_bytes", c_int64),
        ("new_bytes", c_int64),
        ("old_fd", c_int),
        ("new_fd", c_int),
        ("old_link", c_char_p),
        ("new_link", c_char_p),
    ]


class hf_plan_diff_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ignore", POINTER(c_char_p)),
        ("wait_ns", c_int64),
    ]


class hf_plan_fence(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("token", c_uint64),
    ]


class hf_plan_commit_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("force", POINTER(c_char_p)),
        ("depends", POINTER(c_char_p)),
        ("ignore", POINTER(c_char_p)),
        ("fences", POINTER(hf_plan_fence)),
        ("n_fences", c_size_t),
        ("wait_ns", c_int64),
    ]


class hf_conflict(Structure):
    _fields_ = [
        ("sandbox", c_char_p),
        ("path", c_char_p),
        ("kind", c_char_p),
        ("by", c_char_p),
        ("why", c_char_p),
    ]


class hf_merged(Structure):
    _fields_ = [
        ("sandbox", c_char_p),
        ("path", c_char_p),
        ("kind", c_char_p),
        ("base", c_char_p),
    ]


class hf_plan_report(Structure):
    _fields_ = [
        ("added", c_uint64),
        ("changed", c_uint64),
        ("deleted", c_uint64),
        ("same", c_uint64),
        ("bytes", c_uint64),
        ("n_conflicts", c_size_t),
        ("conflicts", POINTER(hf_conflict)),
        ("by_other", c_int),
        ("n_merged", c_size_t),
        ("merged", POINTER(hf_merged)),
        ("memory", c_void_p),
    ]


class hf_plan_gc_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("age_ns", c_int64),
    ]


class hf_plan_gc_item(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("removed", c_int),
        ("why", c_char_p),
        ("bytes", c_uint64),
    ]


class hf_plan_probe(Structure):
    _fields_ = [
        ("code", c_int),
        ("step", c_char * 32),
        ("sys", c_int),
        ("why", c_char * 256),
        ("remedy", c_char * 256),
    ]


class hf_land_place(Structure):
    _fields_ = [
        ("top", c_char_p),
        ("moved_up", c_int),
        ("git_dir", c_char_p),
        ("common", c_char_p),
        ("branch", c_char_p),
        ("base", c_char * 65),
        ("n_dirty", c_size_t),
        ("targets", c_char_p * 4),
        ("n_targets", c_size_t),
        ("dev", c_uint64),
        ("ino", c_uint64),
    ]


class hf_land_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("merge", c_int),
        ("verify", c_char_p),
        ("verify_ns", c_int64),
        ("message", c_char_p),
        ("session", c_char_p),
        ("token", c_uint64),
        ("also", POINTER(c_char_p)),
        ("speculate", c_uint),
        ("wait_ns", c_int64),
        ("cancel_fd", c_int),
        ("out_fd", c_int),
        ("step", c_void_p),
        ("alive", c_void_p),
        ("arg", c_void_p),
        ("dir", c_char_p),
        ("env", POINTER(c_char_p)),
        ("branch", c_char_p),
    ]


class hf_land_path(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("kind", c_char_p),
    ]


class hf_land_kept(Structure):
    _fields_ = [
        ("ref", c_char_p),
        ("commit", c_char_p),
        ("text", c_char_p),
        ("label", c_char_p),
        ("commits", c_uint),
    ]


class hf_land_report(Structure):
    _fields_ = [
        ("state", c_int),
        ("branch", c_char * 256),
        ("commit", c_char * 65),
        ("text", c_char * 256),
        ("commits", c_uint),
        ("files", c_uint),
        ("added", c_uint),
        ("deleted", c_uint),
        ("rebased", c_int),
        ("unsigned_commits", c_uint),
        ("left_out", c_uint),
        ("first_left_out", c_char * 256),
        ("is_there", c_int),
        ("is_unsigned", c_int),
        ("n_also_unmatched", c_size_t),
        ("also_unmatched", POINTER(c_char_p)),
        ("verify_ns", c_int64),
        ("n_paths", c_size_t),
        ("paths", POINTER(hf_land_path)),
        ("n_unlanded", c_size_t),
        ("unlanded", POINTER(hf_land_path)),
        ("n_kept", c_size_t),
        ("kept", POINTER(hf_land_kept)),
        ("memory", c_void_p),
    ]


class hf_land_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("state", c_int),
        ("top", c_char_p),
        ("branch", c_char_p),
        ("base", c_char_p),
        ("tip", c_char_p),
        ("commit", c_char_p),
        ("plan", c_char_p),
        ("session", c_char_p),
        ("verify", c_char_p),
        ("text", c_char_p),
        ("merge", c_int),
        ("dev", c_uint64),
        ("ino", c_uint64),
        ("alive", c_int),
        ("place", c_int),
        ("commits", c_uint),
        ("files", c_uint),
        ("added", c_uint),
        ("deleted", c_uint),
        ("rebased", c_int),
        ("verify_ns", c_int64),
        ("since", hf_wall),
        ("changed", hf_wall),
        ("paths", POINTER(hf_land_path)),
        ("n_paths", c_size_t),
        ("token", c_uint64),
        ("unlanded", POINTER(hf_land_path)),
        ("n_unlanded", c_size_t),
        ("kept", POINTER(hf_land_kept)),
        ("n_kept", c_size_t),
    ]


class hf_tx_opts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("dirs", POINTER(c_char_p)),
        ("strategy", c_int),
        ("keep", c_int),
        ("commit", c_int),
        ("flags", c_uint),
        ("write", POINTER(c_char_p)),
        ("retry", c_uint32),
        ("land", c_char_p),
        ("message", c_char_p),
        ("also", POINTER(c_char_p)),
        ("land_merge", c_int),
        ("base", c_int),
        ("speculate", c_uint32),
        ("ask", c_void_p),
        ("say", c_void_p),
        ("arg", c_void_p),
    ]


class hf_tx_conflict(Structure):
    _fields_ = [
        ("sandbox", c_char * 81),
        ("path", c_char * 512),
        ("kind", c_char * 32),
        ("by", c_char * 96),
    ]


class hf_tx_report(Structure):
    _fields_ = [
        ("plan", c_char * 81),
        ("committed", c_int),
        ("kept", c_int),
        ("added", c_uint64),
        ("changed", c_uint64),
        ("deleted", c_uint64),
        ("bytes", c_uint64),
        ("same", c_uint64),
        ("branch", c_char * 256),
        ("commit", c_char * 65),
        ("commits", c_uint),
        ("rebased", c_int),
        ("unsigned_commits", c_uint),
        ("n_kept", c_uint),
        ("unlanded", c_uint),
        ("is_there", c_int),
        ("is_unsigned", c_int),
        ("no_change", c_int),
        ("refused", c_int),
        ("n_conflicts", c_size_t),
        ("n_listed", c_size_t),
        ("conflicts", hf_tx_conflict * 64),
    ]


class hf_tx_unlanded(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("plan", c_char * 81),
        ("in_use", c_int),
        ("lands", c_int),
        ("candidate", c_int),
        ("branch", c_char * 256),
        ("text", c_char * 128),
    ]


class Liveness(enum.IntEnum):
    """Dead is said only with proof; UNKNOWN (another pid namespace, another host) counts as alive."""

    ALIVE = 1
    DEAD = 2
    UNKNOWN = 3


class Mode(enum.IntEnum):
    """EXCLUSIVE: one holder. SHARED: any number of these, and no exclusive one. SLOTS: at most so many at once."""

    EXCLUSIVE = 0
    SHARED = 1
    SLOTS = 2


class Kind(enum.IntEnum):
    """What a lock protects. A name of one kind never meets the same name of another."""

    NAME = 0
    GROUP = 1
    FILE = 2
    PLAN = 3
    TARGET = 4
    LAND = 5


class Style(enum.IntEnum):
    """How the marker lines of a new block are commented; AUTO: by the file's name."""

    AUTO = 0
    HTML = 1
    HASH = 2
    SLASH = 3
    DASH = 4
    C = 5


class Strategy(enum.IntEnum):
    """How a sandbox is made."""

    AUTO = 0
    OVERLAY = 1
    CLONE = 2
    COPY = 3


class PlanState(enum.IntEnum):
    """The states of a plan, all on disk."""

    CREATED = 1
    ACTIVE = 2
    PREPARED = 3
    COMMITTED = 4
    ROLLED_BACK = 5
    ERRORED = 6
    CLEANED = 7


class ChangeKind(enum.IntEnum):
    """What a plan changed of one entry."""

    ADDED = 1
    CHANGED = 2
    DELETED = 3
    TYPE = 4
    MODE = 5
    SKIPPED = 6


class Outcome(enum.IntEnum):
    """How an attempt of a session ended."""

    NONE = 0
    SUCCEEDED = 1
    FAILED = 2
    VERIFY_FAILED = 3
    TIMED_OUT = 4
    STOPPED = 5
    LOST_LOCK = 6
    ABANDONED = 7
    NOT_STARTED = 8
    INTERRUPTED = 9
    GAVE_UP = 10
    CONFLICT = 11
    DECLINED = 12


class SessionState(enum.IntEnum):
    """What a session is doing, judged from its record and from its processes."""

    STARTING = 1
    RUNNING = 2
    HUNG = 3
    VERIFYING = 4
    WAITING = 5
    FAILING = 6
    STOPPING = 7
    DONE = 8
    FAILED = 9
    VERIFY_FAILED = 10
    STOPPED = 11
    DEAD_UNREAPED = 12
    UNREADABLE = 13
    LANDING = 14
    SUSPENDED = 15
    QUEUED = 16


class Stop(enum.IntEnum):
    """What a stop came to."""

    STOPPED = 0
    KILLED = 1
    ALREADY_GONE = 2


class LandState(enum.IntEnum):
    """What became of a candidate. Only LANDED is success: it was read back from the repository."""

    WORKING = 1
    QUEUED = 2
    REBASING = 3
    VERIFYING = 4
    LANDING = 5
    LANDED = 6
    REJECTED = 7
    CONFLICT = 8
    DROPPED = 9


STRUCTS: List[Any] = [
    hf_mono,
    hf_boot,
    hf_wall,
    hf_err,
    hf_err_info,
    hf_event_field,
    hf_event_info,
    hf_field,
    hf_journal_opts,
    hf_journal_totals,
    hf_record,
    hf_problem_info,
    hf_verify_result,
    hf_proc_id,
    hf_lock_waiting,
    hf_lock_opts,
    hf_holder,
    hf_lock_claim,
    hf_waiter,
    hf_lock_info,
    hf_file_opts,
    hf_block,
    hf_log_span,
    hf_attach_opts,
    hf_run_opts,
    hf_run_report,
    hf_session_end,
    hf_session_limits,
    hf_session_info,
    hf_wait_opts,
    hf_prune_opts,
    hf_fleet_session,
    hf_hook_task,
    hf_hook_event,
    hf_keep_opts,
    hf_keep_info,
    hf_stop_answer,
    hf_settings_opts,
    hf_settings_report,
    hf_plan_new_opts,
    hf_plan_add_opts,
    hf_plan_added,
    hf_plan_enter_opts,
    hf_plan_entered,
    hf_sandbox_info,
    hf_plan_info,
    hf_change,
    hf_plan_diff_opts,
    hf_plan_fence,
    hf_plan_commit_opts,
    hf_conflict,
    hf_merged,
    hf_plan_report,
    hf_plan_gc_opts,
    hf_plan_gc_item,
    hf_plan_probe,
    hf_land_place,
    hf_land_opts,
    hf_land_path,
    hf_land_kept,
    hf_land_report,
    hf_land_info,
    hf_tx_opts,
    hf_tx_conflict,
    hf_tx_report,
    hf_tx_unlanded,
]

# name: (result, parameters)
FUNCTIONS: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "hf_activity_word": (c_char_p, (c_int,)),
    "hf_attach_fd": (c_int, (c_void_p,)),
    "hf_attach_free": (None, (c_void_p,)),
    "hf_attach_hear": (c_int, (c_void_p,)),
    "hf_attach_resize": (c_int, (c_void_p, c_uint32, c_uint32,)),
    "hf_attach_type": (c_int, (c_void_p, c_void_p, c_size_t,)),
    "hf_attach_types": (c_int, (c_void_p, c_void_p,)),
    "hf_boot_now": (hf_boot, ()),
    "hf_client_here": (c_int, ()),
    "hf_client_of": (c_int, (c_char_p,)),
    "hf_client_word": (c_char_p, (c_int,)),
    "hf_err_at": (POINTER(hf_err_info), (c_size_t,)),
    "hf_err_exit_status": (c_int, (c_int,)),
    "hf_err_format": (c_size_t, (c_void_p, c_void_p, c_size_t,)),
    "hf_err_info": (POINTER(hf_err_info), (c_int,)),
    "hf_event_find": (POINTER(hf_event_info), (c_char_p, c_size_t,)),
    "hf_event_info": (POINTER(hf_event_info), (c_int,)),
    "hf_file_block": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_file_close": (c_int, (c_void_p, c_void_p,)),
    "hf_file_commit": (c_int, (c_void_p, c_void_p,)),
    "hf_file_discard": (None, (c_void_p,)),
    "hf_file_kept": (c_char_p, (c_void_p,)),
    "hf_file_lock": (c_int, (c_void_p, c_int64, c_void_p, c_void_p,)),
    "hf_file_lock_fd": (c_int, (c_void_p,)),
    "hf_file_lock_name": (c_char_p, (c_void_p,)),
    "hf_file_made_sidecar": (c_int, (c_void_p,)),
    "hf_file_new_fd": (c_int, (c_void_p,)),
    "hf_file_open": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_file_read": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_file_token": (c_uint64, (c_void_p,)),
    "hf_file_update": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_file_write": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_fleet_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_fleet_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_fleet_stop": (c_int, (c_void_p, c_void_p, c_int64, c_void_p,)),
    "hf_fleet_wait": (c_int, (c_void_p, c_void_p, c_int64, c_void_p,)),
    "hf_hook_asks": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_hook_client_process": (c_int, (c_int, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_hook_command": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_hook_command_free": (None, (c_void_p,)),
    "hf_hook_event_free": (None, (c_void_p,)),
    "hf_hook_install": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_hook_read": (c_int, (c_char_p, c_size_t, c_void_p, c_void_p,)),
    "hf_hook_session_id": (c_char_p, (c_void_p,)),
    "hf_hook_settings": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_hook_stop": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_hook_stopped": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_hook_tool": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_hook_uninstall": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_hooks_free": (None, (c_void_p,)),
    "hf_hooks_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_journal_append": (c_int, (c_void_p, c_int, c_char_p, c_void_p, c_size_t, c_uint, c_void_p,)),
    "hf_journal_free": (None, (c_void_p,)),
    "hf_journal_last_seq": (c_uint64, (c_void_p,)),
    "hf_journal_next": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_journal_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_journal_read": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_journal_reader_damaged": (c_uint64, (c_void_p,)),
    "hf_journal_reader_free": (None, (c_void_p,)),
    "hf_journal_reader_restarts": (c_uint64, (c_void_p,)),
    "hf_journal_totals": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_journal_verify": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_journal_wait": (c_int, (c_void_p, c_int64, c_void_p,)),
    "hf_keep_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_keep_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_keep_off": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_keep_on": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_land": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_land_add_targets": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_land_begin": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_int, c_void_p,)),
    "hf_land_drop": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_land_find": (c_int, (c_char_p, c_char_p, c_void_p, c_void_p,)),
    "hf_land_head": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_land_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_land_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_land_merge_of": (c_int, (c_char_p,)),
    "hf_land_merge_word": (c_char_p, (c_int,)),
    "hf_land_place_done": (None, (c_void_p,)),
    "hf_land_proven": (c_int, (c_void_p, c_void_p,)),
    "hf_land_recover": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_land_report_done": (None, (c_void_p,)),
    "hf_land_state_word": (c_char_p, (c_int,)),
    "hf_land_sweep": (c_int, (c_void_p, c_int, c_void_p, c_void_p, c_void_p,)),
    "hf_landings_free": (None, (c_void_p,)),
    "hf_landings_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_acquire": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_add_owner": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_lock_break": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p,)),
    "hf_lock_check": (c_int, (c_void_p, c_void_p,)),
    "hf_lock_check_token": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p,)),
    "hf_lock_fd": (c_int, (c_int, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_forget": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_lock_free": (None, (c_void_p,)),
    "hf_lock_guarded": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_guarded_many": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_kind_word": (c_char_p, (c_int,)),
    "hf_lock_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_list_waited": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_lock_release": (c_int, (c_void_p, c_void_p,)),
    "hf_lock_release_as": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p, c_void_p,)),
    "hf_lock_renew": (c_int, (c_void_p, c_int64, c_void_p,)),
    "hf_lock_renew_token": (c_int, (c_void_p, c_char_p, c_uint64, c_int64, c_void_p,)),
    "hf_lock_token": (c_uint64, (c_void_p,)),
    "hf_locks_forget_idle": (c_int, (c_void_p, c_int64, c_int64, c_void_p,)),
    "hf_locks_free": (None, (c_void_p,)),
    "hf_locks_kind": (c_void_p, (c_void_p, c_int,)),
    "hf_locks_lease": (c_int64, (c_void_p,)),
    "hf_locks_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_locks_open_store": (c_int, (c_char_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_log_dropped": (c_uint64, (c_void_p,)),
    "hf_log_fd": (c_int, (c_void_p, c_void_p,)),
    "hf_log_free": (None, (c_void_p,)),
    "hf_log_read": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p,)),
    "hf_log_read_span": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p,)),
    "hf_log_tail": (c_int, (c_void_p, c_uint64, c_void_p,)),
    "hf_mono_in": (hf_mono, (c_int64,)),
    "hf_mono_left": (c_int64, (hf_mono,)),
    "hf_mono_now": (hf_mono, ()),
    "hf_name_check_stored": (c_int, (c_char_p, c_size_t, c_void_p,)),
    "hf_name_key": (c_int, (c_char_p, c_size_t, c_void_p, c_void_p,)),
    "hf_name_sanitize": (c_size_t, (c_char_p, c_size_t, c_void_p, c_size_t,)),
    "hf_name_unkey": (c_int, (c_char_p, c_size_t, c_void_p, c_void_p,)),
    "hf_outcome_word": (c_char_p, (c_int,)),
    "hf_parse_duration": (c_int, (c_char_p, c_size_t, c_void_p,)),
    "hf_parse_size": (c_int, (c_char_p, c_size_t, c_void_p,)),
    "hf_plan_add": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_commit": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_diff": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_enter": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_gc": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plan_new": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_plan_path": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_void_p,)),
    "hf_plan_probe": (c_int, (c_void_p, c_char_p, c_int, c_void_p, c_void_p,)),
    "hf_plan_recover": (c_int, (c_void_p, c_char_p, c_int64, c_void_p,)),
    "hf_plan_report_done": (None, (c_void_p,)),
    "hf_plan_rm": (c_int, (c_void_p, c_char_p, c_uint, c_void_p,)),
    "hf_plan_rollback": (c_int, (c_void_p, c_char_p, c_int64, c_void_p,)),
    "hf_plan_state_word": (c_char_p, (c_int,)),
    "hf_plan_undo": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_plans_free": (None, (c_void_p,)),
    "hf_plans_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_proc_format": (c_int, (c_void_p, c_void_p,)),
    "hf_proc_identify": (c_int, (c_int32, c_void_p, c_void_p,)),
    "hf_proc_liveness": (c_int, (c_void_p, c_uint, c_void_p,)),
    "hf_proc_open": (c_int, (c_void_p, c_uint, c_void_p, c_void_p,)),
    "hf_proc_parse": (c_int, (c_char_p, c_size_t, c_void_p, c_void_p,)),
    "hf_proc_self": (c_int, (c_void_p, c_void_p,)),
    "hf_proc_signal": (c_int, (c_void_p, c_int, c_uint, c_void_p,)),
    "hf_record_each": (None, (c_void_p, c_void_p, c_void_p,)),
    "hf_record_int": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_record_text": (c_char_p, (c_void_p, c_char_p,)),
    "hf_run_start": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_run_supervise": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_session_attach": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_session_beat": (c_int, (c_void_p, c_char_p, c_uint64, c_int, c_void_p,)),
    "hf_session_list": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_session_list_recent": (c_int, (c_void_p, c_int64, c_void_p, c_void_p, c_void_p,)),
    "hf_session_log": (c_int, (c_void_p, c_char_p, c_uint, c_void_p, c_void_p,)),
    "hf_session_look": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "hf_session_reap": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "hf_session_reap_run": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p,)),
    "hf_session_remove": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p,)),
    "hf_session_set_activity": (c_int, (c_void_p, c_char_p, c_uint64, c_int, c_char_p, c_void_p,)),
    "hf_session_set_seen": (c_int, (c_void_p, c_char_p, c_uint64, c_void_p,)),
    "hf_session_stop": (c_int, (c_void_p, c_char_p, c_int64, c_void_p,)),
    "hf_session_stop_run": (c_int, (c_void_p, c_char_p, c_uint64, c_int64, c_void_p,)),
    "hf_session_wait": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_session_word": (c_char_p, (c_int,)),
    "hf_sessions_free": (None, (c_void_p,)),
    "hf_sessions_open": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_sessions_prune": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "hf_sessions_sweep": (c_int, (c_void_p,)),
    "hf_settings_report_done": (None, (c_void_p,)),
    "hf_state_dirfd": (c_int, (c_void_p,)),
    "hf_state_free": (None, (c_void_p,)),
    "hf_state_is_shared": (c_int, (c_void_p,)),
    "hf_state_open": (c_int, (c_char_p, c_uint, c_void_p, c_void_p,)),
    "hf_state_path": (c_char_p, (c_void_p,)),
    "hf_strategy_of": (c_int, (c_char_p,)),
    "hf_strategy_word": (c_char_p, (c_int,)),
    "hf_tx_commit_of": (c_int, (c_char_p,)),
    "hf_tx_drop": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p,)),
    "hf_tx_keep_of": (c_int, (c_char_p,)),
    "hf_tx_start": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_tx_supervise": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "hf_tx_unlanded": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "hf_version": (c_char_p, ()),
    "hf_wall_format": (None, (hf_wall, c_void_p,)),
    "hf_wall_now": (hf_wall, ()),
    "hf_wall_parse": (c_int, (c_char_p, c_size_t, c_void_p,)),
}
