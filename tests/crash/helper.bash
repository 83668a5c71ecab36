# tests/crash/helper.bash - kills the command at each of its system calls that changes something, one after the other.

calls=openat,mkdir,mkdirat,mknodat,pwrite64,write,ftruncate,fchmod,fchown,fsetxattr,fremovexattr,copy_file_range,rename,renameat2,link,linkat,symlinkat,unlink,unlinkat,flock,fcntl,fsync,fdatasync

traced() { # traced INJECT ARGS...: runs holdfast under strace
    local inject=$1
    shift
    ASAN_OPTIONS=detect_leaks=0 timeout 20 strace -o trace -e trace="$calls" ${inject:+-e inject="$inject"} \
        "$HOLDFAST" "$@" </dev/null >said 2>&1
}

# points ARGS...: "CALL ORDINAL" for each of them, in order. strace counts each call for itself, so "the 7th of all" is not to
# be had. Those before our state directory is opened are the loader's.
points() {
    traced '' "$@"
    sed -nE 's/^([a-z0-9_]+)\((.*)/\1 \2/p' trace | awk -v dir="\"$HOLDFAST_DIR\"" '
        { k = ++n[$1] }
        index($0, dir) { ours = 1 }
        ours { print $1, k }'
}

# each_point PREPARE CHECK ARGS...: for each point PREPARE, kill there, CHECK. Ends prepared. PLACES: that many of them at most,
# others in every run.
each_point() {
    local prepare=$1 check=$2 killed=0 all call k status
    shift 2
    # What is made only once is there before the points are counted, unless PREPARE removes it.
    "$prepare"
    traced '' "$@"
    "$prepare"
    points "$@" >points.list
    all=$(wc -l <points.list)
    [ "$all" -gt 10 ]
    if [ -n "${PLACES:-}" ] && [ "$PLACES" -lt "$all" ]; then
        shuf -n "$PLACES" points.list >points.some
        mv points.some points.list
        all=$PLACES
    fi
    while read -r call k; do
        "$prepare"
        status=0
        { traced "$call:signal=KILL:when=$k" "$@"; } 2>/dev/null || status=$?
        echo "killed at $call number $k: $status"
        [ "$status" -eq 0 ] || [ "$status" -eq 137 ]
        [ "$status" -eq 0 ] || killed=$((killed + 1))
        "$check"
    done <points.list
    "$prepare"
    # Now and then a run takes another way, and ends before it gets there.
    [ $((killed * 10)) -ge $((all * 9 - 10)) ]
    echo "# $BATS_TEST_DESCRIPTION: $killed points" >&3
}

require_strace() {
    command -v strace >/dev/null || skip "no strace"
    ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e inject=uname:signal=KILL:when=9999 true 2>/dev/null ||
        skip "strace may not trace here"
}
