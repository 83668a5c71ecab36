# run logs by default, and nobody notices: neither the command nor its caller.
load ../session_helper

@test "every run is logged; a run that says nothing has an empty log, not that of the run before" {
    [ "$(hf run x -- bash -c 'echo out; echo err >&2' 2>err)" = out ]
    [ "$(cat err)" = err ]
    [ "$(hf logs x | sort | paste -sd' ')" = "err out" ]
    expect 0 hf run x -- true
    expect 0 hf logs x
    [ -z "$output" ]
    [ "$(hf logs x --previous | wc -l)" -eq 2 ]
    is_field x .log_bytes 0
    expect 0 hf logs x -f
    [ -z "$output" ]
    # No file is made before there is output.
    [ "$(ls "$HOLDFAST_DIR/sessions/x" | grep -c '^log')" -eq 1 ]
}

@test "logged by default: both streams stay apart, byte for byte; sent to one file they keep their order" {
    head -c 300000 /dev/urandom >bytes
    hf run x -- bash -c 'cat bytes; cat bytes >&2' >out 2>err
    cmp bytes out
    cmp bytes err
    hf run x -- bash -c 'for i in {1..500}; do echo $((2 * i - 1)); echo $((2 * i)) >&2; done' >both 2>&1
    seq 1000 | cmp - both
    hf logs x | cmp - both
    # And behind what stood there.
    echo before >file
    hf run x -- echo after >>file
    [ "$(paste -sd' ' file)" = "before after" ]
}

@test "logged by default: output comes at once, not when the command ends" {
    mkfifo pipe
    spawn bash -c '"$0" run x -- bash -c "echo one; until [ -e go ]; do sleep 0.02; done; echo two" >pipe' "$HOLDFAST"
    exec 8<pipe
    read -r -t 20 line <&8
    [ "$line" = one ]
    touch go
    read -r -t 20 line <&8
    [ "$line" = two ]
    exec 8<&-
}

@test "logged by default: a reader that pauses gets everything, however long; stop ends it" {
    # Longer than a reader is waited for whose log was asked for.
    hf run x -- seq 20000 | (sleep 11; cat) | cmp - <(seq 20000)
    spawn bash -c '"$0" run x -- seq 100000 | (until [ -e ended ]; do sleep 0.02; done)' "$HOLDFAST"
    wait_until 10 is_field x .state running
    expect 0 hf stop x
    touch ended
    wait "$spawned_pid" || true
}

@test "logged by default: output that the caller's file cannot take is no success (L14)" {
    [ -w /dev/full ] || skip "no /dev/full"
    status=0
    hf run x --verify 'touch verified' -- echo out >/dev/full 2>said || status=$?
    [ "$status" -eq 125 ]
    is_field x .outcome failed
    is_field x .cause "its output could not be written: No space left on device"
    [ ! -e verified ]
}

@test "logged by default: a log that cannot be written neither breaks the run nor its output" {
    [ "$(id -u)" -ne 0 ] || skip "root may write anywhere"
    expect 0 hf run x -- true
    chmod 500 "$HOLDFAST_DIR/sessions/x"
    run hf run x -- echo out
    chmod 700 "$HOLDFAST_DIR/sessions/x"
    says out
}

@test "logged by default: --leave-running is not, since its output would end with the keeper" {
    hf run x --leave-running -- bash -c '(until [ -e go ]; do sleep 0.02; done; echo later >later) & echo now' >out
    touch go
    wait_until 10 test -s later
    expect 1 hf logs x
}

@test "resume remembers --no-log, and --log takes it back" {
    expect 1 hf run x --no-log -- bash -c 'echo one; exit 1'
    expect 1 hf run x --resume
    expect 1 hf logs x
    expect 1 hf run x --resume --log
    expect 0 hf logs x
    [ "$output" = one ]
    expect 1 hf run x --resume
    [ "$(hf logs x | wc -l)" -eq 2 ]
    expect 1 hf run x --resume --no-log
    expect 1 hf logs x
}
