#!/usr/bin/env bats
# run --in DIR [--land BRANCH] over a git work tree: the change of a run becomes the branch, rebased and verified as it lands, or nothing does.
load ../session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME="$BATS_TEST_TMPDIR/home"
    mkdir -p "$HOME"
    spawned=()
    git init -q -b main "$BATS_TEST_TMPDIR/repo"
    cd "$BATS_TEST_TMPDIR/repo" || return 1
    git config user.email tester@example.org
    git config user.name Tester
    printf '%s\n' a b c d e f g h >lines
    echo ok >check
    git add -A
    git commit -qm base
    hf plan new probe 2>/dev/null
    hf plan add probe p "$PWD" --strategy overlay >/dev/null 2>&1 || skip "no overlay here"
    hf -q plan rm probe --discard
}

# The kernel gives an overlay's work directory no rights at all.
teardown() {
    kill_spawned
    chmod -R u+rwX "$BATS_TEST_TMPDIR" || true
}

VERIFY='grep -qx ok check'

# land NAME SCRIPT [OPTIONS]: a run over the work tree that lands on the branch that is checked out
land() {
    local name=$1 script=$2
    shift 2
    timeout --kill-after=5 120 "$HOLDFAST" run "$name" --in . --land HEAD --verify "$VERIFY" "$@" -- sh -c "$script"
}

# The branch, its work tree and its index agree, and every commit on it passes the verifier.
is_green() {
    git fsck --strict >/dev/null 2>&1 || { echo "fsck"; git fsck; return 1; }
    local commit
    for commit in $(git rev-list main); do
        [ "$(git show "$commit:check")" = ok ] || { echo "$commit is not green"; return 1; }
    done
}
is_clean() { [ -z "$(git status --porcelain)" ] || { git status --short; return 1; }; }

@test "L14: a run that succeeds lands, committed by itself or for it; the message, the trailers and the record say so" {
    expect 0 land one 'echo 1 >new'
    says "landed on main as"
    is_clean
    [ "$(cat new)" = 1 ]
    git log -1 --format=%B | grep -q '^Holdfast-Session: one$'
    expect 0 land two 'echo 2 >two; git add two; git commit -qm "by the agent"' --json -q
    is_json '.landed.branch == "main" and .landed.committed and .landed.commits == 1 and (.landed.commit | length == 40)'
    [ "$(git log -1 --format=%s)" = "by the agent" ]
    expect 0 land three 'echo 3 >three' --message 'said by the user'
    [ "$(git log -1 --format=%s)" = "said by the user" ]
    is_clean
    is_green
    run hf ps two
    says "landed on main"
    expect 0 land nothing 'true'
    says "nothing to land"
    run hf ps nothing
    says "exit 0, verified, nothing to land"
}

@test "land list: a run that works, and one that ended without landing, can be told apart" {
    spawn "$HOLDFAST" -q run works --in . -- sh -c 'touch ../up; until [ -e ../go ]; do sleep 0.02; done'
    wait_until 20 test -e ../up
    expect 1 land left 'echo broken >check'
    expect 0 hf land list
    says 'working    works  main'
    says 'kept       left  main'
    expect 0 hf why left
    says "candidate for main: kept: its run ended without landing: 'holdfast land "
    expect 0 hf land show left
    says 'state     kept'
    expect 0 hf land list --json
    is_json '[.queues[].candidates[] | {(.name): .alive}] | add == {"works": true, "left": false}'
    touch ../go
    wait "$spawned_pid"
}

@test "L14: what fails, breaks the verifier or reaches its deadline does not land, and is kept" {
    before=$(git rev-parse main)
    expect 3 land fails 'echo x >new; exit 3'
    says "holdfast land fails"
    expect 1 land breaks 'echo bad >check'
    expect 124 land hangs 'echo x >new; sleep 600' --deadline 1s --grace 1s
    expect 0 hf ps hangs
    [[ "${lines[1]}" =~ ^hangs\ +timed-out\  ]]
    [ "$(git rev-parse main)" = "$before" ]
    is_clean
    [ ! -e new ]
    expect 1 land fails 'echo y >new'
    says "the last run left 1 file changed, not landed"
    expect 0 land fails 'echo y >new' --discard
    says "dropping the work of the last run: 1 file changed"
    [ "$(cat new)" = y ]
}

@test "a run that fails and changed nothing leaves no sandbox and no candidate; one that is told not to keep its work neither" {
    expect 1 land nothing 'exit 1'
    expect 1 land dropped 'echo 1 >new; exit 1' --keep=never
    run hf land list
    ! says working || return 1
    [ -z "$(hf plan list --json | jq -r '.plans[].name')" ]
    [ "$(hf --json land show dropped | jq -r .state)" = dropped ]
    expect 0 land nothing 'echo 1 >new'
    is_clean
}

@test "two runs at once: the second is rebased and verified again; a broken union is refused although each part is green" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    spawn timeout 120 "$HOLDFAST" run slow --in . --land HEAD --verify "$VERIFY" -- sh -c "touch $BATS_TEST_TMPDIR/in; sed -i s/a/A/ lines; cat $BATS_TEST_TMPDIR/go"
    wait_until 20 test -e "$BATS_TEST_TMPDIR/in"
    expect 0 land fast 'sed -i s/h/H/ lines'
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$spawned_pid"
    [ "$(tr -d '\n' <lines)" = AbcdefgH ]
    is_clean
    is_green
    # Each passes alone; together they do not.
    VERIFY='grep -qx ok check && ! { [ -e left ] && [ -e right ]; }'
    rm "$BATS_TEST_TMPDIR/in"
    spawn timeout 120 "$HOLDFAST" run left --in . --land HEAD --verify "$VERIFY" -- sh -c "touch $BATS_TEST_TMPDIR/in; echo >left; cat $BATS_TEST_TMPDIR/go"
    wait_until 20 test -e "$BATS_TEST_TMPDIR/in"
    expect 0 land right 'echo >right'
    echo >"$BATS_TEST_TMPDIR/go"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -ne 0 ]
    [ ! -e left ]
    is_green
}

@test "what the verifier refuses when it is verified as it lands is kept in the repository, and its name is not free until that is decided" {
    before=$(git rev-parse main)
    mark_one
    VERIFY="mkdir '$BATS_TEST_TMPDIR/once'" # says yes to the run and no to the landing
    expect 1 land late 'echo 1 >made'
    says "verify failed"
    says "refs/holdfast/late"
    [ "$(git rev-parse main)" = "$before" ]
    [ ! -e made ]
    git rev-parse -q --verify refs/holdfast/late
    [ "$(hf --json ps --all | jq -r '.sessions[] | select(.name == "late") | .needs[0].code')" = land-rejected ]
    run hf land list
    says "rejected"
    expect 1 land late 'true'
    hf -q land drop late
    VERIFY=true
    expect 0 land late 'echo 2 >made'
    [ "$(cat made)" = 2 ]
}

@test "L14: what a verifier writes does not land, and what it removes is not lost: what lands is what the command made" {
    VERIFY='[ -e made ] && echo r >report && echo x >>lines && git clean -fdqx && git commit -qam junk'
    expect 0 land writes 'echo 1 >made; sed -i s/a/A/ lines'
    [ "$(cat made)" = 1 ]
    [ ! -e report ]
    [ "$(tr -d '\n' <lines)" = Abcdefgh ]
    [ "$(git log --format=%s | grep -c junk)" -eq 0 ]
    [ "$(git rev-list --count main)" -eq 2 ]
    is_clean
    # One that says no, and then its work by hand: without what the verifier left. What is committed inside by hand comes, too.
    VERIFY='echo r >report; false'
    expect 1 land refused 'echo 2 >made'
    hf -q land refused --verify true
    [ "$(cat made)" = 2 ]
    [ ! -e report ]
    VERIFY='echo r >report; false'
    expect 1 land again 'echo 3 >made'
    hf -q plan enter run:again -- sh -ec 'echo 4 >made; git add made; git commit -qm four'
    rm -f report
    hf -q land again --verify true
    [ "$(cat made)" = 4 ]
    # Nothing was made: what the verifier writes is still nothing.
    VERIFY='echo r >report2'
    before=$(git rev-parse main)
    expect 0 land none true
    [ "$(git rev-parse main)" = "$before" ]
    [ ! -e report2 ]
}

@test "a conflict lands nothing, lists the paths and keeps the work; an uncommitted edit of the user is never touched" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    spawn timeout 120 "$HOLDFAST" run slow --in . --land HEAD --result "$BATS_TEST_TMPDIR/result" -- sh -c "touch $BATS_TEST_TMPDIR/in; sed -i s/a/X/ lines; cat $BATS_TEST_TMPDIR/go"
    wait_until 20 test -e "$BATS_TEST_TMPDIR/in"
    expect 0 land fast 'sed -i s/a/Y/ lines'
    echo >"$BATS_TEST_TMPDIR/go"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 1 ]
    jq -e '.landed.committed == false and .landed.conflicts[0].path == "lines"' "$BATS_TEST_TMPDIR/result"
    git rev-parse -q --verify refs/holdfast/slow
    [ "$(head -1 lines)" = Y ]
    echo mine >>check
    expect 1 land edits 'echo theirs >>check; echo ok >other' --verify true
    [ "$(tail -1 check)" = mine ]
    [ ! -e other ]
    git checkout -q check
    expect 0 hf land edits
    [ -e other ]
}

@test "--retry: after a conflict the command runs again on what is there now, in a new sandbox, and lands" {
    cat >"$BATS_TEST_TMPDIR/agent" <<AGENT
echo >>"$BATS_TEST_TMPDIR/tries"
sed -i '1s/\$/ agent/' lines
[ "\$(wc -l <"$BATS_TEST_TMPDIR/tries")" -gt 1 ] || cat "$BATS_TEST_TMPDIR/go"
AGENT
    mkfifo "$BATS_TEST_TMPDIR/go"
    spawn timeout 120 "$HOLDFAST" -q run again --in . --retry 1 -- sh -e "$BATS_TEST_TMPDIR/agent"
    wait_until 30 test -s "$BATS_TEST_TMPDIR/tries"
    sed -i '1s/a/user/' lines
    git commit -qam user
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$spawned_pid"
    [ "$(head -n1 lines)" = "user agent" ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/tries")" -eq 2 ]
    [ -z "$(git for-each-ref refs/holdfast)" ]
    [ "$(hf journal query --event land_dropped --name again | wc -l)" -eq 1 ]
    is_clean
}

@test "--resume goes on in the kept sandbox and lands; what it must remember it does" {
    expect 4 land r 'echo 1 >one; exit 4'
    expect 0 hf run r --resume -- sh -c 'test -e one; echo 2 >two'
    [ -e one ]
    [ -e two ]
    git log -1 --format=%B | grep -q '^Holdfast-Session: r$'
    is_clean
    # The verifier is one of the things: a refused run does not land by being resumed.
    expect 1 land v 'echo bad >check; echo 1 >made'
    expect 1 hf run v --resume -- true
    [ ! -e made ]
    [ "$(cat check)" = ok ]
}

@test "--also lands ignored files that match, is remembered by --resume, and needs a landing" {
    echo '*.log' >.gitignore
    git add .gitignore
    git commit -qm ignore
    expect 4 land r 'echo 1 >a.log; echo 2 >b.log; exit 4' --also 'a.*'
    expect 0 hf run r --resume -- true
    [ "$(git show --format= --name-only main)" = a.log ]
    [ ! -e b.log ]
    is_clean
    mkdir ../plain
    expect 2 hf run p --in ../plain --land off --also x -- true
    expect 2 hf run p --in . --land HEAD --also '' -- true
}

@test "L14: supervisor, keeper or both killed while it lands: landed and recorded, or neither" {
    for victim in supervisor keeper both; do
        n="kill-$victim"
        spawn "$HOLDFAST" run "$n" --in . --land HEAD --verify "$VERIFY" -- sh -c "echo $victim >$victim"
        wait_until 30 bash -c '[ "$("$0" --json ps "$1" | jq -r ".sessions[0].state // .state")" != running ]' "$HOLDFAST" "$n"
        keeper=$(cat "/proc/$spawned_pid/task/$spawned_pid/children" 2>/dev/null | awk '{print $1}')
        case $victim in supervisor) kill -KILL "$spawned_pid" ;; keeper) kill -KILL $keeper ;; both) kill -KILL "$spawned_pid" $keeper ;; esac 2>/dev/null || true
        wait "$spawned_pid" 2>/dev/null || true
        hf -q reap "$n" || true
        wait_until 30 bash -c '! "$0" lock check "$1" >/dev/null 2>&1' "$HOLDFAST" "$n"
        outcome=$(hf --json ps "$n" | jq -r '.sessions[0].outcome // .outcome')
        if [ "$outcome" = succeeded ]; then
            [ -e "$victim" ]
        else
            hf -q land recover 2>/dev/null || true
            [ ! -e "$victim" ] || { echo "$victim: $outcome, and it is there"; hf land list; false; }
        fi
        is_clean
        is_green
    done
}

@test "what cannot land is refused before the command starts" {
    mkdir ../plain
    expect 3 hf run p --in ../plain --land HEAD -- touch "$BATS_TEST_TMPDIR/ran"
    says "not in a git work tree"
    expect 3 hf run p --in . --land no-such-branch -- touch "$BATS_TEST_TMPDIR/ran"
    expect 2 hf run p --in . --in ../plain --land HEAD -- touch "$BATS_TEST_TMPDIR/ran"
    expect 2 hf run p --in ../plain --message x -- touch "$BATS_TEST_TMPDIR/ran"
    expect 2 hf run p --in . --land off --message x -- touch "$BATS_TEST_TMPDIR/ran"
    expect 2 hf run p --in . --land HEAD --ask -- touch "$BATS_TEST_TMPDIR/ran"
    expect 2 hf run p --in . --land HEAD --base nothing -- touch "$BATS_TEST_TMPDIR/ran"
    git checkout -q --detach
    expect 3 hf run p --in . --land HEAD -- touch "$BATS_TEST_TMPDIR/ran"
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "a git work tree lands without --land; --land off, and options that are for files, commit files" {
    expect 0 hf run one --in . --verify "$VERIFY" -- sh -c 'echo 1 >one'
    says "the change lands on main"
    says "landed on main as"
    is_clean
    [ "$(git log -1 --format=%s)" = "Work of one" ]
    expect 0 hf run two --in . --message 'said so' -- sh -c 'echo 2 >two'
    [ "$(git log -1 --format=%s)" = "said so" ]
    before=$(git rev-parse main)
    expect 0 hf run off --in . --land off -- sh -c 'echo 3 >three'
    [[ "$output" != *land* ]] || { echo "$output"; return 1; }
    expect 0 hf run keep --in . --keep always -- sh -c 'echo 4 >four'
    says "plain files are committed"
    mkdir ../plain
    expect 0 hf run both --in ../plain --in . -- sh -c 'echo 5 >five; echo 6 >../plain/six'
    says "plain files are committed"
    [ "$(git rev-parse main)" = "$before" ]
    [ "$(git status --porcelain | tr '\n' ' ')" = '?? five ?? four ?? three ' ]
    # A run that failed is resumed as it began.
    expect 4 hf run r --in . -- sh -c 'echo 7 >seven; exit 4'
    says "not landed on main"
    expect 1 hf run r --resume --land off -- true
    expect 4 hf run r --resume -- sh -c 'exit 4'
    says "not landed on main"
    expect 0 hf run r --resume -- true
    [ "$(git show --format= --name-only main)" = seven ]
    expect 4 hf run f --in . --land off -- sh -c 'echo 8 >eight; exit 4'
    expect 1 hf run f --resume --land HEAD -- true
    expect 0 hf run f --resume -- true
    [ "$(git status --porcelain eight)" = '?? eight' ]
}

@test "what lands without --land: a sub-directory with its whole work tree, a linked worktree, a submodule; not what git ignores, nor bare" {
    mkdir sub ignored
    echo /ignored/ >.gitignore
    echo 1 >sub/f
    git add -A
    git commit -qm sub
    expect 0 hf run sub --in sub -- sh -c 'echo 2 >sub/f; echo 3 >top'
    says "whole work tree, $PWD"
    is_clean
    [ "$(cat sub/f top)" = $'2\n3' ]
    # Its changes could not land: they are committed as files.
    expect 0 hf run ignored --in ignored -- sh -c 'echo 1 >ignored/f'
    [ "$(cat ignored/f)" = 1 ]
    git worktree add -q ../linked -b side
    expect 0 hf run linked --in ../linked -- sh -c 'echo 4 >../linked/four'
    says "landed on side"
    [ -z "$(git -C ../linked status --porcelain)" ]
    git -c protocol.file.allow=always submodule --quiet add "$PWD" module
    git commit -qm module
    git -C module config user.email tester@example.org
    git -C module config user.name Tester
    git -C module checkout -q main
    expect 0 hf run module --in module -- sh -c 'echo 5 >module/five'
    says "landed on main"
    [ "$(git -C module show --format= --name-only main)" = five ]
    [ -z "$(git -C module status --porcelain)" ]
    git init -q --bare ../bare.git
    expect 0 hf run bare --in ../bare.git -- sh -c 'echo 6 >../bare.git/description'
    [ "$(cat ../bare.git/description)" = 6 ]
    expect 0 hf run inside --in .git --land off -- sh -c 'echo 7 >.git/description'
    # A name that only looks like a repository.
    mkdir -p ../odd/.git
    expect 0 hf run odd --in ../odd -- sh -c 'echo 8 >../odd/eight'
    [ "$(cat ../odd/eight)" = 8 ]
}

@test "a work tree that cannot be landed on is refused with both ways out, and its files can be committed" {
    git checkout -q --detach
    expect 3 hf run d --in . -- touch "$BATS_TEST_TMPDIR/ran"
    says "detached"
    says "--land off"
    expect 0 hf run d --in . --land off -- sh -c 'echo 1 >one'
    [ "$(cat one)" = 1 ]
    git init -q ../empty
    expect 3 hf run e --in ../empty -- touch "$BATS_TEST_TMPDIR/ran"
    says "no commit yet"
    says "--land off"
    expect 0 hf run e --in ../empty --land off -- sh -c 'echo 2 >../empty/two'
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
    run hf plan list --json
    is_json '.plans == []'
}

@test "L12: a part of a work tree whose files are committed: git inside does not reach the repository around it" {
    mkdir sub other
    echo 1 >sub/f
    git add -A
    git commit -qm sub
    before=$(git rev-parse main)
    # shellcheck disable=SC2016 # for the inner shell
    expect 0 hf run s --in sub --land off -- sh -c 'echo 2 >sub/f; cd sub; ! git add f && ! git commit -qam inside'
    [ "$(cat sub/f) $(git rev-parse main)" = "2 $before" ]
    [ "$(git status --porcelain)" = " M sub/f" ]
    # What the refusal of a detached HEAD recommends can be typed.
    git checkout -q --detach
    expect 3 hf run d --in sub -- true
    says "or commit plain files with --land off"
    expect 0 hf run d --in sub --land off -- sh -c 'echo 3 >sub/f'
    [ "$(cat sub/f)" = 3 ]
    expect 0 hf run several --in sub --in other -- sh -c 'echo 4 >sub/f; echo 5 >other/f'
    [ "$(cat sub/f other/f)" = $'4\n5' ]
    # git finds the repository of a linked worktree from inside: it is refused, with the way.
    git checkout -q main
    git worktree add -q ../linked -b side
    expect 3 hf run l --in ../linked --land off -- true
    says "git commands in it write to $PWD/.git/worktrees/linked, outside the sandbox; give the repository's top instead, or that directory first"
    expect 0 hf run l --in .git --in ../linked --land off -- sh -c 'echo 6 >../linked/six'
    [ "$(cat ../linked/six)" = 6 ]
}

@test "without an overlay a run in a git work tree commits files, and says so; with an option of landing it is refused" {
    before=$(git rev-parse main)
    run "$HELPERS/helper-enosys" fsopen -- "$HOLDFAST" run n --in . -- sh -c 'echo 1 >one'
    [ "$status" -ne 77 ] || skip "NO SECCOMP FILTERS HERE"
    [ "$status" -eq 0 ]
    says "plain files are committed"
    [ "$(git rev-parse main)" = "$before" ]
    [ "$(git status --porcelain)" = '?? one' ]
    # Over a dirty work tree the sandbox is entered before the command, too.
    run "$HELPERS/helper-enosys" fsopen -- "$HOLDFAST" run n --in . -- sh -c 'cat one >two'
    [ "$status" -eq 0 ]
    says "plain files are committed"
    ! says "landed" || return 1
    [ "$(git status --porcelain | paste -sd,)" = '?? one,?? two' ]
    [ "$(hf --json land list | jq '[.queues[].candidates[]] | length')" -eq 0 ]
    run "$HELPERS/helper-enosys" fsopen -- "$HOLDFAST" run n --in . --message x -- touch "$BATS_TEST_TMPDIR/ran"
    [ "$status" -eq 125 ]
    says "overlay"
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
    run hf plan list --json
    is_json '.plans == []'
}

@test "ps --json shows the sandbox and the landing of a run: plan and land, null where there is none" {
    hold='touch "$DESK/in"; until [ -e "$DESK/go" ]; do sleep 0.02; done'
    export DESK="$BATS_TEST_TMPDIR"
    spawn land one "echo 1 >new; echo 2 >lines; $hold"
    wait_until 30 test -e "$DESK/in"
    expect 0 hf ps one --json
    is_json '.sessions[0] | .plan.state == "ACTIVE" and .plan.files == 2 and (.plan.base | length == 40) and .land.step == "working" and .land.branch == "main" and .land.place == null'
    touch "$DESK/go"
    wait "$spawned_pid"
    expect 0 hf ps one --json
    is_json '.sessions[0] | .plan == null and .land.step == "landed"'
    expect 1 land two 'echo bad >check'
    expect 0 hf ps two --json
    is_json '.sessions[0] | .plan.files == 1 and .plan.state == "ACTIVE"'
    expect 0 hf run three -- true
    expect 0 hf ps three --json
    is_json '.sessions[0] | .plan == null and .land == null'
    # A candidate of an earlier run is none of this one.
    expect 0 hf run one -- true
    expect 0 hf ps one --json
    is_json '.sessions[0] | .land == null'
}

# Agents that begin, commit and end in an order of their own; two of each three write the same line, one breaks the verifier.
@test "ten runs over three repositories at once, in any order: every commit is green, and each work is on its branch or kept and listed" {
    local i repo order status
    cd ..
    for repo in p q; do cp -a repo "$repo"; done
    mapfile -t order < <(shuf -i 0-9)
    echo "order ${order[*]}"
    for i in "${order[@]}"; do
        repo=$(printf '%s\n' repo p q | sed -n "$((i % 3 + 1))p")
        spawn "$HOLDFAST" -q run "c$i" --in "$repo" -C "$repo" --verify "$VERIFY" -- bash -c "
            sleep 0.$((RANDOM % 5)); echo $i >t$i; sed -i '$((i / 4 + 2))s/.*/by c$i/' lines
            [ $i != 4 ] || echo broken >check
            [ $((i % 2)) = 0 ] || { git add -A; git commit -qm 'by c$i'; }"
    done
    for i in "${!order[@]}"; do
        status=0
        wait "${spawned[i]}" || status=$?
        repo=$(printf '%s\n' repo p q | sed -n "$((order[i] % 3 + 1))p")
        echo "c${order[i]}: $status"
        if [ "$status" -eq 0 ]; then
            [ "$(git -C "$repo" show "main:t${order[i]}")" = "${order[i]}" ]
        elif git -C "$repo" cat-file -e "main:t${order[i]}" 2>/dev/null; then
            echo "it is on the branch"
            return 1
        elif [ "${order[i]}" = 4 ]; then
            hf plan diff run:c4 | grep -q t4
        else
            hf land list --json >listed
            [ "$(jq -r --arg n "c${order[i]}" '.queues[].recent[] | select(.name == $n) | .result' listed)" = conflict ] || { cat listed; return 1; }
        fi
    done
    for repo in repo p q; do
        cd "$BATS_TEST_TMPDIR/$repo"
        is_green
        is_clean
    done
}

# second SCRIPT: a verifier that says yes the first time; the second time, as it will land, it touches ../second and does SCRIPT
# A mark that could hide an edit makes the landing verify again.
mark_one() { git update-index --assume-unchanged "$(git ls-files | head -n 1)"; }

second() {
    mark_one
    mkfifo "$BATS_TEST_TMPDIR/go"
    VERIFY="[ -e $BATS_TEST_TMPDIR/first ] || { touch $BATS_TEST_TMPDIR/first; exit 0; }; touch $BATS_TEST_TMPDIR/second; $1"
}

# is_put_back NAME: not landed, in the queue, and no process works on it
is_put_back() {
    expect 0 hf land list
    [[ "$output" =~ queued\ +$1\ +main\ +"interrupted; 'holdfast land $1' tries again" ]] || { echo "$output"; return 1; }
    expect 0 hf land list --json
    is_json "[.queues[].candidates[] | select(.name == \"$1\")][0] | .step == \"queued\" and .alive == false"
    [ "$(git rev-list --count main)" = 1 ]
    is_clean
}

@test "L14: a stop, or a signal, while it is verified as it lands: stopped or interrupted as at any other time, and in the queue again" {
    local how
    for how in "stop stopped 143" "TERM stopped 143" "INT interrupted 130" "QUIT interrupted 131" "HUP stopped 129"; do
        # shellcheck disable=SC2086 # words
        set -- $how
        rm -f ../go ../first ../second
        second "cat $BATS_TEST_TMPDIR/go"
        spawn env --default-signal=INT,QUIT,HUP "$HOLDFAST" run x --in . --verify "$VERIFY" -- sh -c 'echo 1 >new' 2>../told
        wait_until 30 test -e ../second
        if [ "$1" = stop ]; then hf -q stop x; else kill "-$1" "$spawned_pid"; fi
        status=0
        wait "$spawned_pid" || status=$?
        [ "$status $(field x .outcome)" = "$3 $2" ] || { echo "$how: $status $(field x .outcome)"; cat ../told; return 1; }
        is_put_back x
        # What is recommended can be typed.
        grep -q "'holdfast land x' tries again" ../told
        expect 1 hf run x --in . -- true
        says "    holdfast land x "
        expect 0 hf land x --verify true
        git reset -q --hard HEAD~1
    done
}

@test "L14: Ctrl-C while it is verified as it lands is an interrupt, exit 130" {
    second "cat $BATS_TEST_TMPDIR/go"
    expect 0 env TERM=dumb python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" ctrl_c_while_it_lands --in . --verify "$VERIFY"
    is_put_back x
}

@test "L14: interrupted when its branch has moved already, it is landed" {
    local git
    git=$(command -v git)
    # The git that comes after the branch has moved waits, once.
    mkdir ../bin
    mkfifo ../go
    cat >../bin/git <<END
#!/bin/sh
case "\$*" in *--refresh*) [ -e $BATS_TEST_TMPDIR/second ] || { touch $BATS_TEST_TMPDIR/second; cat $BATS_TEST_TMPDIR/go; } ;; esac
exec $git "\$@"
END
    chmod +x ../bin/git
    spawn env PATH="$BATS_TEST_TMPDIR/bin:$PATH" "$HOLDFAST" run x --in . -- sh -c 'echo 1 >new' 2>../told
    wait_until 30 test -e ../second
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status $(field x .outcome)" = "0 succeeded" ] || { echo "$status"; cat ../told; return 1; }
    [ "$(git show main:new)" = 1 ]
    is_clean
}

@test "land list, show and why: a landing whose process was killed is interrupted, not under way" {
    second "cat $BATS_TEST_TMPDIR/go"
    expect 0 hf land begin x .
    hf plan enter x -- sh -c 'echo 1 >new'
    touch ../first
    spawn "$HOLDFAST" land x --verify "$VERIFY"
    wait_until 30 test -e ../second
    expect 0 hf land list
    [[ "$output" =~ verifying\ +x\ +main ]]
    kill -KILL "$spawned_pid"
    wait "$spawned_pid" || true
    expect 0 hf land list
    [[ "$output" =~ ^interrupted\ +x\ +main\ +"interrupted; 'holdfast land x' tries again" ]]
    expect 0 hf why x
    says 'candidate for main: interrupted: '
    expect 0 hf land show x
    says "text      interrupted; 'holdfast land x' tries again"
    expect 0 hf land x --verify true
    is_clean
    # One that was told to end has put itself back.
    git reset -q --hard HEAD~1
    expect 0 hf land begin y .
    hf plan enter y -- sh -c 'echo 1 >new'
    rm ../second
    spawn "$HOLDFAST" land y --verify "$VERIFY"
    wait_until 30 test -e ../second
    kill -TERM "$spawned_pid"
    wait "$spawned_pid" || true
    is_put_back y
}

@test "a run over work that did not land, or was not committed, is refused with what can be typed, and nothing else" {
    mkfifo ../go
    spawn "$HOLDFAST" run c --in . -- sh -c 'echo mine >lines; touch ../up; cat ../go'
    wait_until 30 test -e ../up
    echo other >lines
    git commit -qam other
    echo >../go
    ! wait "$spawned_pid" || return 1
    expect 1 hf run c --in . -- true
    says "the last run left 1 file changed, 1 commit, not landed"
    says "    holdfast land c "
    says "    holdfast land drop c "
    ! says "plan commit" 2>/dev/null || return 1
    expect 1 hf land c
    expect 0 hf land drop c
    expect 0 hf run c --in . -- true
    expect 0 hf run n --in . --commit never -- sh -c 'echo 1 >new'
    expect 1 hf run n --in . -- true
    says "    holdfast plan diff run:n "
    says "    holdfast plan commit run:n "
    says "    holdfast plan rm --discard run:n "
    ! says "resume" 2>/dev/null || return 1
    expect 0 hf plan diff run:n
    expect 0 hf plan commit run:n
    [ "$(cat new)" = 1 ]
}

@test "what the end of a run that did not land recommends can be typed: after a refusal, with --rm, of a name with a dot" {
    # A reason that stays: it lands when that is mended, and not before.
    printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit
    chmod +x .git/hooks/pre-commit
    expect 1 hf run k --in . -- sh -c 'echo 1 >k'
    says "'holdfast land k' tries again after that is fixed"
    ! says "land it as it is" 2>/dev/null || return 1
    expect 1 hf land k
    rm .git/hooks/pre-commit
    expect 0 hf land k
    [ "$(cat k)" = 1 ]
    # A session that leaves work is not forgotten, so it can be resumed.
    expect 7 hf run r --in . --rm -- sh -c 'echo 1 >r; exit 7'
    says "'holdfast land r' tries to land it as it is"
    says "'holdfast run --resume r' continues in it"
    expect 0 hf run --resume r -- true
    [ "$(cat r)" = 1 ]
    expect 1 hf ps r
    expect 7 hf run f --in . --rm --land off -- sh -c 'echo 1 >f; exit 7'
    says "'holdfast plan commit run:f' commits it"
    expect 0 hf plan commit run:f
    expect 0 hf rm f
    second "exit 1"
    expect 1 hf run x.lock --in . --verify "$VERIFY" -- sh -c 'echo 1 >x'
    says "the work is kept as refs/holdfast/x%2Elock:"
    git rev-parse --verify -q refs/holdfast/x%2Elock
}

@test "a candidate whose sandbox was removed by hand is gone: list, show and land say so" {
    expect 7 hf run p --in . -- sh -c 'echo 1 >p; exit 7'
    expect 0 hf plan rm run:p --discard
    expect 0 hf land list
    [[ "$output" =~ ^gone\ +p\ +main\ +"its sandbox was removed, and nothing of it is kept: 'holdfast land drop p' drops it" ]]
    expect 0 hf land show p --json
    is_json '.plan == null and .tip == null and .alive == false'
    expect 1 hf land p
    says "the sandbox was removed, and nothing of it is kept; 'holdfast land drop p' drops it"
    expect 0 hf land drop p
    expect 0 hf land list
    [[ "$output" =~ ^dropped ]]
}

@test "plan commit of the plan of a run that lands is refused with 'land NAME', unless forced: it would move the branch unverified (L14)" {
    expect 1 land i 'echo bad >check; git commit -qam bad'
    expect 3 hf plan commit run:i
    says "plan 'run:i' will land on main; use 'holdfast land i'"
    [ "$(git rev-list --count main)" = 1 ]
    is_green
    expect 0 hf land begin j .
    hf plan enter j -- sh -c 'echo 1 >new'
    expect 3 hf -q plan commit j --json
    is_json '.error.exit == 3'
    expect 0 hf land j --verify "$VERIFY"
    is_green
    expect 7 hf run f --in . -- sh -c 'echo 2 >new; exit 7'
    expect 0 hf plan commit run:f --force
    [ "$(cat new)" = 2 ]
}

@test "--land with nothing is a wrong usage; a branch without a commit is called by its name" {
    expect 2 hf run e --in . --land '' -- true
    says "--land must be a branch, HEAD or off, not ''"
    git checkout -q --orphan bare
    expect 3 hf run o --in . --land main -- true
    says "the branch that is checked out, 'bare', has no commit yet; make the first one, or check out another"
    git checkout -q -f main
    expect 0 hf run o --in . --land main -- true
}

@test "what landed is told in files: by the end of the run, --result, the journal and the record; after a rebase what the branch got" {
    echo gone >old
    git add old
    git commit -qm old
    expect 0 land x 'echo 1 >new; echo 2 >two; sed -i s/a/A/ lines; rm old' --result ../result
    says "landed on main as $(git rev-parse --short=12 main): 1 commit, 4 files"
    jq -e '.landed | .added == 2 and .changed == 1 and .deleted == 1 and .bytes == null' ../result
    expect 0 hf -q journal query --event run_committed --json
    is_json '.added == 2 and .changed == 1 and .deleted == 1'
    expect 0 hf -q journal query --event land_landed --json
    is_json '.files == 4'
    expect 0 hf land show x --json
    is_json '.files == 4'
    # Another makes one of the two changes meanwhile.
    mkfifo ../go
    spawn "$HOLDFAST" run y --in . --result ../result -- sh -c 'echo 3 >three; echo 4 >four; touch ../up; cat ../go'
    wait_until 30 test -e ../up
    expect 0 land z 'echo 3 >three'
    says "1 commit, 1 file"
    echo >../go
    wait "$spawned_pid"
    jq -e '.landed | .added == 1 and .changed == 0 and .rebased' ../result
    is_clean
}

@test "-E is the exit status of every no of Holdfast: conflict, refusal, not verified; not of a command that fails" {
    mkfifo ../go
    spawn "$HOLDFAST" run c --in . -E 42 -- sh -c 'echo mine >lines; touch ../up; cat ../go'
    wait_until 30 test -e ../up
    echo other >lines
    git commit -qam other
    echo >../go
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 42 ]
    expect 42 hf run n --in . -E 42 -- sh -c 'git init -q nest; cd nest; git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m nested'
    says "not landed on main"
    expect 42 land v 'echo bad >check' -E 42
    expect 7 land f 'echo 1 >new; exit 7' -E 42
}

# trailers COMMIT: what git takes for them
trailers() { git log -1 --format='%(trailers:only)' "$1" | sed '/^$/d;s/Token: .*/Token: T/' | paste -sd,; }

@test "--message: trailers in it and ours form one block; a last paragraph that is none stays one" {
    expect 0 land a 'echo 1 >a' --message $'Fix it\n\nBecause.\n\nReviewed-by: A <a@example.org>\nSigned-off-by: B <b@example.org>\n'
    [ "$(trailers main)" = "Reviewed-by: A <a@example.org>,Signed-off-by: B <b@example.org>,Holdfast-Session: a,Holdfast-Token: T" ]
    expect 0 land b 'echo 1 >b' --message $'fix: a subject that looks like one'
    [ "$(trailers main) $(git log -1 --format=%s)" = "Holdfast-Session: b,Holdfast-Token: T fix: a subject that looks like one" ]
    expect 0 land c 'echo 1 >c' --message $'Fix it\n\nSee also:\nthe other one'
    [ "$(trailers main)" = "Holdfast-Session: c,Holdfast-Token: T" ]
    [ "$(git log -1 --format=%b | head -2)" = $'See also:\nthe other one' ]
}

@test "a missing git identity is reported before the command starts, and not where settings or variables name one" {
    local identity='git has no user.name and user.email here: Holdfast commits as Holdfast <holdfast@localhost>'
    git config --unset user.email
    git config --unset user.name
    # Else git takes them from the user's entry and the machine's name.
    git config user.useConfigOnly true
    expect 0 hf run one --in . -- sh -c 'echo 1 >>a; touch ../ran'
    says "$identity"
    [ "$(grep -n "$identity" <<<"$output" | cut -d: -f1)" -lt "$(grep -n "landed on" <<<"$output" | cut -d: -f1)" ]
    [ "$(git log -1 --format='%an <%ae>')" = "Holdfast <holdfast@localhost>" ]
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    expect 0 hf run two --in . -- sh -c 'echo 2 >>a'
    [[ "$output" != *"$identity"* ]]
    unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
    expect 0 hf run three --in . --env GIT_AUTHOR_NAME=a --env GIT_AUTHOR_EMAIL=a@b --env GIT_COMMITTER_NAME=a --env GIT_COMMITTER_EMAIL=a@b -- sh -c 'echo 3 >>a'
    [[ "$output" != *"$identity"* ]]
    git config user.name tester
    git config user.email tester@example.org
    expect 0 hf run four --in . -- sh -c 'echo 4 >>a'
    [[ "$output" != *"$identity"* ]]
    # Settings that are included are read by git alone.
    git config --unset user.email
    git config --file "$HOME/more" user.email tester@example.org
    git config include.path "$HOME/more"
    expect 0 hf run five --in . -- sh -c 'echo 5 >>a'
    [[ "$output" != *"$identity"* ]]
}
