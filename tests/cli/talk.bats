# What is said for people on stderr: a reader that is gone changes no exit status, of no command.
load session_helper

# deaf STATUS ARGS...: holdfast with a stderr that nobody reads any more, and SIGPIPE as it is by default
deaf() {
    local want=$1
    shift
    expect "$want" python3 -c '
import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.run(sys.argv[1:], stderr=w, timeout=20).returncode % 256)' "$HOLDFAST" "$@"
}

@test "run keeps the session's status when the reader of its stderr is gone" {
    deaf 124 run x --deadline 100ms -- sleep 60
    deaf 1 run x --verify false -- true
    deaf 1 run x --max-runs 1 --until false -- true
    deaf 127 run x -- /no/such/program
    deaf 0 run x -- bash -c 'sleep 60 & exit 0'
    deaf 3 run x -- bash -c 'exit 3'
    deaf 3 run x --resume
    { status=0; "$HOLDFAST" run x --deadline 100ms -- sleep 60 || status=$?; echo "$status" >status; } 2>&1 | true
    [ "$(cat status)" -eq 124 ]
}

@test "a refused second session, a resume of nothing, usage: their own status" {
    running x
    deaf 1 run x -- true
    deaf 77 run x -E 77 -- true
    deaf 0 run x -n --on-timeout skip -- true
    deaf 1 run y --resume
    deaf 2 run
    deaf 2 run y --no-such-option -- true
    deaf 2 no-such-command
    deaf 2
    deaf 2 journal
}

@test "the other commands: stop, wait, lock, file, journal, proc, name" {
    deaf 1 stop nobody
    deaf 1 wait nobody
    deaf 1 logs nobody
    deaf 1 reap nobody
    deaf 1 ps nobody
    hf lock acquire x --pid $$ >/dev/null
    deaf 1 lock run x -n -- true
    deaf 0 lock run x -n --on-timeout skip -- true
    deaf 0 lock run x -n --on-timeout proceed -- true
    deaf 3 lock release x --token 1
    deaf 125 file edit missing -- cat
    deaf 2 journal emit no_such_event
    deaf 2 proc id none
    deaf 2 name key ''
}

@test "run and wait keep the session's status when standard output cannot be written" {
    for what in run wait; do
        status=0
        case $what in
        run) "$HOLDFAST" -q --json run x -- bash -c 'exit 5' >/dev/full || status=$? ;;
        wait) "$HOLDFAST" -q --json wait x >/dev/full || status=$? ;;
        esac
        [ "$status" -eq 5 ] || { echo "$what: $status"; return 1; }
    done
    status=0
    python3 -c '
import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.run(sys.argv[1:], stdout=w, timeout=20).returncode % 256)' "$HOLDFAST" --json run x -- bash -c 'exit 5' || status=$?
    [ "$status" -eq 5 ]
}
