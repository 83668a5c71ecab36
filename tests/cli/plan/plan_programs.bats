# Real programs inside a sandbox, above all those that rename directories, which an overlay alone cannot (trap 10).
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() { plan_teardown; }

needs() { command -v "$1" >/dev/null || skip "NOT INSTALLED: $1"; }

repository() {
    mkdir -p T/src/deep/er T/docs
    for i in $(seq 30); do echo "line $i" >"T/src/f$i"; echo "$i" >"T/src/deep/er/g$i"; done
    echo d >T/docs/d
    own T
    as git init -q T; as git -C T add -A; as git -C T commit -qm one
}

git_renames() {
    needs_overlay; repository; plan_over T
    before=$(tree T/src) head=$(as git -C T rev-parse HEAD)
    inside 'cd T
        git mv src lib; git commit -qm moved
        [ -z "$(git status --short)" ]; [ ! -e src ]; [ "$(ls lib | wc -l)" -eq 31 ]
        git mv lib/deep deeper; git mv docs lib/docs; git commit -qm again
        git checkout -q -b other; git checkout -q HEAD~2; [ -e src/deep/er/g30 ]
        git checkout -q other; [ ! -e src ]; [ -e lib/docs/d ]
        echo more >>lib/f1; git commit -qam change; git rebase -q --onto HEAD~2 HEAD~1; [ -z "$(git status --short)" ]
        git stash list; git gc -q --prune=now; git fsck --no-dangling 2>&1; git worktree add -q ../T/wt; git -C wt log --oneline >/dev/null
        git log --follow --oneline lib/f1 | grep -q one'
    [ "$(tree T/src)" = "$before" ]
    [ "$(as git -C T rev-parse HEAD)" = "$head" ]
    [ ! -e T/lib ]
    [ ! -e T/wt ]
    [ -z "$(as git -C T status --short)" ]
}
@test "git: mv of directories, commit, checkout, rebase, gc, worktree" { both git_renames; }

programs_rename() {
    needs_overlay
    mkdir -p T/a/b/c T/empty T/full; echo 1 >T/a/f; echo 2 >T/a/b/c/g; echo x >T/full/x; ln -s f T/a/link; ln T/a/f T/a/hard
    mkdir T/ro; echo r >T/ro/r; mkdir T/ro/in; echo i >T/ro/in/i
    touch -d '2001-02-03 04:05:06' T/a T/a/b; chmod 2750 T/a/b; setfattr -n user.note -v kept T/a/b 2>/dev/null || true
    own T; chmod 500 T/ro/in T/ro; plan_over T
    before=$(tree T)
    needs python3
    inside 'cd T; /usr/bin/python3 -c "
import os,errno
def fails(code, *names):
    try: os.rename(*names)
    except OSError as e: assert e.errno == code, (names, e)
    else: assert False, names
fails(errno.ENOTEMPTY, \"a\", \"full\")
fails(errno.ENOTDIR, \"a\", \"full/x\")
fails(errno.EINVAL, \"a\", \"a/b/inside\")
fails(errno.ENOENT, \"nothing\", \"there\")
os.rename(\"a\", \"empty\")
assert not os.path.exists(\"a\")
assert open(\"empty/b/c/g\").read() == \"2\\n\"
assert os.readlink(\"empty/link\") == \"f\"
s = os.stat(\"empty/b\"); assert s.st_mode & 0o7777 == 0o2750, oct(s.st_mode); assert int(s.st_mtime) == 981173106, s.st_mtime
assert int(os.stat(\"empty\").st_mtime) == 981173106
try: assert os.getxattr(\"empty/b\", \"user.note\") == b\"kept\"
except OSError: pass
fd = os.open(\"empty\", os.O_RDONLY)
os.rename(\"b\", \"bb\", src_dir_fd=fd, dst_dir_fd=fd)
os.rename(\"empty/bb/\", \"moved/\")
assert os.path.exists(\"moved/c/g\")
os.rename(\"ro\", \"rw\"); assert open(\"rw/in/i\").read() == \"i\\n\"; assert os.stat(\"rw\").st_mode & 0o777 == 0o500
os.rename(\"rw\", \"ro\")
os.mkdir(\"new\"); open(\"new/n\",\"w\").close(); os.rename(\"new\", \"newer\"); assert os.path.exists(\"newer/n\")
"'
    [ "$(tree T)" = "$before" ]
    inside 'cd T; ! ls -A | grep holdfast-rename'
    if command -v perl >/dev/null; then inside 'cd T; perl -e "rename q(moved), q(perl) or die \$!"; [ -e perl/c/g ]'; fi
    if command -v node >/dev/null; then inside 'cd T; node -e "require(\"fs\").renameSync(\"ro\",\"node\")"; [ -e node/in/i ]'; fi
    inside 'cd T; mv full mvd; mv -T mvd full; [ -e full/x ]'
}
@test "python, perl, node, mv rename directories of the target; errors, modes, times, attributes as outside (trap 10)" { both programs_rename; }

# Writes ./exchange: "exchange A B" is renameat2(A, B, RENAME_EXCHANGE); it prints the errno.
write_exchange() {
    command -v python3 >/dev/null || skip "NOT INSTALLED: python3"
    cat >exchange <<'P'
import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
r = c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3]) if len(sys.argv) > 3 else 2)
print(ctypes.get_errno() if r else 0)
P
}

exchange_lay_out() {
    mkdir -p "$1"/a/sub/deep "$1"/b/other "$1"/in/c
    for i in $(seq 12); do echo "a$i" >"$1/a/f$i"; echo "deep$i" >"$1/a/sub/deep/g$i"; done
    echo b >"$1/b/f1"; echo o >"$1/b/other/o"; ln -s ../f1 "$1/b/other/link"; echo c >"$1/in/c/x"; echo file >"$1/file"
    chmod 750 "$1/a"; chmod 2711 "$1/b"; chmod 500 "$1/b/other"; touch -d '2020-02-02 02:02:02' "$1/a" "$1/b"
}

# The same steps inside and outside must give the same tree.
exchange_steps='
    x() { [ "$(/usr/bin/python3 "$ROOM/exchange" "$@")" = 0 ]; }
    cd "$1"
    x a b
    echo new >a/new; echo changed >b/f1; rm b/f2 b/sub/deep/g3; mv b/sub b/moved; echo n >b/moved/deep/n
    x b in/c; x in/c file; x file in/c; x a in/c; x a in/c
    mkdir fresh; echo y >fresh/y; x fresh a; x a fresh
    [ "$(/usr/bin/python3 "$ROOM/exchange" a missing)" = 2 ]
    [ "$(/usr/bin/python3 "$ROOM/exchange" in in/c)" = 22 ]
    [ "$(/usr/bin/python3 "$ROOM/exchange" a b 3)" = 22 ]
    [ -z "$(find . -name "*holdfast-rename*")" ]'

exchanges() {
    needs_overlay; write_exchange; export ROOM
    exchange_lay_out T; exchange_lay_out outside; own T; own outside; plan_over T
    before=$(tree T)
    as bash -euc "$exchange_steps" outside outside
    hp -q plan enter p -- bash -euc "$exchange_steps" inside T
    [ "$(tree T)" = "$before" ]
    hp -q plan commit p
    [ "$(tree T)" = "$(tree outside)" ]
    hp -q plan undo p
    [ "$(tree T)" = "$before" ]
}
@test "RENAME_EXCHANGE of directories of the target works as outside, with changes in both, and is committed and undone (trap 10)" { both exchanges; }

# Every file of a and b, wherever an exchange that was killed has left it.
contents() { find "$1" -type f -exec cat {} + | sort; }

killed_exchange() {
    needs_overlay; write_exchange; command -v strace >/dev/null || skip "NOT INSTALLED: strace"
    exchange_lay_out T; own T
    before=$(tree T) all=$(contents T)
    for call in mkdirat renameat2 unlinkat; do
        for n in 1 3 9; do
            plan_over T
            run timeout --kill-after=1 60 strace -f -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" "$HOLDFAST" -q plan enter p -- /usr/bin/python3 exchange T/a T/b
            [ "$(tree T)" = "$before" ]
            hp -q plan recover p
            # Nothing is lost inside, the sandbox can be used again, and all of it can be dropped.
            [ "$(inside 'find T -type f -exec cat {} + | sort')" = "$all" ]
            hp -q plan rollback p
            [ "$(tree T)" = "$before" ]
            hp -q plan rm p
        done
    done
}
@test "an exchange of directories that is killed at any step loses no file and touches no target (L10)" {
    [ "$(id -u)" = 0 ] || skip "NEEDS ROOT"
    killed_exchange
}

undone() {
    needs_overlay
    [ "$(id -u)" = 0 ] && [ "$as_user" = 1 ] || skip "NEEDS ROOT TO MAKE ANOTHER USER'S FILE"
    mkdir -p T/d/sub; for i in $(seq 20); do echo "$i" >"T/d/f$i"; echo "$i" >"T/d/sub/g$i"; done; own T
    # a file of another user cannot be copied up: the rename fails on the way
    echo root >T/d/sub/g7x; chmod 644 T/d/sub/g7x
    plan_over T
    before=$(tree T)
    inside 'cd T; ls -R d | sort >../before-list; ! /usr/bin/python3 -c "import os; os.rename(\"d\",\"e\")" 2>../said
        ls -R d | sort >../after-list; [ ! -e e ]; ! ls -A | grep holdfast-rename; [ "$(cat d/sub/g20)" = 20 ]'
    cmp before-list after-list
    grep -q 'cross-device' said
    [ "$(tree T)" = "$before" ]
}
@test "a directory rename that fails on the way is undone" {
    [ "$(id -u)" = 0 ] || skip "NEEDS ROOT"
    plan_as_user; chmod 777 "$ROOM"; undone
}

without_helper() {
    needs_overlay; mkdir T/d; echo 1 >T/d/f; own T; plan_over T
    run hp plan enter p --no-rename-helper -- /usr/bin/python3 -c 'import os; os.rename("T/d","T/e")'
    [ "$status" -eq 1 ]; says "cross-device"
    # where it cannot be installed, that is said once, and the rest works
    run "$HELPERS/helper-enosys" seccomp -- "$HOLDFAST" plan enter p -- sh -c 'mv T/d T/e; echo n >T/n'
    if [ "$as_user" = 0 ] && [ "$status" -ne 77 ]; then
        [ "$status" -eq 0 ]
        [ "$(grep -c 'EXDEV in the sandbox' <<<"$output")" -eq 1 ]
        run hp --json journal query --event plan_entered
        says '"without":"directory renames"'
    fi
}
@test "without the helper a directory rename gives EXDEV, and that is said once" { both without_helper; }

not_a_tunnel() {
    # the helper does nothing that the caller could not do itself
    needs_overlay; mkdir -p T/d T/closed; echo 1 >T/d/f; own T; plan_over T
    command -v python3 >/dev/null || skip "NOT INSTALLED: python3"
    # no_new_privs: the caller may be in a sandbox of its own (Landlock), which the helper cannot see
    inside 'setpriv --no-new-privs /usr/bin/python3 -c "
import os
try: os.rename(\"T/d\", \"T/e\"); print(\"renamed\")
except OSError as e: print(e.errno)"' >out
    [ "$(cat out)" = 18 ]
    if [ "$as_user" = 0 ] && [ "$(id -u)" = 0 ]; then
        # root as another user: not with the helper's rights
        chmod 777 T
        inside 'setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 -c "
import os
try: os.rename(\"T/d\", \"T/closed/e\"); print(\"renamed\")
except OSError as e: print(e.errno)"' >out
        [ "$(cat out)" = 13 ]
    fi
    inside '[ -e T/d/f ]'
}
@test "the rename helper gives nobody rights that it does not have (L12)" { both not_a_tunnel; }

many_renames() {
    needs_overlay
    for i in $(seq 40); do mkdir -p "T/d$i"; echo "$i" >"T/d$i/f"; done; own T; plan_over T
    inside 'cd T
        for i in $(seq 40); do /usr/bin/python3 -c "import os,sys; os.rename(\"d\"+sys.argv[1],\"e\"+sys.argv[1])" $i & done; wait
        for i in $(seq 40); do [ "$(cat e$i/f)" = $i ]; [ ! -e d$i ]; done'
}
@test "forty directory renames at once" { both many_renames; }

sqlite_works() {
    needs_overlay; needs sqlite3; own T
    as sqlite3 T/db 'create table t(x); insert into t values(1)' ; as sqlite3 T/wal 'pragma journal_mode=wal; create table t(x)' >/dev/null
    plan_over T
    inside 'cd T; for i in $(seq 20); do sqlite3 db "insert into t values($i)" & done; wait; sqlite3 wal "insert into t values(2)"
        true'
    [ "$(as sqlite3 T/db 'select count(*) from t')" = 1 ]
    [ "$(as sqlite3 T/wal 'select count(*) from t')" = 0 ]
    inside 'cd T; [ "$(sqlite3 wal "select count(*) from t")" = 1 ]; sqlite3 db "pragma integrity_check" | grep -qx ok'
}
@test "sqlite, with a rollback journal and WAL" { both sqlite_works; }

builds() {
    needs_overlay; needs make; needs gcc
    mkdir T/src
    printf 'all: prog\nprog: src/a.o src/b.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -c -o $@ $<\ninstall: all\n\tmkdir -p out.tmp && cp prog out.tmp && rm -rf out && mv out.tmp out\n' >T/Makefile
    echo 'int b(void); int main(void) { return b(); }' >T/src/a.c; echo 'int b(void) { return 0; }' >T/src/b.c
    own T; plan_over T
    before=$(tree T)
    inside 'cd T; make -j4 install >/dev/null; ./out/prog; make -q all; touch src/b.c; make install >/dev/null; ./out/prog; rm -rf src; make -n >/dev/null 2>&1 || true'
    [ "$(tree T)" = "$before" ]
}
@test "make, twice" { both builds; }

venv() {
    needs_overlay; /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || skip "NOT INSTALLED: python3-venv"
    own T; plan_over T
    inside 'cd T; /usr/bin/python3 -m venv --without-pip v; v/bin/python -c "import sys; assert sys.prefix.endswith(\"/T/v\")"; mv v w; [ -x w/bin/python ]'
    [ -z "$(ls -A T)" ]
}
@test "a Python venv" { both venv; }

npm_works() {
    needs_overlay; needs npm; own T
    mkdir -p T/app T/dep; echo '{"name":"dep","version":"1.0.0"}' >T/dep/package.json; echo 'module.exports=7' >T/dep/index.js
    echo '{"name":"app","version":"1.0.0","dependencies":{"dep":"file:../dep"}}' >T/app/package.json; own T
    plan_over T
    inside 'cd T/app; npm install --offline --no-audit --no-fund >/dev/null 2>&1; node -e "if (require(\"dep\") !== 7) process.exit(1)"; npm ci --offline --no-audit --no-fund >/dev/null 2>&1; node -e "require(\"dep\")"'
    [ ! -e T/app/node_modules ]
    [ ! -e T/app/package-lock.json ]
}
@test "npm install and npm ci" { both npm_works; }

cargo_works() {
    needs_overlay; needs cargo; own T
    mkdir -p T/src; printf '[package]\nname="x"\nversion="0.1.0"\nedition="2021"\n' >T/Cargo.toml; echo 'fn main(){}' >T/src/main.rs
    plan_over T
    inside 'cd T; cargo build -q --offline; ./target/debug/x; touch src/main.rs; cargo build -q --offline; ./target/debug/x'
    [ ! -e T/target ]
}
@test "cargo build, twice" {
    needs cargo
    # its toolchain stands in root's home
    HOME_BEFORE=$(getent passwd "$(id -u)" | cut -d: -f6)
    export CARGO_HOME="${CARGO_HOME:-$HOME_BEFORE/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME_BEFORE/.rustup}"
    cargo_works
}

undo_after_status() {
    needs_overlay; command -v git >/dev/null || skip "no git"
    as git -c init.defaultBranch=main init -q T; echo one >T/f; own T
    as git -C T add f; as git -C T commit -qm one
    plan_over T
    inside 'cd T; echo two >>f; git commit -qam two; echo three >g; git add g'
    hp -q plan commit p
    # git compares the files, which are new, and writes their times into the index.
    ino=$(stat -c %i T/.git/index)
    [ "$(as git -C T status --short)" = 'A  g' ]
    [ "$(stat -c %i T/.git/index)" != "$ino" ]
    hp -q plan undo p
    [ "$(as git -C T log --format=%s)" = one ]; [ "$(cat T/f)" = one ]; [ ! -e T/g ]
    [ -z "$(as git -C T status --short)" ]
    # What a user put into the index since is work.
    hp -q plan rm p; plan_over T
    inside 'cd T; echo two >>f; git commit -qam two'
    hp -q plan commit p
    echo mine >T/mine; own T/mine; as git -C T add mine
    run hp plan undo p
    [ "$status" -eq 1 ]; says '.git/index'; says '--force'
    [ "$(as git -C T status --short)" = 'A  mine' ]
}
@test "plan undo: a git index that git status rewrote is no conflict, one with other entries is" { both undo_after_status; }
