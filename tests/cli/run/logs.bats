# logs: times, attempts, streams, several sessions.
load ../session_helper

# two attempts with a pause between, both streams
two_attempts() {
    hf run x -- bash -c 'echo first; echo oops >&2; exit 1' >/dev/null 2>&1 || true
    sleep 0.05
    between=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
    between_s=$(date +%s)
    wait_until 5 bash -c '[ "$(date +%s)" -gt "$1" ]' _ "$between_s"
    middle=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    hf run x --resume -- bash -c 'echo second; printf partial >&2' >/dev/null 2>&1
}

@test "logs -t: the time of each line, which rises and is now" {
    before=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
    hf run x -- bash -c 'echo one; sleep 0.05; echo two; printf three'
    after=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
    hf logs x -t >shown
    [ "$(wc -l <shown)" -eq 3 ]
    sort -s -c -k 1,1 shown
    [ "$(cut -d' ' -f2 shown | paste -sd' ')" = "one two three" ]
    # The index is exact to 5 ms.
    [[ "$(head -n 1 shown)" > "${before%.*}" ]]
    [[ "$(tail -n 1 shown | cut -d' ' -f1)" < "$after" ]]
    [[ "$(sed -n 1p shown | cut -d' ' -f1)" < "$(sed -n 2p shown | cut -d' ' -f1)" ]]
}

@test "logs --attempt, --since, --until: only those lines; with -n the last of them" {
    two_attempts
    [ "$(hf logs x --attempt 1 | sort | paste -sd' ')" = "first oops" ]
    [ "$(hf logs x --attempt 2 | sort | paste -sd' ')" = "partial second" ]
    [ -z "$(hf logs x --attempt 3)" ]
    [ "$(hf logs x --since "$middle" | sort | paste -sd' ')" = "partial second" ]
    [ "$(hf logs x --until "$middle" | sort | paste -sd' ')" = "first oops" ]
    [ "$(hf logs x --since 1h | wc -l)" -eq 3 ]
    [ -z "$(hf logs x --until 1h)" ]
    [ "$(hf logs x --attempt 1 -n 1 | wc -l)" -eq 1 ]
    [ "$(hf logs x --attempt 1 --stdout -n 5)" = first ]
    expect 2 hf logs x --since soon
    expect 2 hf logs x -f --until 1h
}

@test "logs --stderr, --stdout: one stream; in front and in the background" {
    for how in --log --detach; do
        hf run x "$how" -- bash -c 'for i in 1 2 3; do echo out $i; echo err $i >&2; done' >/dev/null 2>&1
        expect 0 hf wait x
        [ "$(hf logs x --stderr | paste -sd,)" = "err 1,err 2,err 3" ]
        [ "$(hf logs x --stdout | paste -sd,)" = "out 1,out 2,out 3" ]
        [ "$(hf logs x --stderr -n 1)" = "err 3" ]
    done
    expect 2 hf logs x --stderr --stdout
    # What came through one pipe cannot be told apart, and that is said.
    hf run x -- bash -c 'echo out; echo err >&2' >both 2>&1
    expect 0 hf logs x --stderr
    says "output with unknown time"
    [ "$(hf -q logs x --stderr)" = "" ]
}

@test "logs of several sessions: each line has its name; one without a log does not hide the others" {
    hf run aa -- bash -c 'echo one; printf two'
    hf run b -- echo three
    hf run none --no-log -- true
    expect 1 hf logs aa b none
    says "aa   | one"
    says "aa   | two"
    says "b    | three"
    says "'none' has no log"
    # Followed together, to the end of all.
    hf run c --detach -- bash -c 'echo c1; until [ -e go ]; do sleep 0.02; done; echo c2'
    hf run d --detach -- bash -c 'echo d1; until [ -e go ]; do sleep 0.02; done; printf d2'
    spawn bash -c '"$0" logs c d -f >followed' "$HOLDFAST"
    wait_until 10 grep -q 'c | c1' followed
    wait_until 10 grep -q 'd | d1' followed
    touch go
    wait "$spawned_pid"
    [ "$(sort followed | paste -sd,)" = "c | c1,c | c2,d | d1,d | d2" ]
}

@test "logs --json: one object a line" {
    hf run x -- bash -c 'echo out; printf "bad \xff\0 byte" >&2' >/dev/null 2>/dev/null
    expect 0 bash -c '"$0" --json logs x | jq -s .' "$HOLDFAST"
    is_json 'length == 2 and all(.[]; .v == 1 and .name == "x" and .attempt == 1 and (.time | startswith("20")))'
    is_json 'map(select(.stream == "stdout")) == [.[] | select(.text == "out" and .partial == false)]'
    is_json '.[] | select(.stream == "stderr") | .partial and (.text | startswith("bad "))'
}

@test "logs on a terminal: standard error is red" {
    command -v python3 >/dev/null || skip "no python3"
    hf run x -- bash -c 'echo out; sleep 0.05; echo err >&2' >/dev/null 2>/dev/null
    env -u NO_COLOR TERM=xterm python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$HOLDFAST" logs x </dev/null >shown
    printf 'out\r\n\e[31merr\r\n\e[0m' | cmp - shown
    env NO_COLOR=1 TERM=xterm python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$HOLDFAST" logs x </dev/null >shown
    printf 'out\r\nerr\r\n' | cmp - shown
}

@test "an index that is missing, torn or hostile: the bytes are there all the same" {
    hf run x -- bash -c 'echo out; echo err >&2' >/dev/null 2>/dev/null
    index=$(echo "$HOLDFAST_DIR"/sessions/x/idx.*.0)
    cp "$index" kept
    for damage in 'rm -f "$0"' 'truncate -s -7 "$0"' 'head -c 5000 /dev/urandom >"$0"' 'truncate -s 4T "$0"' 'ln -sf /etc/passwd "$0"' 'chmod 666 "$0"' ': >"$0"'; do
        rm -f "$index"
        cp kept "$index"
        bash -c "$damage" "$index" 2>/dev/null || continue
        for options in "" -t --stderr "--since 1h" "--attempt 1" "-n 1 -t"; do
            timeout 20 "$HOLDFAST" -q logs x $options >shown || { echo "$damage $options"; return 1; }
        done
        [ "$(timeout 20 "$HOLDFAST" -q logs x | sort | paste -sd' ')" = "err out" ]
        # An older log has none, and is gone on with.
        timeout 20 "$HOLDFAST" -q logs x -t | grep -q out
    done
}

@test "the index counts for the limit of the log, and goes with its part" {
    hf run x --log-max 64K -- bash -c 'for i in {1..9000}; do echo $i; echo $i >&2; done' >/dev/null 2>/dev/null
    [ "$(cat "$HOLDFAST_DIR"/sessions/x/log.* "$HOLDFAST_DIR"/sessions/x/idx.* | wc -c)" -le 65536 ]
    [ "$(ls "$HOLDFAST_DIR/sessions/x" | grep -c '^idx')" = "$(ls "$HOLDFAST_DIR/sessions/x" | grep -c '^log')" ]
    [ "$(hf -q logs x -n 1)" = 9000 ]
}

@test "logs --attempt: one that there never was is said, exit 1; one that wrote nothing is empty" {
    hf -q run x --max-runs 2 --backoff 1ms -- bash -c 'exit 0'
    expect 0 hf logs x --attempt 2
    [ -z "$output" ]
    expect 1 hf logs x --attempt 3
    says "session 'x' has no attempt 3; its last is 2"
}

@test "logs --since: seconds since 1970 are a moment, too" {
    hf -q run x -- echo hello
    [ "$(hf logs x --since @0)" = hello ]
    [ "$(hf logs x --since "@$(($(date +%s) - 3600))")" = hello ]
    [ -z "$(hf logs x --since "@$(($(date +%s) + 3600))")" ]
    for bad in @ @x @5m @-1; do expect 2 hf logs x --since "$bad"; done
}
