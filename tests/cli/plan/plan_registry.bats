# plan new, list, show, path, rm, gc; what is allowed when.
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() { plan_teardown; }

shown() {
    needs_overlay; own T
    expect 0 hp plan list
    [ -z "$output" ]
    hp -q plan new p --session fix-160
    run hp --json plan show p
    is_json '.v == 1 and .state == "CREATED" and .session == "fix-160" and .sandboxes == [] and .dirty == false and .reason == null'
    hp -q plan add p app T
    run hp --json plan list
    is_json '.plans | length == 1 and .[0].sandboxes[0].name == "app" and .[0].sandboxes[0].dirty == false'
    expect 0 hp plan path p app
    [ "$output" = "$ROOM/T" ]
    inside 'echo x >T/f'
    expect 0 hp plan show p
    says "ACTIVE, dirty, not in use"; says "sandbox app: overlay"; says "session   fix-160"
    expect 0 hp plan list
    says "app (overlay)"
    expect 1 hp plan show nothing
    expect 1 hp plan path p nothing
    says "no such sandbox"
    expect 2 hp plan show
    expect 2 hp plan new ''
    # names that are not UTF-8 have their key beside them
    hp -q plan new $'odd/\xff\n'
    run hp --json plan list
    is_json '.plans[] | select(.key == "odd%2F%FF%0A") | .state == "CREATED"'
    expect 0 hp plan list
    says 'odd/\xff\x0a'
}
@test "plan list and plan show, for people and as JSON" { both shown; }

copy_strategy() {
    mkdir -p T/d; echo o >T/f; echo k >T/d/k; ln -s f T/l; own T
    hp -q plan new p
    expect 0 hp plan add p s T --strategy copy
    says "work in"
    path=$(hp plan path p s)
    [ "$path" = "$HOLDFAST_DIR/plans/p/s/s/c" ]
    [ "$(tree "$path")" = "$(tree T)" ]
    run hp plan enter p -- sh -c 'echo n >"$1/f"' x "$path"
    says "some sandboxes are not at their targets' paths; see 'holdfast plan show p'"
    # a command that starts in the target works in the copy
    (cd T/d && hp -q plan enter p -- sh -c 'echo n >k; pwd' >../../pwd)
    [ "$(cat pwd)" = "$path/d" ]
    [ "$(cat T/d/k)" = k ]
    [ "$(cat T/f)" = o ]
    run hp --json plan show p
    is_json '.state == "ACTIVE" and .dirty == true and .sandboxes[0].strategy == "copy" and .sandboxes[0].path != .sandboxes[0].target'
    expect 1 hp plan rm p
    hp -q plan rm p --discard
    [ ! -e "$path" ]
}
@test "copy: a whole tree at another path, which is said" { both copy_strategy; }

@test "clone: shares blocks where the file system can, with a reason where it cannot" {
    [ "$(id -u)" = 0 ] || skip "NEEDS ROOT"
    command -v mkfs.btrfs >/dev/null || skip "NOT INSTALLED: mkfs.btrfs"
    truncate -s 256M disk; mkfs.btrfs -q disk; mkdir m; mount -o loop disk m || skip "NO LOOP MOUNTS"
    export HOLDFAST_DIR="$ROOM/m/state"
    mkdir m/T; head -c 20M /dev/urandom >m/T/big; echo s >m/T/small
    hp -q plan new p
    hp -q plan add p s m/T --strategy clone
    cmp m/T/big "$(hp plan path p s)/big"
    # 20 MiB twice, and far less than 40 MiB on disk
    sync -f m; used=$(df -k --output=used m | tail -1)
    umount -l m
    [ "$used" -lt 30000 ]
    export HOLDFAST_DIR="$ROOM/state"
    hp -q plan new p
    expect 4 hp plan add p s T --strategy clone
    says "share blocks"
}

removal() {
    needs_overlay; own T; plan_over T
    inside 'echo x >T/f; mkdir -p T/a/b; chmod 000 T/a/b'
    expect 1 hp plan rm p
    says "--discard"
    hp -q plan rm p --discard
    expect 1 hp plan rm p --discard
    [ -z "$(ls -A T)" ]
    [ -z "$(ls -A "$HOLDFAST_DIR/plans")" ]
    run hp --json journal query --event plan_removed
    says '"discarded":true'
    # the mode of the target itself is work, too
    plan_over T
    inside 'chmod 711 T'
    expect 1 hp plan rm p
    hp -q plan rm p --discard
    # a clean one goes without
    plan_over T
    inside 'cat T/* 2>/dev/null || true'
    hp -q plan rm p
    run hp --json journal query --event plan_removed
    [ "$(grep -c plan_removed <<<"$output")" -ge 2 ]
}
@test "plan rm: only what holds no work, unless told; one event each (L8)" { both removal; }

collected() {
    needs_overlay; own T; mkdir T2 T3; own T2 T3
    hp -q plan new clean; hp -q plan add clean s T
    hp -q plan new dirty; hp -q plan add dirty s T2; hp -q plan enter dirty -- sh -c 'echo x >T2/x'
    hp -q plan new busy; hp -q plan add busy s T3
    mkdir -p "$HOLDFAST_DIR/plans/bare"; own "$HOLDFAST_DIR/plans/bare"
    mkdir -p "$HOLDFAST_DIR/plans/lost/s/x"; own "$HOLDFAST_DIR/plans/lost"; chmod 700 "$HOLDFAST_DIR"/plans/* "$HOLDFAST_DIR/plans/lost/s"
    mkfifo go; chmod 666 go
    spawn hp -q plan enter busy -- sh -c 'read x <go'
    wait_until 20 sh -c 'hp() { :; }; [ -s "$HOLDFAST_DIR/plans/busy/in" ]'
    run hp --json plan gc --dry-run --age 0
    is_json '.dry_run and ([.plans[] | select(.removed) | .plan] | sort) == ["bare","clean"]'
    is_json '.plans[] | select(.plan == "dirty") | .why | contains("not committed")'
    is_json '.plans[] | select(.plan == "busy") | .why | contains("processes")'
    is_json '.plans[] | select(.plan == "lost") | .why | contains("no record")'
    [ -d "$HOLDFAST_DIR/plans/clean" ]
    run hp --json plan gc
    is_json '[.plans[] | select(.plan == "clean") | .why] == ["it changed lately"]'
    expect 0 hp plan gc --age 0
    [ ! -e "$HOLDFAST_DIR/plans/clean" ]
    [ -d "$HOLDFAST_DIR/plans/dirty" ]
    [ -d "$HOLDFAST_DIR/plans/busy" ]
    [ -d "$HOLDFAST_DIR/plans/lost/s/x" ]
    echo x >go; wait "$spawned_pid"
    [ "$(cat "$HOLDFAST_DIR/plans/dirty/s/s/u/x")" = x ]
}
@test "plan gc: never uncommitted work; --dry-run says what and why not" { chmod 777 "$ROOM"; both collected; }

killed_in_removal() {
    needs_overlay; own T; plan_over T
    inside 'for i in $(seq 200); do echo $i >T/f$i; done'
    # killed at its Nth removal; the next rm finishes
    for n in 1 5 100 205; do
        as strace -qq -f -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=$n \
            "$( [ "$as_user" = 1 ] && echo "$ROOM/holdfast" || echo "$HOLDFAST")" -q plan rm p --discard || true
        [ -z "$(ls -A T)" ]
    done
    hp -q plan rm p --discard 2>/dev/null || [ ! -e "$HOLDFAST_DIR/plans/p" ]
    [ ! -e "$HOLDFAST_DIR/plans/p" ]
}
@test "a removal that is killed is finished by the next (L10)" { command -v strace >/dev/null || skip "NOT INSTALLED: strace"; both killed_in_removal; }

killed_in_enter() {
    needs_overlay; echo o >T/f; own T; plan_over T
    bin=$( [ "$as_user" = 1 ] && echo "$ROOM/holdfast" || echo "$HOLDFAST")
    # the parent killed at any point of making ready: the next enter works
    for call in openat renameat clone3 mkdirat; do
        for n in 1 2 5 20; do
            as strace -qq -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" "$bin" -q plan enter p -- true || true
        done
    done
    inside '[ "$(cat T/f)" = o ]; echo n >T/f'
    [ "$(cat T/f)" = o ]
    run hp --json plan show p
    is_json '(.in_use | not) and .dirty'
}
@test "an enter whose parent is killed at any call leaves a plan that can be entered (L10)" { command -v strace >/dev/null || skip "NOT INSTALLED: strace"; both killed_in_enter; }

speed_is_flat() {
    needs_overlay
    for i in $(seq 60); do mkdir -p "T/d$i"; (cd "T/d$i" && seq -f 'f%g' 50 | xargs touch); done; own T; plan_over T
    # nothing of the tree is read to enter it: no stat and no listing below the target but by the census
    run env ASAN_OPTIONS=detect_leaks=0 strace -qq -f -e trace=getdents64,newfstatat,openat -o calls "$HOLDFAST" -q plan enter p --no-rename-helper -- true
    [ "$status" -eq 0 ]
    census=$(awk '/"census.new"/ { print $1; exit }' calls)
    [ "$(grep -v "^$census " calls | grep -c '"d[0-9]*"' || true)" -le 60 ]
    [ "$(grep -cE 'f[0-9]+"' calls || true)" -eq 0 ]
}
@test "entering does not read the tree" {
    command -v strace >/dev/null || skip "NOT INSTALLED: strace"
    speed_is_flat
}

copies_know_their_work() {
    mkdir -p "$ROOM/T/d"
    echo a >"$ROOM/T/a"; echo b >"$ROOM/T/d/b"; ln -s a "$ROOM/T/l"
    [ "$as_user" = 0 ] || chown -R 65534:65534 "$ROOM/T"
    for change in true 'echo x >>d/b' 'touch d/new' 'rm d/b' 'chmod 700 d' 'mv a z' 'ln -sf b l'; do
        hp -q plan new w
        hp -q plan add w s "$ROOM/T" --strategy copy
        copy=$(hp plan path w s)
        as bash -euc "cd '$copy'; cat a >/dev/null; find . >/dev/null; $change"
        if [ "$change" = true ]; then
            [ "$(hp --json plan show w | jq .dirty)" = false ]
            hp plan rm w
        else
            [ "$(hp --json plan show w | jq .dirty)" = true ]
            run hp plan rm w
            [ "$status" -ne 0 ]
            hp -q plan rm w --discard
        fi
    done
}
@test "a copy knows whether it holds work: content, names, modes and links; looking is none" { both copies_know_their_work; }

@test "plan rm while the census is still being written: removed, at every moment of it" {
    needs_overlay
    local i
    for i in $(seq 60); do mkdir "T/d$i"; (cd "T/d$i" && touch $(seq 60)); done
    # The census ends while the plan is removed in about one of ten rounds.
    for i in $(seq 12); do
        hp -q plan new p; hp -q plan add p s T; hp -q plan enter p -- true
        expect 0 hp plan rm p
    done
}

# strategies in turn: what is left of a plan whose record a power cut took
record_lost() {
    needs_overlay; echo o >T/f; own T
    for strategy in overlay copy; do
        hp -q plan new p
        hp -q plan add p s T --strategy "$strategy"
        hp -q plan enter p -- sh -c 'echo n >"$1/f"' sh "$(hp plan path p s)"
        rm "$HOLDFAST_DIR"/plans/p/plan.*
        expect 1 hp plan commit p
        says "record is lost"
        # it is neither taken for work of the next plan, nor lost
        expect 1 hp plan new p
        says "'holdfast plan rm --discard p' removes them"
        run hp plan gc; says "no record, but sandboxes"
        expect 1 hp plan rm p
        [ "$(cat "$HOLDFAST_DIR"/plans/p/s/s/[uc]/f)" = n ]
        hp -q plan rm p --discard
        [ ! -e "$HOLDFAST_DIR/plans/p" ]; [ "$(cat T/f)" = o ]
    done
    hp -q plan new p
}
@test "a plan whose record is lost is never committed, keeps its name and its work until it is discarded" { both record_lost; }
