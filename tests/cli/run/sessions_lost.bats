# Sessions whose directories are deleted, or whose guard is stuck, while they run: what ps shows, and how they end.
load ../session_helper

@test "a session whose directory in the state directory was deleted: shown alone and in the list, and stopped" {
    running x
    running y
    rm -r "$HOLDFAST_DIR/sessions/x"
    expect 0 hf ps
    says "x  "
    says "y  "
    expect 0 hf ps --json
    is_json '[.sessions[] | {name, state}] == [{name: "x", state: "unreadable"}, {name: "y", state: "running"}]'
    expect 0 hf ps x
    says "unreadable"
    expect 0 hf stop x
    rm -r "$HOLDFAST_DIR/sessions"
    expect 0 hf ps --json
    is_json '[.sessions[].name] == ["y"]'
    expect 0 hf stop y
    says "stopped"
    [ "$(events session_ended)" -eq 2 ]
}

@test "a lock that no session holds is no row of ps" {
    expect 0 hf lock acquire held --pid $$
    expect 0 hf ps --json
    is_json '.sessions == []'
}

@test "a session whose working directory was deleted: shown, logged, stopped; a resume is refused and says why" {
    mkdir work
    expect 0 hf run x --detach --cwd work -- bash -c 'echo said; exec sleep 1000'
    wait_until 10 has_said
    rmdir work
    expect 0 hf ps x --json
    is_json '.sessions[0] | .state == "running" and (.cwd | endswith("/work"))'
    expect 0 hf logs x
    says "said"
    expect 0 hf stop x
    expect 3 hf run x --resume
    says "its directory does not exist"
    is_field x .outcome stopped
}
has_said() { hf -q logs x | grep -q said; }

@test "a guard that is stuck when the command ends: the time is the command's, and the outcome is recorded when the guard is free (L8)" {
    [ -n "${HF_LONG:-}" ] || skip "takes half a minute; HF_LONG=1 runs it"
    running x
    spawn flock "$HOLDFAST_DIR/locks/name/x" sh -c 'touch stuck; until [ -e free ]; do sleep 0.1; done'
    wait_until 10 test -e stuck
    let_go x 0
    # Twice the ten seconds that a guard is waited for: once to prove the lock, once to save.
    wait_until 60 is_ended
    sleep 15
    touch free
    wait "${spawned[0]}"
    is_field x .state done
    [ "$(field x .ran_ms)" -lt 9000 ]
    [ "$(events session_ended x)" -eq 1 ]
}
is_ended() { [ "$(events session_ended x)" -eq 1 ]; }
