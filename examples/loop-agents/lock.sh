#!/usr/bin/env bash
# lock.sh - the session lock and the shared-file lock of loop-agents, kept by Holdfast. Source it in place of theirs.
#
#   acquire_lock SESSION [--force]           0, or 1 when the session is running
#   release_lock SESSION                     always 0; changes nothing unless this shell has the lock
#   is_locked SESSION                        0 or 1
#   cleanup_stale_locks                      removes the lock files of sessions that have ended
#   cleanup_orphaned_beads SESSION           gives the beads back that a session of that name had in progress (bd, jq)
#   with_exclusive_file_lock TARGET [SECONDS] CMD...
#                                            CMD may be a shell function and runs in a sub-shell; its status, or 1 after SECONDS
#                                            (else $FILE_LOCK_TIMEOUT, else it waits for ever)
#   with_file_lock TARGET [SECONDS] CMD...   the same
#   acquire_flock SESSION [--force]          the same as acquire_lock
#   detect_flock                             what the original would lock with: flock, shlock or noclobber
#
# The lock is Holdfast's, and its owner is this shell ($$). $LOCKS_DIR/SESSION.lock only shows it to programs that read that file. A
# file without a lock of Holdfast's belongs to a session of the original lock.sh: it counts while that very process lives.

LOCKS_DIR="${PROJECT_ROOT:-.}/.claude/locks"
: "${HOLDFAST:=holdfast}"
: "${LOCK_FORCE_WAIT:=10}" # seconds after TERM, and again after KILL

_lock_fail() {
    echo "Error: $*" >&2
    return 1
}

_lock_installed() { command -v "$HOLDFAST" >/dev/null || _lock_fail "holdfast is not installed (or set HOLDFAST)"; }

# The name has 64 characters at most, so it fits into one of Holdfast's together with the mark of this directory.
_lock_ready() {
    [[ ${1-} =~ ^[A-Za-z0-9_-]{1,64}$ ]] || { _lock_fail "Session name '${1-}' is not usable: 1 to 64 of A-Z a-z 0-9 _ -"; return 1; }
    _lock_installed || return 1
    mkdir -p "$LOCKS_DIR" || return 1
    _lock_name=$1@$(stat -c %d:%i -- "$LOCKS_DIR" | cksum | cut -d ' ' -f 1)
    _lock_file=$LOCKS_DIR/$1.lock
}

# _lock_field NAME: of a JSON object on standard input, a text or a number
_lock_field() { tr -d '\n' | sed -nE "s/.*\"$1\": *(\"([^\"]*)\"|([^\",}]*)).*/\2\3/p"; }

# Sets _lock_pid to the process that a lock file names, if it is alive and was started before that file says.
_lock_file_lives() {
    local text started age state
    _lock_pid=
    text=$(cat "$_lock_file" 2>/dev/null) || return 1
    _lock_pid=$(_lock_field pid <<<"$text")
    started=$(date -d "$(_lock_field started_at <<<"$text")" +%s 2>/dev/null) || started=$(date +%s)
    [[ $_lock_pid =~ ^[1-9][0-9]*$ && $_lock_pid != "$$" ]] || return 1
    read -r age state < <(ps -o etimes=,stat= -p "$_lock_pid") || return 1
    [[ $state != Z* ]] && (($(date +%s) - age <= started + 2))
}

_lock_busy() {
    _lock_fail "Session '$1' is already running (PID $2)"
    echo "  Use --force to override" >&2
    return 1
}

# Sets _lock_id and _lock_pid to the process that has the session; 1: none has.
_lock_holder() {
    local lock
    lock=$("$HOLDFAST" -q --json lock list | sed 's/{"name":/\n&/g' | grep -F "{\"name\":\"$_lock_name\"")
    lock=${lock%%\"waiters\"*}
    _lock_id=$(_lock_field id <<<"$lock") _lock_pid=$(_lock_field pid <<<"$lock")
    if [ -n "$_lock_id" ]; then
        return 0
    elif _lock_file_lives; then
        _lock_id=$("$HOLDFAST" -q proc id "$_lock_pid") && _lock_file_lives
    else
        return 1
    fi
}

# Ends the process that has the session: that very process, or none.
_lock_force() {
    local signal end
    _lock_holder && [ "$_lock_pid" != "$$" ] || return 0
    echo "Warning: Overriding existing lock for session '$1' (PID $_lock_pid)" >&2
    for signal in TERM KILL; do
        "$HOLDFAST" -q proc signal "$_lock_id" "$signal" || [ $? = 1 ] || break
        end=$((SECONDS + LOCK_FORCE_WAIT))
        while "$HOLDFAST" -q proc check "$_lock_id" >/dev/null; do
            [ "$SECONDS" -lt "$end" ] || continue 2
            sleep 0.1
        done
        return 0
    done
    _lock_fail "Session '$1': PID $_lock_pid cannot be ended"
}

_lock_take() {
    local answer status=0
    answer=$("$HOLDFAST" -q --json lock acquire "$_lock_name" --pid $$ -n) || status=$?
    case $status in
    0) ;;
    1)
        answer=$(_lock_field holder_pid <<<"$answer")
        [ "$answer" != null ] || answer=$$
        [[ ${2-} != --force || $answer != "$$" ]] || return 0 # it is ours already
        _lock_busy "$1" "$answer"
        return 1
        ;;
    *)
        _lock_fail "Session '$1' cannot be locked: $(_lock_field message <<<"$answer")"
        return 1
        ;;
    esac
    if _lock_file_lives; then
        _lock_busy "$1" "$_lock_pid"
    elif printf '{"session": "%s", "pid": %d, "started_at": "%s"}\n' "$1" $$ "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$LOCKS_DIR/.$1.$$.tmp" &&
        mv -f "$LOCKS_DIR/.$1.$$.tmp" "$_lock_file"; then
        return 0
    else
        rm -f "$LOCKS_DIR/.$1.$$.tmp"
    fi
    "$HOLDFAST" -q lock release "$_lock_name" --pid $$ >/dev/null
    return 1
}

acquire_flock() { acquire_lock "$1" "${2-}"; }

acquire_lock() {
    local _lock_name _lock_file _lock_pid _lock_id
    _lock_ready "${1-}" || return 1
    [ "${2-}" != --force ] || _lock_force "$1" || return 1
    with_file_lock "$LOCKS_DIR/.turn" 60 _lock_take "$@"
}

release_lock() {
    local _lock_name _lock_file
    _lock_ready "${1-}" 2>/dev/null || return 0
    # The file goes first: while the lock is ours, no other session writes one.
    [ "$(_lock_field pid <<<"$(cat "$_lock_file" 2>/dev/null)")" != "$$" ] || rm -f "$_lock_file"
    "$HOLDFAST" -q lock release "$_lock_name" --pid $$ >/dev/null 2>&1
    return 0
}

is_locked() {
    local _lock_name _lock_file _lock_pid
    _lock_ready "${1-}" 2>/dev/null || return 1
    "$HOLDFAST" -q lock check "$_lock_name" >/dev/null 2>&1 || _lock_file_lives
}

_lock_sweep() {
    local session file pid
    for file in "$LOCKS_DIR"/*.lock; do
        session=${file##*/} session=${session%.lock}
        pid=$(_lock_field pid 2>/dev/null <"$file") || continue
        if [ -n "$pid" ] && _lock_ready "$session" 2>/dev/null && ! is_locked "$session"; then
            echo "Removing stale lock: $session (PID $pid)" >&2
            rm -f "$file"
            cleanup_orphaned_beads "$session" # before a new session of that name can claim any
        fi
    done
}

cleanup_stale_locks() {
    local _lock_name _lock_file
    _lock_ready sweep || return 1
    with_file_lock "$LOCKS_DIR/.turn" 60 _lock_sweep # no session is locked meanwhile
}

cleanup_orphaned_beads() {
    local bead beads
    [ -n "${1-}" ] && command -v bd >/dev/null || return 0
    command -v jq >/dev/null || { _lock_fail "the beads of session '$1' stay in progress: jq is not installed"; return 0; }
    beads=$(bd list --label="${BEADS_LABEL_PREFIX:-pipeline/}$1" --status=in_progress --json 2>/dev/null | jq -r '.[]?.id // empty' 2>/dev/null)
    [ -n "$beads" ] || return 0
    echo "Releasing orphaned beads for session '$1'" >&2
    while read -r bead; do
        bd update "$bead" --status=open </dev/null >/dev/null 2>&1 || _lock_fail "bead '$bead' stays in progress"
    done <<<"$beads"
    return 0
}

detect_flock() {
    local tool
    for tool in flock shlock; do
        ! command -v $tool >/dev/null || { echo $tool; return 0; }
    done
    echo noclobber
}

with_exclusive_file_lock() { _lock_with_file with_exclusive_file_lock "$@"; }

with_file_lock() { _lock_with_file with_file_lock "$@"; }

# _lock_with_file CALLER TARGET [SECONDS] CMD...
_lock_with_file() (
    caller=$1 target=${2-} seconds=${FILE_LOCK_TIMEOUT-}
    [ -n "$target" ] || { _lock_fail "$caller requires a target path"; exit 1; }
    shift 2
    if [[ ${1-} =~ ^[0-9]+([.][0-9]+)?$ ]]; then
        seconds=$1
        shift
    fi
    [ $# -gt 0 ] || { _lock_fail "$caller requires a command"; exit 1; }
    mkdir -p -- "$(dirname -- "$target")" || exit 1
    { exec {fd}<>"$target.lock"; } 2>/dev/null || { _lock_fail "$target.lock cannot be opened"; exit 1; }
    _lock_installed || exit 1
    answer=$("$HOLDFAST" -q --json lock fd "$fd" ${seconds:+-w "$seconds"})
    case $? in
    0) ;;
    1) _lock_fail "$target: still locked after $seconds s"; exit 1 ;;
    *) _lock_fail "$target cannot be locked: $(_lock_field message <<<"$answer")"; exit 1 ;;
    esac
    # What the command starts does not inherit the descriptor, so nothing it leaves behind keeps the lock.
    eval '"$@"' "$fd>&-"
)
