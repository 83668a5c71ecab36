# tests/schedule.bash - what tests/run loads: programs in a queue, run beside each other, read, counted, timed.
#
# Most test programs wait more than they compute. So many run at a time, the longest first, and each further one only while the
# processors have idle time: those that compute have few beside them, those that wait have many.
# shellcheck shell=bash
: "${logs:?}" "${only=}"

passed=0 failed=0 skipped=0 unsteady=0 queued=0 started=0
# At a time: so many always, and so many while there is idle time. WORKERS=N: exactly N.
least=${WORKERS:-$(($(nproc) * 2))} most=${WORKERS:-$(($(nproc) * 8))}
last_times=build/times usual_times=tests/times

mkfifo "$logs/ended"
exec 8<>"$logs/ended"

say() { printf '%s\n' "$*"; }

# tap LABEL COMMAND...: into the queue
tap() {
    case $1 in *"$only"*) ;; *) return 0 ;; esac
    queued=$((queued + 1))
    printf '%s\0' "$@" >"$logs/$queued.command"
    echo "$queued $1" >>"$logs/queue"
}

# by_length: the numbers of the queue, the longest first, as the last complete run measured it or else tests/times.
by_length() {
    local usual=$usual_times last=$last_times
    [ -e "$last" ] || last=/dev/null
    awk 'FILENAME != queue { label = $0; sub(/^[^ ]+ +[^ ]+ +/, "", label); seconds[label] = $1; next }
        { number = $1; label = $0; sub(/^[^ ]+ /, "", label); print (label in seconds ? seconds[label] : 15), number }' \
        queue="$logs/queue" "$usual" "$last" "$logs/queue" | sort -k1,1nr -k2,2n | cut -d' ' -f2
}

# idle: true while a tenth of the processors' time since the last call was unused
idle() {
    local user nice system rest io irq soft steal sum free
    read -r _ user nice system rest io irq soft steal _ </proc/stat
    sum=$((user + nice + system + rest + io + irq + soft + steal)) free=$((rest + io))
    local all=$((sum - ${sum_before:-0})) unused=$((free - ${free_before:-0}))
    # Too short a time says nothing.
    [ "$all" -ge "$(($(nproc) * 20))" ] || return 1
    sum_before=$sum free_before=$free
    [ "$((unused * 10))" -gt "$all" ]
}

# room: waits until one more program may start. The end of one is a line in the fifo; without one there is a look each half second.
room() {
    local running
    while :; do
        running=$(jobs -rp | grep -cvx "${builder:-0}")
        [ "$running" -ge "$least" ] || return 0
        { [ "$running" -ge "$most" ] || ! idle; } || return 0
        read -r -t 0.5 -u 8 _
    done
}

# start_queued: starts all that is in the queue, as there is room; they may still run when it returns
start_queued() {
    local number words
    [ -e "$logs/queue" ] || return 0
    for number in $(by_length); do
        room
        mapfile -d '' -t words <"$logs/$number.command"
        { run_tap "$number" "${words[@]}"; echo >&8; } &
        started=$((started + 1))
    done
    rm "$logs/queue"
}

# run_tap NUMBER LABEL COMMAND...: in a process of its own; the counts go to a file, the lines come in one piece.
run_tap() {
    local number=$1 label=$2 log="$logs/$1.tap" status ok bad skips plan ran seconds cpu TIMEFORMAT='%R %U %S'
    shift 2
    { time timeout --kill-after=10 900 "$@" >"$log" 2>"$log.err" </dev/null 8>&-; } 2>"$logs/$number.time"
    status=$?
    read -r seconds cpu < <(awk '{ print $1, $2 + $3 }' "$logs/$number.time")
    echo "$seconds $cpu $label" >"$logs/$number.time"
    # cmocka 1.1.5 says "not ok N # SKIP" for what it skips.
    skips=$(grep -ciE '^(not )?ok .*# *skip' "$log")
    ok=$(grep -iE '^ok ' "$log" | grep -cviE '# *skip')
    bad=$(grep -E '^not ok ' "$log" | grep -cviE '# *skip')
    plan=$(sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    ran=$((ok + bad + skips))
    {
        # A death that no "not ok" line tells of is a failure of its own.
        if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$ran" -ne "$plan" ] || [ "$ran" -eq 0 ]; }; then
            bad=1
            say "    exit status $status, $ran of $plan tests ran"
        fi
        if [ "$bad" -gt 0 ]; then
            say "not ok - $label: $bad failed, $ok passed (${seconds%.*} s)"
            grep -vE '^ok ' "$log" | head -n 60 | sed 's/^/    /'
            head -n 60 "$log.err" | sed 's/^/    /'
        else
            say "ok - $label: $ok passed$([ "$skips" -gt 0 ] && echo ", $skips skipped") (${seconds%.*} s, $cpu s of processor)"
        fi
        if [ "$skips" -gt 0 ]; then
            grep -iE '^(not )?ok .*# *skip|^# *SKIP' "$log" | sed 's/^/    skipped: /'
            grep -iE '^# *SKIP' "$log.err" | sed 's/^/    skipped: /'
        fi
    } >"$log.said"
    echo "$ok $bad $skips" >"$logs/$number.counts"
    rm -f "$logs/$number.failed"
    [ "$bad" -eq 0 ] || printf '%s\0' "$label" "$@" >"$logs/$number.failed"
    flock "$logs/say" cat "$log.said"
}

# repeat: every program that failed and proves nothing by one failure runs again, alone.
repeat() {
    local file number words label ok bad skips
    for file in "$logs"/*.failed; do
        [ -e "$file" ] || continue
        number=$(basename "$file" .failed)
        mapfile -d '' -t words <"$file"
        label=${words[0]}
        case " $label " in
        *" stress-"* | *" model "* | *" crash/"*) continue ;;
        # Two holders at once, a token that does not rise, a history of no lock: proven. A fleet that did not come up proves nothing.
        *" chaos "*) ! grep -qE 'WRONG.*(overlap|at once|token|history|linear)' "$logs/$number.tap" || continue ;;
        esac
        say "again, by itself: $label"
        run_tap "$number" "${words[@]}"
        read -r ok bad skips <"$logs/$number.counts"
        [ "$bad" -gt 0 ] || { unsteady=$((unsteady + 1)); echo "$label" >>"$logs/unsteady"; }
    done
}

# join: waits for every program that was started and adds up. One without counts was killed together with its shell.
join() {
    local number ok bad skips
    start_queued
    wait
    repeat
    for ((number = 1; number <= queued; number++)); do
        ok=0 bad=1 skips=0
        [ ! -f "$logs/$number.counts" ] || read -r ok bad skips <"$logs/$number.counts"
        passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skips))
    done
}

# times_table: where the time went. A complete run leaves it for the next one, which starts the longest first.
times_table() {
    local all=$logs/times
    cat "$logs"/*.time 2>/dev/null | sort -k1,1nr >"$all"
    [ -s "$all" ] || return 0
    [ -n "$only" ] || cp "$all" "$last_times"
    echo
    awk -v whole="$SECONDS" '{ wall += $1; cpu += $2 }
        END { printf "%d programs in %d s; one after the other %d s, of it %d s of processor (builds not counted)\n", NR, whole, wall, cpu }' "$all"
    say "  the longest            s  cpu s   the most processor time     s  cpu s"
    paste -d '|' <(head -n 12 "$all") <(sort -k2,2nr "$all" | head -n 12) |
        awk -F'|' '{ for (i = 1; i <= 2; i++) { split($i, f, " "); label = $i; sub(/^[^ ]+ +[^ ]+ +/, "", label); printf "  %-22s %5d %5d", substr(label, 1, 22), f[1], f[2] } print "" }'
}
