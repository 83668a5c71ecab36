# run: limits and what it cost; signals, exit status, and the result apart from the output.
load ../session_helper

@test "--mem, --cpus, --nice bound the command and what it starts, by the cgroup or by the process, and status says which" {
    expect 0 hf run x --mem 300M --cpus 1 --nice 5 -- sh -c 'nice; sh -c "ulimit -d"; sh -c nproc'
    [ "${lines[0]}" -ge 5 ]
    by=$(field x .limits.memory_by)
    [ "$by" != process ] || [ "${lines[1]}" -eq 307200 ]
    [ "$(field x .limits.cpus_by)" != affinity ] || [ "${lines[2]}" -eq 1 ]
    expect 0 hf status x
    says "limits     memory 300M (${by/process/each process}), 1 CPUs ("
    says ", nice 5"
    expect 0 hf ps x --json
    is_json '.sessions[0].limits | .memory_bytes == 314572800 and .cpus == 1 and .nice == 5 and .pids == null'
    hf -q run y -- true
    is_field y .limits null
    for wrong in "--cpus 0" "--cpus 1.234" "--cpus x" "--nice 20" "--mem x" "--signal NOPE" "--signal 0" "--map-exit 3" "--map-exit 3=256"; do
        expect 2 hf run z $wrong -- true
    done
}

@test "--mem: a process that wants more does not get it, and the session fails" {
    command -v python3 >/dev/null || skip "no python3"
    skip_sanitizers "a sanitizer maps more than any limit"
    run hf run x --mem 100M -- python3 -c 'x = bytearray(400 << 20)'
    [ "$status" -ne 0 ]
    is_field x .outcome failed
    # It is stored, and holds for the next attempt.
    run hf run x --resume
    [ "$status" -ne 0 ]
    is_field x .limits.memory_bytes 104857600
}

@test "--mem: a command that dies of too little memory is reported with the option" {
    skip_sanitizers "a sanitizer maps more than any limit"
    run hf run x --mem 1k -- true
    [ "$status" -gt 128 ]
    says "(--mem)"
    [[ "$(field x .cause)" == "killed by SIG"*"; "*"(--mem)" ]]
    # Without the limit such a death is the command's own.
    run hf run y -- sh -c 'ulimit -c 0; kill -SEGV $$'
    is_field y .cause "killed by SIGSEGV"
    expect 1 hf run z --mem 300M -- false
    is_field z .cause "exit 1"
    expect 1 hf run v --mem 300M --verify 'ulimit -c 0; kill -SEGV $$' -- true
    [ "$(field v .limits.memory_by)" = cgroup ] || [[ "$(field v .cause)" == *"killed by SIGSEGV; "*"(--mem)" ]]
}

@test "--pids is refused where nothing can count them, else more processes than that cannot be" {
    run hf run x --pids 40 -- sh -c 'for i in $(seq 80); do sleep 5 & done; wait'
    if [ "$status" -eq 125 ]; then
        says "no cgroup here can count processes, and no other limit applies to root (--pids)"
        expect 1 hf ps x
    else
        [ "$status" -ne 0 ]
        is_field x .limits.pids 40
    fi
}

@test "what it cost stands in the result, in ps, in status and, with -v, in a line" {
    expect 0 hf run -v x --result r -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo 12345'
    says "session 'x': succeeded: exit 0; ran "
    says ", CPU "
    says ", peak memory "
    jq -e '.v == 1 and .cpu_ms > 0 and .memory_peak_bytes > 100000 and .output_bytes == 6 and .ran_ms > 0' r
    [ "$(field x '"\(.cpu_ms) \(.memory_peak_bytes) \(.output_bytes)"')" = "$(jq -r '"\(.cpu_ms) \(.memory_peak_bytes) \(.output_bytes)"' r)" ]
    expect 3 hf run -v x -- sh -c 'exit 3'
    says "session 'x': failed: exit 3; ran "
}

@test "--signal is what the command gets at a deadline and by stop; what it started gets TERM" {
    expect 124 hf run x --deadline 300ms --signal USR1 -- bash -c 'trap "echo got-usr1; exit 0" USR1; trap "echo got-term" TERM; while :; do sleep 0.02; done'
    says got-usr1
    [[ "$output" != *got-term* ]]
    spawn "$HOLDFAST" run y --signal SIGUSR2 --term tree -- bash -c 'trap "echo got-usr2 >said; exit 5" USR2; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -e up
    expect 0 hf stop y
    [ "$(cat said)" = got-usr2 ]
    is_field y .outcome stopped
}

@test "--preserve-status gives the command's own status after a deadline, but never a success (L14)" {
    expect 7 hf run x --deadline 300ms --preserve-status -- bash -c 'trap "exit 7" TERM; while :; do sleep 0.02; done'
    is_field x .outcome timed-out
    expect 124 hf run x --deadline 300ms --preserve-status -- bash -c 'trap "exit 0" TERM; while :; do sleep 0.02; done'
    expect 143 hf run x --deadline 300ms --preserve-status -- sleep 60
}

@test "--map-exit changes what the caller gets, and not what is recorded" {
    expect 0 hf -q run x --map-exit 5=6 --map-exit 3=0 -- sh -c 'exit 3'
    is_field x .exit 3
    is_field x .outcome failed
    expect 6 hf -q run x --map-exit 5=6 -- sh -c 'exit 5'
    expect 4 hf -q run x --map-exit 5=6 -- sh -c 'exit 4'
}

@test "--json-fd and --result are apart from the output, and say whose the exit status is and why" {
    expect 3 hf -q run x --json-fd 5 --result r -- sh -c 'echo out; ls -l /proc/self/fd/5 2>&1 | grep -c "No such"; exit 3' 5>j
    [ "$output" = "$(printf 'out\n1')" ]
    [ "$(cat j)" = "$(cat r)" ]
    jq -e '.v == 1 and .by == "command" and .reason == null and .exit == 3 and .outcome == "failed"' j
    expect 125 hf -q run x --json-fd 5 -- sh -c 'exit 125' 5>j
    jq -e '.by == "command" and .exit == 125' j
    expect 124 hf -q run x --json-fd 5 --deadline 100ms -- sleep 60 5>j
    jq -e '.by == "holdfast" and .reason == "timed-out"' j
    expect 1 hf -q run x --json-fd 5 --verify false -- true 5>j
    jq -e '.by == "holdfast" and .reason == "verify-failed"' j
    running held
    expect 1 hf -q run held --json-fd 5 --result r -- true 5>j
    jq -e '.v == 1 and .name == "held" and .by == "holdfast" and .reason == "busy" and .exit == 1 and .outcome == null' j
    [ "$(cat j)" = "$(cat r)" ]
    expect 2 hf -q run x --json-fd 77 -- true
    # A reader that is gone: it is said, and the command has run.
    expect 125 bash -c '"$0" run x --json-fd 5 -- touch ran 5> >(:)' "$HOLDFAST" || true
    [ -e ran ]
}

@test "usage errors speak JSON" {
    expect 2 hf --json -q run
    is_json '.v == 1 and .error.code == "usage" and .error.exit == 2 and (.error.message | length) > 0'
    expect 2 hf --json -q ps --nonsense
    is_json '.error.code == "usage" and (.error.message | contains("--nonsense"))'
}

@test "--die-with-parent ends the session when the process that started it is killed" {
    spawn bash -c '"$0" run x --die-with-parent -- bash -c "echo \$\$ >up; while :; do sleep 0.02; done" & wait' "$HOLDFAST"
    wait_until 10 test -s up
    kill -KILL "$spawned_pid"
    wait_until 10 is_dead "$(cat up)"
    wait_until 10 is_field x .outcome stopped
}

@test "--foreground: the command is in the caller's process group without a terminal, too" {
    expect 0 setsid --wait bash -c '"$0" run x --foreground -- bash -c "ps -o pgid= -p \$\$ >inner"; ps -o pgid= -p $$ >outer' "$HOLDFAST"
    [ "$(tr -d ' ' <inner)" = "$(tr -d ' ' <outer)" ]
    expect 0 setsid --wait bash -c '"$0" run x -- bash -c "ps -o pgid= -p \$\$ >inner"; ps -o pgid= -p $$ >outer' "$HOLDFAST"
    [ "$(tr -d ' ' <inner)" != "$(tr -d ' ' <outer)" ]
    expect 2 hf run -d x --foreground -- true
}
