# Waits that would never end are found and named; waits that may end are left alone.
load ../session_helper

waiters() { [ "$(hf lock list --json | jq ".locks[] | select(.name == \"$1\") | .waiters | length")" = "$2" ]; }

deadlocks() { hf -q journal query --event lock_deadlock --json | jq -s length; }

# nested OPTIONS... -- INNER...: a shell that holds A, and waits for a holdfast that wants it too
nested() {
    local outer=()
    while [ "$1" != -- ]; do outer+=("$1") && shift; done
    shift
    timeout 30 "$HOLDFAST" lock run A "${outer[@]}" -- sh -c '"$HOLDFAST" "$@"; exit $?' sh "$@"
}

# crosswise FIRST WANTS: holds FIRST, and when "go-FIRST" appears runs a command under WANTS; its status is in status-FIRST
crosswise() {
    spawn "$HOLDFAST" lock run "$1" -- sh -c 'touch "up-$0"; until [ -e "go-$0" ]; do sleep 0.02; done
        "$HOLDFAST" lock run "$1" -- true 2>"said-$0"; echo $? >"status-$0.new"; mv "status-$0.new" "status-$0"' "$1" "$2"
    wait_until 10 test -e "up-$1"
}

@test "a lock that a waiting parent holds is a deadlock, said with both pids" {
    expect 1 nested -- lock run A -- touch ran
    says "deadlock: pid "
    says "waits for 'A', held by pid "
    says "which waits for its child "
    expect 7 nested -- lock run A -E 7 -- touch ran
    expect 1 nested --ttl 30s -- lock run A -- touch ran
    expect 1 nested -- lock run A --ttl 30s -- touch ran
    expect 1 nested -- lock acquire A -w 25s
    expect 1 nested -- file with A.txt -- "$HOLDFAST" lock run A -- touch ran
    expect 1 timeout 30 "$HOLDFAST" lock run A -- bash -c 'bash -c "\"\$HOLDFAST\" lock run A -- touch ran; exit \$?"; exit $?'
    [ ! -e ran ]
    [ "$(deadlocks)" -eq 7 ]
    expect 0 hf lock run A -n -- true
}

@test "through a wrapper that renews a lease, and through a session" {
    expect 1 nested -- lock run B --ttl 30s -- sh -c '"$HOLDFAST" lock run A -- touch ran; exit $?'
    expect 1 nested -- run S -- sh -c '"$HOLDFAST" lock run A -- touch ran; exit $?'
    says "waits for 'A', held by pid "
    # A supervisor that had a child before has a reaper between itself and its keeper.
    expect 1 timeout 30 "$HOLDFAST" lock run A -- sh -c 'bash -c "sleep 20 & exec \"\$HOLDFAST\" run S -- sh -c \"\\\"\\\$HOLDFAST\\\" lock run A -- touch ran; exit \\\$?\""; exit $?'
    says "waits for 'A', held by pid "
    # The keeper of a session that waits for its name, below a shell that has it.
    expect 1 nested -- run A -w 25s -- touch ran
    [ ! -e ran ]
}

@test "an edit, or its check, below an edit of the same file" {
    echo old >f
    inner='"$HOLDFAST" file edit f -- cat'
    expect 0 timeout 30 "$HOLDFAST" file edit f -- sh -c "cat; $inner >/dev/null; [ \$? -eq 1 ]"
    says "deadlock: pid "
    expect 0 timeout 30 "$HOLDFAST" file with f -- sh -c '"$HOLDFAST" file edit f -- sh -c "cat; $0 >/dev/null; [ \$? -eq 1 ]"' "$inner"
    says "deadlock: pid "
    expect 1 timeout 30 "$HOLDFAST" file edit f --validate "$inner" -- echo new
    says "deadlock: pid "
    expect 1 timeout 30 "$HOLDFAST" file block f ID --text new --validate "$inner"
    says "deadlock: pid "
    [ "$(cat f)" = old ]
    # One that the command leaves behind is ended with it: no deadlock.
    expect 0 timeout 30 "$HOLDFAST" file edit f -- sh -c "$inner >/dev/null & cat"
    [ "$(deadlocks)" -eq 4 ]
}

@test "two locks crosswise through lock run: the one that closed the cycle is told, the other goes on" {
    crosswise X Y
    crosswise Y X
    touch go-X
    wait_until 10 waiters Y 1
    touch go-Y
    wait_until 15 test -e status-X
    wait_until 15 test -e status-Y
    [ "$(cat status-X status-Y | paste -sd' ')" = "0 1" ]
    grep -q "waits for 'X', held by pid .* which waits for its child .* which waits for 'Y', held by pid " said-Y
    [ ! -s said-X ]
    [ "$(deadlocks)" -eq 1 ]
}

@test "three locks in a circle through lock run" {
    crosswise X Y
    crosswise Y Z
    crosswise Z X
    touch go-X
    wait_until 10 waiters Y 1
    touch go-Y
    wait_until 10 waiters Z 1
    touch go-Z
    for name in X Y Z; do wait_until 15 test -e "status-$name"; done
    [ "$(cat status-X status-Y status-Z | paste -sd' ')" = "0 0 1" ]
    for name in X Y Z; do grep -q "'$name'" said-Z; done
}

@test "a process of a session never gets the session's own name, whatever stands between" {
    expect 1 timeout 30 "$HOLDFAST" run S -- sh -c '"$HOLDFAST" lock run S -- touch ran; exit $?'
    says "the name of its own session"
    expect 1 timeout 30 "$HOLDFAST" run S -- sh -c '"$HOLDFAST" run S -w 25s -- touch ran; exit $?'
    says "the name of its own session"
    # Not even in the background, and not below a program of several threads.
    expect 0 timeout 30 "$HOLDFAST" run S -- bash -c '"$HOLDFAST" lock run S -- touch ran & wait $!; [ $? -eq 1 ]'
    expect 1 timeout 30 "$HOLDFAST" run S -- python3 -c 'import os, subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
sys.exit(subprocess.call([os.environ["HOLDFAST"], "lock", "run", "S", "--", "touch", "ran"]))'
    [ ! -e ran ]
}

@test "a session and a lock crosswise" {
    spawn "$HOLDFAST" run S -- sh -c 'touch up-S; until [ -e go-S ]; do sleep 0.02; done; "$HOLDFAST" lock run X -- true; echo $? >status-S'
    wait_until 10 test -e up-S
    crosswise X S
    touch go-S
    wait_until 10 waiters X 1
    touch go-X
    wait_until 15 test -e status-X
    wait_until 15 test -e status-S
    [ "$(cat status-X) $(cat status-S)" = "1 0" ]
    grep -q "waits for 'S', held by pid .* which waits for its child .* which waits for 'X'" said-X
}

@test "a session that leaves its processes running lets go of its name: they may wait for it" {
    expect 0 hf run S --leave-running -- bash -c '"$HOLDFAST" lock run S -w 20s -- touch got 2>said & until "$HOLDFAST" why S --json | jq -e ".waiters | length == 1" >/dev/null; do sleep 0.05; done; sleep 0.5'
    wait_until 15 test -e got
}

@test "shared: a reader below a reader, behind a writer that waits" {
    spawn "$HOLDFAST" lock run A -s -- sh -c 'touch up; until [ -e go ]; do sleep 0.02; done; "$HOLDFAST" lock run A -s -- true 2>said; echo $? >status'
    wait_until 10 test -e up
    spawn "$HOLDFAST" lock run A -- touch written
    wait_until 10 waiters A 1
    touch go
    wait_until 15 test -s status
    [ "$(cat status)" -eq 1 ]
    grep -q "after pid $spawned_pid, which waits for 'A', held by pid " said
    wait_until 15 test -e written
    # Without the writer they are no hindrance to each other.
    expect 0 nested -s -- lock run A -s -- true
}

@test "slots: a deadlock only when all of them are held by waiting parents" {
    expect 1 nested --slots 1 -- lock run A --slots 1 -- touch ran
    expect 0 nested --slots 2 -- lock run A --slots 2 -- true
    expect 1 nested --slots 2 -- lock run A --slots 2 -- sh -c '"$HOLDFAST" lock run A --slots 2 -- touch ran; exit $?'
    [ ! -e ran ]
    # The other slot will be free again.
    spawn "$HOLDFAST" lock run A --slots 2 -- sh -c 'touch up; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e up
    spawn "$HOLDFAST" lock run A --slots 2 -- sh -c '"$HOLDFAST" lock run A --slots 2 -- touch got; exit $?'
    wait_until 10 waiters A 1
    sleep 0.5
    [ "$(deadlocks)" -eq 2 ]
    touch go
    wait_until 15 test -e got
    [ "$(deadlocks)" -eq 2 ]
}

@test "a parent that comes to wait for its child later" {
    expect 1 timeout 30 "$HOLDFAST" lock run A -- bash -c '"$HOLDFAST" lock run A -- touch ran & child=$!; sleep 0.3; wait $child; exit $?'
    says "which waits for its child"
}

@test "a waiter in the background of a holder that will let go is not in a deadlock" {
    # The shell waits for another child, for nothing, in a loop, with a timeout, as a threaded program.
    for holder in \
        'sh -c "\"$HOLDFAST\" lock run A -w 25s -- touch got-0 & sleep 1.5"' \
        'bash -c "\"$HOLDFAST\" lock run A -w 25s -- touch got-1 & sleep 1.5 & wait -n"' \
        'bash -c "\"$HOLDFAST\" lock run A -w 25s -- touch got-2 & for i in {1..30}; do sleep 0.05; done"' \
        'bash -c "\"$HOLDFAST\" lock run A -w 25s -- touch got-3 & read -t 1.5 </dev/zero; while [ \$SECONDS -lt 2 ]; do :; done"' \
        'python3 -c "import os,subprocess,time; subprocess.Popen([os.environ[\"HOLDFAST\"],\"lock\",\"run\",\"A\",\"-w\",\"25s\",\"--\",\"touch\",\"got-4\"]); time.sleep(1.5)"'; do
        spawn bash -c "exec \"\$HOLDFAST\" lock run A -- $holder"
        wait "$spawned_pid"
    done
    for i in 0 1 2 3 4; do wait_until 15 test -e "got-$i"; done
    [ "$(deadlocks)" -eq 0 ]
}

@test "a lease that nobody renews ends by itself: no deadlock" {
    expect 0 timeout 30 sh -c '"$HOLDFAST" lock acquire A --pid $$ --ttl 1s >/dev/null && "$HOLDFAST" lock run A -w 25s -- touch got; exit $?'
    [ -e got ]
    [ "$(deadlocks)" -eq 0 ]
}

@test "nested in one order by many at once: none is told of a deadlock" {
    for i in 1 2 3 4 5 6; do
        spawn bash -c 'for k in 1 2 3 4 5; do "$HOLDFAST" lock run A -- sh -c "\"\$HOLDFAST\" lock run B -- sleep 0.05; exit \$?" || exit 1; done; touch "done-$0"' "$i"
    done
    for i in 1 2 3 4 5 6; do wait_until 60 test -e "done-$i"; done
    [ "$(deadlocks)" -eq 0 ]
}

@test "a process that is stopped inside a guard does not hide a deadlock" {
    crosswise X Y
    crosswise Y X
    touch go-X
    wait_until 10 waiters Y 1
    exec {stuck}<"$HOLDFAST_DIR/locks/name/Y"
    flock "$stuck"
    touch go-Y
    wait_until 15 test -e status-Y
    exec {stuck}<&-
    [ "$(cat status-Y)" -eq 1 ]
    grep -q "waits for 'X', held by .* which waits for 'Y'" said-Y
    wait_until 15 test -e status-X
    [ "$(cat status-X)" -eq 0 ]
}

@test "locks that nobody waits for cost nothing while waiting" {
    command -v strace >/dev/null || skip "no strace"
    strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    count() { strace -f -o trace "$HOLDFAST" lock run A -w 700ms -- true 2>/dev/null || true; grep -cE '^[0-9]+ +[a-z]' trace; }
    spawn "$HOLDFAST" lock run A -- sh -c 'touch up; exec sleep 60'
    wait_until 10 test -e up
    few=$(count)
    for i in {1..200}; do hf lock run "idle-$i" -- true; done
    many=$(count)
    echo "$few system calls, with 200 idle locks $many"
    [ "$many" -le $((few + 30)) ]
}

@test "an ordinary user finds it too" {
    [ "$(id -u)" -eq 0 ] || skip "not root: the other tests are those of an ordinary user"
    home=$(mktemp -d)
    chmod 755 "$home"
    cp "$HOLDFAST" "$home/holdfast"
    mkdir "$home/work"
    chown 65534:65534 "$home/work"
    run timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home/work" HOLDFAST="$home/holdfast" HOLDFAST_DIR="$home/work/state" \
        sh -c 'cd "$HOME"; "$HOLDFAST" lock run A -- sh -c "\"\$HOLDFAST\" lock run A -- true; exit \$?"; exit $?'
    rm -rf "$home"
    [ "$status" -eq 1 ]
    says "which waits for its child"
}
