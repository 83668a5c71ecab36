#!/usr/bin/env bats
# Work of a run that did not land: no other run, rm, prune or gc removes it without --discard, and the session needs a person while it exists.
load ../session_helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
}

needs() { field "$1" '[.needs[].code] | join(" ")'; }

is_needs() { [ "$(needs "$1")" = "$2" ] || { echo "$1 needs '$(needs "$1")', not '$2'"; return 1; }; }

# later DAYS WORDS...: our command, with the wall clock set on
later() {
    local days=$1
    shift
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 faketime "+$days days" "$HOLDFAST" "$@"
}

has_plan() { hf -q plan list --json | jq -e --arg p "$1" '[.plans[].name] | index($p)' >/dev/null; }

has_no_plan() { ! has_plan "$1" || { echo "$1 is still there"; return 1; }; }

# typed WORDS: the command that the last output recommends with these words, as a shell reads it
typed() {
    local line
    line=$(grep -F "    holdfast $1" <<<"$output") || { echo "no 'holdfast $1' in:"; echo "$output"; return 1; }
    line=${line%%  #*}
    eval "hf ${line#*holdfast }"
}

commits='echo precious >p; git add p; git commit -qm precious; echo more >q'

# ended HOW NAME: a run of NAME that ends so, with a commit and an uncommitted file in its sandbox
ended() {
    case $1 in
    verify-failed) expect 1 hf run "$2" --in . --verify false -- sh -c "$commits" ;;
    failed) expect 7 hf run "$2" --in . -- sh -c "$commits; exit 7" ;;
    timed-out) expect 124 hf run "$2" --in . --deadline 2s --grace 100ms -- sh -c "$commits; touch $BATS_TEST_TMPDIR/up; sleep 60" ;;
    stopped)
        rm -f ../up
        spawn "$HOLDFAST" -q run "$2" --in . -- sh -c "$commits; touch $BATS_TEST_TMPDIR/up; sleep 60"
        wait_until 20 test -e ../up
        hf -q stop "$2"
        wait "$spawned_pid" || true
        ;;
    esac
    is_field "$2" .outcome "$1"
}

@test "a run is refused while the last run of its name left work, after any outcome; it prints the work and commands that can be typed" {
    local how
    for how in verify-failed failed timed-out stopped; do
        ended "$how" "again $how"
        expect 1 hf run "again $how" --in . --verify false -- true
        says "the last run left 2 files changed, "
        says ", not landed"
        has_plan "run:again $how"
        # In the background, as JSON, and as a loop it is the same.
        expect 1 hf run "again $how" -d --in . -- true
        says "the last run left 2 files changed, "
        expect 1 hf -q --json run "again $how" --in . --max-runs 3 -- true
        is_json '.error.code == "dirty"'
        expect 1 hf run "again $how" --in . -- true
        typed "plan diff" | grep -q precious || typed "plan diff" | grep -q "p$"
    done
    expect 1 hf run "again failed" --in . -- true
    typed 'land "' >out 2>&1 || { cat out; return 1; }
    [ "$(cat p q)" = $'precious\nmore' ]
    git reset -q --hard HEAD~2
    expect 1 hf run "again timed-out" --in . -- true
    typed "land drop"
    has_no_plan "run:again timed-out"
    expect 0 hf run "again timed-out" --in . -- true
    expect 1 hf run "again stopped" --in . -- true
    # Its own command would sleep again.
    expect 0 hf run --resume "again stopped" -- true
    [ "$(cat p q)" = $'precious\nmore' ]
}

@test "a run into plain files is refused in the same way; its commands commit or drop the work" {
    local name
    mkdir ../T
    for name in one two; do
        expect 3 hf run "$name" --in ../T -- sh -c "echo $name >../T/f; exit 3"
        expect 1 hf run "$name" --in ../T -- true
        says "the last run left 1 file changed, not committed"
    done
    typed "plan rm --discard"
    has_no_plan run:two
    expect 0 hf run two --in ../T -- true
    expect 1 hf run one --in ../T -- true
    typed "plan commit"
    [ "$(cat ../T/f)" = one ]
    expect 0 hf run one --in ../T -- true
}

@test "a run that changed nothing, or only git's index, does not prevent another" {
    touch -d 2001-01-01 a b
    expect 3 hf run x --in . -- sh -c 'git status >/dev/null; git update-index --refresh; mkdir -p empty; exit 3'
    has_no_plan run:x
    expect 0 hf run x --in . -- true
    # A commit alone is work, and so is a stash.
    expect 3 hf run x --in . -- sh -c 'git commit -q --allow-empty -m alone; exit 3'
    expect 1 hf run x --in . -- true
    says "the last run left 1 commit, not landed"
    expect 3 hf run y --in . -- sh -c 'echo 1 >>a; git stash -q; exit 3'
    expect 1 hf run y --in . -- true
    says "the last run left changes in .git, not landed"
}

@test "--discard prints and drops a sandbox, or a candidate with its ref; it is refused with --resume" {
    ended verify-failed x
    expect 2 hf run x --resume --discard
    expect 2 hf run plain --discard -- true
    expect 0 hf run x --discard --in . -- true
    says "dropping the work of the last run: 2 files changed"
    has_no_plan run:x
    [ ! -e p ]
    mkfifo ../go
    spawn "$HOLDFAST" run c --in . -- sh -c 'sed -i 1s/1/agent/ a; touch ../up; cat ../go'
    wait_until 20 test -e ../up
    sed -i 1s/1/user/ a
    git commit -qam user
    echo >../go
    ! wait "$spawned_pid" || return 1
    git rev-parse -q --verify refs/holdfast/c
    expect 0 hf -q run c -d --discard --in . -- true
    expect 0 hf wait c
    ! git rev-parse -q --verify refs/holdfast/c || return 1
    expect 1 hf land c
    has_no_plan run:c
}

@test "restart continues in the sandbox; a loop prints the work that it replaces, and never replaces work that succeeded" {
    ended failed x
    expect 0 hf restart x
    ! hf wait x || return 1
    is_field x .attempt 2
    has_plan run:x
    expect 1 hf run l --in . --max-runs 2 --backoff 10ms -- sh -c 'echo 1 >l; exit 1'
    says "dropping the work of the previous attempt: 1 file changed"
    hf -q land drop l
    run hf run n --in . --commit never --max-runs 2 --backoff 10ms -- sh -c "echo x >>$BATS_TEST_TMPDIR/ran; echo 1 >n"
    [ "$status" -ne 0 ]
    [ "$(wc -l <../ran)" -eq 1 ]
    says "the previous attempt left 1 file changed"
    expect 0 hf plan commit run:n
    [ "$(cat n)" = 1 ]
}

@test "rm, prune and a run with --rm keep a session whose work has not landed; --discard prints and drops it" {
    ended failed x
    ended verify-failed y
    expect 7 hf run z --in . --rm -- sh -c 'echo 1 >z; exit 7'
    hf -q run good -- true
    expect 1 hf rm x
    says "it left work that has not landed"
    says "    holdfast land drop x "
    expect 0 hf prune --older-than 0s
    says "session 'x' is kept: its work has not landed: 2 files changed, 1 commit"
    says "1 session forgotten"
    says "3 kept"
    expect 0 hf -q --json prune --older-than 0s
    is_json '.pruned == [] and ([.kept[].name] | sort) == ["x", "y", "z"]'
    expect 0 hf prune --older-than 0s --discard --dry-run
    says "session 'x': would drop its work: 2 files changed"
    is_needs x failed
    has_plan run:x
    expect 0 hf rm --discard x
    says "session 'x': dropping its work: 2 files changed"
    has_no_plan run:x
    expect 1 hf ps x
    expect 0 hf prune --older-than 0s --discard
    says "session 'z': dropping its work: 1 file changed"
    says "2 sessions forgotten"
    [ -z "$(git for-each-ref refs/holdfast)" ]
    has_no_plan run:y
}

@test "a need lasts as long as the work: on the third day ps and status show it, gc keeps it, and automatic pruning keeps the session" {
    command -v faketime >/dev/null || skip "needs faketime"
    ended verify-failed x
    ended stopped s
    hf -q run bad -- false || true
    is_needs s unlanded
    expect 0 later 3 plan gc
    says "keep     run:x"
    expect 0 later 3 status
    says "x: verify-failed"
    says "    holdfast run --resume x"
    says "! ended without landing 72 h ago"
    says "    holdfast plan diff run:s"
    ! says "bad" 2>/dev/null || return 1
    expect 0 later 3 ps
    says "x "
    ! says "bad" 2>/dev/null || return 1
    # A run prunes when it has ended, and finds them older than a month.
    HOLDFAST_PRUNE=0s later 40 -q run later -- true
    echo 00000000000000000001 >"$HOLDFAST_DIR/sessions/.pruned"
    HOLDFAST_PRUNE=0s later 40 -q run later -- true
    expect 1 hf ps bad
    expect 0 later 40 status
    says "x: verify-failed"
    hf -q land drop x
    expect 0 later 41 status
    ! says "x: verify" 2>/dev/null || return 1
}

@test "a need ends when the work landed, or was dropped or committed by hand, or merged or cherry-picked with git" {
    local how i=0
    for how in "land NAME --verify true" "land drop NAME" "plan rm --discard run:NAME" "rm --discard NAME"; do
        expect 1 hf run "n$((++i))" --in . --verify false -- sh -c "echo $i >n$i"
        is_needs "n$i" verify-failed
        # shellcheck disable=SC2086 # words
        expect 0 hf ${how//NAME/n$i}
        [ "${how%% *}" = rm ] || is_needs "n$i" ""
    done
    mkdir ../T
    expect 3 hf run f --in ../T -- sh -c "echo 1 >../T/f; exit 3"
    is_needs f failed
    expect 0 hf plan commit run:f
    is_needs f ""
    # Runs that changed nothing, or keep nothing, still need a person.
    expect 3 hf run nothing --in . -- sh -c 'exit 3'
    is_needs nothing failed
    expect 3 hf run never --in . --keep never -- sh -c 'echo 1 >never; exit 3'
    is_needs never failed
    for how in merge cherry-pick; do
        mkfifo "../go-$how"
        spawn "$HOLDFAST" -q run "$how" --in . -- sh -c "echo $how >>b; touch ../up-$how; cat ../go-$how"
        wait_until 20 test -e "../up-$how"
        echo user >>b
        git commit -qam user
        echo >"../go-$how"
        ! wait "$spawned_pid" || return 1
        is_needs "$how" conflict
        expect 0 hf status "$how"
        says "    holdfast land show $how"
        # Now the candidate merges without a conflict.
        git reset -q --hard HEAD~1
        echo other >"other-$how"
        git add -A
        git commit -qm other
        git "$how" $([ "$how" = cherry-pick ] || echo -q -m merged) "refs/holdfast/$how" >/dev/null
        is_needs "$how" ""
        expect 1 hf run "$how" --in . -- true
        says "the work of the last run is part of main, but its sandbox still exists"
        expect 0 hf land "$how" --verify true
        expect 0 hf run "$how" --in . -- true
    done
}

@test "a need of one whose keepers were killed lasts as the work does, and ends when that lands" {
    spawn "$HOLDFAST" -q run x --in . -- sh -c 'echo 1 >x; touch ../up; sleep 60'
    wait_until 20 test -e ../up
    kill_keepers x
    wait_until 10 is_field x .state dead-unreaped
    hf reap x
    is_field x .outcome abandoned
    is_needs x failed
    expect 1 hf run x --in . -- true
    says "the last run left 1 file changed"
    expect 0 hf land x
    is_needs x ""
}

@test "an earlier landing of the name does not hide work of a run into plain files" {
    expect 0 hf run n --in . -- sh -c 'echo 1 >one'
    expect 1 hf run n --in . --land off --verify false -- sh -c 'echo 2 >two'
    is_needs n verify-failed
    is_field n '.needs[0].action' resume
    expect 1 hf rm n
    expect 0 hf prune --older-than 0s
    says "session 'n' is kept: its work has not landed: 1 file changed"
    expect 1 hf run n --in . -- true
    says "the last run left 1 file changed, not committed"
    typed "plan commit"
    [ "$(cat two)" = 2 ]
    is_needs n ""
    expect 1 hf run n --in . --land off --verify false -- sh -c 'echo 3 >two'
    expect 1 hf run n --in . -- true
    typed "plan rm --discard"
    expect 0 hf run n --in . -- true
}

@test "no command resumes a session whose candidate landed by hand, but for a file" {
    git config core.fileMode false
    expect 1 hf run n --in . --verify false -- sh -c 'chmod +x b; echo 2 >a'
    expect 0 hf land n --verify true
    is_needs n verify-failed
    is_field n '.needs[0].action' diff
    expect 0 hf status n
    typed "plan diff"
    expect 1 hf run n --in . -- true
    [[ $output != *resume* ]] || { echo "$output"; return 1; }
    typed "plan diff"
    expect 1 hf run --resume n
    says "its work has landed"
    expect 1 hf run n --in . -- true
    typed "land drop"
    expect 0 hf run n --in . -- true
}

@test "files that hide the user's uncommitted edits do not count as work" {
    local how
    echo mine >>b
    echo new >mine
    rm a
    for how in 'exit 3' 'git status >/dev/null; git log >/dev/null; mkdir -p empty; exit 3'; do
        expect 3 hf run x --in . -- sh -c "$how"
        has_no_plan run:x
        is_needs x failed
        expect 0 hf run x --in . -- true
    done
    # Only changes of the agent are counted.
    expect 3 hf run y --in . -- sh -c 'echo 1 >agent; rm .gitignore; git rm -q --cached b; exit 3'
    expect 1 hf run y --in . -- true
    says "the last run left 3 files changed, not landed"
    hf -q land drop y
    for how in 'echo 1 >b' 'rm b' 'chmod +x b' 'echo 1 >new.o' 'git commit -q --allow-empty -m alone' 'git config a.b c' 'git branch x; git stash -q' 'git update-index --skip-worktree b; echo 1 >>b' \
        'git config core.fileMode false; chmod +x b' 'git rm -q --cached a' 'echo 1 >>b; git stash -q'; do
        expect 3 hf run y --in . -- sh -c "$how; exit 3"
        has_plan run:y || { echo "dropped: $how"; return 1; }
        expect 1 hf run y --in . -- true
        hf -q land drop y
    done
    [ "$(cat mine)" = new ]
    [ ! -e a ]
}
