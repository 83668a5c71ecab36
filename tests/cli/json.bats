# docs/JSON.md: each shape there has a real example; here the same commands are run and the shapes compared.
load session_helper

DOC="$BATS_TEST_DIRNAME/../../docs/JSON.md"

# What the examples are about: a session that runs and whose run before failed, a lock with a waiter, a file, work mode, a plan.
stage() {
    hf run fix-160 -- bash -c 'exit 9' >/dev/null 2>&1 || true
    hf run fix-160 --detach --deadline 1h -- sleep 600 >/dev/null
    hf run busy --detach -- sleep 600 >/dev/null
    hf run said -- echo working >/dev/null
    # Its owner ends with the test.
    spawn sleep 600
    owner=$spawned_pid
    hf lock acquire build --pid "$owner" --ttl 1h >/dev/null
    spawn "$HOLDFAST" lock run build -- true
    wait_until 10 bash -c '[ "$("$0" --json lock list | jq "[.locks[].waiters[]] | length")" = 1 ]' "$HOLDFAST"
    echo '{"runs":1}' >agents.json
    hf -q keep on --session s --goal 'the tests pass' --until 'make test'
    # A plan with one change, whose target changed meanwhile.
    mkdir app
    echo 1 >app/main.c
    hf -q plan new upgrade
    hf -q plan add upgrade app app --strategy copy
    echo 22 >"$(hf plan path upgrade app)/main.c"
    echo 3 >app/main.c
}

# A candidate whose agent is done, and one that was only begun. Landing needs an overlay.
stage_landing() {
    git init -q -b main repo
    echo 1 >repo/main.c
    git -C repo add -A
    git -C repo -c user.name=me -c user.email=me@example.org commit -qm first
    lands=0
    ! hf -q land begin fix-170 repo 2>/dev/null || lands=1
    [ "$lands" = 0 ] || hf -q plan enter fix-170 -- sh -c 'echo 2 >repo/main.c'
    [ "$lands" = 0 ] || hf -q land begin fix-171 repo
}

# The kernel gives an overlay's work directory no rights at all.
eval "$(declare -f teardown | sed '1s/teardown/end_sessions/')"
teardown() {
    end_sessions
    chmod -R u+rwX "$BATS_TEST_TMPDIR" || true
}

# The kinds of an object's members, and of the first member of each list.
SHAPE='def shape: if type == "object" then map_values(shape) elif type == "array" then (.[0:1] | map(shape)) else type end; shape'

# examples: the commands of docs/JSON.md, in order
examples() { sed -n 's/^\$ holdfast //p' "$DOC"; }

# example COMMAND: the JSON that stands below it
example() { awk -v command="\$ holdfast $1" '$0 == command { on = 1; next } on && /^```$/ { exit } on' "$DOC"; }

@test "docs/JSON.md: every example has the members and kinds that the command really gives" {
    stage
    lands=
    [ "$(examples | wc -l)" -ge 20 ]
    while IFS= read -r command; do
        example "$command" >documented
        [ -s documented ] || { echo "no example: $command"; return 1; }
        if [[ "$command" == *" fix-170"* || "$command" == *" land "* ]]; then
            [ -n "$lands" ] || stage_landing
            [ "$lands" = 1 ] || { echo "# NO OVERLAY HERE: $command" >&3; continue; }
        fi
        eval "hf ${command//OWNER/$owner}" >given 2>/dev/null </dev/null || true
        if ! diff <(jq -S "$SHAPE" documented) <(jq -S "$SHAPE" given); then
            echo "docs/JSON.md and the command differ: $command"
            return 1
        fi
    done < <(examples)
}

@test "docs/JSON.md: every member of every example is explained" {
    while IFS= read -r command; do
        example "$command" | jq -r '[.. | objects | keys[]] | unique[]'
    done < <(examples) | sort -u >members
    [ "$(wc -l <members)" -gt 80 ]
    while IFS= read -r member; do
        # Counted by the name of an event, not a member of its own.
        case $member in note | keep_on | lock_skipped | plan_added | session_*) continue ;; esac
        grep -q "\`$member\`" "$DOC" || { echo "not explained: $member"; return 1; }
    done <members
}

@test "rules: unknown is null and never -1; times are RFC 3339 in UTC; a name that is not UTF-8 has its key beside it" {
    stage
    name=$'caf\xe9'
    hf run "$name" -- true
    for command in "ps" "lock list --all" "why build" "wait $name"; do
        hf --json $command >given
        jq -e '[.. | numbers | select(. == -1)] == []' given
        jq -e '[.. | objects | .started?, .ended?, .since?, .ts? | strings | select(test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]+Z$") | not)] == []' given
        jq -e '[.. | objects | keys[] | select(test("_(ns|us|seconds|kb|mb)$"))] == []' given
    done
    jq -e '.key == "caf%E9" and (.name | startswith("caf"))' given
}

# fails STATUS COMMAND...: it exits so, and an error on standard output says the same
fails() {
    local status=0 want=$1
    shift
    hf --json "$@" >given 2>/dev/null </dev/null || status=$?
    if [ "$status" -ne "$want" ] || ! jq -es --argjson exit "$want" 'length == 1 and .[0].v == 1 and .[0].error.exit == $exit and (.[0].error.message | length > 5)' given >/dev/null; then
        echo "$* ($status): $(cat given)"
        return 1
    fi
}

@test "every failure is an object with the exit status: wrong usage of each verb, commands that cannot be run, what Holdfast refuses" {
    fails 2
    fails 2 nosuch
    fails 2 lock
    fails 2 lock nosuch
    n=0
    while read -r verb; do
        fails 2 $verb --no-such-option
        n=$((n + 1))
    done < <(hf help | sed -nE '/^  --dir/q; s/^  ([a-z]+( [a-z-]+)?) {2,}.*/\1/p')
    [ "$n" -ge 75 ]
    fails 127 lock run a -- ./nosuch
    fails 127 file with agents.json -- ./nosuch
    fails 125 file edit nosuch -- cat
    fails 1 keep status
    fails 1 keep status --session s
    mkdir plain
    fails 3 land begin fix-172 plain
    hf run one --detach --group g --max-active 1 -- sleep 600 >/dev/null
    fails 9 run two --group g --max-active 1 -E 9 -- true
}

@test "a skip is told as JSON with exit 0; a descriptor that is locked or unlocked, too" {
    spawn sleep 600
    hf lock acquire build --pid "$spawned_pid" >/dev/null
    hf --json lock run build -n --on-timeout skip -- touch ran >given
    jq -e '.conflict and .error.code == "busy" and .error.exit == 0' given
    [ ! -e ran ]
    exec 8<>shared 9<>shared
    hf --json lock fd 8 >given
    jq -e '.fd == 8 and .locked' given
    # The shell must hear that it does not have the lock; a command that is not run needs no alarm.
    expect 1 hf lock fd 9 -n --on-timeout skip
    expect 0 hf lock fd 9 -n --on-timeout skip -- touch ran
    [ ! -e ran ]
    hf --json lock fd 8 --unlock >given
    jq -e '.fd == 8 and (.locked | not)' given
}
