# tests/crash/helper.bash - kills the command at its Nth system call that changes something.

calls=openat,mkdir,mkdirat,pwrite64,write,ftruncate,fchmod,fchown,fsetxattr,fremovexattr,copy_file_range,rename,renameat2,link,linkat,unlink,unlinkat,flock,fsync,fdatasync

# killed_at N ARGS...: runs holdfast and kills it at its Nth call; says "finished" when it has fewer
killed_at() {
    local n=$1
    shift
    ASAN_OPTIONS=detect_leaks=0 timeout 20 strace -f -o trace -e trace="$calls" -e "inject=$calls:signal=KILL:when=$n" \
        "$HOLDFAST" "$@" </dev/null >/dev/null 2>&1
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
