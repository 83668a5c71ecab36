# Which one needs me: the codes from outside, the order of rows, seen, and actions that carry a token.
load ../session_helper

# needs NAME: the codes, with spaces between them
needs() { field "$1" '[.needs[].code] | join(" ")'; }

is_needs() { [ "$(needs "$1")" = "$2" ]; }

# later SECONDS WORDS...: our command, with the wall clock set on
later() {
    local seconds=$1
    shift
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 faketime "+$seconds seconds" "$HOLDFAST" "$@"
}

@test "one that failed needs you, with reason and verb, on top of ps and in status; seen ends that, until the next run" {
    running works
    hf -q run good -- true
    hf -q run bad -- sh -c 'exit 3' || true
    hf -q run unproven --verify 'exit 2' -- true || true
    is_needs bad failed
    is_needs unproven verify-failed
    is_needs good ""
    is_needs works ""
    is_field bad '.needs[0].action' resume
    is_field bad '.needs[0].text | test("^failed [0-9]+ s ago: exit 3$")' true
    [ "$(hf ps -o name | tail -n +2 | xargs)" = "bad unproven works good" ]
    [ "$(hf --json ps | jq -r '[.sessions[].name] | join(" ")')" = "bad unproven works good" ]
    [[ "$(hf ps | sed -n 2p)" == bad*"! exit 3, ran "*": resume" ]]
    expect 0 hf status
    says "! failed"
    says "    holdfast run --resume bad"
    says "    holdfast run --resume unproven"
    [[ "$output" != *works* ]]
    expect 0 hf seen bad unproven
    is_needs bad ""
    is_field bad '.seen' true
    [ "$(hf ps -o name | tail -n +2 | head -1)" = works ]
    expect 0 hf status
    says "no session needs you"
    expect 0 hf status bad
    says "bad: failed"
    hf -q run bad -- sh -c 'exit 3' || true
    is_needs bad failed
    expect 1 hf seen never-run
    says "no such session"
    expect 1 hf status never-run
}

@test "one that asks needs you: silent behind a question, and at no work" {
    command -v faketime >/dev/null || skip "needs faketime"
    hf -q run asking -d -- sh -c 'echo begun; printf "Proceed? [y/N] "; sleep 60'
    hf -q run busy -d -- sh -c 'printf "50 %% "; while :; do :; done'
    hf -q run quiet -d -- sh -c 'echo all is well; sleep 60'
    wait_until 10 is_field asking '.last_line, .last_line_partial' $'Proceed? [y/N] \ntrue'
    wait_until 10 is_field busy '.cpu_pct > 5' true
    is_needs asking ""
    later 40 --json ps asking quiet >out
    [ "$(jq -r '.sessions[0].needs[0] | .code, .action' out)" = $'asks\nattach' ]
    jq -e '.sessions[0].needs[0].text | startswith("asked 4") and contains(" ago: ") and contains("Proceed? [y/N]")' out
    jq -e '.sessions[1].needs == []' out
    later 700 --json ps quiet >out
    [ "$(jq -r '.sessions[0].needs[0] | .code, .action' out)" = $'silent\nlogs' ]
    hf -q stop busy --grace 0
}

@test "one whose deadline is near needs you, and so does one whose keepers were killed" {
    running near --deadline 121s
    running far --deadline 1h
    wait_until 20 is_needs near deadline
    is_needs far ""
    hf run gone --detach -- sleep 60
    kill_keepers gone
    wait_until 5 is_needs gone dead-unreaped
    is_field gone '.needs[0].action' reap
    hf reap gone
    is_needs gone failed
}

@test "what a process of a session waits for is told, with its place and its holder" {
    spawn "$HOLDFAST" lock run build -- sh -c 'touch held; sleep 60'
    wait_until 10 test -e held
    spawn "$HOLDFAST" run first -- "$HOLDFAST" lock run build -w 60s -- true
    wait_until 10 is_field first '.waits_for.place' 1
    spawn "$HOLDFAST" run second -- "$HOLDFAST" lock run build -w 60s -- true
    wait_until 10 is_field second '.waits_for | [.kind, .name, .place, .of, .holder] | map(tostring) | join(" ")' "lock build 2 2 null"
    [[ "$(hf ps second | tail -1)" == *"(waits for 'build', place 2, "* ]]
    expect 0 hf status second
    says "place 2 of 2, for the lock 'build', held by pid"
}

@test "an action with a token reaches that run or none: stop, kill, reap, resume, seen (exit 3, stale-token)" {
    local old new
    hf -q run x -- false || true
    old=$(field x .token)
    expect 3 hf -q --json run x --resume --token 5
    is_json '.error.code == "stale-token"'
    is_field x .attempt 1
    expect 3 hf -q run x -d --resume --token 5
    is_field x .attempt 1
    expect 1 hf -q run x --resume --token "$old"
    is_field x .attempt 2
    running x
    new=$(field x .token)
    [ "$new" != "$old" ]
    expect 3 hf -q --json stop x --token "$old"
    is_json '.error.code == "stale-token" and .error.exit == 3'
    expect 3 hf kill x --token "$old"
    says "another run has the name now: its token is $new"
    expect 3 hf seen x --token "$old"
    is_field x '.state, .seen' $'running\nfalse'
    expect 0 hf seen x --token "$new"
    expect 0 hf stop x --token "$new"
    is_field x .outcome stopped
    hf run gone --detach -- sleep 60
    kill_keepers gone
    wait_until 5 is_field gone .state dead-unreaped
    expect 3 hf reap gone --token "$old"
    is_field gone .state dead-unreaped
    expect 3 hf stop gone --token "$old"
    expect 0 hf reap gone --token "$(field gone .token)"
    expect 2 hf stop x y --token "$new"
    expect 2 hf stop x --token none
    expect 2 hf reap --token "$new"
    expect 2 hf run x --token "$new" -- true
}

@test "a waiting loop says when it runs next; Ctrl-Z is suspended; what it cost is told" {
    spawn "$HOLDFAST" run loop --every 1h -- true
    wait_until 10 is_field loop .state waiting
    is_field loop '.next_in_ms > 3500000 and .next_in_ms <= 3600000' true
    [[ "$(hf ps loop | tail -1)" == *"(next in 59m"*"; last: exit 0, ran "* ]]
    running frozen
    kill -STOP "$(cat up-frozen)"
    wait_until 5 is_field frozen .state suspended
    kill -CONT "$(cat up-frozen)"
    wait_until 5 is_field frozen .state running
    is_field frozen '.next_in_ms' null
    hf -q run dear --log -- python3 -c 'import time
data = bytearray(60 << 20)
print("x" * 999)
while time.process_time() < 0.3: pass'
    is_field dear '.cpu_ms >= 300 and .cpu_ms < 20000 and .memory_peak_bytes > 60000000 and .output_bytes == 1000' true
    expect 0 hf status dear
    says "cpu"
    says "at most"
}
