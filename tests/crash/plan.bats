# plan commit, undo, rollback and recover, killed by strace at their system calls: all old or all new, and the record says which (L10).
#
# unit/plan/test_plan_faults.c does the same at every call of the library's table; this one takes the program as it is, and every
# call that the kernel sees. Some of the places in each run, all with HF_LONG=1.
load helper
load ../cli/session_helper

calls=openat,openat2,mkdirat,mknodat,pwrite64,write,ftruncate,fchmod,fchmodat,fchown,fchownat,fsetxattr,setxattr,lsetxattr,utimensat,copy_file_range,rename,renameat,renameat2,linkat,symlinkat,unlinkat,flock,fsync,fdatasync,syncfs

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    require_strace
    skip_sanitizers "a sanitizer's calls are not ours"
    [ -n "${HF_LONG:-}" ] || PLACES=5
}

teardown() {
    chmod -R u+rwx "$BATS_TEST_TMPDIR"
}

hq() { "$HOLDFAST" -q "$@"; }

# Two targets, and a plan over copies of them with new, changed, deleted and other entries.
edited() {
    local t
    chmod -R u+rwx T U state 2>/dev/null || true
    rm -rf T U state
    for t in T U; do
        mkdir -p $t/d $t/gone
        echo old >$t/a; echo old >$t/d/b; echo old >$t/gone/c; echo old >$t/kind
    done
    hq plan new p
    hq plan add p t T --strategy copy
    hq plan add p u U --strategy copy
    for t in t u; do (
        cd "$(hq plan path p $t)" || exit 1
        echo new >a; echo new >d/e; rm -r gone; rm kind; mkdir kind; echo new >kind/f; ln -s a l; chmod 700 d
    ); done
}

committed() { edited; hq plan commit p; }

# half_way VERB PREPARE: VERB is killed between two of its exchanges
half_way() {
    "$2"
    { traced "renameat2:signal=KILL:when=6" plan "$1" p; } 2>/dev/null || true
    grep -q 'killed by SIGKILL' trace
}
half_committed() { half_way commit edited; }
half_undone() { half_way undo committed; }

tree() { (cd "$1" && find . -printf '%P %y %m %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r grep -H .); }

look() { # old, new, or what must not be; then what the record says
    local t said=
    for t in T U; do
        tree "$t" >now
        if cmp -s now "old.$t"; then said+=old
        elif cmp -s now "new.$t"; then said+=new
        else cat now; said+=torn; fi
    done
    echo "$said $("$HOLDFAST" --json plan show p | jq -r .state)"
}

# after RECOVERY: all or nothing, the same a second time, and nothing else in the targets
all_or_nothing() {
    local first
    "$HOLDFAST" plan recover p >said 2>&1 || { cat said; return 1; }
    first=$(look)
    case $first in
    'oldold ACTIVE' | 'newnew COMMITTED' | 'oldold ROLLED_BACK') ;;
    *) echo "after a kill: $first"; return 1 ;;
    esac
    hq plan recover p
    [ "$(look)" = "$first" ]
}

models() {
    local t
    edited
    for t in T U; do tree $t >old.$t; done
    hq plan commit p
    for t in T U; do tree $t >new.$t; done
}

@test "L10: plan commit killed at its system calls" { models; each_point edited all_or_nothing plan commit p; }
@test "L10: plan undo killed at its system calls" { models; each_point committed all_or_nothing plan undo p; }
@test "L10: plan rollback killed at its system calls" { models; each_point edited all_or_nothing plan rollback p; }
@test "L10: plan recover of a commit killed at its system calls" { models; each_point half_committed all_or_nothing plan recover p; }
@test "L10: plan recover of an undo killed at its system calls" { models; each_point half_undone all_or_nothing plan recover p; }
