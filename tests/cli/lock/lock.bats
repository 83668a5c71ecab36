load ../helper

# holding NAME [ARGS...]: in the background, holds NAME until the file "go" appears; returns when it holds it
holding() {
    local name=$1
    shift
    spawn "$HOLDFAST" lock run "$name" "$@" -- bash -c 'echo $HOLDFAST_TOKEN >"held-$0"; until [ -e "go-$0" ]; do sleep 0.02; done' "$name"
    wait_until 10 test -s "held-$name"
}

waiters() { [ "$(hf lock list --json | jq ".locks[] | select(.name == \"$1\") | .waiters | length")" = "$2" ]; }

@test "run: the command runs under the lock, learns its token, and its status is ours" {
    expect 7 hf lock run build -- bash -c '[ "$HOLDFAST_LOCK" = build ] && [ "$HOLDFAST_TOKEN" -gt 0 ] && [ -d "$HOLDFAST_DIR" ] && exit 7'
    expect 127 hf lock run build -- /no/such/program
    expect 126 hf lock run build -- /etc/passwd
    expect 137 bash -c '"$HOLDFAST" lock run build -- bash -c "kill -KILL \$\$"'
    expect 1 hf lock check build
}

@test "run becomes the command: the same pid, no wrapper in between; its exit is a release, no take-over" {
    expect 0 bash -c 'echo $$; exec "$HOLDFAST" lock run build -- bash -c "echo \$\$"'
    [ "${lines[0]}" = "${lines[1]}" ]
    expect 0 hf lock run build -n -- true
    expect 0 hf journal query --event lock_taken_over
    [ -z "$output" ]
}

@test "busy: exit 1 or -E, names holder, age, evidence and what to do; JSON has the same (L1)" {
    holding build
    expect 1 hf lock run build -n -- touch ran
    says "already held: pid $spawned_pid (bash) for "
    says "alive: pid $spawned_pid runs"
    says "lock break --reason TEXT build"
    expect 77 hf lock run build -n -E 77 -- touch ran
    run --separate-stderr hf --json lock run build -w 0.1 -- touch ran
    [ "$status" -eq 1 ]
    is_json ".conflict and .holder_pid == $spawned_pid and (.age_seconds >= 0) and .holder.liveness == \"alive\" and .error.code == \"timeout\""
    [ ! -e ran ]
}

@test "waits for its turn and gets it" {
    holding build
    spawn bash -c '"$HOLDFAST" lock run build -w 20 -- touch ran'
    wait_until 10 waiters build 1
    [ ! -e ran ]
    touch go-build
    wait "$spawned_pid"
    [ -e ran ]
}

# behind_a_stopped_one OPTIONS...: four wait, the third of them is stopped; the last is third or later when it last looks, and gets
# its turn all the same. With --ttl `lock run` stays and releases, without it becomes the command, whose exit is the release.
behind_a_stopped_one() {
    local i began
    holding build
    for i in 1 2 3 4; do
        spawn "$HOLDFAST" lock run build "$@" -- bash -c 'echo "$0" >>order' "$i"
        [ "$i" != 3 ] || local third=$spawned_pid
        wait_until 10 waiters build "$i"
    done
    sleep 0.3 # past the look for a deadlock, with which each wakes once
    kill -STOP "$third"
    wait_until 5 grep -q '^State:.*T' "/proc/$third/status"
    began=$SECONDS
    touch go-build
    wait_until 15 grep -qx 4 order
    [ $((SECONDS - began)) -le 6 ] # twice two seconds, and some for a loaded machine
    [ "$(tr '\n' ' ' <order)" = '1 2 4 ' ]
    kill -CONT "$third"
    wait_until 10 grep -qx 3 order
}

@test "a waiter stopped in the middle of the queue is passed over where holders become the command (L4)" {
    behind_a_stopped_one
}

@test "a waiter stopped in the middle of the queue is passed over where holders release (L4)" {
    behind_a_stopped_one --ttl 1m
}

@test "a wait for ever goes on while a process is stopped inside the guard, and so does a release" {
    holding build
    spawn bash -c '"$HOLDFAST" lock run build -- touch ran'
    wait_until 10 waiters build 1
    exec {guard}<>state/locks/name/build
    flock "$guard"
    touch go-build
    # A holder that exited is found dead; a waiter needs the guard for that.
    sleep 11
    [ ! -e ran ]
    flock -u "$guard"
    exec {guard}>&-
    wait "$spawned_pid"
    [ -e ran ]
    hf lock acquire build --pid $$ >/dev/null
    exec {guard}<>state/locks/name/build
    flock "$guard"
    spawn bash -c '"$HOLDFAST" lock release build --pid "$0"' $$
    sleep 11
    kill -0 "$spawned_pid"
    flock -u "$guard"
    exec {guard}>&-
    wait "$spawned_pid"
    expect 1 hf lock check build
}

@test "first come, first served; nobody is woken but the next" {
    holding build
    for i in 1 2 3 4 5; do
        spawn bash -c '"$HOLDFAST" lock run build -- bash -c "echo $0 >>order"' "$i"
        wait_until 10 waiters build "$i"
    done
    touch go-build
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    [ "$(paste -sd' ' order)" = "1 2 3 4 5" ]
    [ -z "$(find "$HOLDFAST_DIR/locks" -type p)" ]
}

@test "a killed holder is replaced at once, with one event and the evidence (L4, L8)" {
    token=$(bash -c '"$HOLDFAST" lock acquire build; true')
    # That shell has ended without releasing.
    start=$(date +%s%N)
    expect 0 hf lock acquire build -n
    [ "$output" -gt "$token" ]
    [ $((($(date +%s%N) - start) / 1000000)) -lt 1000 ]
    expect 0 hf journal query --event lock_taken_over --json
    [ "${#lines[@]}" -eq 1 ]
    is_json '.name == "build" and (.reason | length > 0)'
}

@test "acquire for the shell: held over several calls, released by it and by nobody else (L3)" {
    token=$(hf lock acquire build --pid $$)
    expect 0 hf lock check build --token "$token"
    expect 3 bash -c '"$HOLDFAST" lock release build; exit $?'
    says "you are not its owner"
    says "held by pid $$"
    expect 0 hf lock check build
    expect 0 hf journal query --event lock_refused --json
    [ "${#lines[@]}" -eq 1 ]
    expect 0 hf lock release build --pid $$
    expect 1 hf lock release build --pid $$
    says "it has no holder"
}

@test "release by token; a stale token is refused and the successor untouched (L3, L5)" {
    old=$(hf lock acquire build --pid $$)
    hf lock release build --token "$old"
    new=$(hf lock acquire build --pid $$)
    [ "$new" -gt "$old" ]
    expect 3 hf lock release build --token "$old"
    says "lost"
    expect 3 hf lock renew build --token "$old" --ttl 5s
    expect 3 hf lock check build --token "$old"
    expect 0 hf lock check build --token "$new"
}

@test "taking it twice is a deadlock, said at once" {
    hf lock acquire build --pid $$ >/dev/null
    expect 1 hf lock acquire build --pid $$
    says "you already hold it"
}

@test "taking it twice with --reentrant is counted, and released as often" {
    first=$(hf lock acquire build --pid $$)
    expect 0 hf lock acquire build --pid $$ --reentrant
    [ "$output" = "$first" ]
    hf lock release build --pid $$
    expect 0 hf lock check build --token "$first"
    hf lock release build --pid $$
    expect 1 hf lock check build
}

@test "a lease that runs out goes to the next, with a higher token; the old one is refused (L2, L5)" {
    old=$(hf lock acquire build --pid $$ --ttl 300ms)
    spawn sleep 60
    expect 0 hf lock acquire build --pid "$spawned_pid" -w 10
    [ "$output" -gt "$old" ]
    expect 3 hf lock renew build --token "$old"
    expect 0 hf journal query --event lock_expired --json
    [ "${#lines[@]}" -eq 1 ]
}

@test "run --ttl renews: a holder that renews never loses the lock" {
    spawn "$HOLDFAST" lock run build --ttl 300ms -- bash -c 'touch held-build; sleep 1.5'
    wait_until 10 test -e held-build
    expect 1 hf lock run build -w 1 -- true
    wait "$spawned_pid"
    expect 0 hf lock run build -n -- true
}

@test "run --ttl: when the lease is lost the command is ended, exit 3" {
    spawn bash -c '"$HOLDFAST" lock run build --ttl 500ms -- bash -c "echo \$\$ >child; exec sleep 60"; echo $? >status'
    wait_until 10 test -s child
    hf lock break build --reason "test"
    wait_until 10 test -s status
    [ "$(cat status)" = 3 ]
    run ! kill -0 "$(cat child)"
}

@test "run --ttl: when the lease is lost, what the command started ends too, even if it called setsid" {
    cat >command <<'C'
env -i setsid sh -c 'sh -c "echo \$PPID" >hidden; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
until [ -s hidden ]; do sleep 0.02; done
touch ready
exec sleep 300
C
    spawn bash -c '"$HOLDFAST" lock run x --ttl 1s -- sh command; echo $? >status'
    wait_until 10 test -e ready
    hf lock break x --reason test
    wait_until 20 test -s status
    [ "$(cat status)" = 3 ]
    ! kill -0 "$(cat hidden)" 2>/dev/null || grep -q ') Z' "/proc/$(cat hidden)/stat"
}

@test "run --ttl: a command that is killed while it waits for the lock ends the wrapper as such" {
    holding build
    spawn "$HOLDFAST" lock run build --ttl 10s -w 20s -- touch ran
    wait_until 10 waiters build 1
    kill -KILL "$(pgrep -P "$(pgrep -P "$spawned_pid")")"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 137 ]
    [ ! -e ran ]
    waiters build 0
    touch go-build
}

@test "run --ttl forwards signals and passes the status on" {
    local by
    for by in wrapper parent; do
        spawn "$HOLDFAST" lock run build --ttl 5s -- bash -c 'trap "exit 9" TERM; echo $PPID >parent; while :; do sleep 0.05; done'
        echo "$spawned_pid" >wrapper
        wait_until 10 test -s parent
        kill -TERM "$(cat "$by")"
        status=0
        wait "$spawned_pid" || status=$?
        [ "$status" -eq 9 ]
        rm parent
    done
}

@test "a hung holder: successor after its lease, the revived one can do nothing (L5)" {
    spawn "$HOLDFAST" lock run build --ttl 500ms -- bash -c 'echo $HOLDFAST_TOKEN >held-build; exec sleep 60'
    wait_until 10 test -s held-build
    kill -STOP "$spawned_pid"
    expect 0 hf lock acquire build --pid $$ -w 10
    new=$output
    kill -CONT "$spawned_pid"
    wait "$spawned_pid" || true
    expect 3 hf lock check build --token "$(cat held-build)"
    expect 0 hf lock check build --token "$new"
}

@test "a lease is as long in another time namespace, and no holder loses its lock there (L4)" {
    unshare -T --boottime 1000000 true || skip "no time namespaces here"
    token=$(hf lock acquire build --pid $$ --ttl 1h)
    for offset in 1000000 -$(($(cut -d. -f1 /proc/uptime) / 2)); do
        expect 1 unshare -T --boottime "$offset" "$HOLDFAST" lock acquire build -n
        expect 0 unshare -T --boottime "$offset" "$HOLDFAST" --json lock list
        is_json '.locks[0].holders[0].lease_left_ms > 3500000'
        expect 0 hf --json lock list
        is_json '.locks[0].holders[0].lease_left_ms > 3500000'
    done
    expect 0 unshare -T --boottime 1000000 "$HOLDFAST" lock renew build --token "$token" --ttl 2h
    expect 0 hf --json lock list
    is_json '.locks[0].holders[0].lease_left_ms | . > 7100000 and . <= 7200000'
}

@test "a holder in a pid namespace is replaced when the namespace has no process left, and not before (L4, L8)" {
    local ns=(unshare -p -f --mount-proc --kill-child)
    [ "$EUID" = 0 ] || ns=(unshare -r -p -f --mount-proc --kill-child)
    "${ns[@]}" true || skip "no pid namespaces here"
    [ "$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" ] || skip "not in the machine's first pid namespace"
    spawn "${ns[@]}" bash -c '"$HOLDFAST" lock acquire ns --pid $$ >/dev/null; exec sleep 60'
    wait_until 10 hf lock check ns
    expect 1 hf lock run ns -n -- true
    expect 0 hf --json lock list
    is_json '.locks[0].holders[0].liveness == "unknown"'
    kill -9 "$spawned_pid"
    run hf lock run ns -w 15s -- true
    [ "$status" -eq 0 ] || ! others_inside || skip "a process of another user in a pid namespace may be the holder"
    [ "$status" -eq 0 ]
    expect 0 hf journal query --event lock_taken_over --json
    [ "${#lines[@]}" -eq 1 ]
    says "no process left"
}

@test "shared together, not with exclusive; slots up to their number (L1)" {
    holding s -s
    expect 0 hf lock run s -s -n -- true
    expect 1 hf lock run s -n -- true
    holding three --slots 3
    hf lock acquire three --slots 3 --pid $$ >/dev/null
    expect 0 hf lock run three --slots 3 -n -- true
    spawn sleep 60
    hf lock acquire three --slots 3 --pid "$spawned_pid" >/dev/null
    expect 1 hf lock run three --slots 3 -n -- true
    expect 2 hf lock run three --slots 4 -n -- true
    says "number of slots"
    expect 1 hf lock run three -n -- true
}

@test "--on-timeout skip: not run, exit 0, one event; proceed: run without a token, one event (L8)" {
    holding build
    expect 0 hf lock run build -w 0.1 --on-timeout skip -- touch ran
    [ ! -e ran ]
    expect 0 hf lock run build -w 0.1 --on-timeout proceed -- bash -c 'echo "${HOLDFAST_TOKEN-none}"'
    says "WITHOUT the lock"
    says "none"
    expect 0 hf journal stats --json
    is_json '.fail_opens.build == 1 and .skips.build == 1'
    expect 0 hf journal query --event lock_fail_open --json
    is_json '.waited_ms >= 100 and .cause == "TIMEOUT" and (.holder | startswith("pid "))'
}

@test "--on-timeout proceed covers a broken store as well, with the event's cause" {
    hf lock run build -- true
    rm -r "$HOLDFAST_DIR/locks"
    touch "$HOLDFAST_DIR/locks"
    expect 3 hf lock run build -- touch ran
    [ ! -e ran ]
    expect 0 hf lock run build --on-timeout proceed -- bash -c 'echo "${HOLDFAST_TOKEN-none}"'
    says "none"
    expect 0 hf journal query --event lock_fail_open --json
    is_json '.name == "build" and (.cause | contains("directory"))'
}

@test "--on-timeout proceed does not go on where there is no journal to say so (L8)" {
    holding build
    flock f true
    exec 8<>f
    flock 8
    mv "$HOLDFAST_DIR/journal" "$HOLDFAST_DIR/away"
    touch "$HOLDFAST_DIR/journal"
    expect 1 hf lock run build -n --on-timeout proceed -- touch ran
    says "no journal: "
    expect 1 hf lock run build -n --ttl 5s --on-timeout proceed -- touch ran
    expect 1 hf lock acquire build -n --on-timeout proceed
    [ ! -e ran ]
    expect 1 bash -c 'exec 8>&- 9<>f; "$HOLDFAST" lock fd 9 -n --on-timeout proceed'
    rm "$HOLDFAST_DIR/journal"
    mv "$HOLDFAST_DIR/away" "$HOLDFAST_DIR/journal"
    expect 0 hf lock run build -n --on-timeout proceed -- touch ran
    [ -e ran ]
}

@test "a cycle over two locks: one is told, with the names; nobody waits for ever" {
    spawn bash -c '"$HOLDFAST" lock run one -- bash -c "touch a; until [ -e b ]; do sleep 0.02; done; \"\$HOLDFAST\" lock acquire two --pid \$\$ >out1 2>err1; echo \$? >status1"'
    spawn bash -c '"$HOLDFAST" lock run two -- bash -c "touch b; until [ -e a ]; do sleep 0.02; done; \"\$HOLDFAST\" lock acquire one --pid \$\$ >out2 2>err2; echo \$? >status2"'
    wait_until 15 test -s status1
    wait_until 15 test -s status2
    [ "$(sort status1 status2 | paste -sd' ')" = "0 1" ]
    cat err1 err2 | grep -q "waits for 'one'"
    cat err1 err2 | grep -q "waits for 'two'"
    expect 0 hf journal query --event lock_deadlock --json
    [ "${#lines[@]}" -eq 1 ]
}

@test "names never meet and never leave the directory (L12)" {
    mkdir held-a
    holding a/b
    expect 0 hf lock run a_b -n -- true
    expect 0 hf lock run ../../escape -n -- true
    [ ! -e "$HOLDFAST_DIR/../escape" ]
    [ ! -e escape ]
    expect 2 hf lock run "" -n -- true
    expect 2 hf lock run "$(printf 'x%.0s' {1..81})" -n -- true
}

@test "a hostile or damaged record is quarantined with an event and never acted upon (L12)" {
    echo precious >victim
    for kind in garbage symlink fifo directory truncated; do
        hf lock acquire "$kind" --pid $$ >/dev/null
        file=$HOLDFAST_DIR/locks/name/$kind
        case $kind in
        garbage) echo '{"pid": "1", "session": "x"}' >"$file" ;;
        symlink) rm "$file" && ln -s "$PWD/victim" "$file" ;;
        fifo) rm "$file" && mkfifo -m 600 "$file" ;;
        directory) rm "$file" && mkdir "$file" ;;
        truncated) truncate -s 100 "$file" ;;
        esac
        expect 0 timeout 10 "$HOLDFAST" lock run "$kind" -n -- true
    done
    [ "$(cat victim)" = precious ]
    expect 0 hf journal query --event record_quarantined --json
    [ "${#lines[@]}" -eq 5 ]
    [ "$(find "$HOLDFAST_DIR/quarantine" -mindepth 1 -maxdepth 1 | wc -l)" -eq 5 ]
}

@test "tokens rise over a deleted file and an older copy put back (L2)" {
    one=$(hf lock acquire t --pid $$) && hf lock release t --pid $$
    cp -p "$HOLDFAST_DIR/locks/name/t" older
    two=$(hf lock acquire t --pid $$) && hf lock release t --pid $$
    cp -p older "$HOLDFAST_DIR/locks/name/t"
    three=$(hf lock acquire t --pid $$) && hf lock release t --pid $$
    rm "$HOLDFAST_DIR/locks/name/t"
    four=$(hf lock acquire t --pid $$)
    [ "$one" -lt "$two" ]
    [ "$two" -lt "$three" ]
    [ "$three" -lt "$four" ]
}

# Waiters that an older record does not know sleep on the life of the holder, which goes on.
@test "an older record without a holder is put back: a release or a look tells all waiters (L4)" {
    hf lock acquire t --pid $$ >/dev/null
    hf lock release t --pid $$
    cp -p "$HOLDFAST_DIR/locks/name/t" older
    for how in release look; do
        rm -f order
        hf lock acquire t --pid $$ >/dev/null
        for i in 1 2 3; do
            spawn "$HOLDFAST" lock run t -- bash -c 'echo "$0" >>order' "$i"
            wait_until 10 waiters t "$i"
        done
        cp -p older "$HOLDFAST_DIR/locks/name/t"
        [ "$how" = look ] || expect 1 hf lock release t --pid $$
        # The second looks every two seconds; the others only when they are told.
        wait_until 15 grep -qx 1 order
        wait_until 5 grep -qx 2 order
        wait_until 5 grep -qx 3 order
        expect 0 hf lock run t -w 5 -- true
    done
}

@test "list and why show holder, age, lease, waiters and evidence" {
    expect 0 hf lock list
    [ -z "$output" ]
    holding build
    spawn bash -c 'exec "$HOLDFAST" lock run build -- true'
    wait_until 10 waiters build 1
    expect 0 hf lock list
    says "build                 name    exclusive"
    expect 0 hf why build
    says "held by pid"
    says "1. in queue: pid"
    expect 0 hf why build --json
    is_json '.name == "build" and (.holders | length == 1) and (.waiters | length == 1)'
    expect 0 hf why nothing
    says "free"
    [[ "$output" != *"last events"* ]]
    expect 0 hf why nothing --json
    is_json '.v == 1 and .name == "nothing" and .holders == [] and .waiters == [] and .events == []'
}

@test "why tells the last five events about the name, as JSON too" {
    for i in 1 2 3 4 5 6; do hf journal emit note --name build text="$i"; done
    holding build
    expect 0 hf why build
    says "last events:"
    says "text=6"
    [[ "$output" != *"text=1"* ]]
    expect 0 hf why build --json
    is_json '[.events[].text] == ["2", "3", "4", "5", "6"] and .events[0].event == "note"'
}

@test "break needs a reason, leaves one event, and the old token is dead (L4, L8)" {
    token=$(hf lock acquire build --pid $$)
    expect 2 hf lock break build
    expect 0 hf lock break build --reason "host was rebooted by hand"
    expect 3 hf lock check build --token "$token"
    expect 0 hf journal query --event lock_broken --json
    is_json '.reason == "host was rebooted by hand"'
    expect 1 hf lock break build --reason again
    hf lock acquire build --pid $$ >/dev/null
    run --separate-stderr hf lock break build --reason third --json
    is_json '.v == 1 and .name == "build" and .lost == 1'
}

@test "fd: a shell function under flock, exclusive with flock(1), the file left empty" {
    expect 0 bash -c 'exec 9<>side; "$HOLDFAST" lock fd 9 -w 5 && ! flock -n side true && [ ! -s side ]'
    expect 0 flock side bash -c 'exec 9<>side; "$HOLDFAST" lock fd 9 -n; [ $? -eq 1 ]'
    expect 0 flock side bash -c 'exec 9<>side; "$HOLDFAST" lock fd 9 -w 0.1 --on-timeout proceed'
    expect 0 hf journal query --event lock_fail_open --json
    is_json '.name | endswith("/side")'
    expect 2 hf lock fd 99
    expect 2 hf lock fd nine
}

@test "fd: refused, it says so as JSON as well" {
    flock f true
    exec 8<>f
    flock 8
    run --separate-stderr bash -c 'exec 8>&- 9<>f; "$HOLDFAST" --json lock fd 9 -w 0.01 -E 9'
    [ "$status" -eq 9 ]
    is_json '.conflict and .error.code == "timeout" and .error.exit == 9 and (.name | endswith("/f"))'
    run --separate-stderr bash -c 'exec 8>&- 9<>f; "$HOLDFAST" --json lock fd 9 -n'
    [ "$status" -eq 1 ]
    is_json '.error.code == "busy"'
}

@test "options that make no sense are refused with exit 2" {
    expect 2 hf lock run x -s --slots 3 -- true
    expect 2 hf lock run x --slots 65 -- true
    expect 2 hf lock run x --on-timeout maybe -- true
    expect 2 hf lock run x --ttl 31d -- true
    expect 2 hf lock run x
    expect 2 hf lock renew x
    expect 2 hf lock release x --pid 1 --token 2
    expect 2 hf lock run x --slots 0 -- true
    says "from 1 to 64"
    for pid in 0 -1 '' 2147483648 4294967297 1x; do
        expect 2 hf lock acquire x --pid "$pid" -n
        expect 2 hf lock release x --pid "$pid"
    done
    expect 1 hf lock check x
}

@test "without -- the command begins at its first word, and its options stay its own" {
    expect 0 hf lock run x echo -n -s --ttl
    [ "$output" = "-s --ttl" ]
    expect 0 hf lock run x -s env -- echo hi
    [ "$output" = hi ]
}

@test "an idle waiter makes no system calls" {
    command -v strace >/dev/null || skip "no strace"
    holding build
    "$HOLDFAST" lock run build -- true 3>&- &
    spawned+=($!)
    waiter=$!
    wait_until 10 waiters build 1
    sleep 5 # past its first looks for a deadlock; the next is 12 s later
    timeout 1.5 strace -f -o trace -p "$waiter" 2>/dev/null || true
    [ -e trace ] || skip "strace may not trace here"
    # The call it sleeps in, and the signal that ends strace: nothing else.
    [ "$(grep -cE '^[0-9]+ +[a-z]' trace)" -le 1 ] || { cat trace; return 1; }
}

@test "a wait on behalf of another process ends when that process ends, and leaves the queue (L4)" {
    holding build
    spawn sleep 60
    owner=$!
    timeout 20 "$HOLDFAST" lock acquire build --pid "$owner" >said 2>&1 3>&- &
    waiter=$!
    wait_until 10 waiters build 1
    kill "$owner"
    status=0
    wait "$waiter" || status=$?
    [ "$status" -eq 1 ] || { echo "exit $status: $(cat said)"; false; }
    grep -q "$owner" said
    expect 0 hf why build --json
    is_json '.waiters == []'
}

@test "list: a lock that cannot be read does not hide the others" {
    hf lock acquire one --pid $$
    hf lock acquire two --pid $$
    exec {stuck}<"$HOLDFAST_DIR/locks/name/one"
    flock "$stuck"
    expect 4 hf lock list
    says "two  "
    says "one: "
    run hf -q lock list --json
    [ "$status" -eq 4 ]
    is_json '[.locks[].name] == ["two"] and .error.exit == 4'
    exec {stuck}<&-
    expect 0 hf lock list
    says "one  "
}

@test "a lease of no length is refused, and so is renewing for none" {
    expect 2 hf lock run build --ttl 0 -- true
    expect 2 hf lock acquire build --ttl 0s
    token=$(hf lock acquire build --pid $$ --ttl 30s)
    expect 2 hf lock renew build --token "$token" --ttl 0
    expect 0 hf lock renew build --token "$token"
}

@test "a refusal names the lock that it is about, in words and as JSON" {
    for verb in "release x" "check x" "renew x --token 5" "break x --reason test"; do
        # shellcheck disable=SC2086
        run hf lock $verb
        [[ "$output" == *"lock 'x': "* ]] || { echo "$verb: $output"; return 1; }
        # shellcheck disable=SC2086
        run hf -q --json lock $verb
        [[ "$(jq -r .error.message <<<"$output")" == "lock 'x': "* ]] || { echo "$verb: $output"; return 1; }
    done
}

@test "acquire: in a -c shell that ends at once it says so; not in scripts, nor where the shell goes on" {
    for text in 'cd .; "$HOLDFAST" lock acquire x' 'cd . && "$HOLDFAST" lock acquire x -n 2>&1;'; do
        run -0 sh -c "$text"
        says "a shell that ends right after this command"
        says "holdfast lock run x -- CMD"
    done
    echo 'cd .; "$HOLDFAST" lock acquire y' >script
    for text in 'cd .; "$HOLDFAST" lock acquire x && :' 't=$("$HOLDFAST" lock acquire x); "$HOLDFAST" lock release x' \
        'cd .; "$HOLDFAST" lock acquire x --pid '$$ '. ./script' 'cd .; sh ./script; :'; do
        run -0 sh -c "$text"
        [[ $output != *"ends right after"* ]]
        "$HOLDFAST" -q lock release x --pid $$ || true
    done
}
