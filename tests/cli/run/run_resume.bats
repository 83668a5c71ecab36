# run --resume: everything is as it was, unless it is given again; what cannot be trusted is refused.
load ../session_helper

# fails NAME OPTIONS...: a first attempt that fails, with these options
fails() {
    local name=$1
    shift
    expect 3 hf run "$name" "$@" -- bash -c 'echo run >>"runs-$0"; exit 3' "$name"
}

# says_it OPTIONS...: attempt 2 says that it has these again
resumes_with() { says "session '$1': attempt $2 in $PWD, $3"; }

@test "resume: a verifier that said no says no again; a resume is no way around it (L14)" {
    expect 1 hf run v --verify 'exit 1' -- true
    expect 1 hf run v --resume
    is_field v '.outcome, .attempt' $'verify-failed\n2'
    expect 1 hf run v --resume
    is_field v '.outcome, .attempt' $'verify-failed\n3'
    # Given again it counts from now on, also for the next resume.
    expect 1 hf run v --resume --verify 'touch verified; exit 1'
    rm verified
    expect 1 hf run v --resume
    [ -e verified ]
    is_field v .attempt 5
    # Another command has it, too.
    expect 1 hf run v --resume -- bash -c 'exit 0'
    expect 0 hf run v --resume --verify ''
    is_field v '.state, .cause' $'done\nexit 0'
}

@test "resume: it runs where it ran, wherever it is resumed, and says with what" {
    mkdir -p src/app other
    cd src/app
    expect 1 hf run x --deadline 1h --verify 'make test' --grace 2s -- bash -c 'pwd >>../../where; exit 0'
    cd ../../other
    expect 1 hf run x --resume
    says "holdfast: session 'x': attempt 2 in $BATS_TEST_TMPDIR/src/app, deadline 1h, grace 2s, verify 'make test'"
    [ "$(sort -u ../where)" = "$BATS_TEST_TMPDIR/src/app" ]
    [ "$(wc -l <../where)" -eq 2 ]
    run --separate-stderr hf --json run x --resume
    is_json '.resumed | startswith("attempt 3 in /")'
    # The verifier and the others run there as well.
    expect 0 hf run x --resume --verify 'pwd >../../verifier' --notify 'pwd >../../notifier'
    told x 1
    [ "$(cat ../verifier ../notifier | sort -u)" = "$BATS_TEST_TMPDIR/src/app" ]
}

@test "resume: in the background it says the same, and runs there" {
    mkdir here
    (cd here && hf run x --detach -- bash -c 'pwd >where; exit 3')
    expect 3 hf wait x
    rm here/where
    expect 0 hf run x --resume --detach
    says "attempt 2 in $PWD/here"
    expect 3 hf wait x
    [ "$(cat here/where)" = "$PWD/here" ]
}

@test "resume: a directory that is gone is refused, exit 3, with one event; another can be given, and stays" {
    mkdir here there
    top=$PWD
    (cd here && expect 3 hf run x -- bash -c 'pwd >>"$0/where"; exit 3' "$top")
    mv here gone
    expect 3 hf run x --resume
    says "its directory does not exist"
    says "$PWD/here"
    [[ $output != *"attempt 2"* ]]
    [ "$(events session_refused x)" -eq 1 ]
    is_field x '.attempt, .outcome' $'1\nfailed'
    expect 1 hf lock check x
    expect 3 hf run x --resume --cwd there
    expect 3 hf run x --resume
    [ "$(tail -n 2 where)" = "$PWD/there"$'\n'"$PWD/there" ]
    touch file
    expect 3 hf run x --resume --cwd file
    expect 3 hf run y --cwd nowhere -- touch ran
    [ ! -e ran ]
    # One that ran in a directory without a name cannot be resumed there.
    mkdir lost
    expect 3 bash -c 'cd lost && rmdir ../lost && exec "$0" run z -- bash -c "exit 3"' "$HOLDFAST"
    expect 3 hf run z --resume
    says "its directory does not exist"
    expect 3 hf run z --resume --cwd .
}

@test "resume: a directory that is a symlink by now: it is said where it runs" {
    mkdir here there
    expect 3 hf run x --cwd here -- bash -c 'pwd -P >where; exit 3'
    rm -r here
    ln -s there here
    expect 3 hf run x --resume
    says "attempt 2 in $PWD/there"
    [ "$(cat there/where)" = "$PWD/there" ]
}

@test "resume: --env is stored, given again it replaces those of the same name, and PATH is searched" {
    A=caller expect 3 hf run x --env A=1 --env 'B=two words=2' --env C= -- bash -c 'echo "$A|$B|${C-unset}|$D" >>out; exit 3'
    unset A
    expect 3 hf run x --resume
    says "env A B C"
    [[ "$output" != *"two words"* ]]
    D=here expect 3 hf run x --resume --env A=3 --env D
    expect 3 hf run x --resume
    [ "$(cat out)" = $'1|two words=2||\n1|two words=2||\n3|two words=2||here\n3|two words=2||here' ]
    mkdir bin
    printf '#!/bin/sh\necho mine >mine; exit 3\n' >bin/tool-of-mine
    chmod +x bin/tool-of-mine
    expect 3 hf run y --env "PATH=$PWD/bin:$PATH" -- tool-of-mine
    rm mine
    PATH=/usr/bin:/bin expect 3 "$HOLDFAST" run y --resume
    [ -e mine ]
    for bad in '' =x HOLDFAST_RUNS=x HOLDFAST_TOKEN=1 no_such_variable_here; do
        expect 2 hf run z --env "$bad" -- touch ran
    done
    [ ! -e ran ]
    [ "$(stat -c %a "$HOLDFAST_DIR/sessions/x/command.json")" = 600 ]
}

@test "resume: every option is as it was, is said, and outlives a resume of a resume" {
    for option in 'deadline 1h' 'idle 30m' 'hung-after 7m' 'grace 3s' 'verify-deadline 2m' 'max-runs 1' 'backoff 20ms' \
        'backoff-max 40s' 'max-depth 9' 'max-active 3' 'ttl 70s' 'tree walk' 'term tree' "notify 'true'"; do
        name=${option%% *} value=${option#* }
        fails "$name" "--$name" "${value//\'/}"
        for attempt in 2 3; do
            expect 3 hf run "$name" --resume
            resumes_with "$name" "$attempt" "$option"
        done
    done
    fails e --every 1m --max-runs 1
    expect 3 hf run e --resume
    resumes_with e 2 "every 1m, max-runs 1"
    fails g --max-active 3 --group mine
    expect 3 hf run g --resume
    resumes_with g 2 "max-active 3, group 'mine'"
    fails l --log --log-max 128K --leave-running
    expect 3 hf run l --resume
    resumes_with l 2 "log-max 131072, log, leave-running"
    # What belongs to the call is not remembered: to wait, to go to the background, the status of a refusal.
    fails c -w 5s -E 9
    expect 3 hf run c --resume
    [[ "$output" != *"wait"* ]]
}

# What each option of `run` is tried with: alone, or with those that it needs. Of `--in` below.
REMEMBERED='--deadline 1h
--timeout 1h
--idle 30m
--hung-after 7m
--grace 3s
--verify true
--verify-deadline 2m
--log
--no-log
--log-max 128K
--env A=1
--cwd ..
--leave-running
--every 1m --max-runs 1
--max-runs 1
--until false --max-runs 1
--backoff 20ms
--backoff-max 40s
--notify true
--notify-on failure --notify true
--max-depth 9
--max-active 3
--group mine --max-active 3
--priority 5 --max-active 3
--tree walk
--term tree
--mem 8G
--cpus 1
--pids 200000
--nice 1
--signal INT
--preserve-status
--end-background
--foreground
--terminal --detach
--ttl 70s'

REMEMBERED_IN='--in .
--strategy copy --in .
--keep always --in .
--commit never --in .
--merge --in . --land off
--retry 2 --in .
--readonly-rest --in .
--write /var --readonly-rest --in .
--no-network --in .
--land main --in .
--message words --in .
--base worktree --in .
--land-merge ff-only --in .
--also *.log --in .
--speculate 2 --in .
--sign --in .
--require-change --in .'

# Of the call: which run it is, its waiting, its status, what it says and where; --rm leaves nothing to resume, and -c and
# --hooks are in the command, --stdin in what it reads, --ask in --commit, which are remembered.
OF_THE_CALL='--resume --token --detach --nonblock --wait --on-timeout --conflict-exit-code --map-exit --verbose --json-fd --result --die-with-parent --ask
    --rm --command --hooks --stdin --discard'

kept_of() { jq -cS 'del(.argv)' "$HOLDFAST_DIR/sessions/$1/command.json"; }

# remembered NAME BASE OPTION...: it is stored, another thing than what BASE has stored, and a resume has it
remembered() {
    local name=$1 base=$2 before
    shift 2
    run hf run "$name" "$@" -- bash -c 'exit 3'
    # Root, without a cgroup, is bound by no such limit.
    [[ "$output" != *"Operation not supported (limit)"* ]] || return 0
    run hf wait "$name"
    [ "$status" -ne 0 ] || { echo "$* succeeds"; return 1; }
    before=$(kept_of "$name")
    [ "$before" != "$(kept_of "$base")" ] || { echo "$1 is not stored"; return 1; }
    run hf run "$name" --resume
    [[ "$output" == *"attempt 2 in "* ]] || { echo "$*:"; echo "$output"; return 1; }
    [ "$(kept_of "$name")" = "$before" ] || { echo "$*: $before, and after a resume $(kept_of "$name")"; return 1; }
}

@test "resume: there is no option of run that is neither remembered nor known to belong to the call" {
    local option line i=0 tried
    tried=" $(sed 's/ .*//' <<<"$REMEMBERED
$REMEMBERED_IN" | paste -sd' ') $(paste -sd' ' <<<"$OF_THE_CALL") "
    for option in $(hf run --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        [[ "$tried" == *" $option "* ]] || { echo "$option: say in this test whether --resume remembers it"; return 1; }
    done
    run hf run base -- bash -c 'exit 3'
    while read -r line; do
        # shellcheck disable=SC2086
        remembered "o$((++i))" base $line
    done <<<"$REMEMBERED"
}

@test "resume: no option of run --in is forgotten" {
    local line i=0
    set -f
    mkdir work
    cd work
    git init -q -b main .
    git -c user.name=n -c user.email=e commit -q --allow-empty -m first
    run hf run base --in . -- bash -c 'exit 3'
    [ "$status" -eq 3 ] || skip "no sandbox here: $output"
    run hf run none -- bash -c 'exit 3'
    while read -r line; do
        case $line in
        "--in ."*) remembered "o$((++i))" none --in . ;;
        # shellcheck disable=SC2086
        *) remembered "o$((++i))" base $line ;;
        esac
    done <<<"$REMEMBERED_IN"
}

@test "resume: what was stored acts: deadline, idle, grace, term, loop, until, notify, group, log, lease, depth" {
    expect 124 hf run deadline --deadline 100ms -- sleep 60
    expect 124 hf run deadline --resume
    expect 124 hf run idle --idle 100ms -- sleep 60
    expect 124 hf run idle --resume
    # Grace 0 is KILL at once, also in the resumed one.
    expect 124 hf run grace --deadline 200ms --grace 0 -- bash -c 'trap "touch term" TERM; while :; do sleep 0.02; done'
    expect 124 hf run grace --resume
    [ ! -e term ]
    expect 1 hf run until --max-runs 2 --until 'echo asked >>asked; false' -- bash -c 'echo run >>until.runs'
    expect 1 hf run until --resume
    [ "$(wc -l <until.runs)" -eq 4 ]
    [ "$(wc -l <asked)" -eq 4 ]
    is_field until '.outcome, .attempt, .loop' $'gave-up\n4\ntrue'
    expect 3 hf run notify --notify 'jq -r .attempt >>notices' -- bash -c 'exit 3'
    told notify 1
    expect 4 hf run notify --resume -- bash -c 'exit 4'
    told notify 2
    [ "$(cat notices)" = $'1\n2' ]
    expect 3 hf run group --max-active 1 --group g -- bash -c 'exit 3'
    running other --max-active 1 --group g
    expect 1 hf run group --resume
    says "1 of 1 sessions of the group 'g' are active"
    let_go other
    wait "$spawned_pid"
    expect 3 hf run log --log -- bash -c 'echo "attempt $HOLDFAST_ATTEMPT"; exit 3'
    expect 3 hf run log --resume
    expect 0 hf logs log
    says "attempt 2"
    expect 3 hf run depth --max-depth 1 -- bash -c 'exit 3'
    HOLDFAST_DEPTH=1 expect 1 hf run depth --resume
    says "the limit is 1"
}

@test "resume: the stored lease and group are the supervisor's, too, when the keeper is killed" {
    expect 3 hf run a --ttl 600ms --max-active 1 --group g --tree walk -- bash -c 'exit 3'
    spawn "$HOLDFAST" run a --resume -- sleep 60
    wait_until 10 is_field a .state running
    kill -KILL "$(field a .keeper.pid)"
    wait "$spawned_pid" || true
    # Its place is free: not taken from the dead, but given back.
    expect 0 hf run b --max-active 1 --group g -- true
    hf journal query --event lock_taken_over --json | jq -c 'select(.kind == "group")' >taken
    [ ! -s taken ]
    # A keeper that is stopped is continued when it neglects the short lease; with the default that takes a minute.
    spawn "$HOLDFAST" run a --resume --grace 100ms -- sleep 60
    wait_until 10 is_field a .state running
    keeper=$(field a .keeper.pid)
    kill -STOP "$keeper"
    wait_until 15 bash -c '! grep -qsE "^State:[[:space:]]+T" "/proc/$0/status"' "$keeper"
}

@test "resume: given again an option overrides, 0 and '' take it back, and the next resume has that" {
    fails x --deadline 1h --idle 30m --verify 'true' --notify 'true' --tree walk
    expect 3 hf run x --resume --deadline 2h --idle 0 --notify ''
    resumes_with x 2 "deadline 2h, verify 'true', tree walk"
    expect 3 hf run x --resume
    resumes_with x 3 "deadline 2h, verify 'true', tree walk"
    expect 3 hf run x --resume --tree auto
    resumes_with x 4 "deadline 2h, verify 'true', tree auto"
    # A run that is not a resume begins anew.
    fails x
    expect 3 hf run x --resume
    says "attempt 2 in $PWD"
    [[ "$output" != *deadline* ]]
}

# without_cgroups COMMAND...: where no cgroup can be made
without_cgroups() {
    if hf -q run probe --tree cgroup -- true 2>/dev/null; then
        unshare --mount -- bash -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' - "$@"
    else
        "$@"
    fi
}

@test "resume: a run that was refused before it began leaves the options of the one before (L14)" {
    fails x --deadline 1h --verify 'touch verified; exit 1' --env A=1 --log
    expect 3 hf run x --cwd "$PWD/no-such-directory" -- true
    running other --max-active 1 --group g
    expect 1 hf run x --max-active 1 --group g -- true
    let_go other
    [ "$(without_cgroups "$HOLDFAST" run x --tree cgroup --deadline 2h -- true >&2; echo $?)" -ne 0 ]
    [ ! -e verified ]
    expect 3 hf run x --resume
    resumes_with x 2 'deadline 1h'
    says "verify 'touch verified; exit 1'"
    [ "$(cat runs-x)" = $'run\nrun' ]
    [ "$(ls -A "$HOLDFAST_DIR/sessions/x" | grep -c command)" -eq 1 ]
}

@test "resume: killed when its record named the options and they were not in place yet, they are found (L14)" {
    fails x --deadline 1h
    mv "$(stored)" "$HOLDFAST_DIR/sessions/x/.command.json.next"
    expect 3 hf run x --resume
    resumes_with x 2 'deadline 1h'
    mv "$(stored)" "$HOLDFAST_DIR/sessions/x/.command.json.next"
    expect 3 hf run x --cwd "$PWD/no-such-directory" -- true
    # Others that are in place by now do not count.
    echo '{"v":2,"argv":["true"],"cwd":"/","env":[],"options":{}}' >"$(stored)"
    expect 3 hf run x --resume
    resumes_with x 3 'deadline 1h'
}

@test "resume: what an attempt was killed with is known, too: both keepers gone" {
    hf run x --detach --verify 'exit 1' -- sleep 60
    kill_keepers x
    wait_until 5 is_field x .state dead-unreaped
    expect 1 hf run x --resume -- true
    says "verify 'exit 1'"
    is_field x '.outcome, .attempt' $'verify-failed\n2'
}

stored() { echo "$HOLDFAST_DIR/sessions/x/command.json"; }

@test "resume: what is stored and was tampered with is put away, with one event, and nothing runs (L12)" {
    n=0
    for text in '' '{' '[]' 'null' '{"v":1}' '{"v":1,"argv":[]}' '{"v":1,"argv":["touch",1]}' '{"v":1,"argv":"touch ran"}' '{"v":1,"argv":[{"hex":"7"}]}' \
        '{"v":1,"argv":[{"hex":"00"}]}' '{"v":1,"argv":[{"hex":"zz"}]}' '{"v":1,"argv":["touch\u0000x"]}' '{"v":3,"argv":["touch","ran"]}' \
        '{"v":2,"argv":["touch","ran"]}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"relative","env":[],"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":1,"env":[],"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":["no value"],"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":["HOLDFAST_RUNS=x"],"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":["=x"],"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":{},"options":{}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":[]}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"no_such":1}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"deadline_ns":-1}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"deadline_ns":0}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"deadline_ns":1.5}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"deadline_ns":99999999999999999999}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"deadline_ns":"1h"}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"max_runs":4294967296}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"max_active":65}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"log":2}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"tree":"forest"}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"term":1}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"verify":""}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"verify":["true"]}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"ttl_ns":1}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{"log_max":1}}' \
        '{"v":2,"argv":["touch","ran"],"cwd":"/","env":[],"options":{},"more":1}' \
        '{"v":2,"argv":["touch","ran"],"argv":["touch","ran"],"cwd":"/","env":[],"options":{}}'; do
        rm -rf "$HOLDFAST_DIR/sessions/x"
        hf run x -- false || true
        printf %s "$text" >"$(stored)"
        expect 3 hf run x --resume
        n=$((n + 1))
        [ ! -e "$(stored)" ]
        [ "$(events record_quarantined x)" -eq "$n" ] || { echo "no event for $text"; return 1; }
        [ "$(ls "$HOLDFAST_DIR/quarantine" | wc -l)" -eq "$n" ]
    done
    ln -s /etc/passwd "$(stored)"
    expect 3 hf run x --resume
    mkfifo "$(stored)"
    expect 3 hf run x --resume
    truncate -s 20M "$(stored)"
    expect 3 hf run x --resume
    [ ! -e ran ]
    [ ! -e /ran ]
    is_field x .attempt 1
    # Then the command has to be given; that nothing else is known is said.
    expect 3 hf run x --resume
    says "its command is not stored"
    expect 0 hf run x --resume -- true
    says "its stored options are lost"
    is_field x '.attempt, .state' $'2\ndone'
}

@test "resume: options that are right in themselves but not what it ran with are refused (L14)" {
    expect 1 hf run x --verify 'exit 1' -- true
    # As after a power cut that kept the older file, or by a user that edits the verifier away.
    jq -c 'del(.options.verify)' "$(stored)" >edited
    cat edited >"$(stored)"
    expect 3 hf run x --resume
    says "its stored command and options differ from those of its run"
    is_field x '.outcome, .attempt' $'verify-failed\n1'
    [ -e "$(stored)" ]
    [ "$(events session_refused x)" -eq 1 ]
}
