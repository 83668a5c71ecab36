# Standard output that is closed or full: what was to be printed is lost, so the command fails with a message.
load session_helper

# lost STATUS ARGS...: with a closed and with a full standard output.
lost() {
    local want=$1 status
    shift
    for how in closed full; do
        status=0
        case $how in
        closed) "$HOLDFAST" "$@" >&- 2>talk || status=$? ;;
        full) "$HOLDFAST" "$@" >/dev/full 2>talk || status=$? ;;
        esac
        if [ "$status" -ne "$want" ] || ! grep -q "cannot write to standard output" talk; then
            echo "$how: holdfast $*: exit $status, $(cat talk)"
            return 1
        fi
    done
}

@test "every command that prints exits 4 with a message when its output is lost" {
    hf lock acquire held --pid $$ >/dev/null
    hf plan new p >/dev/null
    hf run s --log -- echo hello >/dev/null 2>&1
    for json in '' --json; do
        for words in 'lock list' 'lock check held' 'why held' 'ps' 'logs s' 'plan list' 'plan show p' 'journal query' \
            'journal stats' 'journal verify' 'journal events' 'proc id' 'name sanitize a' 'name key a' 'name unkey a' \
            'doctor' 'version'; do
            [ -z "$json" ] || [ "$words" != 'logs s' ] || continue
            # shellcheck disable=SC2086 # words
            lost 4 $json $words
        done
    done
    lost 4 --help
    lost 4 lock --help
    lost 4 help
}

@test "lock acquire says that its token is lost, and the owner can still release" {
    status=0
    "$HOLDFAST" lock acquire x --pid $$ >&- 2>talk || status=$?
    [ "$status" -eq 4 ]
    grep -q "cannot write to standard output" talk
    expect 0 hf lock check x
    expect 0 hf lock release x --pid $$
}

@test "a command under a lock gets the closed standard output as it is" {
    status=0
    "$HOLDFAST" lock run x -- sh -c '[ ! -e /proc/self/fd/1 ] || exit 9; exit 5' >&- || status=$?
    [ "$status" -eq 5 ]
}
