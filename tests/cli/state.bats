load helper

emit() { hf journal emit note text=x; }

@test "the directory is made 0700 with its files 0600, whatever the umask (L12)" {
    (umask 0 && emit)
    [ "$(stat -c %a "$HOLDFAST_DIR")" = 700 ]
    [ "$(stat -c %a "$HOLDFAST_DIR/journal")" = 700 ]
    [ -z "$(find "$HOLDFAST_DIR" -type f ! -perm 600)" ]
    [ "$(cat "$HOLDFAST_DIR/FORMAT")" = "holdfast 2" ]
}

@test "which directory: --dir, then HOLDFAST_DIR, then XDG_STATE_HOME, then HOME" {
    hf --dir "$PWD/given" journal emit note text=x
    [ -d given/journal ]
    [ ! -e "$HOLDFAST_DIR" ]
    emit
    [ -d "$HOLDFAST_DIR/journal" ]
    HOLDFAST_DIR='' XDG_STATE_HOME="$PWD/xdg" emit
    [ -d xdg/holdfast/journal ]
    HOLDFAST_DIR='' XDG_STATE_HOME=relative HOME="$PWD/home" emit
    [ -d home/.local/state/holdfast/journal ]
    [ ! -e relative ]
}

@test "a relative HOLDFAST_DIR is refused before anything is made; --dir may be relative" {
    local dir
    for dir in rel ./rel rel/deep ../rel . ~x; do
        HOLDFAST_DIR=$dir expect 2 hf ps
        says "HOLDFAST_DIR: Invalid argument"
        says "'$dir' is not an absolute path"
        HOLDFAST_DIR=$dir expect 2 emit
        HOLDFAST_DIR=$dir expect 2 hf run x -- touch ran
        HOLDFAST_DIR=$dir expect 2 hf lock run x -- touch ran
        HOLDFAST_DIR=$dir run hf doctor
        [ "$status" -ne 0 ]
        says "not an absolute path"
    done
    [ -z "$(ls -A)" ]
    [ ! -e ../rel ]
    expect 0 hf --dir rel run x -- sh -c 'case $HOLDFAST_DIR in /*) ;; *) exit 1 ;; esac'
}

@test "group- or world-accessible: exit 3, and what to do (L12)" {
    mkdir -m 750 "$HOLDFAST_DIR"
    expect 3 emit
    says "chmod 700"
    [ -z "$(ls -A "$HOLDFAST_DIR")" ]
}

@test "a symlinked directory is refused, with and without a slash behind it (L12)" {
    mkdir -m 700 real
    ln -s real "$HOLDFAST_DIR"
    expect 3 emit
    HOLDFAST_DIR="$HOLDFAST_DIR/" expect 3 emit
    [ -z "$(ls -A real)" ]
}

@test "a foreign-owned directory is refused, for root too (L12)" {
    if [ "$(id -u)" = 0 ]; then
        mkdir -m 700 "$HOLDFAST_DIR"
        chown 12345 "$HOLDFAST_DIR"
    else
        export HOLDFAST_DIR=/
    fi
    expect 3 emit
    says "owned by uid"
}

@test "a directory with other content is not filled with our files" {
    mkdir -m 700 "$HOLDFAST_DIR"
    echo mine >"$HOLDFAST_DIR/notes.txt"
    expect 3 emit
    says "notes.txt"
    [ "$(ls -A "$HOLDFAST_DIR")" = notes.txt ]
}

@test "a newer format is refused politely and left alone" {
    emit
    chmod 600 "$HOLDFAST_DIR/FORMAT"
    echo "holdfast 3" >"$HOLDFAST_DIR/FORMAT"
    expect 3 emit
    says "version 3"
}

@test "the layout before the kinds of locks is refused with what to do, and left alone" {
    mkdir -m 700 "$HOLDFAST_DIR" "$HOLDFAST_DIR/locks"
    (umask 077 && echo "holdfast 1" >"$HOLDFAST_DIR/FORMAT" && echo record >"$HOLDFAST_DIR/locks/build")
    expect 3 hf lock run build -- true
    says "version 1, an older layout"
    says "move the directory away"
    [ "$(ls -A "$HOLDFAST_DIR" "$HOLDFAST_DIR/locks" | wc -l)" -eq 6 ]
    mv "$HOLDFAST_DIR" away
    expect 0 hf lock run build -- true
}

@test "a directory that cannot be made is exit 4 with the path" {
    touch file
    HOLDFAST_DIR="$PWD/file/x" expect 4 emit
    says "file"
    HOLDFAST_DIR="$PWD/file" expect 3 emit
}

@test "--json: the error is an object on stdout, the text on stderr" {
    mkdir -m 755 "$HOLDFAST_DIR"
    run --separate-stderr hf --json journal emit note text=x
    [ "$status" -eq 3 ]
    is_json '.v == 1 and .error.code == "untrusted" and .error.exit == 3'
    [[ "$stderr" == holdfast:* ]]
}

@test "many first users at once all succeed" {
    for _ in {1..20}; do spawn hf journal emit note text=x; done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    expect 0 hf journal verify
    says "20 record(s), sequence 1 to 20: whole"
}

# read_only COMMAND...: with the state directory mounted read-only
read_only() {
    # shellcheck disable=SC2016 # for the inner shell
    unshare -rm sh -c 'mount --bind "$HOLDFAST_DIR" "$HOLDFAST_DIR" &&
        mount -o remount,bind,ro "$HOLDFAST_DIR" && exec "$@"' sh "$@"
}

@test "a read-only state directory: locks, sessions, plans and candidates are shown, checked and explained, nothing is taken" {
    unshare -rm true 2>/dev/null || skip "no user namespaces here"
    expect 0 hf journal emit note text=x
    expect 0 read_only "$HOLDFAST" ps
    expect 0 read_only "$HOLDFAST" lock list
    expect 1 read_only "$HOLDFAST" lock check held
    expect 0 read_only "$HOLDFAST" plan list
    expect 1 read_only "$HOLDFAST" plan show p
    expect 0 read_only "$HOLDFAST" land list
    expect 1 read_only "$HOLDFAST" land show c
    expect 4 read_only "$HOLDFAST" plan new p
    says "Read-only"
    expect 0 hf run ses -- true
    expect 0 hf lock acquire held --pid $$
    for verb in list "why held"; do
        # shellcheck disable=SC2086 # words
        expect 0 read_only "$HOLDFAST" ${verb/list/lock list}
        says "$$"
    done
    expect 0 read_only "$HOLDFAST" lock check held
    expect 1 read_only "$HOLDFAST" lock check other
    expect 0 read_only "$HOLDFAST" ps
    says ses
    expect 125 read_only "$HOLDFAST" lock run other -- true
    says "Read-only"
    expect 4 read_only "$HOLDFAST" lock break held --reason no
    says "Read-only"
    expect 0 hf lock check held
    expect 0 hf plan new p
    for verb in list "show p" "gc --dry-run"; do
        # shellcheck disable=SC2086 # words
        expect 0 read_only "$HOLDFAST" plan $verb
        says p
    done
    says "keep     p "
    says "p: Read-only"
    expect 4 read_only "$HOLDFAST" plan rm p
    says "Read-only"
}

@test "a full file system: each message names a directory in it" {
    unshare -rm true 2>/dev/null || skip "no user namespaces"
    run unshare -rm bash -c '
        mkdir small && mount -t tmpfs -o size=1m,mode=700 none small || exit 99
        export HOLDFAST_DIR=$PWD/small/state
        "$HOLDFAST" run a -- true
        dd if=/dev/zero of=small/filler bs=4k 2>/dev/null
        mkdir d
        names() {
            "$HOLDFAST" "$@" >said 2>&1 && return 1
            grep -q "No space left on device.*$HOLDFAST_DIR" said || { echo "$*:"; cat said; exit 1; }
        }
        names run b -- true
        names run b -d -- true
        names run b --in d -- true
        names lock run x -- true
        names lock acquire x --pid $$
        names plan enter p --in d -- true
        names keep on --session s --goal g
        names seen a
        "$HOLDFAST" --json lock acquire x --pid $$ 2>/dev/null | jq -e ".error.message | contains(\"No space left\")"'
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "a target or repository on a full file system: the message names it" {
    unshare -rm true 2>/dev/null || skip "no user namespaces"
    run unshare -rm bash -c '
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        mkdir small && mount -t tmpfs -o size=1m,mode=700 none small || exit 99
        mkdir small/d && git init -q small/g && git -C small/g commit -q --allow-empty -m first || exit 1
        dd if=/dev/zero of=small/filler bs=1k count=600 2>/dev/null
        cd small/d; "$HOLDFAST" run d --in . -- dd if=/dev/urandom of=big bs=1k count=700 status=none
        cd ../g; "$HOLDFAST" run g --in . -- dd if=/dev/urandom of=big bs=1k count=700 status=none
        true'
    echo "$output"
    says "not committed: $PWD/small/d/big: No space left on device"
    if [[ "$output" == *"the change lands on"* ]]; then
        says "cannot be copied into $PWD/small/g/.git: "
    fi
}
