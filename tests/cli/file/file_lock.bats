# The lock of a file: file with, flock(1), fences, other state directories, messages.
load ../file_helper

@test "with: the command runs under both locks and learns its token; flock(1) is kept out, and keeps us out (L1)" {
    expect 7 hf file with f --sidecar -- bash -c '[ "$HOLDFAST_LOCK_KIND" = file ] && [ "${HOLDFAST_LOCK##*:}" = f ] && [ "$HOLDFAST_TOKEN" -gt 0 ] && ! flock -n .f.lock true && exit 7'
    [ ! -e f ]
    [ -f .f.lock ]
    [ ! -s .f.lock ]
    [ "$(stat -c %a .f.lock)" = 600 ]
    expect 0 flock -n .f.lock true
    spawn flock .f.lock bash -c 'touch held; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e held
    expect 1 hf file with f -n -- touch ran
    says "has locked it"
    expect 77 hf file edit f --create -w 0.1 -E 77 -- echo ran
    run --separate-stderr hf --json file with f -w 0.1 -- touch ran
    is_json '.conflict and .error.code == "timeout" and .holder_pid > 0'
    [ ! -e ran ]
    spawn bash -c '"$HOLDFAST" file with f -w 20 -- touch ran'
    touch go
    wait "$spawned_pid"
    [ -e ran ]
}

@test "a Python fcntl.flock holder and a reader of the convention exclude each other with us (L1)" {
    command -v python3 >/dev/null || skip "no python3"
    echo 0 >f
    touch .f.lock # it is there before: so the first edit takes it as well
    python=$(cat <<'P'
import fcntl, os, sys
for _ in range(int(sys.argv[1])):
    fd = os.open(".f.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    n = int(open("f").read())
    with open(".f.py.tmp", "w") as out:
        out.write(str(n + 1) + "\n")
    os.rename(".f.py.tmp", "f")
    os.close(fd)
P
    )
    spawn python3 -c "$python" 60
    spawn python3 -c "$python" 60
    for _ in 1 2; do
        spawn bash -c 'for i in {1..30}; do "$HOLDFAST" file edit f -w 1m -- awk "{ print \$1 + 1 }" || exit 1; done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(cat f)" -eq 180 ]
}

@test "two state directories, one file: the lock file keeps them apart (L1)" {
    echo 0 >f
    for dir in one two three; do
        spawn env HOLDFAST_DIR="$PWD/$dir" bash -c 'for i in {1..25}; do "$HOLDFAST" file edit f --sidecar -w 1m -- awk "{ print \$1 + 1 }" || exit 1; done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(cat f)" -eq 75 ]
}

@test "busy: the message names the holder and what to do; --on-timeout skip and proceed leave an event (L8)" {
    echo old >f
    holding f
    expect 1 hf file edit f -n -- echo new
    says "pid $(cat held)"
    says "holdfast why --kind file "
    is_kind() { hf journal query --event "$1" --json | jq -e '.kind == "file"'; }
    expect 0 hf file edit f -w 0.1 --on-timeout skip -- echo new
    [ "$(cat f)" = old ]
    [ "$(hf journal query --event lock_skipped --json | wc -l)" -eq 1 ]
    is_kind lock_skipped
    expect 0 hf file edit f -w 0.1 --on-timeout proceed -- echo new
    says "WITHOUT the lock"
    [ "$(cat f)" = new ]
    [ "$(hf journal query --event lock_fail_open --json | wc -l)" -eq 1 ]
    is_kind lock_fail_open
    # Names, unless files are asked for.
    expect 0 hf lock list
    [ -z "$output" ]
    for kind in file all; do
        expect 0 hf lock list --kind "$kind"
        says ":f "
    done
    touch go
    wait "$spawned_pid"
}

@test "kinds: a file's lock is seen, checked and broken with --kind file; its name alone means another lock (L12)" {
    echo old >f
    holding f
    name=$(hf lock list --kind file --json | jq -r '.locks[0].name')
    expect 0 hf lock check --kind file "$name"
    expect 1 hf lock check "$name"
    expect 1 hf lock break "$name" --reason test
    expect 0 hf why "$name"
    says "is free"
    expect 0 hf why --kind file "$name"
    says "held by pid $(cat held)"
    expect 0 hf lock run -n "$name" -- true
    for verb in "why x" "lock check x" "lock list"; do
        # shellcheck disable=SC2086
        expect 2 hf $verb --kind nonsense
    done
    expect 0 hf lock break --kind file "$name" --reason test
    expect 0 hf why --kind file "$name"
    says lock_broken
    expect 0 hf why "$name"
    [[ $output != *lock_broken* ]]
    touch go
    wait "$spawned_pid" || true
}

@test "kinds: --fenced means the lock of the innermost command, whatever its kind (L5)" {
    echo old >f
    expect 0 hf file with f -- "$HOLDFAST" file edit f --fenced -- echo inner
    [ "$(cat f)" = inner ]
    expect 0 hf file with g -- "$HOLDFAST" lock run x -- "$HOLDFAST" file edit f --fenced -- echo name
    [ "$(cat f)" = name ]
    expect 0 hf file with g -- "$HOLDFAST" run s -- bash -c '[ "$HOLDFAST_LOCK $HOLDFAST_LOCK_KIND" = "s name" ] && "$0" file edit f --fenced -- echo session' "$HOLDFAST"
    [ "$(cat f)" = session ]
    # The right name and token, but of another kind.
    expect 3 hf lock run x -- env HOLDFAST_LOCK_KIND=group "$HOLDFAST" file edit f --fenced -- echo wrong
    expect 2 hf lock run x -- env HOLDFAST_LOCK_KIND=nonsense "$HOLDFAST" file edit f --fenced -- echo wrong
    [ "$(cat f)" = session ]
}

@test "inside 'file with', our own commands work on that file; every spelling is the same lock" {
    mkdir d
    ln -s d e
    echo old >d/f
    expect 0 hf file with e/../d/./f -- bash -c '"$HOLDFAST" file edit e/f -n -- echo inner && "$HOLDFAST" file block d/f x -n --fenced --text t'
    [ "$(head -1 d/f)" = inner ]
    holding d/f
    expect 1 hf file edit "$PWD/e/f" -n -- echo new
    touch go
}

@test "a killed holder of the lock is replaced at once (L4)" {
    echo old >f
    holding f
    kill -KILL "$(cat held)"
    wait "$spawned_pid" 2>/dev/null || true
    expect 0 hf file edit f -w 5 -- echo new
    [ "$(cat f)" = new ]
}

@test "fence: a token that was lost is refused with exit 3, before and at the rename (L5)" {
    echo old >f
    token=$(hf lock acquire build --pid $$)
    expect 0 hf file edit f --fence "build:$token" -- echo one
    expect 0 env HOLDFAST_LOCK=build HOLDFAST_TOKEN="$token" "$HOLDFAST" file edit f --fenced -- echo two
    expect 3 hf file edit f --fence "build:$token" -- bash -c '"$HOLDFAST" lock break build --reason test >&2; echo three'
    says "lost"
    [ "$(cat f)" = two ]
    expect 3 hf file edit f --fence "build:$token" -- touch ran
    [ ! -e ran ]
    expect 3 env -u HOLDFAST_LOCK -u HOLDFAST_TOKEN "$HOLDFAST" file edit f --fenced -- echo four
    expect 2 hf file edit f --fence build -- echo four
    expect 2 hf file edit f --fence build:x -- echo four
    [ "$(hf journal query --event lock_refused --json | wc -l)" -eq 2 ]
    [ "$(cat f)" = two ]
    nothing_left
}

@test "fence: a holder stopped past its lease cannot rename when it is continued (L5)" {
    echo old >f
    # The edit runs under a lease; its wrapper, which renews, is stopped together with it.
    spawn bash -c 'exec "$HOLDFAST" lock run build --ttl 300ms -- bash -c "\"\$HOLDFAST\" file edit f --fenced -- bash -c \"echo \\\$PPID >editor; touch reading; until [ -e finish ]; do sleep 0.02; done; echo stale\"; echo \$? >status"'
    wait_until 10 test -e reading
    kill -STOP "$spawned_pid" "$(cat editor)"
    # The successor takes the expired lease and its fence; the file's own lock is still that of the stopped one.
    expect 0 hf lock run build -w 10s -- bash -c 'echo $HOLDFAST_TOKEN'
    touch finish
    kill -CONT "$(cat editor)"
    wait_until 10 test -s status
    [ "$(cat status)" = 3 ]
    [ "$(cat f)" = old ]
    nothing_left
    kill -CONT "$spawned_pid"
}
