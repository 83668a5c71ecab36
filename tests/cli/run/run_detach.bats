# A session in the background: its supervisor is a program of its own (libexec/holdfast-supervise), not a copy of the caller.
load ../session_helper

libexec() { dirname "$(dirname "$HOLDFAST")"; }

private_kb() { awk '/^Private_(Clean|Dirty):/ { n += $2 } END { print n }' "/proc/$1/smaps_rollup"; }

is_supervise() { [ "$(readlink "/proc/$1/exe")" = "$(realpath "$(libexec)/libexec/holdfast-supervise")" ]; }

logged() { hf logs "$1" | grep -q "$2"; }

@test "L13: a caller whose other threads hold the lock of the allocator starts a session" {
    expect 0 timeout 20 "$HELPERS/helper-background" x 1 -- sleep 60
    says end
    wait_until 10 is_field x .state running
    is_supervise "$(field x .supervisor.pid)"
    is_supervise "$(field x .keeper.pid)"
}

@test "the supervisor of a caller with 500 MiB has less than 1 MiB, also when the caller has ended" {
    skip_sanitizers "a sanitizer's memory is not ours"
    expect 0 timeout 20 "$HELPERS/helper-background" x 500 -- sleep 60
    supervisor=$(field x .supervisor.pid) keeper=$(field x .keeper.pid)
    echo "supervisor $(private_kb "$supervisor") kB, keeper $(private_kb "$keeper") kB"
    [ "$(private_kb "$supervisor")" -lt 1024 ]
    [ "$(private_kb "$keeper")" -lt 1024 ]
}

@test "nothing of the caller's descriptors is in supervisor, keeper or command" {
    # The helper has a pipe without CLOEXEC and says "end" when nobody else has it; here are three more.
    expect 0 timeout 20 "$HELPERS/helper-background" x 1 -- sleep 60 7<"$HELPERS/helper-background" 8>eight 200>far
    says end
    for pid in "$(field x .supervisor.pid)" "$(field x .keeper.pid)" "$(field x .pid)"; do
        run ls -l "/proc/$pid/fd"
        [[ "$output" != *helper-background* && "$output" != *eight* && "$output" != *far* ]] || { echo "$pid: $output"; return 1; }
    done
}

@test "L13: directory, umask, signal mask and environment of the command are the caller's" {
    mkdir here && cd here
    export FLAVOUR=$'two\nlines'
    expect 0 timeout 20 "$HELPERS/helper-background" x 1 -- bash -c 'pwd; umask; grep SigBlk /proc/self/status; printf "%q\n" "$FLAVOUR"; ps -o tty= -p $$ || true'
    cd ..
    expect 0 hf wait x
    expect 0 hf logs x
    says "$PWD/here"
    says 0027
    says "SigBlk:	0000000000000200"
    says "\$'two\\nlines'"
}

@test "secrets in --env, and words that are not text, come to the command and stand in no argv" {
    expect 0 hf run x --detach --env TOKEN=hunter2 -- sh -c 'printf "%s %s\n" "$TOKEN" "$1"; sleep 60' sh $'\xff\xfe'
    wait_until 10 logged x hunter2
    for pid in "$(field x .supervisor.pid)" "$(field x .keeper.pid)"; do
        run tr '\0' ' ' <"/proc/$pid/cmdline"
        [ "$output" = "holdfast-supervise x " ] || { echo "$output"; return 1; }
    done
    expect 0 hf logs x
    [ "$output" = $'hunter2 \xff\xfe' ]
}

@test "a start that fails says why, as one in the foreground does" {
    expect 0 hf run x --detach -- sleep 60
    expect 1 hf run x --detach -- true
    says "session 'x' is running"
    expect 127 hf run y --detach -- /no/such/program
    says "not-started"
    expect 3 hf run z --detach --cwd /no/such/directory -- true
    expect 1 hf run z --detach --resume
    expect 2 hf run z --detach --ttl 1ms -- true
}

@test "what fails inside says of which session: stop, wait, logs, reap, run" {
    for verb in stop wait logs reap; do
        run hf "$verb" nobody
        [ "$verb" = reap ] && [ "$status" -eq 0 ] || says "session 'nobody': "
    done
    HOLDFAST_LIBEXEC=/no/such expect 125 hf run nobody --detach -- true
    says "session 'nobody': /no/such/holdfast-supervise: "
    expect 3 hf run nobody --cwd /no/such -- true
    says "session 'nobody': "
    running x
    expect 1 hf wait x -w 10ms
    says "session 'x': "
    says "not ended after 10 ms: it is running, attempt 1, pid $(cat up-x)"
    let_go x
}

@test "L12: HOLDFAST_LIBEXEC is absolute, its program is there, is ours, and nobody else can change it" {
    mkdir libexec
    export HOLDFAST_LIBEXEC=libexec
    expect 2 hf run x --detach -- true
    says "HOLDFAST_LIBEXEC"
    says "not an absolute path"
    export HOLDFAST_LIBEXEC="$PWD/libexec"
    expect 125 hf run x --detach -- true
    says "$PWD/libexec/holdfast-supervise"
    cp "$(libexec)/libexec/holdfast-supervise" libexec/
    expect 0 hf run x --detach -- true
    expect 0 hf wait x
    for mode in 0775 0757; do
        chmod "$mode" libexec/holdfast-supervise
        expect 3 hf run x2 --detach -- true
        says "users other than its owner can change it"
    done
    chmod 0644 libexec/holdfast-supervise
    expect 3 hf run x2 --detach -- true
    says "not an executable program"
    rm libexec/holdfast-supervise
    mkfifo libexec/holdfast-supervise
    expect 3 hf run x2 --detach -- true
    if [ "$(id -u)" = 0 ]; then
        rm libexec/holdfast-supervise
        cp "$(libexec)/libexec/holdfast-supervise" libexec/
        chown 65534 libexec/holdfast-supervise
        expect 3 hf run x2 --detach -- true
        says "it belongs to uid 65534"
    fi
    [ ! -e "$HOLDFAST_DIR/sessions/x2" ]
}

got() { [ "$(cat got 2>/dev/null)" = "$1" ]; }

@test "a program of that name that is another one, or of another version, is refused and gets no order" {
    mkdir libexec
    version=$(hf version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
    export HOLDFAST_LIBEXEC="$PWD/libexec" GOT="$PWD/got" MAGIC= VERSION=
    cp "$(type -P true)" libexec/holdfast-supervise
    expect 125 hf run x --detach --env SECRET=hunter2 -- true
    says "it ended at once, or is another program"
    cp "$HELPERS/helper-impostor" libexec/holdfast-supervise
    for MAGIC in '' 'hf-supervise 2'; do
        rm -f got
        VERSION=$version expect 125 hf run x --detach -- true
        says "it ended at once, or is another program"
        wait_until 5 got nothing
    done
    rm got
    MAGIC='hf-supervise 1' VERSION=9.9.9 expect 3 hf run x --detach -- true
    says "it has version 9.9.9, and this is $version"
    wait_until 5 got nothing
    rm got
    # The counter-check: one that says the right things is believed, and gets it.
    MAGIC='hf-supervise 1' VERSION=$version expect 125 hf run x --detach -- true
    says "its supervisor was killed"
    wait_until 5 got order
    [ ! -e "$HOLDFAST_DIR/sessions/x" ]
}

@test "where the program is missing, run --detach says where it was to be, and the foreground works" {
    installed=$(grep -aoE '/[^ ]*/holdfast-supervise' "$HOLDFAST" | grep -v '^/\.\.' | head -n 1)
    [ ! -e "$installed" ] || skip "it is installed: $installed"
    mkdir cli
    cp "$HOLDFAST" cli/holdfast
    expect 125 timeout 20 cli/holdfast run x --detach -- true
    says "libexec/holdfast-supervise"
    says "HOLDFAST_LIBEXEC"
    expect 0 timeout 20 cli/holdfast run x -- true
}

@test "the supervisor is not a command for people" {
    expect 2 "$(libexec)/libexec/holdfast-supervise" </dev/null
    says "run --detach"
}
