# Each verb of the CLI once, with leak detection where the build has it (ASan), and some with what they refuse.
load session_helper

# Leaks are looked for when a process ends by itself; those that become another command are not asked.
setup_leaks() {
    export ASAN_OPTIONS=detect_leaks=1:log_path=$BATS_TEST_TMPDIR/report
    tried=
}

# try COMMAND...: whatever it says, it ends, and is no verb that is not there
try() {
    local status=0
    hf "$@" >said 2>&1 </dev/null || status=$?
    [ "$status" -ne 2 ] && [ "$status" -lt 128 ] && [ "$status" -ne 124 ] || { echo "$* ($status)"; cat said; return 1; }
    case $1 in
    lock | file | plan | land | keep | hook | journal | proc | name) tried+="$1 $2 " ;;
    *) tried+="$1 " ;;
    esac
}

@test "no verb leaks memory, whether it succeeds or is refused" {
    setup_leaks
    try run one -- true
    try run two --detach -- sleep 600
    try run two -- true
    for verb in ps ls list status wait; do try $verb one; done
    try logs one
    try attach two
    try restart two
    try stop two
    try kill two
    try seen one
    try run inside -- "$HOLDFAST" beat
    tried+="beat "
    try reap
    try rm one nosuch
    try prune --dry-run
    try lock run a -- true
    try lock run a --ttl 1m -- true
    try lock acquire a --pid $$
    try lock run a -n -- true
    try why a
    try lock check a
    try lock list
    try lock status a
    try lock renew a --token 5
    try lock break a --reason test
    try lock release a
    exec 9<>shared
    try lock fd 9 -n
    try file edit f --create -- echo text
    try file block f id --text text
    try file with f -- true
    mkdir d
    try plan new p
    try plan add p s d --strategy copy
    touch "$(hf plan path p s)/new"
    try plan enter p -- true
    for verb in "path p s" "show p" "diff p" "diff p --patch" "commit p" "undo p" "rollback p" "recover p" "rm p --discard" list gc; do try plan $verb; done
    try land begin c d
    for verb in "show c" "retry c" "drop c" list; do try land $verb; done
    try land c
    tried+="land "
    try keep on --session s
    try keep status
    for verb in stop tool guard asks session-start session-end; do
        echo '{"session_id":"s","hook_event_name":"Stop"}' | hf hook $verb >/dev/null
        tried+="hook $verb "
    done
    try keep off --session s
    for verb in install status uninstall; do try hook $verb claude --project; done
    try journal emit note text=x
    for verb in query tail stats verify events "follow --since 1h -n 1"; do try journal $verb; done
    id=$(hf proc id $$)
    try proc id
    try proc check "$id"
    try proc signal "$id" 0
    try name sanitize a/b
    try name key a/b
    try name unkey a%2Fb
    try doctor
    try version
    try completion bash
    try help run
    # None was left out.
    while read -r verb; do
        [[ " $tried" == *" $verb "* ]] || { echo "not tried: $verb"; return 1; }
    done < <(hf help | sed -nE '/^  --dir/q; s/^  ([a-z]+( [a-z-]+)?) {2,}.*/\1/p')
    ! cat report.* 2>/dev/null
}
