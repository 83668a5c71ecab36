# Supervisor or keeper killed at their system calls: no survivor, no second start, an outcome on record, a free name.
load ../cli/session_helper

changing=openat,mkdirat,pwrite64,write,ftruncate,fchmod,renameat2,unlinkat,flock,fdatasync,fsync,clone,clone3,vfork,sendmsg,sendto
waiting=poll,ppoll,recvmsg,read,waitid,prctl,rt_sigprocmask,socketpair,signalfd4,pidfd_open,close

require_strace() {
    command -v strace >/dev/null || skip "no strace"
    ASAN_OPTIONS=detect_leaks=0 strace -f -b execve -o trace -e inject=uname:signal=KILL:when=9999 true 2>/dev/null ||
        skip "strace may not trace here"
    skip_sanitizers "a sanitizer's calls are not ours"
}

# The command: says its pid, leaves a line, and is there for a moment.
command='echo $$ >"$0.pid"; echo started >>"$0.lines"; sleep 0.05'

# traced WHAT CALLS INJECT NAME: runs the session NAME under strace
traced() {
    local follow=()
    [ "$1" = supervisor ] || follow=(-f -b execve)
    timeout --kill-after=5 20 strace "${follow[@]}" -o trace -e trace="$2" ${3:+-e inject="$3"} \
        "$HOLDFAST" run "$4" --grace 100ms -- bash -c "$command" "$4" >said 2>&1 3>&-
}

# points WHAT CALLS: "CALL ORDINAL" for each call of the process, in order. strace counts each call for itself, and in each
# process anew: what the supervisor calls as often would end that one instead of the keeper.
points() {
    traced "$1" "$2" '' count
    if [ "$1" = supervisor ]; then
        sed -nE 's/^([a-z0-9_]+)\(.*/\1/p' trace | awk '{ print $1, ++n[$1] }'
    else
        sed -nE 's/^([0-9]+) +([a-z0-9_]+)\(.*/\1 \2/p' trace | awk '
            NR == 1 { supervisor = $1 }
            { k = ++n[$1, $2]; at[NR] = $1; call[NR] = $2; ordinal[NR] = k; calls[$1]++ }
            END {
                for (pid in calls) if (pid != supervisor && calls[pid] > calls[keeper]) keeper = pid
                for (i = 1; i <= NR; i++) if (at[i] == keeper && ordinal[i] > n[supervisor, call[i]]) print call[i], ordinal[i]
            }'
    fi
}

lines() { cat "$1.lines" 2>/dev/null | wc -l; }

# Of the session that was traced last: its own processes, as strace names them, and the command.
nobody_is_left() {
    local pid
    for pid in $(sed -nE 's/^([0-9]+) .*/\1/p; s/^(clone|vfork).*= ([0-9]+)$/\2/p' trace | sort -u) $(cat "$1.pid" 2>/dev/null); do
        is_dead "$pid" || return 1
    done
}

# settled NAME: after the crash and one reap, everything holds
settled() {
    local name=$1 state
    wait_until 10 nobody_is_left "$name"
    run hf reap "$name"
    [ "$status" -eq 0 ] || [[ "$output" == *"no such session"* ]] || { echo "reap: $output"; return 1; }
    [ "$(lines "$name")" -le 1 ] || { echo "started twice"; return 1; }
    state=$(hf -q ps "$name" --json 2>/dev/null | jq -r '.sessions[0] | .state + " " + .outcome')
    case $state in
    'done succeeded' | 'failed abandoned' | 'failed failed' | 'stopped stopped') ;;
    '' | ' ') [ "$(lines "$name")" -eq 0 ] || { echo "it ran, and there is no record"; return 1; } ;;
    *) echo "state: $state"; return 1 ;;
    esac
    [ "$state" != 'done succeeded' ] || [ "$(lines "$name")" -eq 1 ]
    expect 1 hf lock check "$name"
    before=$(lines "$name")
    expect 0 hf run "$name" -n -- bash -c "$command" "$name"
    [ "$(lines "$name")" -eq $((before + 1)) ]
    is_field "$name" .outcome succeeded
}

# at_each WHAT CALLS: kills WHAT at its calls, at most some forty of them spread over the whole run
at_each() {
    local what=$1 list step n killed=0 call ordinal
    mapfile -t list < <(points "$@")
    step=$(((${#list[@]} + 39) / 40))
    echo "$what: ${#list[@]} calls, every ${step}th"
    for ((n = 0; n < ${#list[@]}; n += step)); do
        read -r call ordinal <<<"${list[n]}"
        echo "at $call $ordinal"
        traced "$what" "$2" "$call:signal=KILL:when=$ordinal" "$what-$n" || true
        ! grep -q 'killed by SIGKILL' trace || killed=$((killed + 1))
        settled "$what-$n"
    done
    echo "$killed killed"
    [ "$killed" -ge 15 ]
    expect 0 hf journal verify
    [ -z "$(ls -A "$HOLDFAST_DIR/quarantine" 2>/dev/null)" ]
}

@test "supervisor killed at its calls: nothing survives, nothing starts twice, the outcome is on record (L7)" {
    require_strace
    hf run warm-up -- true
    at_each supervisor "$changing,$waiting"
}

@test "keeper killed at its calls: nothing survives, nothing starts twice, the outcome is on record (L7)" {
    require_strace
    hf run warm-up -- true
    at_each keeper "$changing"
}

# after_event: "CALL ORDINAL" for each call of the keeper from its session_ended event on, in a run that is not disturbed
after_event() {
    timeout --kill-after=5 20 strace -f -b execve -s 200 -o trace -e trace="$changing" \
        "$HOLDFAST" run count --grace 100ms -- true >said 2>&1 3>&-
    awk '{ call = $2; sub(/\(.*/, "", call); k = ++n[$1, call] }
        found && $1 == keeper && call ~ /^[a-z]/ { print call, k }
        /session_ended/ { keeper = $1; found = 1 }' trace
}

# ended_once NAME: one event for the attempt, and the record says what it says
ended_once() {
    hf -q journal query --event session_ended --name "$1" --json >events
    [ "$(wc -l <events)" -eq 1 ] || { echo "events:"; cat events; return 1; }
    is_field "$1" '.outcome + " " + (.exit | tostring) + " " + .cause' "$(jq -r '.outcome + " " + (.status | tostring) + " " + .cause' events)"
}

# event_written: did the write of the event return? strace shows one that was killed as it began, too.
event_written() {
    awk '/session_ended.*succeeded/ { pid = $1; if ($0 ~ /= [0-9]+$/) found = 1 }
        pid && $1 == pid && /resumed>.*= [0-9]+$/ { found = 1 }
        END { exit !found }' trace
}

@test "keeper killed between its session_ended event and its record: one event, and the record and the exit status agree with it (L8)" {
    require_strace
    hf run warm-up -- true
    mapfile -t list < <(after_event)
    [ "${#list[@]}" -ge 5 ]
    between=0
    for at in "${!list[@]}"; do
        read -r call ordinal <<<"${list[at]}"
        echo "at $call $ordinal"
        status=0
        timeout --kill-after=5 20 strace -f -b execve -s 400 -o trace -e trace="$changing" -e inject="$call:signal=KILL:when=$ordinal" \
            "$HOLDFAST" run "e$at" --grace 100ms -- true >said 2>&1 3>&- || status=$?
        # The process that calls so often may have been the supervisor; then both are gone.
        hf -q reap "e$at" >/dev/null 2>&1 || true
        ended_once "e$at"
        # Now and then a run takes another way (a lock's token is counted), and is killed before it comes to the event.
        event_written || continue
        between=$((between + 1))
        [ "$(jq -r .outcome events)" = succeeded ] || [ "$(grep -c 'killed by SIGKILL' trace)" -ne 1 ] || { cat events; return 1; }
        [ "$(grep -c 'killed by SIGKILL' trace)" -ne 1 ] || [ "$status" -eq 0 ] || [ "$status" -eq 137 ] || { echo "exit $status"; return 1; }
    done
    echo "$between of ${#list[@]} between"
    [ "$between" -ge 5 ]
}

@test "reap is killed at its calls and runs again: one session_ended, one session_reaped (L8)" {
    require_strace
    hf run warm-up -- true
    killed=0
    for at in 1 2 3 4 5 6 7 8 9 10 12 14 16 18 20; do
        for call in pwrite64 flock fdatasync; do
            name="r$at-$call"
            running "$name" --tree walk --grace 100ms
            kill_keepers "$name"
            wait "$spawned_pid" || true
            wait_until 5 is_field "$name" .state dead-unreaped
            timeout --kill-after=5 20 strace -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$at" \
                "$HOLDFAST" -q reap "$name" >/dev/null 2>&1 3>&- || killed=$((killed + 1))
            expect 0 hf -q reap "$name"
            ended_once "$name"
            [ "$(events session_reaped "$name")" -eq 1 ]
        done
    done
    echo "$killed killed"
    [ "$killed" -ge 10 ]
}
