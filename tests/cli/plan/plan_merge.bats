#!/usr/bin/env bats
# plan commit --merge: text files that both sides changed. The tests with an overlay run as an ordinary user.
load ../plan_helper

setup() { plan_setup; }
teardown() {
    umount "$ROOM/M" 2>/dev/null || true
    plan_teardown
}

# lines FILE CHANGE...: twelve lines, of which those that are named ("3=text") differ
lines() {
    local i
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        local line="line $i" change
        for change in "${@:2}"; do [ "${change%%=*}" = "$i" ] && line=${change#*=}; done
        echo "$line"
    done >"$1"
}

# two_plans: sandboxes of plans "other" and "p" over T; other's change is committed by the caller
two_plans() {
    needs_overlay
    hp -q plan new other
    hp -q plan add other s1 "$ROOM/T"
    plan_over "$ROOM/T"
    # T0 of an overlay is its first enter.
    hp -q plan enter other -- true
    inside true
}

in_other() { hp -q plan enter other -- bash -euc "$@"; }

# A git repository of T, whose reflog is older than any sandbox.
repository() {
    [ "$as_user" = 0 ] || chown -R 65534:65534 "$ROOM"
    as git -C "$ROOM/T" init -q
    as git -C "$ROOM/T" add -A
    GIT_COMMITTER_DATE="$(($(date +%s) - 100)) +0000" as git -C "$ROOM/T" commit -qm base
}

no_markers() { ! grep -rE '^(<<<<<<<|=======|>>>>>>>)' "$ROOM/T" --include='*.txt'; }

@test "--merge: changes of other lines by another plan and by the sandbox both land; undo takes the merge back" {
    plan_as_user
    lines T/f.txt
    chown -R --reference="$ROOM" T
    two_plans
    in_other 'sed -i "s/^line 2$/other/" T/f.txt' x
    inside 'sed -i "s/^line 9$/ours/" T/f.txt; echo new >T/new.txt'
    hp -q plan commit other
    before=$(tree T)
    # Not asked for: a conflict, as ever.
    run hp plan commit p
    [ "$status" -eq 1 ]
    [ "$(tree T)" = "$before" ]
    run hp plan commit p --merge
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"merged            s1: f.txt (base: kept by plan other)"* ]]
    lines want 2=other 9=ours
    cmp want T/f.txt
    [ "$(cat T/new.txt)" = new ]
    hp -q plan undo p
    [ "$(tree T)" = "$before" ]
}

@test "--merge: the same line changed on both sides is a merge-conflict, and nothing is changed" {
    plan_as_user
    lines T/f.txt
    lines T/g.txt
    chown -R --reference="$ROOM" T
    two_plans
    in_other 'sed -i "s/^line 5$/other/" T/f.txt; sed -i "s/^line 2$/other/" T/g.txt' x
    inside 'sed -i "s/^line 5$/ours/" T/f.txt; sed -i "s/^line 9$/ours/" T/g.txt'
    hp -q plan commit other
    before=$(tree T)
    upper=$(tree "$(upper 1)")
    run hp --json plan commit p --merge
    echo "$output"
    [ "$status" -eq 1 ]
    jq -e '.outcome == "conflict" and .merged == [] and (.conflicts | length) == 1 and .conflicts[0].kind == "merge-conflict"
        and .conflicts[0].path == "f.txt" and (.conflicts[0].why | length) > 0' <<<"${lines[-1]}"
    no_markers
    [ "$(tree T)" = "$before" ]
    [ "$(tree "$(upper 1)")" = "$upper" ]
    # One is decided by its owner, the other merges.
    hp --json plan commit p --merge --force f.txt >json
    jq -e '.outcome == "committed" and (.merged | length) == 1 and .merged[0].path == "g.txt" and .merged[0].kind == "kept"
        and .merged[0].base == "other" and .changed == 2' json
    grep -q ours T/f.txt
    lines want 2=other 9=ours
    cmp want T/g.txt
}

@test "--merge: adjacent lines conflict; CRLF and a missing newline at the end survive" {
    plan_as_user
    lines T/near.txt
    lines T/crlf.txt
    sed -i 's/$/\r/' T/crlf.txt
    lines T/end.txt
    truncate -s -1 T/end.txt
    chown -R --reference="$ROOM" T
    two_plans
    in_other 'sed -i "s/^line 5$/other/" T/near.txt; sed -i "s/^line 2\r$/other\r/" T/crlf.txt; sed -i "s/^line 2$/other/" T/end.txt' x
    inside 'sed -i "s/^line 6$/ours/" T/near.txt; sed -i "s/^line 9\r$/ours\r/" T/crlf.txt; sed -i "s/^line 9$/ours/" T/end.txt'
    hp -q plan commit other
    before=$(tree T)
    run hp plan commit p --merge
    [ "$status" -eq 1 ]
    [[ "$output" == *"merge-conflict    s1: near.txt"* ]]
    [[ "$output" != *"crlf.txt"* ]]
    [ "$(tree T)" = "$before" ]
    hp -q plan commit p --merge --force near.txt
    lines want 2=other 9=ours
    sed 's/$/\r/' want | cmp - T/crlf.txt
    truncate -s -1 want
    cmp want T/end.txt
}

@test "--merge: never binary files, other modes, symlinks, deleted or newly added ones" {
    plan_as_user
    for f in bin mode link gone; do lines "T/$f.txt"; done
    printf 'a\0b\nc\n' >T/bin.txt
    chown -R --reference="$ROOM" T
    two_plans
    in_other 'printf "A\0b\nc\n" >T/bin.txt; sed -i 2d T/mode.txt; sed -i 2d T/link.txt; sed -i 2d T/gone.txt; echo x >T/both.txt' x
    inside 'printf "a\0b\nC\n" >T/bin.txt; sed -i 9d T/mode.txt; chmod +x T/mode.txt; ln -sf bin.txt T/link.txt; rm T/gone.txt; echo y >T/both.txt'
    hp -q plan commit other
    before=$(tree T)
    run hp --json plan commit p --merge
    echo "$output"
    [ "$status" -eq 1 ]
    jq -e '[.conflicts[] | select(.kind == "changed") | .path] | sort == ["bin.txt","both.txt","gone.txt","link.txt","mode.txt"]' <<<"${lines[-1]}"
    jq -e '[.conflicts[].why | select(. == null)] == []' <<<"${lines[-1]}"
    [ "$(tree T)" = "$before" ]
}

@test "--merge: the base is the file in HEAD where its users change it; uncommitted changes of before stay" {
    plan_as_user
    lines T/f.txt
    repository
    lines T/f.txt 1=uncommitted
    as true
    chown -R --reference="$ROOM" T
    needs_overlay
    plan_over "$ROOM/T"
    inside 'sed -i "s/^line 9$/ours/" T/f.txt'
    as sed -i 's/^line 5$/theirs/' T/f.txt
    # What the environment says about git does not reach it.
    GIT_TRACE2_PERF="$ROOM/traced" GIT_DIR=/nowhere hp --json plan commit p --merge >json
    cat json
    [ ! -e traced ]
    jq -e --arg head "$(as git -C T rev-parse HEAD)" '.merged[0].kind == "git" and .merged[0].base == $head' json
    lines want 1=uncommitted 5=theirs 9=ours
    cmp want T/f.txt
    no_markers
}

@test "--merge: a commit in git since then does not become the base" {
    plan_as_user
    lines T/f.txt
    repository
    chown -R --reference="$ROOM" T
    needs_overlay
    plan_over "$ROOM/T"
    inside 'sed -i "s/^line 9$/ours/" T/f.txt'
    as sed -i 's/^line 5$/theirs/' T/f.txt
    as git -C T commit -qam theirs
    hp --json plan commit p --merge >json
    jq -e --arg base "$(as git -C T rev-parse HEAD~)" '.merged[0].kind == "git" and .merged[0].base == $base' json
    lines want 5=theirs 9=ours
    cmp want T/f.txt
    # A commit that says it is older than the sandbox is not believed.
    hp -q plan rm p
    plan_over "$ROOM/T"
    inside 'sed -i "s/^line 2$/ours/" T/f.txt'
    as sed -i 's/^line 12$/theirs/' T/f.txt
    GIT_COMMITTER_DATE="$(($(date +%s) - 50)) +0000" as git -C T commit -qam backdated
    run hp plan commit p --merge
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"not merged: HEAD has moved, and its earlier commit is not certain"* ]]
}

@test "--merge: without git, and without a base, that is said and nothing is changed" {
    plan_as_user
    lines T/f.txt
    chown -R --reference="$ROOM" T
    two_plans
    in_other 'sed -i 2d T/f.txt' x
    inside 'sed -i 9d T/f.txt'
    hp -q plan commit other
    before=$(tree T)
    # Every program of the helper is still found.
    mkdir bin
    for program in timeout setpriv; do ln -s "$(command -v "$program")" bin/; done
    PATH="$ROOM/bin" run hp plan commit p --merge
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"not merged: git is not installed, and the merge needs it"* ]]
    [ "$(tree T)" = "$before" ]
    hp -q plan rm other
    run hp plan commit p --merge
    [ "$status" -eq 1 ]
    [[ "$output" == *"not merged: the common base version is unknown"* ]]
    [ "$(tree T)" = "$before" ]
}

@test "--merge: an old version that is younger than the sandbox is no base" {
    plan_as_user
    lines T/f.txt
    chown -R --reference="$ROOM" T
    needs_overlay
    plan_over "$ROOM/T"
    inside 'sed -i "s/^line 9$/ours/" T/f.txt'
    # The user's change is in what plan other keeps: as a base it would make the sandbox take it back.
    as sed -i 's/^line 5$/theirs/' T/f.txt
    hp -q plan new other
    hp -q plan add other s1 "$ROOM/T"
    in_other 'sed -i "s/^line 2$/other/" T/f.txt' x
    hp -q plan commit other
    before=$(tree T)
    run hp plan commit p --merge
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(tree T)" = "$before" ]
}

@test "--merge: a copy, and a target on another mount" {
    lines T/f.txt
    setfattr -n user.note -v kept T/f.txt 2>/dev/null || true
    hp -q plan new other
    hp -q plan add other s1 "$ROOM/T" --strategy copy
    hp -q plan new p
    hp -q plan add p s1 "$ROOM/T" --strategy copy
    sed -i 's/^line 2$/other/' "$(hp plan path other s1)/f.txt"
    sed -i 's/^line 9$/ours/' "$(hp plan path p s1)/f.txt"
    hp -q plan commit other
    attrs=$(getfattr -d -m user. T/f.txt 2>/dev/null || true)
    hp -q plan commit p --merge
    lines want 2=other 9=ours
    cmp want T/f.txt
    [ "$(getfattr -d -m user. T/f.txt 2>/dev/null || true)" = "$attrs" ]
    [ "$(id -u)" = 0 ] || skip "the other mount needs root"
    mkdir M
    mount -t tmpfs none M
    mkdir M/T
    lines M/T/f.txt
    (cd M/T && git init -q && git add -A && GIT_COMMITTER_DATE="$(($(date +%s) - 100)) +0000" git commit -qm base)
    hp -q plan new m
    hp -q plan add m s1 "$ROOM/M/T" --strategy copy
    sed -i 's/^line 9$/ours/' "$(hp plan path m s1)/f.txt"
    sed -i 's/^line 2$/theirs/' M/T/f.txt
    run hp plan commit m --merge
    lines want 2=theirs 9=ours
    run cmp want M/T/f.txt
    umount M
    [ "$status" -eq 0 ]
}
