load helper

# holding FILE [ARGS...]: in the background, holds the file's lock until "go" appears; returns when it has it
holding() {
    local file=$1
    shift
    spawn "$HOLDFAST" file with "$file" "$@" -- bash -c 'echo $$ >held; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -s held
}

# nothing_left: no temporary file in the current directory
nothing_left() { [ -z "$(find . -name '.*.tmp' -not -path './state/*')" ] || { find . -name '.*.tmp'; return 1; }; }

# The suite's own budget: the large numbers once, as root without sanitizers.
full_run() { [ "$(id -u)" = 0 ] && ! grep -q __asan_init "$HOLDFAST"; }

# in_memory GIB: goes to a directory in memory if there is one with that much room, for what is about order, not about disks
in_memory() {
    [ "$(df --output=avail -BG /dev/shm 2>/dev/null | tail -1 | tr -dc 0-9)" -ge "$1" ] || return 0
    [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge $((2 * $1)) ] || return 0
    memory=$(mktemp -d /dev/shm/holdfast-test-XXXXXX 2>/dev/null) || return 0
    cd "$memory" || return 1
    export HOLDFAST_DIR="$memory/state"
}

teardown() {
    local pid
    for pid in ${spawned[@]+"${spawned[@]}"}; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    [ -z "${memory:-}" ] || rm -rf "$memory"
}

@test "edit: the command reads the old content and writes the new" {
    echo '{"n":1}' >f.json
    expect 0 hf file edit f.json -- sed s/1/2/
    [ -z "$output" ]
    [ "$(cat f.json)" = '{"n":2}' ]
    run --separate-stderr hf --json file edit f.json -- sed s/2/3/
    is_json '.v == 1 and .changed and .file == "f.json" and .attempts == 1 and (.lock | endswith(":f.json")) and .token > 0'
    run --separate-stderr hf --json file edit f.json -- cat
    is_json '.changed == false'
    nothing_left
}

@test "edit: failure, signal, no output, or a refusing validator leave the file alone, with one event each (L8)" {
    echo old >f
    expect 7 hf file edit f -- bash -c 'echo new; exit 7'
    says "f is unchanged: bash failed with exit status 7"
    expect 137 hf file edit f -- bash -c 'echo new; kill -KILL $$'
    expect 127 hf file edit f -- /no/such/program
    expect 126 hf file edit f -- /etc/passwd
    expect 1 hf file edit f -- true
    says "--allow-empty"
    expect 1 hf file edit f --validate 'grep -q old' -- echo new
    says "'grep -q old' did not accept the new content"
    expect 124 hf file edit f --deadline 0.2s -- bash -c 'trap "" TERM; echo new; exec sleep 300'
    [ "$(cat f)" = old ]
    [ "$(hf journal query --event file_abandoned --json | wc -l)" -eq 7 ]
    nothing_left
    run --separate-stderr hf --json file edit f -- false
    is_json '.changed == false and .error.exit == 1'
    expect 0 hf file edit f --allow-empty -- true
    [ ! -s f ]
    expect 0 hf file edit f -- true
}

@test "edit: --validate sees the new content on its standard input, and its words are shown" {
    echo '{}' >f.json
    expect 0 hf file edit f.json --validate 'tee seen; echo fine; jq empty <seen' -- echo '{"a":1}'
    says fine
    [ "$(cat f.json)" = '{"a":1}' ]
    [ "$(cat seen)" = '{"a":1}' ]
    expect 1 hf file edit f.json --validate 'jq empty' -- echo '{'
    [ "$(cat f.json)" = '{"a":1}' ]
    expect 0 hf file edit f.json --validate 'jq empty' -- echo '{"a":2}'
}

@test "edit: a hung command is ended with its children, and nothing of it stays behind" {
    echo old >f
    expect 124 hf file edit f --deadline 0.3s -- bash -c 'sleep 301 & echo $! >child; echo $$ >leader; wait'
    for pid in $(cat child leader); do wait_until 5 bash -c '! kill -0 "$0" 2>/dev/null || grep -q ") Z" /proc/"$0"/stat' "$pid"; done
    expect 0 hf file edit f -w 0 -- echo new
}

# Writes ./hide: "sh hide FILE" starts a process that is hard to find (its own session, no environment, no parent, deaf to TERM),
# with its pid in FILE.
write_hide() {
    cat >hide <<'H'
env -i PATH="$PATH" setsid sh -c '(trap "" TERM; sh -c "echo \$PPID" >"$0.new"; mv "$0.new" "$0"; while :; do sleep 1; done) </dev/null >/dev/null 2>&1 &' "$1"
until [ -s "$1" ]; do sleep 0.02; done
H
}

# ended PID: it is gone, or a zombie
ended() { ! kill -0 "$1" 2>/dev/null || grep -q ') Z' "/proc/$1/stat"; }

@test "edit: nothing of the command stays, whether it called setsid, cleared its environment or forked twice, and however it ended" {
    echo old >f
    write_hide
    # After success, after a failure, at the deadline; the edit itself is not touched by it.
    expect 0 hf file edit f -- sh -c 'echo new; sh hide one'
    says "process(es) running, which were ended"
    ended "$(cat one)"
    [ "$(cat f)" = new ]
    expect 7 hf file edit f -- sh -c 'sh hide two; exit 7'
    ended "$(cat two)"
    expect 124 hf file edit f --deadline 0.3s -- sh -c 'sh hide three; exec sleep 300'
    ended "$(cat three)"
    expect 1 hf file edit f --validate 'sh hide four; exit 1' -- echo newer
    ended "$(cat four)"
    [ "$(cat f)" = new ]
    nothing_left
}

@test "edit: children that the process had before are left alone, and nothing of the command stays" {
    echo old >f
    cat >both <<'B'
sleep 300 >/dev/null 2>&1 3>&- & echo $! >mine
sh -c 'sleep 300 & echo $! >orphan' >/dev/null 2>&1 3>&- &
exec "$HOLDFAST" file edit f -- sh -c 'sed s/old/new/; sh hide hid'
B
    write_hide
    expect 0 bash both
    [ "$(cat f)" = new ]
    ended "$(cat hid)"
    kill -0 "$(cat mine)"
    wait_until 5 test -s orphan
    kill -0 "$(cat orphan)"
    kill -KILL "$(cat mine)" "$(cat orphan)"
}

@test "edit: ended by a signal, it ends its command, leaves the file alone and says 128+N" {
    echo old >f
    spawn bash -c '"$HOLDFAST" file edit f -- bash -c "echo \$\$ >pid; echo new; exec sleep 300"; echo $? >status' 
    wait_until 10 test -s pid
    kill -TERM "$(ps -o ppid= -p "$(cat pid)" | tr -d ' ')"
    wait_until 10 test -s status
    [ "$(cat status)" = 143 ]
    [ "$(cat f)" = old ]
    run ! kill -0 "$(cat pid)"
    nothing_left
}

@test "edit: killed itself, its command dies with it; the next edit gets the lock at once and cleans up (L4, L9)" {
    echo old >f
    spawn "$HOLDFAST" file edit f -- bash -c 'echo $$ >pid; echo new; exec sleep 300'
    wait_until 10 test -s pid
    [ -n "$(find . -name '.f.holdfast-*')" ]
    kill -KILL "$spawned_pid"
    expect 0 hf file edit f -n -- sed s/old/next/
    [ "$(cat f)" = next ]
    wait_until 5 bash -c '! kill -0 "$(cat pid)" 2>/dev/null || grep -q ") Z" /proc/"$(cat pid)"/stat'
    nothing_left
}

@test "edit: what the command leaves running cannot write into the file" {
    echo old >f
    expect 0 hf file edit f -- bash -c 'echo new; (exec >&- 2>&- 3>&-; touch started; until [ -e go2 ]; do sleep 0.02; done) & until [ -e started ]; do sleep 0.01; done'
    [ "$(cat f)" = new ]
    touch go2
    # One that keeps the pipe open holds it up to the deadline, and then there is no edit.
    expect 124 hf file edit f --deadline 0.3s -- bash -c 'echo newer; sleep 300 & exit 0'
    [ "$(cat f)" = new ]
}

@test "edit: missing file needs --create; FIFOs, devices and directories are refused at once (L12)" {
    expect 125 hf file edit f -- echo new
    says "--create"
    expect 0 hf file edit f --create -- bash -c 'cat; echo new'
    [ "$(cat f)" = new ]
    mkfifo fifo
    mkdir dir
    start=$SECONDS
    for bad in fifo dir dir/ /dev/null /dev/tty .; do expect 3 hf file edit "$bad" -- cat; done
    [ $((SECONDS - start)) -lt 5 ]
    [ "$(hf journal query --event file_refused --json | wc -l)" -eq 6 ]
}

@test "edit: symlink refused, replaced, or followed inside --root; escapes refused with exit 3 (L12)" {
    mkdir in out
    echo real >in/real
    echo victim >out/victim
    ln -s real in/link
    ln -s ../out/victim in/escape
    ln -s ../out in/dir
    expect 3 hf file edit in/link -- echo new
    says "symbolic link"
    expect 0 hf file edit in/link --follow --root in -- echo new
    [ "$(cat in/real)" = new ]
    [ -L in/link ]
    expect 3 hf file edit in/escape --follow --root in -- echo new
    expect 3 hf file edit in/dir/victim --root in -- echo new
    says "is not inside in"
    expect 3 hf file edit in/../out/victim --root in -- echo new
    expect 2 hf file edit in/link --follow -- echo new
    expect 0 hf file edit in/escape --replace-symlink -- bash -c 'cat; echo replaced'
    [ "$(cat in/escape)" = replaced ]
    [ ! -L in/escape ]
    [ "$(cat out/victim)" = victim ]
}

@test "edit: hard links are refused, --break-links replaces one name" {
    echo old >f
    ln f g
    expect 3 hf file edit f -- echo new
    says "2 names"
    expect 0 hf file edit f --break-links -- echo new
    [ "$(cat f)" = new ]
    [ "$(cat g)" = old ]
}

@test "edit: mode, owner, extended attributes and ACL survive" {
    command -v setfacl >/dev/null && command -v setfattr >/dev/null || skip "no acl or attr tools"
    echo old >f
    chmod 640 f
    setfattr -n user.colour -v blue f 2>/dev/null || skip "no extended attributes here"
    setfacl -m u:65533:r f || skip "no ACLs here"
    [ "$(id -u)" != 0 ] || chown 65532:65531 f
    before=$(getfacl -n f; stat -c '%a %u %g' f)
    expect 0 hf file edit f -- echo new
    [ "$(cat f)" = new ]
    [ "$(getfacl -n f; stat -c '%a %u %g' f)" = "$before" ]
    [ "$(getfattr --only-values -n user.colour f)" = blue ]
    # And no ACL comes from the directory where the file had none.
    setfacl -d -m u:65533:rwx .
    touch g && setfacl -b g && chmod 604 g
    before=$(getfacl -n g)
    expect 0 hf file edit g -- echo new
    [ "$(getfacl -n g)" = "$before" ]
}

@test "edit: --backup keeps the last versions" {
    echo 0 >f
    for i in 1 2 3 4; do hf file edit f --backup 2 -- echo "$i"; done
    [ "$(cat f f.~1~ f.~2~ | paste -sd' ')" = "4 3 2" ]
    [ ! -e f.~3~ ]
    expect 2 hf file edit f --backup 100 -- echo 5
}

@test "an editor that replaces the file meanwhile: done again with its content, never overwritten (L9)" {
    echo 1 >f
    expect 0 hf file edit f -- bash -c 'read -r n; [ -e once ] || { touch once; echo 10 >new; mv new f; }; echo $((n + 1))'
    [ "$(cat f)" = 11 ]
    # One that never stops: exit 1, and its content stands.
    expect 1 hf file edit f -- bash -c 'read -r n; echo $((n + 100)) >f; echo lost'
    says "keeps changing it"
    [ "$(cat f)" = 511 ]
    [ "$(hf journal query --event file_abandoned --json | wc -l)" -eq 1 ]
    nothing_left
}

@test "an editor that saves all the time, in place or by rename, beside many edits: none of its saves is lost (L9)" {
    command -v python3 >/dev/null || skip "no python3"
    edits=120
    full_run || edits=20
    in_memory 1
    # Adds a line in each save; in place it has the file open, and empty, for a moment.
    cat >editor.py <<'P'
import os, sys, time
n = 0
while not os.path.exists("stop"):
    if sys.argv[1] == "in-place":
        with open("f", "r+") as f:
            text = f.read()
            f.seek(0)
            f.truncate()
            time.sleep(0.0003)
            f.write(text + "save %d\n" % n)
    else:
        text = open("f").read()
        with open("f.editor", "w") as f:
            f.write(text + "save %d\n" % n)
        os.rename("f.editor", "f")
    n += 1
    time.sleep(0.004)
print(n)
P
    for how in in-place rename; do
        rm -f stop f.~c* landed
        echo start >f
        spawn bash -c 'python3 editor.py "$0" >saves' "$how"
        for ((i = 0; i < edits; i++)); do
            ! hf -q file edit f -- sh -c "cat; echo edit $i" || echo "edit $i" >>landed
        done
        touch stop
        wait "$spawned_pid"
        cat f f.~c* 2>/dev/null | sort -u >all || true
        lost=$(seq 0 $(($(cat saves) - 1)) | sed 's/^/save /' | grep -cvxFf all) || true
        echo "# $how: $(cat saves) saves, $(wc -l <landed) of $edits edits landed, $lost saves lost" >&3
        [ "$lost" -eq 0 ]
        [ "$(wc -l <landed)" -ge $((edits / 4)) ]
        # One that saves by rename can overwrite an edit that it has not read; one that saves in place cannot.
        [ "$how" = rename ] || [ -z "$(grep -vxFf all landed)" ]
        nothing_left
    done
}

@test "inside 'file with', parallel edits of the file take turns: each is done once (L1)" {
    echo 0 >f
    expect 0 hf file with f -- bash -c 'for p in 1 2 3 4; do (for i in {1..10}; do "$HOLDFAST" file edit f -w 1m -- awk "{ print \$1 + 1 }" || exit 1; done) & done; wait'
    [ "$(cat f)" -eq 40 ]
    nothing_left
    # A "file with" inside it, and an edit inside that, do not wait for each other.
    expect 0 hf file with f -- "$HOLDFAST" file with f -n -- "$HOLDFAST" file edit f -n -- echo inner
    [ "$(cat f)" = inner ]
}

@test "100 processes, each increments a number in a JSON file many times: none is lost (L1)" {
    processes=100 rounds=100
    full_run || processes=20 rounds=5
    in_memory 1
    echo '{"n":0}' >f.json
    echo 'IFS=":}" read -r _ n; echo "{\"n\":$((n + 1))}"' >increment
    for ((p = 0; p < processes; p++)); do
        spawn sh -c 'i=0; while [ $i -lt '$rounds' ]; do "$HOLDFAST" file edit f.json -w 5m -- sh increment || exit 1; i=$((i + 1)); done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(jq .n f.json)" -eq $((processes * rounds)) ]
    nothing_left
    [ -z "$(find "$HOLDFAST_DIR/locks" -type p)" ]
}

@test "editors killed at random: nothing that was acknowledged is lost, nothing is left behind (L9)" {
    in_memory 1
    echo 0 >f
    # Every second one is killed a few milliseconds after its start, wherever it is then.
    cat >worker <<'W'
ok=0 killed=0
for i in {1..40}; do
    "$HOLDFAST" file edit f --backup 2 -w 1m -- sh -c 'read -r x; echo $((x + 1))' &
    pid=$!
    [ $((i % 2)) = 0 ] || { sleep "0.00$((RANDOM % 10))"; kill -KILL $pid; }
    if wait $pid; then ok=$((ok + 1)); else killed=$((killed + 1)); fi
done 2>/dev/null
echo "$ok $killed" >"acknowledged.$1"
W
    for w in 1 2 3 4; do spawn bash worker "$w"; done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    sum=$(awk '{ n += $1 } END { print n }' acknowledged.*)
    n=$(cat f)
    echo "acknowledged $sum, written $n"
    [ "$n" -ge "$sum" ]
    [ "$n" -le 160 ]
    [ "$sum" -lt 160 ]
    [ "$sum" -ge 80 ]
    [ "$(cat f.~1~)" -eq $((n - 1)) ] || [ -e .f.holdfast-old.tmp ]
    expect 0 hf file edit f -- echo done
    nothing_left
    [ -z "$(find . -maxdepth 1 -type f -links +1)" ]
}

@test "8 processes edit blocks of different ids: all there, the user's text byte-identical" {
    rounds=50
    full_run || rounds=3
    head -c 3000 /dev/urandom | base64 >user
    { cat user; printf 'no newline at the end'; } >CLAUDE.md
    cp CLAUDE.md before.md
    for p in {1..8}; do
        spawn bash -c 'for i in $(seq '$rounds'); do "$HOLDFAST" file block CLAUDE.md "p$0" --text "round $i of $0" -w 5m || exit 1; done' "$p"
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    for p in {1..8}; do [ "$(grep -c "^round $rounds of $p\$" CLAUDE.md)" -eq 1 ]; done
    [ "$(grep -c holdfast: CLAUDE.md)" -eq 16 ]
    cmp <(head -c "$(stat -c %s before.md)" CLAUDE.md) before.md
    for p in {1..8}; do expect 0 hf file block CLAUDE.md "p$p" --remove; done
    cmp CLAUDE.md before.md
}

@test "with: the command runs under both locks and learns its token; flock(1) is kept out, and keeps us out (L1)" {
    expect 7 hf file with f -- bash -c '[ "$HOLDFAST_LOCK_KIND" = file ] && [ "${HOLDFAST_LOCK##*:}" = f ] && [ "$HOLDFAST_TOKEN" -gt 0 ] && ! flock -n .f.lock true && exit 7'
    [ ! -e f ]
    [ -f .f.lock ]
    [ ! -s .f.lock ]
    [ "$(stat -c %a .f.lock)" = 600 ]
    expect 0 flock -n .f.lock true
    spawn flock .f.lock bash -c 'touch held; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e held
    expect 1 hf file with f -n -- touch ran
    says "has locked it"
    expect 77 hf file edit f --create -w 0.1 -E 77 -- echo ran
    run --separate-stderr hf --json file with f -w 0.1 -- touch ran
    is_json '.conflict and .error.code == "timeout" and .holder_pid > 0'
    [ ! -e ran ]
    spawn bash -c '"$HOLDFAST" file with f -w 20 -- touch ran'
    touch go
    wait "$spawned_pid"
    [ -e ran ]
}

@test "a Python fcntl.flock holder and a reader of the convention exclude each other with us (L1)" {
    command -v python3 >/dev/null || skip "no python3"
    echo 0 >f
    python=$(cat <<'P'
import fcntl, os, sys
for _ in range(int(sys.argv[1])):
    fd = os.open(".f.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    n = int(open("f").read())
    with open(".f.py.tmp", "w") as out:
        out.write(str(n + 1) + "\n")
    os.rename(".f.py.tmp", "f")
    os.close(fd)
P
    )
    spawn python3 -c "$python" 60
    spawn python3 -c "$python" 60
    for _ in 1 2; do
        spawn bash -c 'for i in {1..30}; do "$HOLDFAST" file edit f -w 1m -- awk "{ print \$1 + 1 }" || exit 1; done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(cat f)" -eq 180 ]
}

@test "two state directories, one file: the lock file keeps them apart (L1)" {
    echo 0 >f
    for dir in one two three; do
        spawn env HOLDFAST_DIR="$PWD/$dir" bash -c 'for i in {1..25}; do "$HOLDFAST" file edit f -w 1m -- awk "{ print \$1 + 1 }" || exit 1; done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(cat f)" -eq 75 ]
}

@test "busy: the message names the holder and what to do; --on-timeout skip and proceed leave an event (L8)" {
    echo old >f
    holding f
    expect 1 hf file edit f -n -- echo new
    says "pid $(cat held)"
    says "holdfast why --kind file "
    is_kind() { hf journal query --event "$1" --json | jq -e '.kind == "file"'; }
    expect 0 hf file edit f -w 0.1 --on-timeout skip -- echo new
    [ "$(cat f)" = old ]
    [ "$(hf journal query --event lock_skipped --json | wc -l)" -eq 1 ]
    is_kind lock_skipped
    expect 0 hf file edit f -w 0.1 --on-timeout proceed -- echo new
    says "WITHOUT the lock"
    [ "$(cat f)" = new ]
    [ "$(hf journal query --event lock_fail_open --json | wc -l)" -eq 1 ]
    is_kind lock_fail_open
    # Names, unless files are asked for.
    expect 0 hf lock list
    [ -z "$output" ]
    for kind in file all; do
        expect 0 hf lock list --kind "$kind"
        says ":f "
    done
    touch go
    wait "$spawned_pid"
}

@test "kinds: a file's lock is seen, checked and broken with --kind file; its name alone means another lock (L12)" {
    echo old >f
    holding f
    name=$(hf lock list --kind file --json | jq -r '.locks[0].name')
    expect 0 hf lock check --kind file "$name"
    expect 1 hf lock check "$name"
    expect 1 hf lock break "$name" --reason test
    expect 0 hf why "$name"
    says "is free"
    expect 0 hf why --kind file "$name"
    says "held by pid $(cat held)"
    expect 0 hf lock run -n "$name" -- true
    for verb in "why x" "lock check x" "lock list"; do
        # shellcheck disable=SC2086
        expect 2 hf $verb --kind nonsense
    done
    expect 0 hf lock break --kind file "$name" --reason test
    expect 0 hf why --kind file "$name"
    says lock_broken
    expect 0 hf why "$name"
    [[ $output != *lock_broken* ]]
    touch go
    wait "$spawned_pid" || true
}

@test "kinds: --fenced means the lock of the innermost command, whatever its kind (L5)" {
    echo old >f
    expect 0 hf file with f -- "$HOLDFAST" file edit f --fenced -- echo inner
    [ "$(cat f)" = inner ]
    expect 0 hf file with g -- "$HOLDFAST" lock run x -- "$HOLDFAST" file edit f --fenced -- echo name
    [ "$(cat f)" = name ]
    expect 0 hf file with g -- "$HOLDFAST" run s -- bash -c '[ "$HOLDFAST_LOCK $HOLDFAST_LOCK_KIND" = "s name" ] && "$0" file edit f --fenced -- echo session' "$HOLDFAST"
    [ "$(cat f)" = session ]
    # The right name and token, but of another kind.
    expect 3 hf lock run x -- env HOLDFAST_LOCK_KIND=group "$HOLDFAST" file edit f --fenced -- echo wrong
    expect 2 hf lock run x -- env HOLDFAST_LOCK_KIND=nonsense "$HOLDFAST" file edit f --fenced -- echo wrong
    [ "$(cat f)" = session ]
}

@test "inside 'file with', our own commands work on that file; every spelling is the same lock" {
    mkdir d
    ln -s d e
    echo old >d/f
    expect 0 hf file with e/../d/./f -- bash -c '"$HOLDFAST" file edit e/f -n -- echo inner && "$HOLDFAST" file block d/f x -n --fenced --text t'
    [ "$(head -1 d/f)" = inner ]
    holding d/f
    expect 1 hf file edit "$PWD/e/f" -n -- echo new
    touch go
}

@test "a killed holder of the lock is replaced at once (L4)" {
    echo old >f
    holding f
    kill -KILL "$(cat held)"
    wait "$spawned_pid" 2>/dev/null || true
    expect 0 hf file edit f -w 5 -- echo new
    [ "$(cat f)" = new ]
}

@test "fence: a token that was lost is refused with exit 3, before and at the rename (L5)" {
    echo old >f
    token=$(hf lock acquire build --pid $$)
    expect 0 hf file edit f --fence "build:$token" -- echo one
    expect 0 env HOLDFAST_LOCK=build HOLDFAST_TOKEN="$token" "$HOLDFAST" file edit f --fenced -- echo two
    expect 3 hf file edit f --fence "build:$token" -- bash -c '"$HOLDFAST" lock break build --reason test >&2; echo three'
    says "lost"
    [ "$(cat f)" = two ]
    expect 3 hf file edit f --fence "build:$token" -- touch ran
    [ ! -e ran ]
    expect 3 env -u HOLDFAST_LOCK -u HOLDFAST_TOKEN "$HOLDFAST" file edit f --fenced -- echo four
    expect 2 hf file edit f --fence build -- echo four
    expect 2 hf file edit f --fence build:x -- echo four
    [ "$(hf journal query --event lock_refused --json | wc -l)" -eq 2 ]
    [ "$(cat f)" = two ]
    nothing_left
}

@test "fence: a holder stopped past its lease cannot rename when it is continued (L5)" {
    echo old >f
    # The edit runs under a lease; its wrapper, which renews, is stopped together with it.
    spawn bash -c 'exec "$HOLDFAST" lock run build --ttl 300ms -- bash -c "echo \$PPID >wrapper; \"\$HOLDFAST\" file edit f --fenced -- bash -c \"echo \\\$PPID >editor; touch reading; until [ -e finish ]; do sleep 0.02; done; echo stale\"; echo \$? >status"'
    wait_until 10 test -e reading
    kill -STOP "$(cat wrapper)" "$(cat editor)"
    # The successor takes the expired lease and its fence; the file's own lock is still that of the stopped one.
    expect 0 hf lock run build -w 10s -- bash -c 'echo $HOLDFAST_TOKEN'
    touch finish
    kill -CONT "$(cat editor)"
    wait_until 10 test -s status
    [ "$(cat status)" = 3 ]
    [ "$(cat f)" = old ]
    nothing_left
    kill -CONT "$(cat wrapper)"
}

@test "block: put in, replaced, taken out; comment by file type; literal; no write when nothing changes" {
    printf '# Title\n' >CLAUDE.md
    expect 0 hf file block CLAUDE.md rules --text 'be \g<0> kind \n $& `x` %s'
    [ "$(cat CLAUDE.md)" = $'# Title\n<!-- holdfast:rules:start -->\nbe \\g<0> kind \\n $& `x` %s\n<!-- holdfast:rules:end -->' ]
    inode=$(stat -c %i CLAUDE.md)
    expect 0 hf file block CLAUDE.md rules --text 'be \g<0> kind \n $& `x` %s'
    [ "$(stat -c %i CLAUDE.md)" = "$inode" ]
    printf 'a\nb\n' | expect 0 hf file block CLAUDE.md rules
    printf 'a\nb\n' | hf file block CLAUDE.md rules
    [ "$(sed -n 3,4p CLAUDE.md | paste -sd' ')" = "a b" ]
    expect 0 hf file block CLAUDE.md rules --remove
    [ "$(cat CLAUDE.md)" = '# Title' ]
    for pair in 'x.sh:# ' 'x.ts:// ' 'x.sql:-- ' 'x.css:/\* ' 'x.html:<!-- '; do
        hf file block "${pair%%:*}" id --create --text t
        grep -q "^${pair#*:}holdfast:id:start" "${pair%%:*}"
    done
    expect 2 hf file block x.json id --create --text t
    expect 0 hf file block x.any id --create --style dash --text t
    grep -q '^-- holdfast:id:end$' x.any
    expect 2 hf file block x.md 'bad id' --create --text t
    expect 2 hf file block x.md id --create --style poetry --text t
    expect 4 hf file block missing.md id --text t
    expect 0 hf file block missing.md id --remove
    [ ! -e missing.md ]
}

@test "block: CRLF, mixed, BOM and a missing final newline survive, byte for byte" {
    for content in 'a\r\nb\r\n' 'a\r\nb' 'a\nb\r\nc\r\n' '\xef\xbb\xbfa\n' '\xef\xbb\xbfa' '' 'a'; do
        printf "$content" >f.md
        cp f.md before.md
        expect 0 hf file block f.md x --text $'one\ntwo'
        cmp -n "$(stat -c %s before.md)" f.md before.md
        expect 0 hf file block f.md x --remove
        cmp f.md before.md
    done
    printf 'a\r\n' >f.md
    hf file block f.md x --text $'one\ntwo'
    [ "$(grep -c $'\r$' f.md)" -eq 5 ]
}

@test "block: orphaned, nested, reversed, duplicated markers: exit 3 with line numbers, nothing written" {
    s='<!-- holdfast:x:start -->' e='<!-- holdfast:x:end -->' y='<!-- holdfast:y:start -->'
    bad() { # bad WORDS LINES...
        local words=$1
        shift
        printf '%s\n' "$@" >f.md
        cp f.md before.md
        expect 3 hf file block f.md x --text new
        says "$words"
        expect 3 hf file block f.md x --remove
        cmp f.md before.md
    }
    bad "line 2: block 'x' starts and does not end" a "$s" b
    bad "line 1: block 'x' ends without a start" "$e"
    bad "ends in line 1 before it starts in line 2" "$e" "$s"
    bad "starts in line 1 and in line 3" "$s" "$e" "$s" "$e"
    bad "line 2: block 'x' starts again" "$s" "$s" "$e"
    bad "line 2: a marker of another block" "$s" "$y" "$e"
    bad "fenced code that begins in line 2" "$s" '```' "$e"
    [ "$(hf journal query --event file_refused --json | wc -l)" -eq 14 ]
    printf '%s\n' '```' "$s" "$e" '```' >f.md
    expect 0 hf file block f.md x --text new
    [ "$(grep -c 'holdfast:x:start' f.md)" -eq 2 ]
    expect 3 hf file block g.md x --create --text "$s"
    [ ! -e g.md ]
}

@test "block: another tool's markers" {
    start='<!-- PACT_MANAGED_START: Managed by pact-plugin -->' end='<!-- PACT_MANAGED_END -->'
    printf '%s\n' mine "$start" theirs "$end" more >CLAUDE.md
    expect 0 hf file block CLAUDE.md pact --start "$start" --end "$end" --text ours
    [ "$(cat CLAUDE.md)" = "$(printf '%s\n' mine "$start" ours "$end" more)" ]
    expect 2 hf file block CLAUDE.md pact --start "$start" --text ours
    expect 2 hf file block CLAUDE.md pact --start x --end x --text ours
    expect 0 hf file block CLAUDE.md pact --start "$start" --end "$end" --remove
    [ "$(cat CLAUDE.md)" = $'mine\nmore' ]
}

@test "block: --validate, --backup and --root work here, too; text that never ends is given up" {
    echo a >f.md
    expect 1 hf file block f.md x --text t --validate 'grep -q nowhere'
    [ "$(cat f.md)" = a ]
    expect 0 hf file block f.md x --text t --backup 1 --validate 'grep -q holdfast'
    [ "$(cat f.md.~1~)" = a ]
    mkdir in
    expect 3 hf file block f.md x --root in --text t
    mkfifo never
    expect 1 bash -c '"$HOLDFAST" file block f.md x --deadline 0.2s <>never'
    says "did not end"
}

@test "a file of 1 GiB is edited with little memory" {
    full_run || skip "once, as root without sanitizers"
    in_memory 4
    [ "$(df --output=avail -BG . | tail -1 | tr -dc 0-9)" -gt 4 ] || skip "not enough disk space"
    yes 'a line of ordinary text that somebody wrote into this rather large file' | head -c 1G >f.md
    small() { prlimit --as=$((200 << 20)) timeout 100 "$HOLDFAST" "$@"; }
    small file block f.md x --text new --deadline 100s
    [ "$(tail -n 2 f.md | head -n 1)" = new ]
    [ "$(stat -c %s f.md)" -gt $((1 << 30)) ]
    small file edit f.md --deadline 100s -- sed '1s/a line/A LINE/'
    [ "$(head -c 6 f.md)" = "A LINE" ]
    rm -f f.md
    nothing_left
}

@test "a full disk: the old file stays, no temporary file (L9)" {
    echo old >f
    expect 125 bash -c 'ulimit -f 8; exec "$HOLDFAST" file edit f -- head -c 100000 /dev/zero'
    says "cannot be written"
    [ "$(cat f)" = old ]
    nothing_left
}

@test "without renameat2: the same, by a plain rename" {
    "$HELPERS/helper-enosys" renameat2,openat2 -- true || skip "no seccomp here"
    echo old >f
    expect 0 "$HELPERS/helper-enosys" renameat2,openat2 -- "$HOLDFAST" file edit f --backup 1 -- echo new
    [ "$(cat f)" = new ]
    [ "$(cat f.~1~)" = old ]
    expect 0 "$HELPERS/helper-enosys" renameat2,openat2 -- "$HOLDFAST" file edit g --create -- echo new
    nothing_left
}

@test "names that try something: dashes, newlines, quotes, 249 bytes" {
    for name in ./-n $'a\nb' "a'b\"c" 'a b' '$(touch x)' "$(printf 'l%.0s' {1..249})" ':' '%s' '.hidden' 'x.lock'; do
        expect 0 hf file edit "$name" --create -- echo one
        expect 0 hf file edit "$name" -- sed s/one/two/
        [ "$(cat "$name")" = two ]
        expect 0 hf file with "$name" -- true
    done
    expect 125 hf file edit "$(printf 'l%.0s' {1..250})" --create -- echo one
    says "249"
    expect 0 hf lock list --all --kind file
    nothing_left
}
