# Every command that status, needs, why, and the end of a run or a landing recommend can be typed exactly as printed.
#
# Each state is produced; the commands are read from the output; each of them runs in a copy of the state directory and
# of the files, because most of them change something.
load ../session_helper
load ../land_helper

# A plain name, and a name that a shell needs quoted.
names=("plain" "fix 12's \"x\" \$HOME \`y\`")

# recommended: the commands in the texts on standard input, one in a line: alone on an indented line, between single quotes, or
# behind a colon; CMD and TEXT are for the reader to fill in.
recommended() {
    python3 -c '
import re, sys
found = []
for line in sys.stdin.read().splitlines():
    alone = re.match(r"^\s+(holdfast .*)$", line)
    if alone:
        found.append(alone.group(1))
        continue
    # A double-quoted word may hold a single quote.
    for each in re.findall(r"\x27(holdfast (?:[^\x27\"]|\"(?:[^\"\\]|\\.)*\")*)\x27", line):
        found.append(each)
    found += re.findall(r": (holdfast (?:run|plan|land|logs|stop|reap) [^;]*)", line)
for each in dict.fromkeys(found):
    print(re.sub(r"\bCMD\b(\.\.\.)?", "true", each))
'
}

# told NAME: all that is printed about it
told() {
    hf status "$1" || true
    hf status || true
    hf why "$1" || true
    hf ps "$1" || true
    hf land show "$1" 2>/dev/null || true
    hf land list 2>/dev/null || true
}

# later SECONDS WORDS...: our command, with the wall clock set on
later() {
    local seconds=$1
    shift
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 faketime "+$seconds seconds" "$HOLDFAST" "$@"
}

# is_answered STATUS OUTPUT: the command was understood, and found its session, plan or lock
is_answered() {
    [ "$1" -ne 2 ] &&
        ! grep -qE 'usage:|no such (session|plan|sandbox|candidate|lock)|unknown option|no command|has no verb|nothing to resume|has no log|unexpected EOF|command not found|not a git repository' <<<"$2"
}

# each_runs NAME FILE: every command recommended in FILE, and by the views of NAME, runs; at least one is recommended
each_runs() {
    local command n=0 status limit=60 before
    before=$(field "$1" .state 2>/dev/null) || before=
    # A running session keeps running: some commands wait for its end.
    [ "$before" != running ] || limit=5
    told "$1" >>"$2" 2>&1
    recommended <"$2" >commands
    : >ran
    mkdir -p path && ln -sf "$HOLDFAST" path/holdfast
    while IFS= read -r command; do
        n=$((n + 1))
        rm -rf kept && cp -a "$HOLDFAST_DIR" kept
        [ ! -d r ] || { rm -rf r.kept && cp -a r r.kept; }
        status=0
        PATH=$PWD/path:$PATH timeout --kill-after=5 "$limit" bash -c "$command" </dev/null >answer 2>&1 || status=$?
        echo "$command -> $status" | tee -a ran
        is_answered "$status" "$(cat answer)" || { cat answer; echo "-- recommended in:"; cat "$2"; return 1; }
        [ "$before" != running ] || continue
        hf -q stop "$1" --grace 0 >/dev/null 2>&1 || true
        find "$HOLDFAST_DIR" -mindepth 1 -delete
        cp -a kept/. "$HOLDFAST_DIR"
        [ ! -d r ] || { find r -mindepth 1 -delete; cp -a r.kept/. r; }
    done <commands
    [ "$n" -gt 0 ] || { echo "nothing is recommended in:"; cat "$2"; return 1; }
}

# ended STATUS NAME OPTIONS...: a run in the foreground, with its messages in the file said
ended() {
    local want=$1 status=0
    shift
    hf run "$@" >said 2>&1 </dev/null || status=$?
    [ "$status" -eq "$want" ] || { echo "exit $status, not $want: $*"; cat said; return 1; }
}

@test "recommended commands run as printed: failed, verify-failed, gave-up, timed-out, not-started" {
    local name
    for name in "${names[@]}"; do
        ended 3 "$name" -- sh -c 'exit 3'
        each_runs "$name" said
        ended 1 "$name" --verify false -- true
        each_runs "$name" said
        ended 1 "$name" --until false --max-runs 1 -- true
        each_runs "$name" said
        ended 124 "$name" --deadline 200ms -- sleep 60
        each_runs "$name" said
        ended 127 "$name" -- ./not-here
        each_runs "$name" said
    done
}

@test "recommended commands run as printed: an agent that fails, is refused or conflicts over plain files" {
    local name
    mkdir T
    hf -q plan enter probe --in T -- true || skip "NO SANDBOX HERE"
    for name in "${names[@]}"; do
        echo 1 >T/f
        ended 3 "$name" --in T -- sh -c 'echo 2 >T/f; exit 3'
        each_runs "$name" said
        hf -q plan rm --discard "run:$name"
        ended 1 "$name" --in T --verify false -- sh -c 'echo 2 >T/f'
        each_runs "$name" said
        hf -q plan rm --discard "run:$name"
        echo 1 >T/f
        # Another change of the same file, from outside the sandbox.
        (
            wait_until 20 test -e inside
            echo other >T/f
            touch outside
        ) 3>&- &
        ended 1 "$name" --in T -- bash -c 'echo 2 >T/f; [ "$HOLDFAST_ATTEMPT" -gt 1 ] || touch inside; until [ -e outside ]; do sleep 0.02; done'
        is_field "$name" .outcome conflict
        each_runs "$name" said
        rm inside outside
        hf -q plan rm --discard "run:$name"
        # The same conflict, with --keep never.
        echo 1 >T/f
        (
            wait_until 20 test -e inside
            echo other >T/f
            touch outside
        ) 3>&- &
        ended 1 "$name" --in T --keep never -- bash -c 'echo 2 >T/f; [ "$HOLDFAST_ATTEMPT" -gt 1 ] || touch inside; until [ -e outside ]; do sleep 0.02; done'
        is_field "$name" '.needs[0] | .code, .action' $'conflict\nresume'
        each_runs "$name" said
        rm inside outside
        ended 0 "$name" --in T --keep always -- sh -c 'echo 3 >T/f'
        each_runs "$name" said
        hf -q plan rm --discard "run:$name" || true
        hf -q rm "$name"
    done
}

@test "recommended commands run as printed: a landing that was rejected, conflicts, or was never tried" {
    local name
    land_room
    cd ..
    for name in "${names[@]}"; do
        (cd r && ended 3 "$name" --in . -- sh -c 'echo 2 >b; exit 3' && mv said ..)
        each_runs "$name" said
        hf -q land drop "$name"
        (cd r && ended 1 "$name" --in . --verify false -- sh -c 'echo 2 >b' && mv said ..)
        each_runs "$name" said
        (cd r && hf land "$name" --verify false >said 2>&1 && return 1; mv said ..)
        each_runs "$name" said
        hf -q land drop "$name"
        # It leaves its work where no landing takes it from.
        (cd r && ended 1 "$name" --in . -- sh -c 'echo 2 >b; git stash -q' && mv said ..)
        each_runs "$name" said
        hf -q land drop "$name"
        (cd r && ended 1 "$name" --in . -- sh -c 'git switch -qc x; echo 2 >b; git commit -qam x; git switch -q main' && mv said ..)
        recommended <said | grep -q "^holdfast plan enter .* -- git -C .* merge "
        each_runs "$name" said
        hf -q land drop "$name"
        # HEAD lands, and a file in another work tree stays.
        (cd r && ended 0 "$name" --in . -- sh -c 'git worktree add -q --lock -b x x; echo 2 >x/new; echo 2 >c' && mv said ..)
        recommended <said | grep -q "^holdfast plan diff "
        each_runs "$name" said
        hf -q land drop "$name"
        git -C r reset -q --hard HEAD~1
        # Nobody tried to land this.
        (cd r && ended 0 "$name" --in . --commit never -- sh -c 'echo 2 >b' && mv said ..)
        expect 0 hf status "$name"
        says "! ended without landing"
        each_runs "$name" said
        hf -q plan rm --discard "run:$name"
        (cd r && hf -q run "$name" -d --in . -- sh -c 'echo 2 >b; touch ../up; sleep 60')
        wait_until 20 test -e up
        rm up
        hf stop "$name" >said 2>&1
        expect 0 hf status "$name"
        says "! ended without landing"
        each_runs "$name" said
        hf -q land drop "$name"
        # The user's own edit of the same file is not touched.
        (cd r && ended 1 "$name" --in . -- sh -c 'until [ -e ../dirty ]; do sleep 0.02; done; echo 2 >b; git commit -qam work' && mv said ..) 3>&- &
        wait_until 20 is_field "$name" .state running
        echo mine >r/b
        touch dirty
        wait "$!"
        rm dirty
        each_runs "$name" said
        hf -q land drop "$name"
        hf -q rm "$name"
        git -C r checkout -q b
    done
}

@test "recommended commands run as printed: keepers killed, a name that is taken, a lock that is held, a log of an earlier run" {
    local name first='[ "$HOLDFAST_ATTEMPT" -gt 1 ] || sleep 60'
    for name in "${names[@]}"; do
        hf -q run "$name" --detach -c "$first"
        hf run "$name" -- true >said 2>&1 && return 1
        each_runs "$name" said
        hf -q stop "$name" --grace 0 >/dev/null || true
        hf run "$name" --detach -c "$first" >said 2>&1
        kill_keepers "$name"
        wait_until 30 is_field "$name" .state dead-unreaped
        hf wait "$name" >said 2>&1 && return 1
        each_runs "$name" said
        hf -q reap "$name" || true
        is_field "$name" .outcome abandoned
        hf status "$name" >said
        recommended <said | grep -q "^holdfast run --resume"
        each_runs "$name" said
        hf -q run "$name" --detach --ttl 600ms -c "$first"
        hf -q lock break "$name" --reason test
        hf wait "$name" >said 2>&1 && return 1
        is_field "$name" .outcome lost-lock
        each_runs "$name" said
        spawn "$HOLDFAST" lock run "lock $name" -- sleep 60
        wait_until 30 hf -q lock check "lock $name"
        hf lock run "lock $name" -n -- true >said 2>&1 && return 1
        recommended <said | grep -q "lock break"
        each_runs "lock $name" said
        kill "$spawned_pid" 2>/dev/null || true
    done
}

@test "recommended commands run as printed: a question, silence, a deadline that is near" {
    local name terminal
    command -v faketime >/dev/null || skip "needs faketime"
    for name in "${names[@]}"; do
        for terminal in "" "-t"; do
            # shellcheck disable=SC2086  # an option or nothing
            hf -q run "$name" -d $terminal -- sh -c 'printf "Proceed? [y/N] "; sleep 60'
            wait_until 30 is_field "$name" .last_line_partial true
            later 40 status "$name" >said
            [ "$(recommended <said | cut -d ' ' -f 2)" = "$([ -n "$terminal" ] && echo attach || echo logs)" ]
            each_runs "$name" said
            hf -q stop "$name" --grace 0
            hf -q rm "$name"
        done
        hf -q run "$name" -d -- sh -c 'echo all is well; sleep 60'
        wait_until 30 is_field "$name" .last_line "all is well"
        later 700 status "$name" >said
        recommended <said | grep -q "^holdfast logs"
        each_runs "$name" said
        hf -q stop "$name" --grace 0
        hf -q rm "$name"
        hf -q run "$name" -d --deadline 121s -- sh -c 'echo begun; sleep 60'
        wait_until 20 eval 'hf status "$name" >said; grep -q "^! deadline in" said'
        each_runs "$name" said
        hf -q stop "$name" --grace 0 || true
    done
}

@test "recommended commands run as printed: a report of a program, on its terminal or by a hook" {
    local name word
    for name in "${names[@]}"; do
        for word in blocked done; do
            hf -q run "$name" -d -t -- sh -c 'printf "\033]7501;state=$0\007"; sleep 60' "$word"
            wait_until 30 is_field "$name" .activity.state "$word"
            hf status "$name" >said
            recommended <said | grep -q "^holdfast attach"
            each_runs "$name" said
            hf -q stop "$name" --grace 0
            hf -q rm "$name"
        done
        # shellcheck disable=SC2016
        CLAUDE_CODE_SESSION_ATTENDED=1 hf -q run "$name" -d -- sh -c 'echo "$1" | "$0" hook asks; sleep 60' "$HOLDFAST" \
            '{"hook_event_name":"PermissionRequest","tool_name":"Bash"}'
        wait_until 30 is_field "$name" .activity.state blocked
        hf status "$name" >said
        recommended <said | grep -q "^holdfast logs"
        each_runs "$name" said
        hf -q stop "$name" --grace 0
        hf -q rm "$name"
    done
}

@test "recommended commands run as printed: a damaged record, and a session without a log" {
    local name
    for name in "${names[@]}"; do
        hf -q run "$name" -d -- sleep 60
        for dir in "$HOLDFAST_DIR"/sessions/*/; do printf 'garbage\n' >"$dir/session.jsonl"; done
        is_field "$name" '.state, .needs[0].action' $'unreadable\nstop'
        hf status "$name" >said
        [ "$(recommended <said | cut -d ' ' -f 2)" = stop ]
        each_runs "$name" said
        grep -q "^holdfast stop .* -> 0$" ran
        hf -q rm "$name" || true
        spawn "$HOLDFAST" run "$name" --no-log --deadline 121s -- sleep 60
        wait_until 20 eval 'hf status "$name" >said 2>&1; grep -q "^! deadline in" said'
        [ "$(recommended <said | cut -d ' ' -f 2)" = status ]
        each_runs "$name" said
        hf -q stop "$name" --grace 0
        hf -q rm "$name"
    done
}

@test "recommended commands run as printed: stuck behind a silent session, for a lock and for a file" {
    local name
    command -v faketime >/dev/null || skip "needs faketime"
    for name in "${names[@]}"; do
        echo 1 >"f $name"
        for kind in lock file; do
            if [ "$kind" = lock ]; then held=(lock run "l $name"); else held=(file with "f $name"); fi
            hf -q run "holds $name" -d -- "$HOLDFAST" "${held[@]}" -- sh -c 'echo begun; touch up; sleep 60'
            wait_until 30 test -e up
            rm up
            hf -q run "$name" -d -- "$HOLDFAST" "${held[@]}" -w 1h -- true
            wait_until 30 is_field "$name" '.waits_for.place' 1
            later 700 status "$name" >said
            grep -q "^! waits " said
            recommended <said | grep -q "^holdfast why"
            each_runs "$name" said
            [[ "$(PATH=$PWD/path:$PATH bash -c "$(recommended <said | grep "^holdfast why")")" == *"held by"* ]]
            hf -q stop "$name" --grace 0
            hf -q stop "holds $name" --grace 0
            hf -q rm "$name"
        done
    done
}
