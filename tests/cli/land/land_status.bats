#!/usr/bin/env bats
# What git said of a work tree is remembered (src/tx/land/status/remembered.h): git is not asked again while nothing has changed, and always when something has.
load ../helper
load ../land_helper

setup() {
    land_setup
    counting_git
}

teardown() { chmod -R u+rwX "$BATS_TEST_TMPDIR" || true; }

# A git that notes how often it is asked what is dirty outside of a sandbox.
counting_git() {
    mkdir "$BATS_TEST_TMPDIR/bin"
    cat >"$BATS_TEST_TMPDIR/bin/git" <<SH
#!/bin/sh
case "\$*" in *"--ignored=matching"*) echo asked >>"$BATS_TEST_TMPDIR/asked" ;; esac
exec $(command -v git) "\$@"
SH
    chmod 755 "$BATS_TEST_TMPDIR/bin/git"
    export PATH="$BATS_TEST_TMPDIR/bin:$PATH"
}

asked() { wc -l 2>/dev/null <"$BATS_TEST_TMPDIR/asked" || echo 0; }

# look: a run whose command says what its git status says; its words in "said", how often git was asked in $asks
look() {
    local before
    before=$(asked)
    hl run look --in . -- git status --porcelain --untracked-files=all >"$BATS_TEST_TMPDIR/seen" 2>"$BATS_TEST_TMPDIR/said" ||
        { cat "$BATS_TEST_TMPDIR/said"; return 1; }
    asks=$(($(asked) - before))
    [ ! -s "$BATS_TEST_TMPDIR/seen" ] || { echo "the command saw:"; cat "$BATS_TEST_TMPDIR/seen"; return 1; }
}

# told N: the run said that so many paths are not committed
told() {
    local n
    n=$(sed -nE 's/.* ([0-9]+) uncommitted paths?.*/\1/p' "$BATS_TEST_TMPDIR/said")
    [ "${n:-0}" = "$1" ] || { echo "told ${n:-0}, not $1"; cat "$BATS_TEST_TMPDIR/said"; return 1; }
}

# remembered: git was asked, and its answer is known from now on. A change within the last tick of the kernel's clock is not, so the first try may not do.
remembered() {
    for _ in $(seq 50); do
        look
        [ "$asks" -gt 0 ] || return 0
    done
    echo "never remembered"
    return 1
}

dirty() { git status --porcelain --untracked-files=all | wc -l; }

# noticed SCRIPT: a change after which git is asked, and what the run tells and shows is what git says
noticed() {
    remembered
    bash -euc "$1"
    look
    [ "$asks" -eq 1 ] || { echo "not noticed: $1"; return 1; }
    told "$(dirty)"
    remembered
    told "$(dirty)"
}

@test "git is asked what is dirty once, and not again while nothing changes, also when something is dirty" {
    remembered
    told 0
    look
    look
    [ "$asks" -eq 0 ]
    echo mine >>a
    echo new >untracked
    remembered
    told 2
    look
    [ "$asks" -eq 0 ]
    told 2
    [ "$(git status --porcelain | paste -sd,)" = ' M a,?? untracked' ]
    # Another session, and one that changes and lands.
    hl -q run other --in . -- sh -c 'echo 1 >other'
    git log -1 --format=%s >/dev/null
    [ -f other ]
    remembered
    told 2
}

@test "each kind of change in a work tree is noticed" {
    mkdir -p sub/deep empty objects
    echo 1 >sub/deep/f
    echo 1 >objects/only.o
    ln -s a link
    git add -A
    git commit -qm more
    noticed 'echo 2 >sub/deep/f'
    noticed 'git checkout -q sub/deep/f'
    # The same size and the old time.
    touch -r sub/deep/f "$BATS_TEST_TMPDIR/time"
    noticed 'printf "7\n" >sub/deep/f; touch -r "$BATS_TEST_TMPDIR/time" sub/deep/f'
    noticed 'git checkout -q .'
    noticed 'chmod +x b'
    noticed 'chmod -x b'
    noticed 'rm b'
    noticed 'git checkout -q b'
    noticed 'mv a renamed'
    noticed 'mv renamed a'
    noticed 'ln -sfn b link'
    noticed 'git checkout -q link'
    noticed 'echo 1 >sub/deep/new'
    noticed 'rm sub/deep/new'
    # In directories without a tracked file: an empty one, and one that has only ignored ones.
    noticed 'echo 1 >empty/new'
    noticed 'rm empty/new'
    noticed 'echo 1 >objects/new'
    noticed 'rm objects/new'
    noticed 'mkdir other; echo 1 >other/new'
    noticed 'echo 2 >other/more'
    noticed 'rm -r other'
    # An old file, or an old directory, in the place of another.
    cp -r sub "$BATS_TEST_TMPDIR/sub"
    echo 9 >"$BATS_TEST_TMPDIR/sub/deep/f"
    touch -r sub/deep/f "$BATS_TEST_TMPDIR/sub/deep/f"
    noticed 'mv sub "$BATS_TEST_TMPDIR/sub.before"; mv "$BATS_TEST_TMPDIR/sub" sub'
    noticed 'rm -r sub; mv "$BATS_TEST_TMPDIR/sub.before" sub'
}

@test "each change of HEAD, index, rules and settings is noticed" {
    echo 1 >s
    git add s
    git commit -qm s
    noticed 'echo 2 >s; git add s'
    noticed 'git reset -q'
    noticed 'git commit -qam two'
    noticed 'git update-ref refs/heads/main HEAD~'
    noticed 'git reset -q --hard'
    noticed 'git rm -q --cached s'
    noticed 'git reset -q --hard'
    noticed 'git checkout -q -b elsewhere; git checkout -q main; git reset -q --soft HEAD~; '
    noticed 'git reset -q --hard'
    noticed 'echo "*.tmp" >>.git/info/exclude; echo 1 >x.tmp'
    noticed ': >.git/info/exclude'
    rm x.tmp
    noticed 'echo "*.x" >>.gitignore'
    noticed 'git commit -qam rules; echo 1 >y.x; echo 1 >z'
    noticed 'mkdir -p "$HOME/.config/git"; echo z >"$HOME/.config/git/ignore"'
    noticed 'rm "$HOME/.config/git/ignore"'
    # A rule that is itself ignored.
    mkdir venv
    echo '*' >venv/.gitignore
    echo 1 >venv/f
    noticed 'echo g >venv/.gitignore'
    # What is ignored changes without a question.
    rm -r venv z
    remembered
    echo 2 >x.o
    echo 3 >new.o
    rm -f y.x
    look
    # A name that came or went changes its directory.
    [ "$asks" -le 1 ]
    remembered
    echo 4 >x.o
    look
    [ "$asks" -eq 0 ]
}

# step N: one change of a random kind
step() {
    local file=d$((RANDOM % 6))/f$((RANDOM % 400))
    case $((RANDOM % 12)) in
    0 | 1) echo "$RANDOM" >"$file" ;;
    2) rm -f "$file" ;;
    3) echo new >"d$((RANDOM % 6))/n$((RANDOM % 5))" ;;
    4) git add -A ;;
    5) git commit -qam "step $1" || true ;;
    6) git checkout -qf . ;;
    7) git clean -qfd ;;
    8) mv -f "$file" "d$((RANDOM % 6))/f$((RANDOM % 400))" 2>/dev/null || true ;;
    9) echo o >"d$((RANDOM % 6))/x.o" ;;
    10) git stash -q 2>/dev/null || true ;;
    11) hl -q run "agent$1" --in . -- sh -c "echo $1 >agent$1" || true ;;
    esac
}

@test "L14: random changes of a large work tree: what a run tells and shows is what git says, whatever is remembered" {
    local seed=${SEED:-7} steps=12
    [ -z "${HF_LONG:-}" ] || { seed=${SEED:-$RANDOM}; steps=300; }
    echo "seed $seed"
    RANDOM=$seed
    mkdir d{0,1,2,3,4,5}
    for i in $(seq 0 399); do for d in d{0,1,2,3,4,5}; do echo "$i" >"$d/f$i"; done; done
    git add -A
    git commit -qm many
    remembered
    for n in $(seq "$steps"); do
        step "$n"
        [ $((RANDOM % 3)) -ne 0 ] || step "$n"
        look || { echo "step $n"; git status --short; return 1; }
        told "$(dirty)" || { echo "step $n"; git status --short; return 1; }
        [ $((RANDOM % 2)) -ne 0 ] || { look; told "$(dirty)"; }
    done
}

@test "what is remembered may be damaged, cut, foreign or in the way: git is asked then" {
    local file
    remembered
    file=$(echo "$HOLDFAST_DIR"/landings/.status-*)
    [ -f "$file" ]
    # A file for each change of one byte, and of its length.
    cp "$file" "$BATS_TEST_TMPDIR/whole"
    for at in 0 8 12 20 30 40 60 80 "$(($(stat -c %s "$file") - 1))"; do
        cp "$BATS_TEST_TMPDIR/whole" "$file"
        # A fixed value might be the present one.
        printf "\\x$(printf %02x $((255 - $(od -An -tu1 -j "$at" -N 1 "$file"))))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
        look
        [ "$asks" -eq 1 ] || { echo "byte $at"; return 1; }
    done
    for size in 0 1 50 100; do
        head -c "$size" "$BATS_TEST_TMPDIR/whole" >"$file"
        look
        [ "$asks" -eq 1 ] || { echo "size $size"; return 1; }
    done
    remembered
    # A symlink, a directory, a file that all may write.
    mv "$file" "$BATS_TEST_TMPDIR/elsewhere"
    ln -s "$BATS_TEST_TMPDIR/elsewhere" "$file"
    look
    [ "$asks" -eq 1 ]
    rm "$file"
    mkdir "$file"
    look
    [ "$asks" -eq 1 ]
    rmdir "$file"
    # What a killed one left, and one that another process is writing.
    echo rest >"$file.new"
    chmod 600 "$file.new"
    remembered
    rm "$file"
    echo rest >"$file.new"
    chmod 600 "$file.new"
    exec 7>>"$file.new"
    flock 7
    look
    look
    [ "$asks" -eq 1 ]
    [ ! -e "$file" ]
    exec 7>&-
    remembered
}

@test "settings that name other files: those count too; settings that include others are asked for each time" {
    echo 1 >x.tmp
    echo '*.tmp' >"$HOME/rules"
    # shellcheck disable=SC2088
    git config --global core.excludesFile '~/rules'
    noticed ': >"$HOME/rules"'
    git config --global core.excludesFile "$HOME/rules"
    noticed 'echo "*.tmp" >"$HOME/rules"'
    git config --global core.attributesFile "$HOME/attributes"
    noticed 'echo "*.x text" >"$HOME/attributes"'
    # An ignored file with attributes.
    echo .gitattributes >>.git/info/exclude
    echo '*.y text' >.gitattributes
    noticed 'echo "*.z text" >.gitattributes'
    printf '[include]\n\tpath = more\n' >>"$HOME/.gitconfig"
    look
    look
    [ "$asks" -eq 1 ]
    chmod +x b
    look
    told "$(dirty)"
}
