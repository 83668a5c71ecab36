# What real programs made in a sandbox lands by a commit, and works in the target as if it had been made there; an undo gives the
# tree of before.
load ../helper
load ../plan_helper

setup() { plan_setup; export GIT_OPTIONAL_LOCKS=0; }
teardown() { plan_teardown; }

needs() { command -v "$1" >/dev/null || skip "NOT INSTALLED: $1"; }

# land_and_undo CHECK...: plan p is committed, each check holds in the target; after an undo the tree is that of $before
land_and_undo() {
    local check
    hp -q plan commit p
    for check in "$@"; do as bash -euc "$check"; done
    [ "$(tree T)" != "$before" ]
    hp -q plan undo p
    [ "$(tree T)" = "$before" ]
}

git_lands() {
    needs_overlay; needs git
    mkdir -p T/src/deep T/docs
    for i in $(seq 20); do echo "line $i" >"T/src/f$i"; echo "$i" >"T/src/deep/g$i"; done
    echo d >T/docs/d; own T
    as git init -q -b main T; as git -C T add -A; as git -C T commit -qm one; as git -C T gc -q
    plan_over T; before=$(tree T)
    inside 'cd T
        git mv src lib; git commit -qm moved; git mv docs lib/docs; git commit -qm again
        git checkout -q -b other HEAD~1; echo more >>lib/f1; git commit -qam change; git rebase -q main
        git checkout -q main; git merge -q --ff-only other; git gc -q --prune=now; git worktree add -q wt HEAD~1'
    land_and_undo 'cd T; [ -z "$(git status --short | grep -v "^?? wt/")" ]; [ "$(git log --format=%s | tr "\n" " ")" = "change again moved one " ]' \
        'cd T; git fsck --strict --no-dangling; [ "$(tail -n 1 lib/f1)" = more ]; [ ! -e src ]; [ "$(git -C wt log -1 --format=%s)" = again ]'
    [ "$(as git -C T log --format=%s)" = one ]
    as git -C T fsck --strict
}
@test "git: commits, moved directories, a rebase, gc and a worktree land, and are taken back" { both git_lands; }

sqlite_lands() {
    needs_overlay; needs sqlite3; own T
    as sqlite3 T/db 'create table t(x); insert into t values(1)'; as sqlite3 T/wal 'pragma journal_mode=wal; create table t(x)' >/dev/null
    plan_over T; before=$(tree T)
    inside 'cd T; for i in $(seq 30); do sqlite3 db "insert into t values($i)"; sqlite3 wal "insert into t values($i)"; done; sqlite3 new "create table n(x)"'
    land_and_undo 'cp -r T copy; for d in db wal; do sqlite3 copy/$d "pragma integrity_check" | grep -qx ok; done
        [ "$(sqlite3 copy/db "select count(*) from t")" = 31 ]; [ "$(sqlite3 copy/wal "select count(*) from t")" = 30 ]; sqlite3 copy/new "select * from n"'
}
@test "sqlite: what was inserted lands" { both sqlite_lands; }

build_lands() {
    needs_overlay; needs make; needs gcc
    mkdir T/src
    printf 'all: prog\nprog: src/a.o src/b.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -c -o $@ $<\n' >T/Makefile
    echo 'int b(void); int main(void) { return b(); }' >T/src/a.c; echo 'int b(void) { return 1; }' >T/src/b.c
    own T; as make -s -C T; plan_over T; before=$(tree T)
    inside 'cd T; echo "int b(void) { return 7; }" >src/b.c; make -s; ! ./prog'
    # The times have landed as well: make finds nothing to do.
    land_and_undo 'cd T; make -q; ./prog || [ $? = 7 ]; ! ./prog'
}
@test "make: a build lands with its times" { both build_lands; }

venv_lands() {
    needs_overlay; /usr/bin/python3 -c 'import venv' 2>/dev/null || skip "NOT INSTALLED: python3-venv"
    echo o >T/f; own T; plan_over T; before=$(tree T)
    inside 'cd T; /usr/bin/python3 -m venv --without-pip v'
    land_and_undo 'T/v/bin/python -c "import sys; assert sys.prefix.endswith(\"/T/v\")"'
}
@test "a Python venv lands, and works at its path" { both venv_lands; }

npm_lands() {
    needs_overlay; needs npm
    mkdir -p T/app T/dep; echo '{"name":"dep","version":"1.0.0"}' >T/dep/package.json; echo 'module.exports=7' >T/dep/index.js
    echo '{"name":"app","version":"1.0.0","dependencies":{"dep":"file:../dep"}}' >T/app/package.json; own T
    plan_over T; before=$(tree T)
    inside 'cd T/app; npm install --offline --no-audit --no-fund >/dev/null 2>&1; npm ci --offline --no-audit --no-fund >/dev/null 2>&1'
    land_and_undo 'cd T/app; [ -e package-lock.json ]; node -e "if (require(\"dep\") !== 7) process.exit(1)"'
}
@test "npm ci: node_modules lands" { both npm_lands; }
