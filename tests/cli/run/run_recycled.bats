load ../tree

# The pids on record belong to other processes now, with the same names even: nobody of them gets a signal.
# Reuse is forced, not hoped for: in a pid namespace of its own, where ns_last_pid says which number comes next.

# In the namespace: a session is killed, and those of its pids that are named in $1 are given to bystanders.
STAGE='
set -e
fresh_pid() { until [ ! -e "/proc/$1" ]; do sleep 0.01; done; }
of() { "$HOLDFAST" ps t --json | jq -r ".sessions[0].$1.pid"; }
"$HOLDFAST" run t --detach --tree walk -- sleep 1000 >/dev/null
declare -A pid=([supervisor]=$(of supervisor) [keeper]=$(of keeper) [leader]=$(of leader))
declare -A comm=([supervisor]=holdfast [keeper]=holdfast-keeper [leader]=sleep)
kill -STOP ${pid[supervisor]} ${pid[keeper]}
for role in supervisor keeper; do until grep -q "^State:.T" /proc/${pid[$role]}/status; do sleep 0.01; done; done
kill -KILL ${pid[leader]} ${pid[keeper]} ${pid[supervisor]}
for role in supervisor keeper leader; do fresh_pid ${pid[$role]}; done
for role in $1; do
    echo $((${pid[$role]} - 1)) >/proc/sys/kernel/ns_last_pid
    "$TREE" bystander "$PWD/by.$role" ${comm[$role]} &
    [ $! = ${pid[$role]} ] || { echo "no reuse: $! is not ${pid[$role]}"; exit 98; }
    until [ -s "by.$role" ]; do sleep 0.01; done
    [ "$(cat /proc/$!/comm)" = ${comm[$role]} ]
done
status=0
eval "$2" >said 2>&1 || status=$?
for role in $1; do
    ! "$TREE" living "$PWD/by.$role" >/dev/null || { echo "$role: the bystander was killed"; exit 97; }
    [ ! -s "by.$role.signals" ] || { echo "$role: the bystander got $(paste -sd" " "by.$role.signals")"; exit 96; }
done
cat said
exit $status
'

# recycled ROLES COMMAND: plays it; the status and the output are the command's
recycled() {
    local enter=(unshare --pid --fork --mount-proc --kill-child)
    [ "$(id -u)" = 0 ] || enter=(unshare --user --map-root-user --pid --fork --mount-proc --kill-child)
    "${enter[@]}" sh -c 'echo 400 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
        skip "no pid namespace with a writable ns_last_pid here: reuse of pids cannot be forced"
    run timeout 30 "${enter[@]}" bash -c "$STAGE" _ "$1" "$2"
}

is_mismatch() {
    [ "$status" -eq 3 ] || { echo "exit $status"; echo "$output"; return 1; }
    says identity-mismatch
}

@test "pid reuse: stop says identity-mismatch and signals nobody; all three (L6)" {
    recycled "supervisor keeper leader" '"$HOLDFAST" stop t'
    is_mismatch
    # The pid alone would tell nobody which session that was.
    says "session 't': pid "
    [ "$(events session_refused t)" = 1 ]
}

@test "pid reuse: stop says identity-mismatch and signals nobody; the keeper's pid (L6)" {
    recycled keeper '"$HOLDFAST" stop t'
    is_mismatch
}

@test "pid reuse: stop says identity-mismatch and signals nobody; the supervisor's pid (L6)" {
    recycled supervisor '"$HOLDFAST" stop t'
    is_mismatch
    [ "$(events session_refused t)" = 1 ]
}

@test "pid reuse: stop finds nothing left and signals nobody; the command's pid (L6)" {
    recycled leader '"$HOLDFAST" stop t'
    [ "$status" -eq 1 ]
    says already-gone
}

@test "pid reuse: reap ends the record and signals nobody (L6)" {
    recycled "supervisor keeper leader" '"$HOLDFAST" reap t --json'
    [ "$status" -eq 0 ] || { echo "exit $status"; echo "$output"; return 1; }
    is_json '.reaped[0].killed == 0'
    [ "$(session t .outcome)" = abandoned ]
}

@test "pid reuse: a new run takes over at once and signals nobody (L4, L6)" {
    recycled "supervisor keeper leader" '"$HOLDFAST" run t -- true'
    [ "$status" -eq 0 ] || { echo "exit $status"; echo "$output"; return 1; }
    [ "$(session t .state)" = "done" ]
}

@test "pid reuse: ps and wait do not take the stranger for the session (L6)" {
    recycled "supervisor keeper leader" '"$HOLDFAST" ps t --json; "$HOLDFAST" wait t -w 5'
    [ "$status" -eq 125 ] || { echo "exit $status"; echo "$output"; return 1; }
    [[ "$output" == *'"dead-unreaped"'* ]]
}
