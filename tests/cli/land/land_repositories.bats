#!/usr/bin/env bats
# Landing on repositories of every kind, and what it costs in gits: each is landed on, or refused with a message that says why.
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state"
    cd "$BATS_TEST_TMPDIR" || return 1
    land_room
}

# The kernel gives an overlay's work directory no rights at all.
teardown() { chmod -R u+rwX "$BATS_TEST_TMPDIR" || true; }

# gits COMMAND...: how many gits it starts
gits() {
    local real=$BATS_TEST_TMPDIR/bin log=$BATS_TEST_TMPDIR/gits
    mkdir -p "$real"
    if [ ! -e "$real/git" ]; then
        printf '#!/bin/sh\necho "$*" >>%q\nexec %q "$@"\n' "$log" "$(command -v git)" >"$real/git"
        chmod +x "$real/git"
    fi
    : >"$log"
    PATH="$real:$PATH" "$@" >&2 || return 1
    wc -l <"$log"
}

# What is dirty is remembered, unless something changed within the last tick of the kernel's clock.
no_git() { [ "$(gits lands nothing true)" -eq 0 ]; }

lands() { hl -q run "$1" --in . -- sh -euc "$2"; }

@test "a landing starts few gits: 12 for work that was left uncommitted, 11 for a commit, 1 for nothing, none for nothing once more, packed refs or not" {
    gits lands first true # remembers that this git is new enough
    [ "$(gits lands left 'echo 1 >new1')" -le 12 ]
    committed=$(git rev-parse HEAD)
    cat >"$BATS_TEST_TMPDIR/commit" <<'AGENT'
echo 2 >new2
/usr/bin/git add -A
exec /usr/bin/git commit -qm two
AGENT
    [ -x /usr/bin/git ] || skip "git is elsewhere"
    [ "$(gits hl -q run commits --in . -- sh -e "$BATS_TEST_TMPDIR/commit")" -le 11 ]
    [ "$(git rev-parse HEAD~1)" = "$committed" ]
    [ "$(gits lands nothing true)" -le 1 ]
    wait_until 20 no_git
    git pack-refs --all
    wait_until 20 no_git
    [ "$(gits lands packed 'echo 3 >new3')" -le 12 ]
    [ "$(cat new1 new2 new3 | tr -d '\n')" = 123 ]
    git diff-index --quiet HEAD # the index knows the times of what landed
    clean
}

@test "what the user has in the way is untouched, also where git would not ask: ignored, deleted, of another type" {
    # An ignored file where a directory is to be.
    echo mine >d.o
    agent one 'rm -f d.o; mkdir d.o; echo x >d.o/x; git add -f d.o/x; git commit -qm d'
    run hl land one
    [ "$status" -eq 1 ]
    [[ $output == *dirty*d.o/x* ]]
    [ "$(cat d.o)" = mine ]
    # A file that the user has deleted and not committed.
    rm a
    agent two 'echo 21 >>a'
    run hl land two
    [ "$status" -eq 1 ]
    [ ! -e a ]
    git checkout -q a
    hl -q land two
    [ "$(tail -n1 a)" = 21 ]
    # Types change.
    agent three 'rm b; mkdir b; echo in >b/in; ln -s b/in l; chmod +x a'
    hl -q land three
    agent four 'rm -r b l; echo file >b; mkdir l; echo in >l/in'
    hl -q land four
    [ "$(cat b l/in | tr -d '\n')" = filein ]
    [ -x a ]
    clean
}

@test "a rebase, bisect, merge or cherry-pick that the agent did not end is refused; one of the user's meanwhile is not the agent's" {
    git branch side
    agent stopped 'echo 1 >n1; git add -A; git commit -qm 1; echo 2 >n2; git add -A; git commit -qm 2; GIT_SEQUENCE_EDITOR="sed -i 1ibreak" git rebase -qi HEAD~1' || true
    run hl land stopped
    [ "$status" -eq 1 ]
    [[ $output == *"is unfinished"* ]]
    agent bisects 'echo 1 >n1; git add -A; git commit -qm 1; git bisect start -q'
    run hl land bisects
    [ "$status" -eq 1 ]
    [[ $output == *"is unfinished"* ]]
    # The user merges, and has not ended it, while the agent works and leaves a file.
    git checkout -q side
    echo side >side
    git add side
    git commit -qm side
    git checkout -q main
    echo here >b
    git commit -qam here
    agent works 'echo 3 >n3'
    git merge -q --no-commit --no-ff side >/dev/null
    hl -q land works
    [ "$(git rev-list --count --merges main)" -eq 0 ]
    [ -e n3 ]
    git commit -qm merged
    sound
}

# fresh [OPTIONS OF INIT]: a repository of its own in the current directory's place
fresh() {
    cd "$BATS_TEST_TMPDIR" || return 1
    chmod -R u+rwX "$HOLDFAST_DIR" && rm -rf "$HOLDFAST_DIR" q
    git init -q "$@" q
    make_repository q
    cd q || return 1
}

@test "index and objects of every kind: SHA-256, index version 4, split index, untracked cache, fsmonitor, per-worktree configuration" {
    fresh --object-format=sha256
    lands one 'echo 1 >>b'
    lands two 'echo 2 >>b; git commit -qam two'
    [ "$(git log -1 --format=%s)" = two ]
    clean
    fresh
    git config index.version 4
    git config core.untrackedCache true
    git config core.splitIndex true
    git update-index --index-version 4
    git update-index --untracked-cache
    git update-index --split-index
    [ -n "$(find .git -name 'sharedindex.*')" ]
    printf '#!/bin/sh\ntouch %q\n' "$BATS_TEST_TMPDIR/monitor-ran" >"$BATS_TEST_TMPDIR/monitor"
    chmod +x "$BATS_TEST_TMPDIR/monitor"
    git config core.fsmonitor "$BATS_TEST_TMPDIR/monitor"
    lands split 'echo 1 >>b; echo n >new'
    [ ! -e "$BATS_TEST_TMPDIR/monitor-ran" ]
    git config --unset core.fsmonitor
    clean
    git commit -q --allow-empty -m next
    lands again 'echo 2 >>b; git commit -qam again'
    clean
    fresh
    git config extensions.worktreeConfig true
    git worktree add -q "$BATS_TEST_TMPDIR/linked" -b two
    cd "$BATS_TEST_TMPDIR/linked"
    git config --worktree user.name elsewhere
    lands linked 'echo 1 >>b'
    [ "$(git log -1 --format=%an two)" = elsewhere ]
    [ -z "$(git status --porcelain)" ]
}

@test "filters, line ends, hooks elsewhere and odd messages: what is committed is what git makes of it, nothing runs outside" {
    fresh
    git config core.autocrlf true
    git config filter.up.clean 'tr a-z A-Z'
    git config filter.up.smudge 'tr A-Z a-z'
    echo '*.u filter=up' >.gitattributes
    echo abc >f.u
    mkdir hooks
    printf '#!/bin/sh\ntouch %q\n[ -w / ] || exit 0\n' hooked >hooks/pre-commit
    chmod +x hooks/pre-commit
    git add -A 2>/dev/null
    git commit -qm kinds
    git config core.hooksPath hooks
    hl -q run crlf --in . --message '# no comment' -- sh -c 'printf "w\r\n" >new; echo def >>f.u'
    [ "$(tr -d '\r' <f.u | tr '\n' ' ')" = "abc def " ]
    [ "$(git show HEAD:f.u | tr '\n' ' ')" = "ABC DEF " ]
    [ "$(git show HEAD:new | od -An -c | tr -d ' ')" = 'w\n' ]
    [ "$(git log -1 --format=%s)" = '# no comment' ]
    [ ! -e hooked ] # the hook ran in the sandbox
    [ -z "$(git status --porcelain)" ]
    git -c core.autocrlf=true fsck --strict
}

# fake_lfs: what git-lfs does, for *.bin: the content goes to .git/lfs, a pointer is committed
fake_lfs() {
    cat >"$HOME/clean" <<'CLEAN'
#!/bin/sh -e
t=$(mktemp) && cat >"$t"
head -c 8 "$t" | grep -q '^version ' && exec cat "$t"
oid=$(sha256sum <"$t" | cut -c1-64)
dir=$(git rev-parse --git-common-dir)/lfs/objects/$(echo "$oid" | cut -c1-2)/$(echo "$oid" | cut -c3-4)
mkdir -p "$dir" && cp "$t" "$dir/$oid"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$oid" "$(stat -c %s "$t")"
CLEAN
    cat >"$HOME/smudge" <<'SMUDGE'
#!/bin/sh -e
oid=$(sed -n 's/^oid sha256://p')
cat "$(git rev-parse --git-common-dir)/lfs/objects/$(echo "$oid" | cut -c1-2)/$(echo "$oid" | cut -c3-4)/$oid"
SMUDGE
    chmod +x "$HOME/clean" "$HOME/smudge"
    git config --global filter.lfs.clean "$HOME/clean"
    git config --global filter.lfs.smudge "$HOME/smudge"
    git config --global filter.lfs.required true
}

@test "git LFS: new content is refused, which the sandbox alone has; a pointer whose content is there lands as a pointer, and its file is what smudge makes" {
    fresh
    fake_lfs
    echo '*.bin filter=lfs' >.gitattributes
    git add -A
    git commit -qm attributes
    # The first one: the repository has no store yet.
    run hl run first --in . -- sh -euc 'echo large >one.bin'
    [ "$status" -eq 1 ]
    [[ $output == *"one.bin, whose content git LFS keeps in the sandbox only"* ]]
    [ ! -e one.bin ]
    hl -q land drop first
    echo large >one.bin
    git add -A
    git commit -qm one
    [[ $(git show HEAD:one.bin) == version* ]]
    run hl run changed --in . -- sh -euc 'echo larger >>one.bin'
    [ "$status" -eq 1 ]
    [[ $output == *"git LFS keeps in the sandbox only"* ]]
    hl -q land drop changed
    pointer=$(git rev-parse HEAD:one.bin)
    lands moved 'git mv one.bin two.bin; echo 1 >>b'
    [ "$(git rev-parse HEAD:two.bin)" = "$pointer" ]
    [ "$(cat two.bin)" = large ]
    [ ! -e one.bin ]
    # The branch brings a pointer that the agent did not have.
    hl -q run rebased --in . -- sh -euc "echo 2 >>b; touch '$BATS_TEST_TMPDIR/in'; until [ -e '$BATS_TEST_TMPDIR/go' ]; do sleep 0.05; done" 3>&- &
    pid=$!
    wait_until 30 test -e "$BATS_TEST_TMPDIR/in"
    echo other >three.bin
    git add three.bin
    git commit -qm three
    touch "$BATS_TEST_TMPDIR/go"
    wait "$pid"
    [ "$(cat two.bin three.bin | tr '\n' ' ')" = "large other " ]
    [[ $(git show HEAD:three.bin) == version* ]]
    clean
}

@test "where the repository is, is read from its files or told by git: newline in its path, GIT_DIR in the environment, core.worktree, a repository inside of another" {
    mkdir "$BATS_TEST_TMPDIR/$(printf 'a b\nc')"
    cd "$BATS_TEST_TMPDIR/$(printf 'a b\nc')"
    make_repository r
    cd r
    mkdir sub
    GIT_DIR=/nowhere GIT_WORK_TREE=/nowhere GIT_INDEX_FILE=/nowhere lands env 'echo 1 >one'
    (cd sub && hl -q run below --in . -- sh -euc 'echo 2 >../two')
    [ "$(cat one two | tr '\n' ' ')" = "1 2 " ]
    clean
    # A repository that the one above ignores is its own.
    echo inner >>.gitignore
    git commit -qam ignores
    make_repository inner
    (cd inner && lands inside 'echo 3 >three' && clean)
    [ "$(git -C inner show HEAD:three)" = 3 ]
    [ -z "$(git status --porcelain)" ]
    # The work tree of this one is elsewhere.
    mkdir elsewhere
    git init -q moved
    git -C moved config core.worktree "$PWD/elsewhere"
    echo elsewhere >>.git/info/exclude
    echo moved >>.git/info/exclude
    echo x >elsewhere/x
    git -C moved add -A
    git -C moved commit -qm moved
    run hl run moved --in moved -- true
    [[ $output != *"nothing to land on main of $PWD/moved"* ]]
    [ "$(git -C moved rev-list --count main)" -eq 1 ]
}

@test "with an umask that takes the owner's own bits what was left is still committed, packed, checked out and landed" {
    (umask 0177 && lands left 'echo 1 >>b')
    git commit -q --allow-empty -m user
    (umask 0777 && hl -q run other --in . --land-merge merge --verify true -- sh -euc 'echo 2 >>a')
    [ "$(tail -qn 1 b a | paste -sd,)" = 1,2 ]
    clean
}

@test "a caller that ignores SIGCHLD, as some daemons leave it to their children, can begin and land" {
    env --ignore-signal=CHLD true 2>/dev/null || skip "NO env --ignore-signal HERE"
    env --ignore-signal=CHLD "$HOLDFAST" -q land begin one .
    env --ignore-signal=CHLD "$HOLDFAST" -q plan enter one -- sh -c 'echo 1 >>b'
    env --ignore-signal=CHLD "$HOLDFAST" -q land one
    env --ignore-signal=CHLD "$HOLDFAST" -q run two --in . -- sh -c 'echo 2 >>b'
    [ "$(tail -n 2 b | paste -sd,)" = 1,2 ]
    clean
}

@test "a git that was found to be new enough is asked again when it is another one" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    lands known 'echo 1 >one'
    printf '#!/bin/sh\n[ "$*" != "${*%%version}" ] && exec echo "git version 2.30.1"\nexec /usr/bin/git "$@"\n' >"$BATS_TEST_TMPDIR/bin/git"
    chmod +x "$BATS_TEST_TMPDIR/bin/git"
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" run hl run old --in . -- touch ran
    [ "$status" -ne 0 ]
    [[ $output == *"2.30 is too old"* ]]
    [ ! -e ran ]
    lands known 'echo 2 >two'
    clean
}

@test "signed commits stay signed by a fast-forward; a rebase without the key loses the signature, and reports it" {
    command -v ssh-keygen >/dev/null || skip "NO SSH-KEYGEN HERE"
    fresh
    ssh-keygen -q -t ed25519 -N '' -f "$HOME/key"
    git config gpg.format ssh
    git config user.signingkey "$HOME/key"
    git config commit.gpgsign true
    echo "tester@example.org $(cat "$HOME/key.pub")" >"$HOME/allowed"
    git config gpg.ssh.allowedSignersFile "$HOME/allowed"
    lands forward 'echo 1 >>b; git commit -qam signed'
    [ "$(git log -1 --format=%G?)" = G ]
    lands left 'echo 2 >>b'
    [ "$(git log -1 --format=%G?)" = G ]
    git cat-file commit HEAD~1 | grep -q '^gpgsig '
    hl -q run rebased --in . -- sh -euc "echo 3 >new; git add -A; git commit -qm three; touch '$BATS_TEST_TMPDIR/in'; while [ ! -e '$BATS_TEST_TMPDIR/go' ]; do sleep 0.05; done" 3>&- &
    pid=$!
    wait_until 30 test -e "$BATS_TEST_TMPDIR/in"
    git commit -q --allow-empty -m user
    mv "$HOME/key" "$HOME/away"
    touch "$BATS_TEST_TMPDIR/go"
    wait "$pid"
    [ "$(git log -1 --format='%s %G?')" = "three N" ]
    [[ $(hl --json land show rebased | jq -r .text) == *"no longer signed"* ]]
    clean
}

@test "a run that is refused says why; a repository of another owner is refused with what git says" {
    fresh
    run hl run nested --in . -- sh -euc 'git init -q in; echo x >in/x; git -C in add -A; git -C in commit -qm in'
    [ "$status" -eq 1 ]
    [[ $output == *"another repository"* ]]
    hl -q land drop nested
    [ "$(id -u)" -eq 0 ] || skip "not root: cannot give a repository away"
    chown -R 65534:65534 .
    run hl run foreign --in . -- true
    [ "$status" -ne 0 ]
    [[ $output == *ownership* ]]
    [[ $output == *"--land off"* ]]
}
