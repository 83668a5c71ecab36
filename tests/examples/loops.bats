# examples/claude-loop, cron, systemd and ci.
load helper

# stub NAME TEXT: a program of that name comes first in PATH
stub() {
    mkdir -p bin
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
    [[ $PATH == "$PWD/bin:"* ]] || PATH=$PWD/bin:$PATH
}

ralph() { timeout --kill-after=5 $BOUND "$EXAMPLES/claude-loop/ralph.sh" "$@" 3>&-; }
deploy() { timeout --kill-after=5 $BOUND "$EXAMPLES/ci/deploy.sh" "$@" 3>&-; }
lines_of() { [ "$(cat "$1" 2>/dev/null | wc -l)" -ge "$2" ]; }

@test "claude-loop: it runs until the tests pass, and not when they pass already" {
    echo "go on" >PROMPT.md
    expect 0 ralph -n 5 -u 'grep -c . runs | grep -q 2' PROMPT.md -- sh -c 'cat >>runs; exit 0'
    [ "$(cat runs)" = $'go on\ngo on' ]
    expect 0 ralph -n 5 -u 'grep -c . runs | grep -q 2' PROMPT.md -- sh -c 'cat >>runs'
    says "the tests pass already"
    [ "$(wc -l <runs)" = 2 ]
}

@test "claude-loop: it is bounded, whatever the agent claims, and one directory has one loop (L14)" {
    echo "go on" >PROMPT.md
    expect 1 ralph -n 2 -u false PROMPT.md -- sh -c 'echo x >>runs; echo "all done"'
    [ "$(wc -l <runs)" = 2 ]
    spawn ralph -n 2 -u false PROMPT.md -- sh -c 'echo x >>runs; exec sleep 600'
    wait_until $BOUND lines_of runs 3
    expect 1 ralph -n 2 -u false PROMPT.md -- sh -c 'echo never >>runs'
    [ "$(wc -l <runs)" = 3 ]
    expect 0 hf stop "$(hf --json ps | jq -r '.sessions[].name')" --grace 0
}

@test "claude-loop: it fails well" {
    expect 2 ralph -u false none.md
    says "cannot be read"
    expect 2 ralph PROMPT.md
    touch PROMPT.md
    HOLDFAST=/none/holdfast expect 127 ralph -u false PROMPT.md
    HOLDFAST_DIR=/proc/self/none expect 125 ralph -u false PROMPT.md -- true
}

@test "cron: each job runs as it stands, and one that overlaps is skipped in silence" {
    stub holdfast "exec '$HOLDFAST' \"\$@\""
    stub claude 'echo "$*" >>"$OUT"; [ ! -e "$OUT.hold" ] || exec sleep 600'
    stub make 'test "$*" = test'
    export OUT=$PWD/out
    mkdir app
    local job jobs
    mapfile -t jobs < <(sed -nE 's/^([0-9*][^ ]*( +[^ ]+){4}|@reboot) +(holdfast|cd )/\3/p' "$EXAMPLES/cron/crontab")
    [ ${#jobs[@]} = 3 ]
    for job in "${jobs[@]}"; do expect 0 sh -c "$job"; done
    [ "$(cat out)" = "-p Triage the new issues"$'\n'"-p Update the dependencies" ]
    touch out.hold
    spawn sh -c "${jobs[0]}"
    wait_until $BOUND lines_of out 3
    expect 0 sh -c "${jobs[0]}"
    [ "$output" = "" ]
    [ "$(wc -l <out)" = 3 ]
    hf stop triage --grace 0
}

@test "systemd: the units are valid, and the service ends its agent when it is told to" {
    local exec_start
    stub holdfast "exec '$HOLDFAST' \"\$@\""
    stub claude 'touch begun; exec sleep 600'
    exec_start=$(sed -n 's/^ExecStart=//p' "$EXAMPLES/systemd/holdfast-agent.service")
    spawn sh -c "exec $exec_start"
    wait_until $BOUND test -e begun
    kill -TERM "$spawned_pid"
    wait_until $BOUND sh -c '! kill -0 "$0" 2>/dev/null || [ "$(ps -o stat= -p "$0" | cut -c 1)" = Z ]' "$spawned_pid"
    [ "$(hf --json ps nightly | jq -r '.sessions[0].outcome // .outcome')" = stopped ]
    command -v systemd-analyze >/dev/null || skip "no systemd-analyze: the units were not verified"
    mkdir -m 700 runtime
    XDG_RUNTIME_DIR=$PWD/runtime run systemd-analyze --user --man=no verify "$EXAMPLES/systemd/holdfast-agent.service" "$EXAMPLES/systemd/holdfast-agent.timer"
    [[ $output != *"Failed to "*manager* ]] || skip "systemd-analyze cannot work here: the units were not verified: $output"
    [[ $status = 0 && -z $output ]] || { echo "$output"; return 1; }
}

@test "ci: deploys of one environment take turns, and a killed one is followed at once" {
    local i
    for i in 1 2 3 4; do
        spawn deploy production sh -c 'mkdir busy || touch overlap; echo x >>deploys; rmdir busy'
    done
    spawn deploy staging sh -c 'touch staged; exec sleep 600'
    wait_until $BOUND lines_of deploys 4
    wait_until $BOUND test -e staged
    [ ! -e overlap ]
    DEPLOY_WAIT=50ms expect 75 deploy staging true
    kill -KILL "$(hf --json lock list | jq '.locks[] | select(.name == "deploy-staging").holders[0].pid')"
    expect 7 deploy staging sh -c 'exit 7'
    expect 0 deploy staging "$EXAMPLES/ci/deploy.sh" --still-ours
}

@test "ci: a deploy that has lost its lease is refused before the last step (L5)" {
    DEPLOY_TTL=2s expect 3 deploy production sh -c '"$0" lock break "$HOLDFAST_LOCK" --reason test >/dev/null; "$1" --still-ours && touch deployed; sleep 600' "$HOLDFAST" "$EXAMPLES/ci/deploy.sh"
    [ ! -e deployed ]
    HOLDFAST=/none/holdfast expect 127 deploy production true
    HOLDFAST_DIR=/proc/self/none expect 125 deploy production true
    expect 2 deploy production
}
