#!/usr/bin/env bats
# On which terms a candidate lands: verifier, directory, variables, limits, message, globs and way to merge are those of the run that made it, also in a later try;
# and what its verifier did in its sandbox is not its work.
load ../session_helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s DESK="$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
    mkdir sub
    echo 1 >sub/f
    echo 'ign/' >>.gitignore
    git add -A
    git commit -qm more
}

teardown() {
    kill_spawned
    chmod -R u+rwX "$BATS_TEST_TMPDIR" || true
}

files_of() { git show --format= --name-only "$1" | sort | paste -sd' '; }

# A run that ends before its verifier runs: fails NAME OPTIONS...
fails() {
    expect 3 hl run "$@" --in . -- sh -c 'mkdir -p ign; echo i >ign/i; echo "$HOLDFAST_SESSION" >made; exit 3'
}

@test "L14: the work of a command that failed is verified when it is landed later, as its run asked for" {
    fails one --verify 'test -f made && test -f "$DESK/yes"'
    hl land show one | grep -q '^verify .*test -f made'
    head=$(git rev-parse HEAD)
    expect 1 hl land one
    says "verify failed"
    [ "$(git rev-parse HEAD)" = "$head" ]
    touch "$DESK/yes"
    expect 0 hl land one
    says verifying
    [ "$(cat made)" = one ]
    clean
}

@test "L14: the work of a run that was killed, or that reached its deadline, is verified when it is landed later" {
    expect 124 hl run late --in . --deadline 300ms --grace 100ms --verify false -- sh -c 'echo 1 >late; exec sleep 300'
    expect 1 hl land late
    says "verify failed"
    spawn "$HOLDFAST" -q run killed --in . --verify false -- sh -c 'echo 1 >killed; : >"$DESK/up"; exec sleep 300'
    wait_until 20 test -e "$DESK/up"
    kill -KILL "$spawned_pid"
    wait "$spawned_pid" || true
    wait_until 30 ended killed
    expect 1 hl land killed
    says "verify failed"
    [ ! -e late ]
    [ ! -e killed ]
}

ended() { [ "$(hl --json ps -a "$1" | jq -r '.sessions[0].state')" != running ]; }

@test "message, globs of ignored files and the way to merge are remembered for a later landing; what is given then counts" {
    fails one --also ign --land-merge merge --message "By hand"
    git commit -q --allow-empty -m between
    expect 0 hl land one
    [ "$(git log -1 --format=%s)" = "Merge one" ]
    [ "$(git log -1 --format=%s HEAD^2)" = "By hand" ]
    [ "$(cat ign/i)" = i ]
    [ "$(git ls-files ign)" = ign/i ]
    fails two --message old
    expect 0 hl land two --message new --verify 'test -f made'
    [ "$(git log -1 --format=%s)" = new ]
}

@test "the verifier runs in the session's directory, with its variables, when it is verified as it will land and in a later try" {
    cat >"$DESK/verifier" <<'SH'
echo "$PWD ${LEVEL:-none} ${HOLDFAST_SESSION:-none} ${LC_ALL:-none}" >>"$DESK/ran"
test -f f
SH
    mark_one
    cd sub
    LC_ALL=C.UTF-8 expect 0 hl run one --in . --env LEVEL=7 --verify 'sh "$DESK/verifier"' -- sh -c 'echo 2 >f'
    [ "$(sort -u "$DESK/ran")" = "$PWD 7 one C.UTF-8" ] || { cat "$DESK/ran"; return 1; }
    [ "$(wc -l <"$DESK/ran")" -eq 2 ]
    rm "$DESK/ran"
    expect 1 hl run two --in . --env LEVEL=8 --verify 'sh "$DESK/verifier" && test -f "$DESK/yes"' -- sh -c 'echo 3 >f'
    touch "$DESK/yes"
    rm "$DESK/ran"
    (cd / && hl -q land two)
    [ "$(cut -d' ' -f1,2 "$DESK/ran")" = "$PWD 8" ] || { cat "$DESK/ran"; return 1; }
    # A directory that is not there any more is a no, not a yes at the top.
    expect 1 hl run three --in . --verify true -- sh -c 'cd .. && git mv sub moved && git commit -qm moved'
    says "not landed"
    [ -d ../sub ]
    # Without a verifier nothing needs that directory.
    expect 0 hl run four --in . -- sh -c 'cd .. && git mv sub moved && git commit -qm moved'
    [ -f "$DESK/r/moved/f" ]
}

@test "L12: the verifier of a confined run is confined when its work is landed later" {
    expect 1 hl run one --in . --readonly-rest --no-network --write "$DESK/home" --verify 'touch /var/tmp/hf-evil-$$ && touch "$DESK/escaped"; touch "$DESK/home/allowed"; ls /sys/class/net >/dev/null; test -f /tmp/hf-yes-'"$$" -- sh -c 'echo 1 >made'
    rm -f "$DESK/home/allowed"
    touch "/tmp/hf-yes-$$"
    run hl land one
    rm -f "/tmp/hf-yes-$$"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    [ ! -e "$DESK/escaped" ]
    [ -e "$DESK/home/allowed" ]
    [ -f made ]
}

@test "L14: what a verifier wrote or committed in the sandbox does not land after --resume, nor with land" {
    verifier='echo junk >junk; git add junk; git commit -qm by-verifier; echo more >more; echo changed >a; test -f fin'
    expect 1 hl run one --in . --verify "$verifier" -- sh -c 'echo 1 >mine; echo 2 >staged; git add staged; rm b'
    expect 0 hl run one --resume -- sh -c 'git status --porcelain >"$DESK/seen"; git log -1 --format=%s >"$DESK/head"; echo 1 >fin'
    # It goes on as it was left, but for what was staged.
    [ "$(sort "$DESK/seen" | paste -sd,)" = ' D b,?? mine,?? staged' ] || { cat "$DESK/seen"; return 1; }
    [ "$(cat "$DESK/head")" = more ]
    [ "$(git rev-list --count HEAD)" -eq 3 ]
    [ "$(files_of HEAD)" = 'b fin mine staged' ]
    verifier='echo junk >junk; git add junk; git commit -qm by-verifier; echo more >more; test -f "$DESK/yes"'
    expect 1 hl run two --in . --verify "$verifier" -- sh -c 'echo 1 >two'
    touch "$DESK/yes"
    expect 0 hl land two
    [ "$(files_of HEAD)" = two ]
    # What is committed by hand in the sandbox is wanted.
    rm "$DESK/yes"
    expect 1 hl run three --in . --verify "$verifier" -- sh -c 'echo 1 >three'
    hl -q plan enter run:three -- sh -c 'git rm -q junk; git commit -qm without; echo 2 >hand; git add hand; git commit -qm by-hand'
    touch "$DESK/yes"
    expect 0 hl land three
    git log -4 --format=%s | grep -qx by-hand
    clean
}

# A mark that could hide an edit makes the landing verify again.
mark_one() { git update-index --assume-unchanged "$(git ls-files | head -n 1)"; }

# interrupt NAME SCRIPT: a run whose keeper is killed while it is verified as it will land
interrupt() {
    rm -f "$DESK/calls" "$DESK/on"
    mark_one
    # shellcheck disable=SC2016
    spawn "$HOLDFAST" -q run "$1" --in . --verify 'echo 1 >>"$DESK/calls"; [ -e "$DESK/on" ] || [ "$(wc -l <"$DESK/calls")" -lt 2 ] || exec sleep 300' -- sh -c "$2"
    wait_until 30 called 2
    pkill -KILL -P "$spawned_pid" -x holdfast-keeper
    wait "$spawned_pid" || true
    touch "$DESK/on"
}

called() { [ "$(wc -l 2>/dev/null <"$DESK/calls" || echo 0)" -ge "$1" ]; }

@test "L14: a landing that was interrupted: --resume goes on and lands, and another run of the name drops nothing" {
    interrupt one 'echo 1 >one'
    [ ! -e one ]
    expect 0 hl run one --resume -- sh -c 'test -f one; echo 2 >second'
    says "landed on main"
    [ "$(cat one second | paste -sd,)" = 1,2 ]
    interrupt two 'echo 1 >two'
    expect 1 hl run two --in . -- true
    says "holdfast land two"
    expect 0 hl run two --resume -- sh -c 'echo 2 >third; git add -A; git commit -qm third'
    [ "$(cat two third | paste -sd,)" = 1,2 ]
    interrupt three 'echo 1 >three'
    expect 1 hl run three --in . -- true
    expect 0 hl land three
    [ "$(cat three)" = 1 ]
    clean
}

@test "L14: what a user's git stages while a run begins is not taken for the agent's work" {
    # git is asked where the repository is, so that what is dirty is known before the sandbox has its index.
    touch .git/config.worktree
    mkdir "$DESK/bin"
    cat >"$DESK/bin/git" <<SH
#!/bin/sh
case "\$*" in
*--ignored=matching*)
    $(command -v git) "\$@"
    status=\$?
    if [ ! -e "$DESK/staged" ]; then
        : >"$DESK/staged"
        echo user >b
        $(command -v git) add b
    fi
    exit \$status ;;
esac
exec $(command -v git) "\$@"
SH
    chmod +x "$DESK/bin/git"
    PATH="$DESK/bin:$PATH" expect 0 hl run one --in . -- sh -c 'cat b >"$DESK/saw"; echo 1 >mine'
    [ -e "$DESK/staged" ]
    [ "$(cat "$DESK/saw")" = x ]
    [ "$(files_of HEAD)" = mine ]
    [ "$(git status --porcelain)" = 'M  b' ]
    # The same with the steps by themselves.
    git reset -q --hard
    rm "$DESK/staged"
    PATH="$DESK/bin:$PATH" agent two 'echo 2 >theirs'
    [ -e "$DESK/staged" ]
    expect 0 hl land two
    [ "$(files_of HEAD)" = theirs ]
    [ "$(git status --porcelain)" = 'M  b' ]
}

@test "L12: variables of the session reach its verifier and no git outside: what a confined agent writes into its HOME is not executed" {
    mkdir "$DESK/agent-home"
    cat >"$DESK/agent" <<'SH'
cat >"$HOME/.gitconfig" <<CONFIG
[user]
	name = agent
	email = agent@example.org
[core]
	attributesFile = $HOME/attributes
[filter "evil"]
	clean = sh -c 'touch "$DESK/escaped"; cat'
CONFIG
echo '* filter=evil' >"$HOME/attributes"
echo 1 >made
: >"$DESK/agent-home/up"
until [ -e "$DESK/go" ]; do sleep 0.02; done
git -c core.attributesFile=/dev/null add -A
git -c core.attributesFile=/dev/null commit -qam all
SH
    spawn "$HOLDFAST" run one --in . --readonly-rest --write "$DESK/agent-home" --env "HOME=$DESK/agent-home" --verify 'test "$HOME" = "$DESK/agent-home"' -- sh -e "$DESK/agent"
    wait_until 30 test -e "$DESK/agent-home/up"
    # An edit of the user, for which git is asked outside.
    echo edit >>b
    touch "$DESK/go"
    wait "$spawned_pid"
    [ ! -e "$DESK/escaped" ]
    [ "$(git show --format= --name-only)" = made ]
    [ "$(git status --porcelain)" = ' M b' ]
}

@test "work that is kept in the repository is not given up because its run was resumed and failed" {
    spawn "$HOLDFAST" -q run one --in . -- sh -c 'echo mine >b; : >"$DESK/up"; until [ -e "$DESK/go" ]; do sleep 0.02; done'
    wait_until 30 test -e "$DESK/up"
    echo other >b
    git commit -qam other
    touch "$DESK/go"
    ! wait "$spawned_pid" || return 1
    state_is one conflict
    kept=$(git rev-parse refs/holdfast/one)
    expect 1 hl run one --resume -- false
    expect 1 hl run one --in . -- true
    says "holdfast land drop one"
    [ "$(git rev-parse refs/holdfast/one)" = "$kept" ]
    hl -q land drop one
    expect 0 hl run one --in . -- true
}

@test "L10: a landing that was killed on its way is finished or undone before its run goes on" {
    expect 1 hl run one --in . --verify 'test -f "$DESK/yes"' -- sh -c 'echo 1 >one'
    touch "$DESK/yes"
    mkdir "$DESK/bin"
    printf '#!/bin/sh\ncase "$*" in *update-ref*) [ ! -e "%s/armed" ] || { rm "%s/armed"; kill -KILL $PPID; exit 1; } ;; esac\nexec %s "$@"\n' \
        "$DESK" "$DESK" "$(command -v git)" >"$DESK/bin/git"
    chmod +x "$DESK/bin/git"
    for _ in 1 2; do
        touch "$DESK/armed"
        PATH="$DESK/bin:$PATH" run hl land one
        [ "$status" -eq 137 ] || { echo "$status: $output"; return 1; }
        [ ! -e "$DESK/armed" ]
        expect 0 hl run one --resume -- sh -c 'echo 2 >two'
        [ "$(cat one two | paste -sd,)" = 1,2 ]
        clean
        rm "$DESK/yes"
        git rm -q one two
        git commit -qm again
        expect 1 hl run one --in . --verify 'test -f "$DESK/yes"' -- sh -c 'echo 1 >one'
        touch "$DESK/yes"
    done
}

# refused VERIFIER: a run over the work tree whose verifier does that and says no; then resumed
resumed() {
    rm -f "$DESK/yes"
    expect 1 hl run one --in . "${@:2}" --verify "$1; test -f \"\$DESK/yes\"" -- sh -c 'echo 1 >one; mkdir -p empty'
    touch "$DESK/yes"
    expect 0 hl run one --resume -- sh -c 'git status --porcelain --untracked-files=all >"$DESK/seen"; ls -A >"$DESK/files"; echo 2 >>one'
}

@test "--resume after a verifier that left a lock, a read-only directory, another repository or a changed file" {
    resumed 'touch .git/index.lock'
    [ "$(cat "$DESK/seen")" = '?? one' ]
    git rm -q one
    git commit -qm without
    resumed 'mkdir -p cache/sub; echo 1 >cache/sub/f; chmod 555 cache/sub cache'
    [ "$(cat "$DESK/seen")" = '?? one' ] || { cat "$DESK/seen"; return 1; }
    ! grep -qx cache "$DESK/files" || return 1
    git rm -q one
    git commit -qm without
    resumed 'git init -q dep; echo 1 >dep/f; echo changed >a; rm b'
    [ "$(cat "$DESK/seen")" = '?? one' ] || { cat "$DESK/seen"; return 1; }
    ! grep -qx dep "$DESK/files" || return 1
    [ "$(git show --format= --name-only)" = one ]
    # What a user has in the work tree, and the command was shown, stays.
    git rm -q one
    git commit -qm without
    echo edit >>b
    echo new >untracked
    resumed 'echo junk >junk' --base worktree
    [ "$(sort "$DESK/seen" | paste -sd,)" = ' M b,?? one,?? untracked' ] || { cat "$DESK/seen"; return 1; }
    [ "$(git status --porcelain | paste -sd,)" = ' M b,?? untracked' ]
}

@test "locks of a user's git, or of another landing, are not seen by an agent's git" {
    touch .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock .git/packed-refs.lock
    hl -q land begin one .
    hl -q plan enter one -- sh -ec 'test -z "$(find .git -name "*.lock")"; echo 1 >one; git add -A; git commit -qm one; git tag t; git pack-refs --all'
    rm .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock .git/packed-refs.lock
    expect 0 hl land one
    [ "$(git log -1 --format=%s)" = one ]
    clean
}

@test "L14: a commit of a verifier that was killed with its run does not land, and is not thrown away" {
    spawn "$HOLDFAST" -q run one --in . --verify 'echo junk >junk; git add junk; git commit -qm by-verifier; : >"$DESK/up"; exec sleep 300' -- sh -c 'echo 1 >one'
    wait_until 30 test -e "$DESK/up"
    pkill -KILL -P "$spawned_pid" -x holdfast-keeper
    ! wait "$spawned_pid" || return 1
    expect 0 hl land one --verify ''
    [ "$(files_of HEAD)" = one ]
    hl plan enter run:one -- git log -1 --format=%s | grep -qx by-verifier
    clean
}

@test "a path with control bytes that is left out does not steer the terminal" {
    hl -q land begin one .
    printf x >"$(printf 'e\033[31m')"
    hl -q plan enter one -- sh -ec 'echo 1 >c; git add -A; git commit -qm all'
    expect 0 hl land one
    says "left out"
    [[ "$output" != *$'\033'* ]]
}

@test "a verifier that cannot be run gives no verdict: refused at once if its program is unknown, else 'could not be run'" {
    fails typo --verify true
    head=$(git rev-parse HEAD)
    expect 4 hl land typo --verify 'no-such-tool test'
    says "verifier 'no-such-tool'"
    state_is typo working
    expect 1 hl land typo --verify ./no-such-script
    says "verify could not be run: exit 127"
    echo 'exit 0' >plain
    expect 1 hl land typo --verify ./b
    says "verify could not be run: exit 126"
    [ "$(git rev-parse HEAD)" = "$head" ]
    expect 0 hl land typo --verify 'test -f made'
}
