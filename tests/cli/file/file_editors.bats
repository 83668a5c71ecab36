# Many editors of one file at once, also such that do not lock and such that are killed: nothing is lost.
load ../file_helper

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
    time.sleep(0.01)
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
        # How many get between two saves depends on the machine; that none did would mean that nothing was tried.
        [ -s landed ]
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
