# run --log-max: a log that keeps its limit, and readers that go on over what it drops.
load ../session_helper

# the log's files of session NAME, in bytes
on_disk() { cat "$HOLDFAST_DIR/sessions/$1"/log.* | wc -c; }

# in_order FILE: consecutive numbers, one a line, from wherever it begins; the last is in $last
in_order() {
    awk 'NR > 1 && $1 != before + 1 { print "after " before " comes " $1; bad = 1 } { before = $1 } END { exit bad }' "$1"
    last=$(tail -n 1 "$1")
}

@test "log-max: in front and in the background the log keeps it, with the newest output; logs and ps say what is gone" {
    for how in --log --detach; do
        rm -rf "$HOLDFAST_DIR"
        hf run x "$how" --log-max 100K -- seq 100000 >/dev/null
        expect 0 hf wait x
        [ "$(on_disk x)" -le 102400 ]
        [ "$(on_disk x)" -ge 34000 ]
        hf logs x >shown 2>said
        in_order shown
        [ "$last" = 100000 ]
        [ "$(head -n 1 shown)" -gt 1 ]
        grep -q 'the first [0-9]*K of the output were dropped' said
        [ "$(field x '.log_bytes + .log_dropped_bytes')" -eq "$(seq 100000 | wc -c)" ]
        expect 0 hf ps x
        says "[log: the first "
        # The last lines are there, and nothing is missing in front of them.
        hf logs x -n 10 >shown 2>said
        [ "$(paste -sd' ' shown)" = "$(seq 99991 100000 | paste -sd' ')" ]
        [ ! -s said ]
    done
}

@test "log-max: logs -f goes on over the parts, without loss or repetition" {
    # It waits for its reader at times, so that one that keeps up is what is tested.
    hf run x --detach --log-max 64K -- bash -c '
        until [ -e go ]; do sleep 0.01; done
        for i in {1..20}; do seq $((i * 1000 - 999)) $((i * 1000)); until [ "$(tail -n 1 followed)" = $((i * 1000)) ]; do sleep 0.01; done; done'
    touch followed
    spawn bash -c '"$0" logs x -f >followed 2>said' "$HOLDFAST"
    touch go
    wait "$spawned_pid"
    seq 20000 | cmp - followed
    [ ! -s said ]
    expect 0 hf wait x
    [ "$(field x .log_dropped_bytes)" -gt 0 ]
}

@test "log-max: several readers during a flood see lines in order, and are told what they missed" {
    spawn bash -c '"$0" run x --log --log-max 64K -- bash -c "seq 2000000; touch done" >/dev/null' "$HOLDFAST"
    wait_until 10 hf -q logs x -n 0 2>/dev/null
    for i in 1 2 3; do "$HOLDFAST" logs x -f >"followed-$i" 2>"said-$i" & readers+=("$!"); done
    while [ ! -e done ]; do
        hf logs x >shown 2>/dev/null
        in_order shown || false
    done
    for pid in "${readers[@]}"; do wait "$pid"; done
    for i in 1 2 3; do
        [ "$(tail -n 1 "followed-$i")" = 2000000 ]
        # Every line is whole, and rises; a gap is where something was dropped, and that was said.
        awk '!/^[0-9]+$/ || $1 <= before { print NR ": " $0; exit 1 } { before = $1 }' "followed-$i"
        gaps=$(awk 'NR > 1 && $1 != before + 1 { n++ } { before = $1 } END { print n + 0 }' "followed-$i")
        [ "$gaps" -le "$(wc -l <"said-$i")" ]
    done
    [ "$(on_disk x)" -le 65536 ]
}

@test "log-max: both streams of a session in the background stay in their order" {
    # Less than a full pipe of each, so that the order is exact however slow the keeper is.
    hf run x --detach -- bash -c 'for i in {1..200}; do echo $((2 * i - 1)); echo $((2 * i)) >&2; done'
    expect 0 hf wait x
    hf logs x | cmp - <(seq 400)
    # With any number nothing is lost or repeated.
    hf run y --detach -- bash -c 'for i in {1..1000}; do echo $((2 * i - 1)); echo $((2 * i)) >&2; done'
    expect 0 hf wait y
    hf logs y | sort -n | cmp - <(seq 2000)
    hf logs y --stderr | cmp - <(seq 2 2 2000)
}

@test "log-max: 0 is no limit, and then nothing is dropped; the default is one" {
    hf run x --detach --log-max 0 -- bash -c 'seq 300000; sleep 0.01'
    expect 0 hf wait x
    hf logs x | cmp - <(seq 300000)
    is_field x .log_dropped_bytes 0
    hf run x --detach -- bash -c 'head -c 80M /dev/zero | tr "\0" "\n"'
    expect 0 hf wait x
    [ "$(field x .log_bytes)" -le $((64 << 20)) ]
    [ "$(field x '.log_bytes + .log_dropped_bytes')" -eq $((80 << 20)) ]
}

@test "log-max: what --leave-running leaves in the background goes on writing to the log" {
    hf run x --detach --leave-running -- bash -c '(trap "" HUP; until [ -e go ]; do sleep 0.02; done; echo later) & echo now'
    expect 0 hf wait x
    touch go
    wait_until 10 bash -c '[ "$("$0" -q logs x | paste -sd" ")" = "now later" ]' "$HOLDFAST"
}

@test "log-max: the run before keeps its own, resumed ones go on, and no third is left" {
    hf run x --log --log-max 64K -- seq 50000 >/dev/null
    hf run x --log --log-max 64K -- seq 50001 90000 >/dev/null
    hf run x --log --log-max 64K -- bash -c 'seq 1 30000; exit 1' >/dev/null || true
    hf run x --log --log-max 64K --resume -- seq 30001 60000 >/dev/null
    hf -q logs x >shown
    in_order shown
    [ "$last" = 60000 ]
    hf -q logs x --previous >shown
    in_order shown
    [ "$last" = 90000 ]
    [ "$(on_disk x)" -le $((2 * 65536)) ]
}

@test "log-max: a keeper killed at any call of a rotation leaves a log that reads, and the next run goes on" {
    command -v strace >/dev/null || skip "no strace"
    skip_sanitizers "a sanitizer's calls are not ours"
    killed=0
    for call in openat unlinkat write getdents64; do
        for n in 1 2 3 5 9 14 20 27; do
            rm -rf "$HOLDFAST_DIR"
            timeout --kill-after=5 20 strace -f -b execve -o trace -e trace=openat,unlinkat,write,getdents64 -P "$HOLDFAST_DIR/sessions/x" \
                -e inject="$call:signal=KILL:when=$n" "$HOLDFAST" run x --log --log-max 64K -- seq 30000 >/dev/null 2>&1 3>&- || true
            ! grep -q 'killed by SIGKILL' trace || killed=$((killed + 1))
            expect 0 hf -q run y -- true
            hf -q reap x >/dev/null 2>&1 || true
            if hf -q logs x >shown; then
                # The end of a line may not have been read when the keeper died.
                sed -i '${/^[0-9]*$/!d}' shown
                head -n -1 shown >whole
                [ ! -s whole ] || in_order whole || { echo "$call $n"; return 1; }
            fi
            hf run x --log --log-max 64K -- seq 40000 >/dev/null
            hf -q logs x >shown
            in_order shown
            [ "$last" = 40000 ]
        done
    done
    echo "$killed killed"
    [ "$killed" -ge 10 ]
}

@test "log-max: sizes and what does not go together are checked" {
    expect 2 hf run x --log --log-max 10Q -- true
    says "is not a size"
    expect 2 hf run x --log --log-max 1K -- true
    says "at least 64K"
    expect 2 hf run x --no-log --log-max 1M -- true
    expect 0 hf run x --log-max 1M -- true
    expect 2 hf run x --detach --leave-running --log-max 1M -- true
    expect 0 hf run x --log --log-max=2G -- true
}

# on_terminal COMMAND...: its output, as a terminal gets it
on_terminal() { python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$@" </dev/null; }

@test "logs on a terminal: colours, tabs and newlines go through, all other control bytes are shown; --raw and pipes get the bytes" {
    command -v python3 >/dev/null || skip "no python3"
    bytes='\e]0;title\a\e[2J\e[31mred\e[0m\ttab\e[6n\xc2\x9b1m \xff \xc3\xa9 \b\e[38;5;1mlast\e'
    expect 0 hf run x --log -- printf "$bytes"
    on_terminal "$HOLDFAST" logs x >shown
    printf '^[]0;title^G^[[2J\e[31mred\e[0m\ttab^[[6n\\xc2\\x9b1m \\xff \xc3\xa9 ^H\e[38;5;1mlast^[\e[0m' | cmp - shown
    on_terminal "$HOLDFAST" logs x --raw >shown
    printf "$bytes" | cmp - shown
    hf logs x | cmp - <(printf "$bytes")
}

@test "logs after a run without a log says so, and does not show an older run's output" {
    expect 0 hf run x --log -- echo older
    expect 0 hf run x --no-log -- echo newer
    expect 1 hf logs x
    says "was not logged"
    says "--previous"
    expect 0 hf logs x --previous
    [ "$output" = older ]
    expect 0 hf run x --log -- echo newest
    [ "$(hf logs x)" = newest ]
    [ "$(hf logs x --previous)" = older ]
}

@test "a huge hole in a log is passed over at once" {
    expect 0 hf run x --log -- echo first
    truncate -s 4T "$HOLDFAST_DIR"/sessions/x/log.*.0 || skip "no files of that size here"
    echo last >>"$(echo "$HOLDFAST_DIR"/sessions/x/log.*.0)"
    expect 0 timeout 20 "$HOLDFAST" logs x
    says "were dropped"
    [ "$(timeout 20 "$HOLDFAST" -q logs x | tr -d '\0' | paste -sd' ')" = "first last" ]
    [ "$(timeout 20 "$HOLDFAST" -q logs x -n 1 | tr -d '\0')" = last ]
    timeout 20 "$HOLDFAST" ps x >/dev/null
}
