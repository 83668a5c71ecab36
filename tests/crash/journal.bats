# Killed at every system call that changes something: what was acknowledged stays, the next record is whole.
load ../cli/helper

calls=openat,mkdir,mkdirat,pwrite64,write,ftruncate,fchmod,rename,renameat2,link,linkat,unlink,unlinkat,flock,fsync,fdatasync

# killed_at N ARGS...: runs holdfast and kills it at its Nth call; says "finished" when it has fewer
killed_at() {
    local n=$1
    shift
    ASAN_OPTIONS=detect_leaks=0 timeout 20 strace -f -o trace -e trace="$calls" -e "inject=$calls:signal=KILL:when=$n" \
        "$HOLDFAST" "$@" >/dev/null 2>&1
    case $? in
    137) return 0 ;;
    0) echo finished ;;
    *) return 1 ;;
    esac
}

require_strace() {
    command -v strace >/dev/null || skip "no strace"
    ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e inject=uname:signal=KILL:when=9999 true 2>/dev/null ||
        skip "strace may not trace here"
}

@test "kill at every call of the very first emit: the next one works and the journal is whole (L9)" {
    require_strace
    n=1
    until [ "$(killed_at $n journal emit note text=first --durable)" = finished ]; do
        expect 0 hf journal emit note text=next
        expect 0 hf journal verify
        [ "$(hf -q journal query --json | jq -rs 'map(.seq) == [range(1; length + 1)]')" = true ]
        rm -rf "$HOLDFAST_DIR"
        n=$((n + 1))
        [ "$n" -lt 200 ]
    done
    [ "$n" -gt 5 ]
}

@test "kill at every call of an emit that rotates and prunes: nothing acknowledged is lost (L9)" {
    require_strace
    export HOLDFAST_JOURNAL_SEGMENT=4K HOLDFAST_JOURNAL_RETAIN=8K
    for i in {1..9}; do hf journal emit note text="$(printf 'x%.0s' {1..900})"; done
    cp -a "$HOLDFAST_DIR" before
    n=1
    until [ "$(killed_at $n journal emit note text="$(printf 'y%.0s' {1..900})" --durable)" = finished ]; do
        last=$(hf -q journal query --json --limit 1 | jq .seq)
        expect 0 hf journal emit note text=next
        expect 0 hf journal verify
        [ "$(hf -q journal query --json --event note --limit 1 | jq -r .text)" = next ]
        [ "$(hf -q journal query --json --limit 1 | jq .seq)" -gt "$last" ]
        rm -rf "$HOLDFAST_DIR"
        cp -a before "$HOLDFAST_DIR"
        n=$((n + 1))
        [ "$n" -lt 300 ]
    done
    [ "$n" -gt 5 ]
}
