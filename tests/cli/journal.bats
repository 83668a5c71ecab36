load helper

note() { hf journal emit note "text=$1" "${@:2}"; }

@test "emit and query: fields, name, sequence, and the stored line as JSON" {
    note one --name fix-160
    note two
    expect 0 hf journal query
    [ "${#lines[@]}" -eq 2 ]
    says "note  fix-160"
    says "text=one"
    expect 0 hf journal query --json
    [ "$(jq -s 'map(.seq) == [1, 2] and (.[0].name == "fix-160") and all(.v == 1)' <<<"$output")" = true ]
}

@test "an unknown event, an unknown, missing or mistyped field: exit 2, nothing written" {
    expect 2 hf journal emit notee text=x
    says "no event 'notee'"
    expect 2 hf journal emit note txt=x
    says "no field 'txt'"
    expect 2 hf journal emit note
    says "'text' is missing"
    expect 2 hf journal emit lock_fail_open --name x waited_ms=soon cause=y
    says "not a number"
    expect 2 hf journal emit lock_fail_open waited_ms=1 cause=y
    says "needs a name"
    expect 2 hf journal emit note text=a text=b
    expect 2 hf journal emit note text
    says "KEY=VALUE"
    expect 0 hf journal query
    [ -z "$output" ]
}

@test "query filters: --event, --name, --since, --limit give what they say" {
    for i in 1 2 3 4 5; do note "$i" --name "n$((i % 2))"; done
    hf journal emit lock_fail_open --name build waited_ms=5000 cause=timeout holder=x
    expect 0 hf journal query --event lock_fail_open --json
    [ "$(jq -r .waited_ms <<<"$output")" = 5000 ]
    expect 0 hf journal query --name n1 --json
    [ "$(jq -rs 'map(.text) | join("")' <<<"$output")" = 135 ]
    expect 0 hf journal query --event note --limit 2 --json
    [ "$(jq -rs 'map(.text) | join("")' <<<"$output")" = 45 ]
    expect 0 hf journal query --since 1h --json
    [ "${#lines[@]}" -eq 6 ]
    expect 0 hf journal query --since 0
    [ -z "$output" ]
    expect 2 hf journal query --event nope
}

@test "text that is hostile to terminals or not UTF-8 is stored as JSON and shown harmlessly" {
    note $'\e]0;evil\a\xff"\\'
    expect 0 hf journal query
    [[ "$output" != *$'\e'* ]]
    expect 0 hf journal query --json
    [ "$(jq -r .text <<<"$output")" = $'\e]0;evil\a\xef\xbf\xbd"\\' ]
}

@test "stats: counts by event, fail-opens by name, losses" {
    note one
    hf journal emit lock_fail_open --name build waited_ms=1 cause=timeout
    hf journal emit lock_fail_open --name build waited_ms=1 cause=timeout
    hf journal emit lock_skipped --name docs waited_ms=1
    expect 0 hf journal stats
    says "lock_fail_open                  2"
    expect 0 hf journal stats --json
    is_json '.records == 4 and .events.note == 1 and .fail_opens.build == 2 and .skips.docs == 1 and .lost == 0'
}

@test "an empty journal: query, stats and verify say so with exit 0" {
    expect 0 hf journal query
    [ -z "$output" ]
    expect 0 hf journal stats --json
    is_json '.records == 0 and .seq == 0'
    expect 0 hf journal verify
    says "0 record(s)"
}

@test "verify finds a flipped byte and a deleted line, with file and line" {
    for i in 1 2 3 4; do note "text $i"; done
    log=$HOLDFAST_DIR/journal/events.jsonl
    expect 0 hf journal verify
    cp "$log" kept
    sed -i '2s/text 2/text X/' "$log"
    expect 1 hf journal verify
    says "events.jsonl:2: damaged"
    says "gap: 1 record(s) missing: 2 to 2"
    sed -i 3d kept && cat kept >"$log"
    expect 1 hf journal verify --json
    is_json '.problems == [{problem: "gap", file: "events.jsonl", line: 3, offset: .problems[0].offset, seq: 4,
             text: "1 record(s) missing: 3 to 3"}]'
    expect 0 hf journal query
    [ "${#lines[@]}" -eq 3 ]
}

@test "verify notices records that were cut off at the end" {
    for i in 1 2 3; do note "$i"; done
    sed -i '$d' "$HOLDFAST_DIR/journal/events.jsonl"
    expect 1 hf journal verify
    says "3 was acknowledged"
    note four
    expect 0 hf journal query --limit 1 --json
    is_json '.seq == 4'
}

@test "a torn last line harms nobody: the next record is whole, nothing is reported lost" {
    note one
    note two
    truncate -s -5 "$HOLDFAST_DIR/journal/events.jsonl"
    printf 'seq %020d\n' 1 | dd of="$HOLDFAST_DIR/journal/counters" conv=notrunc status=none
    note three
    expect 0 hf journal verify
    says "1 unfinished line(s)"
    run --separate-stderr hf journal query --json
    [ "$status" -eq 0 ]
    [ "$(jq -rs 'map(.text) | join(" ")' <<<"$output")" = "one three" ]
    [[ "$stderr" == *"1 damaged or torn"* ]]
}

@test "symlink, FIFO, directory, foreign mode in its place: refused at once, victim untouched (L12)" {
    note one
    log=$HOLDFAST_DIR/journal/events.jsonl
    echo precious >victim
    for kind in symlink fifo directory mode hardlink; do
        rm -rf "$log"
        case $kind in
        symlink) ln -s "$PWD/victim" "$log" ;;
        fifo) mkfifo -m 600 "$log" ;;
        directory) mkdir "$log" ;;
        mode) touch "$log" && chmod 644 "$log" ;;
        hardlink) touch other && chmod 600 other && ln other "$log" ;;
        esac
        run timeout 5 "$HOLDFAST" journal emit note text=two
        [ "$status" -eq 3 ] || { echo "$kind: $status $output"; return 1; }
    done
    [ "$(cat victim)" = precious ]
}

@test "follow goes on, and says so, when the journal is cut short, moved away or made anew" {
    note before
    "$HOLDFAST" journal follow --json >followed 2>said 3>&- &
    spawned+=($!)
    wait_until 10 watching $!
    log=$HOLDFAST_DIR/journal/events.jsonl
    shown() { [ "$(jq -rs 'map(.text) | join(" ")' followed)" = "$1" ]; }
    told() { [ "$(grep -c "the journal was truncated or replaced" said)" -eq "$1" ]; }

    note one
    wait_until 10 shown "one"
    truncate -s 0 "$log"
    wait_until 10 told 1
    note two
    wait_until 10 shown "one two"
    mv "$log" moved
    note three
    wait_until 10 shown "one two three"
    told 2
    rm -r "$HOLDFAST_DIR/journal"
    note four
    wait_until 10 shown "one two three four"
    told 3
    note five
    wait_until 10 shown "one two three four five"
    # Longer than it was before anybody could look: no part of a record is taken for damage.
    kill -STOP "${spawned[0]}"
    truncate -s 0 "$log"
    note "$(printf 'x%.0s' {1..600})"
    note six
    kill -CONT "${spawned[0]}"
    wait_until 10 grep -q '"text":"six"' followed
    told 4
    kill "${spawned[0]}"
    run ! grep -q damaged said
}

@test "verify notices that the counters are missing or say less: they would tell of a record cut off" {
    for i in 1 2 3; do note "$i"; done
    sed -i '$d' "$HOLDFAST_DIR/journal/events.jsonl"
    printf 'seq %020d\n' 0 | dd of="$HOLDFAST_DIR/journal/counters" conv=notrunc status=none
    expect 1 hf journal verify
    says "journal/counters: counters: it records 0 as the last record, but 2 exists"
    rm "$HOLDFAST_DIR/journal/counters"
    expect 1 hf journal verify
    says "journal/counters: counters: missing"
}

@test "follow shows what comes, without polling, through a rotation" {
    note before
    "$HOLDFAST" journal follow --limit 30 --json >followed 3>&- &
    spawned+=($!)
    # Whatever comes once it watches is shown, so wait for the watch.
    wait_until 10 watching $!
    export HOLDFAST_JOURNAL_SEGMENT=4K
    for i in {1..40}; do note "$i $(printf 'x%.0s' {1..200})"; done
    wait "${spawned[0]}"
    [ "$(wc -l <followed)" -eq 30 ]
    [ "$(jq -rs 'map(select(.event == "note") | .text | split(" ")[0] | tonumber) as $t | $t == [range(1; ($t | length) + 1)]' followed)" = true ]
    [ "$(ls "$HOLDFAST_DIR/journal" | grep -c '^events\.0')" -ge 2 ]
}
watching() { ls -l "/proc/$1/fd" 2>/dev/null | grep -q inotify; }

@test "rotation: sealed segments are read-only, size stays bounded, verify is clean" {
    export HOLDFAST_JOURNAL_SEGMENT=4K HOLDFAST_JOURNAL_RETAIN=16K
    for i in {1..150}; do note "$i $(printf 'y%.0s' {1..200})"; done
    expect 0 hf journal verify
    says "whole"
    [ -z "$(find "$HOLDFAST_DIR/journal" -name 'events.0*' ! -perm 400)" ]
    [ "$(du -cb "$HOLDFAST_DIR"/journal/events* | tail -1 | cut -f1)" -le 16384 ]
    expect 0 hf journal query --event journal_pruned --limit 1
    says "through="
}

@test "a full disk: exit 4, counted, and told in the journal once there is room (L8)" {
    unshare -rm true 2>/dev/null || skip "no user namespaces"
    run unshare -rm bash -c '
        set -e
        mkdir small && mount -t tmpfs -o size=64k,mode=700 none small
        export HOLDFAST_DIR=$PWD/small/state
        "$HOLDFAST" journal emit note text=first
        dd if=/dev/zero of=small/filler bs=4k 2>/dev/null || true
        lost=0
        for i in $(seq 40); do
            "$HOLDFAST" -q journal emit note text="$(printf "z%.0s" {1..500})" || { [ $? -eq 4 ]; lost=$((lost + 1)); }
        done
        [ $lost -gt 0 ]
        [ "$("$HOLDFAST" journal stats --json | jq .lost)" = $lost ]
        rm small/filler
        "$HOLDFAST" journal emit note text=after
        "$HOLDFAST" journal verify'
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    says "whole"
}

@test "a stopped writer holds nobody up: exit 4 in time, counted; afterwards all goes on (L8)" {
    note one
    spawn flock "$HOLDFAST_DIR/journal/events.jsonl" sleep 60
    wait_until 20 held
    unset HOLDFAST_JOURNAL_WAIT
    start=$(date +%s%N)
    expect 4 hf journal emit note text=stuck
    took=$((($(date +%s%N) - start) / 1000000))
    [ "$took" -ge 90 ] && [ "$took" -lt 10000 ] || { echo "took $took ms"; return 1; }
    expect 0 hf journal stats --json
    is_json '.lost == 1'
    pkill -KILL -P "$spawned_pid" || true
    kill -KILL "$spawned_pid" 2>/dev/null || true
    wait_until 20 note two
}
held() { ! flock -n "$HOLDFAST_DIR/journal/events.jsonl" true; }

@test "twenty processes at once: every record there, no number twice, none missing" {
    for p in {1..20}; do
        spawn bash -c 'for i in {1..10}; do "$HOLDFAST" journal emit note text="'"$p"' $i" || exit 1; done'
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    spawned=()
    expect 0 hf journal verify
    says "200 record(s), sequence 1 to 200: whole"
    [ "$(hf journal query --json | jq -r .text | sort -u | wc -l)" -eq 200 ]
}

@test "emit --durable syncs the record; --json gives its number" {
    expect 0 hf journal emit note text=x --durable --json
    is_json '.v == 1 and .seq == 1'
    command -v strace >/dev/null || skip "no strace"
    run env ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=fdatasync,fsync "$HOLDFAST" journal emit note text=y --durable
    [ "$status" -eq 0 ] || skip "strace may not trace here"
    says "fdatasync("
}

@test "events lists the table, also as JSON" {
    expect 0 hf journal events
    says "lock_fail_open"
    expect 0 hf journal events --json
    is_json '.events | map(.event) | index("note") != null'
}

@test "a huge hole in a segment is passed over at once, and named by verify; the sequence goes on" {
    hf journal emit note --name x text=before
    truncate -s 4T "$HOLDFAST_DIR/journal/events.jsonl" || skip "no files of that size here"
    start=$SECONDS
    (ulimit -v 2000000 && exec "$HOLDFAST" version >/dev/null 2>&1) && limit='ulimit -v 2000000;' || limit=
    expect 0 bash -c "$limit"' exec timeout 20 "$HOLDFAST" journal query'
    says text=before
    expect 0 bash -c "$limit"' exec timeout 20 "$HOLDFAST" why x'
    expect 1 bash -c "$limit"' exec timeout 20 "$HOLDFAST" journal verify'
    says "a hole of"
    timeout 20 "$HOLDFAST" doctor >/dev/null || [ $? -ne 124 ]
    expect 0 bash -c "$limit"' exec timeout 20 "$HOLDFAST" journal emit note --name x text=after'
    expect 0 hf journal query --event note --json
    [ "$(hf journal query --event note --name x --json | tail -1 | jq .seq)" -ge 2 ]
    [ $((SECONDS - start)) -lt 20 ]
}

@test "a sparse file among the sealed segments does not cost the others their place" {
    export HOLDFAST_JOURNAL_SEGMENT=4K HOLDFAST_JOURNAL_RETAIN=64K
    for i in {1..40}; do note "$i $(printf 'y%.0s' {1..200})"; done
    sealed=("$HOLDFAST_DIR"/journal/events.0*.jsonl)
    truncate -s 1T "$HOLDFAST_DIR/journal/events.00000000000000000015.jsonl" || skip "no files of that size here"
    chmod 400 "$HOLDFAST_DIR/journal/events.00000000000000000015.jsonl"
    for i in {41..60}; do note "$i $(printf 'y%.0s' {1..200})"; done
    ls "$HOLDFAST_DIR/journal"
    for file in "${sealed[@]}"; do [ -e "$file" ]; done
}

@test "no record steers the terminal: query, follow and why show control bytes as text" {
    hf journal emit note --name $'x\e[2J' text=$'a\e]0;title\ab'
    hf journal emit note --name $'x\e[2J' text=$'with blank \e[6n and \xc2\x9b'
    { hf journal query; hf why $'x\e[2J'; } >shown
    [ "$(grep -c 'x.x1b.2J' shown)" -ge 3 ]
    run ! grep -q $'[\e\a]' shown
    run ! grep -qP '\xc2\x9b' shown
}

@test "--since and --until take durations, dates, times, today and yesterday; tail shows the newest" {
    for i in 1 2 3; do hf journal emit note text="number $i"; done
    for when in 1h30m yesterday today 2000-01-01 "2000-01-01 07:30" 2000-01-01T07:30:15Z 00:00; do
        [ "$(hf journal query --since "$when" --json | jq -s length)" -eq 3 ] || { echo "$when"; return 1; }
    done
    [ "$(hf journal query --until "2000-01-01 00:00" | wc -l)" -eq 0 ]
    [ "$(hf journal query --since 2100-01-01 | wc -l)" -eq 0 ]
    [ "$(hf journal query --since yesterday --until now --json | jq -s length)" -eq 3 ]
    # What the journal prints is read again, to the microsecond.
    second=$(hf journal query --json | jq -rs '.[1].ts')
    [ "$(hf journal query --since "$second" --until "$second" --json | jq -r .text)" = "number 2" ]
    # A day in another zone begins at another time.
    TZ=UTC0 hf journal query --json --since "2026-01-01 00:00Z" >a
    TZ=EST5 hf journal query --json --since "2026-01-01 00:00Z" >b
    cmp a b
    [ "$(wc -l <a)" -eq 3 ]
    [ "$(hf journal tail -n1 --json | jq -r .text)" = "number 3" ]
    for i in $(seq 12); do hf journal emit note text=more; done
    [ "$(hf journal tail | wc -l)" -eq 10 ]
    for bad in "" 25:00 2026-13-01 2026-02-30 "2026-01-01 7" later 1h30 -5m; do
        expect 2 hf journal query --since "$bad"
    done
}
