# file edit: what the command may do, what is refused, what survives; large files, full disks, odd names.
load ../file_helper

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

@test "edit and block fail and change nothing if another process has moved or replaced the directory (L14, L8)" {
    mkdir -p z/d && echo a >z/d/f
    expect 1 hf file edit z/d/f -- sh -c 'cat; mv z/d z/d.old; mkdir z/d; echo other >z/d/f; echo b'
    says "z/d/f is unchanged: another process moved or replaced its directory; run the command again"
    [ "$(cat z/d/f z/d.old/f)" = "other
a" ]
    run --separate-stderr hf --json file edit z/d/f -- sh -c 'mv z/d z/gone; echo b'
    [ "$status" -eq 1 ]
    is_json '.changed == false and .error.exit == 1'
    [ "$(cat z/gone/f)" = other ]
    expect 0 hf --json journal query --event file_abandoned
    [ "${#lines[@]}" -eq 2 ]
    # A block waits for the lock while the directory is replaced.
    mkdir z/d && echo a >z/d/f
    spawn "$HOLDFAST" file with z/d/f -- sh -c 'touch held; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e held
    hf file block z/d/f id --text new 2>said &
    waiting=$!
    wait_until 10 bash -c '"$HOLDFAST" --json lock list --kind file | jq -e ".locks[].waiters | length == 1"'
    mv z/d z/d2 && mkdir z/d && echo other >z/d/f
    touch go
    status=0
    wait "$waiting" || status=$?
    [ "$status" -eq 1 ]
    grep -q "moved or replaced" said
    [ "$(cat z/d/f z/d2/f)" = "other
a" ]
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

# edit_forever: an edit whose command is hidden in three ways; their pids are in one, two and three
edit_forever() {
    write_hide
    spawn "$HOLDFAST" file edit f --deadline 1h -- sh -c 'sh hide one; setsid sleep 300 & echo $! >two; echo $$ >three; while :; do sleep 1; done'
    wait_until 10 test -s three
}

all_ended() { ended "$(cat one)" && ended "$(cat two)" && ended "$(cat three)"; }

@test "edit: killed, it leaves neither its command nor what that started, nor the lock, and the file is unchanged" {
    echo old >f
    edit_forever
    kill -KILL "$spawned_pid"
    wait_until 10 all_ended
    expect 0 hf file edit f -n -- sed s/old/new/
    [ "$(cat f)" = new ]
    [ "$(ls -A | grep -c '^\.f\.')" -eq 0 ]
}

@test "edit: when the process that watches its command is killed, all of it is ended, and the file is unchanged" {
    echo old >f
    edit_forever
    watcher=$(tr -d ' ' <"/proc/$spawned_pid/task/$spawned_pid/children")
    kill -KILL "$watcher"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 125 ]
    all_ended
    [ "$(cat f)" = old ]
}

@test "edit: how long it waits for an editor is -w in all, at most --deadline, and with -n not at all" {
    echo old >f
    exec 8>>f
    begun=$EPOCHREALTIME
    expect 1 hf file edit f -n -- sed s/old/new/
    says "open for writing"
    expect 1 hf file edit f -w 200ms -- sed s/old/new/
    expect 1 hf file edit f -w 1h --deadline 200ms -- sed s/old/new/
    # Five attempts of two seconds each would be ten for each of them.
    [ $((${EPOCHREALTIME%.*} - ${begun%.*})) -lt 20 ]
    spawn "$HOLDFAST" file edit f -w 1h --deadline 1h -- sed s/old/new/ 8>&-
    exec 8>&-
    wait "$spawned_pid"
    [ "$(cat f)" = new ]
}

@test "edit: nothing of the command stays, whether it called setsid, cleared its environment or forked twice, and however it ended" {
    echo old >f
    write_hide
    # After success, after a failure, at the deadline; the edit itself is not touched by it.
    expect 0 hf file edit f -- sh -c 'echo new; sh hide one'
    says "process(es) running; they were ended"
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
    wait "$spawned_pid" || true
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
    expect 2 hf file edit in/link --follow --replace-symlink -- echo new
    ln -s ./real in/AGENTS.md
    ln -s AGENTS.md in/GEMINI.md
    expect 0 hf file edit in/GEMINI.md --follow -- echo same directory
    [ "$(cat in/real)" = "same directory" ]
    expect 3 hf file edit in/escape --follow -- echo new
    says "symbolic link to another directory"
    says "--root DIR"
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

@test "a file of 1 GiB is edited with little memory" {
    full_run || skip "once, as root without sanitizers"
    in_memory 4
    [ "$(df --output=avail -BG . | tail -1 | tr -dc 0-9)" -gt 4 ] || skip "not enough disk space"
    yes 'a line of ordinary text that a user wrote into this rather large file' | head -c 1G >f.md
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
    says "cannot write the new content"
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
