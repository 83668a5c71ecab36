# Reports of a program on its terminal (OSC 7501, titles) in needs, ps, status and the idle limit; the last line as plain text.
load ../session_helper

STREAMS="$BATS_TEST_DIRNAME/streams"

needs() { field "$1" '[.needs[].code] | join(" ")'; }

# shows NAME CLIENT: a session whose terminal gets the recorded stream of that client, up to the prompt at which it waits
shows() { hf -q run "$1" -d -t -- bash -c 'stty -echo -opost; cat "$0"; touch "shown-$1"; sleep 600' "$STREAMS/$2" "$1"; }

# osc TEXT: printf's format of a report
osc() { printf '\\033]7501;%s\\033\\\\' "$1"; }

@test "a client at its permission prompt asks at once, with its question as plain text: Claude, Codex, Gemini" {
    local client
    for client in claude codex gemini; do
        shows "$client" "$client"
        wait_until 20 test -e "shown-$client"
        wait_until 20 is_field "$client" '.activity.state' blocked
        is_field "$client" '.needs[0] | .code, .action' $'asks\nattach'
        expect 0 hf status "$client"
        [[ "$output" != *$'\033'* ]]
    done
    is_field claude '.activity.text' "approve Bash: touch permitted; echo v=9"
    is_field codex '.activity.text' "a permission"
    is_field gemini '.activity.text' "Action Required (proj)"
    [[ "$(hf status claude)" == *"! asked "*" ago: approve Bash: touch permitted; echo v=9"* ]]
    [[ "$(hf ps claude | tail -1)" == *"! asks: approve Bash: touch permitted; echo v=9: attach" ]]
    # Copilot sends no report; it has a hook.
    shows copilot copilot
    wait_until 20 test -e shown-copilot
    is_field copilot '.activity' null
    for client in claude codex gemini copilot; do
        is_field "$client" '(.last_line // "") | test("[\u0000-\u001f\u007f-\u009f]|\\[[0-9;?]+[a-zA-Z]")' false
    done
}

@test "all states and the need of each; a new attempt begins without a report" {
    hf -q run x -d -t --max-runs 2 --backoff 100ms -- bash -c 'stty -echo
        says() { printf "\033]7501;state=%s\007" "$1"; touch "said-$1"; until [ -e "past-$1" ]; do sleep 0.02; done; }
        if [ -e second ]; then touch begun; sleep 600; fi
        says working; says done; says error; says idle; says clear; says blocked; touch second; exit 1'
    for expected in "working:working:" "done:done:waits" "error:error:waits" "idle:idle:waits" "clear:null:" "blocked:blocked:asks"; do
        IFS=: read -r word state need <<<"$expected"
        wait_until 20 test -e "said-$word"
        wait_until 20 is_field x '.activity.state' "$state"
        [ "$(needs x)" = "$need" ]
        touch "past-$word"
    done
    wait_until 20 test -e begun
    is_field x '.attempt, .activity' $'2\nnull'
}

@test "in the background the query for support is answered with the same bytes" {
    hf -q run x -d -t -- bash -c 'stty raw -echo; printf "\033]7501;?\033\\"; IFS= read -r -n 9 answer; printf %s "$answer" >answer; exit 7'
    expect 7 hf wait x -w 30
    [ "$(od -An -c answer | tr -s ' ')" = ' 033 ] 7 5 0 1 ; ? 033' ]
}

@test "a flood of queries that reads no answers, and a terminal that echoes the answer, delay nothing" {
    hf -q run x -d -t -- bash -c 'stty raw -echo; for ((i = 0; i < 3000; i++)); do printf "\033]7501;?\033\\"; done; exit 7'
    expect 7 hf wait x -w 30
    hf -q run y -d -t -- bash -c 'stty -echoctl -icanon; printf "\033]7501;?\033\\"; sleep 1; exit 8'
    expect 8 hf wait y -w 30
    [ "$(hf logs y | grep -ao '7501;?' | wc -l)" -le 20 ]
}

@test "reports in pieces, truncated, too long or in other encodings: the last valid report is used" {
    hf -q run x -d -t -- bash -c "stty -echo
        printf '\033]75'; sleep 0.1; printf '01;state=blo'; sleep 0.1; printf 'cked:msg=YWJj\033'; sleep 0.1; printf '\\\\'
        printf '\033]7501;state=done:msg=%0*d\007' 5000 0
        printf '\302\2357501;state=done\302\234\2357501;state=done\234\033]7501;state=done\030'
        printf '\377\376\033]7501;state=idle:id=\377\007\033]7501;state=done'
        touch said; sleep 600"
    wait_until 20 test -e said
    wait_until 20 is_field x '.activity.state, .activity.text' $'blocked\nabc'
}

@test "--idle: a report of work keeps a session alive; a redrawn prompt does not" {
    hf -q run works -d -t --idle 2s -- bash -c 'stty -echo; printf "\033]7501;state=working\007"; sleep 6; exit 7'
    hf -q run asks -d -t --idle 2s -- bash -c 'stty -echo; printf "\033]7501;state=blocked\007"; while :; do printf "\033[5mPROMPT\r"; sleep 0.2; done'
    expect 7 hf wait works -w 60
    expect 124 hf wait asks -w 60
    is_field asks .outcome timed-out
}

@test "the last line is plain text: no escape sequences, no control characters, no text before a carriage return" {
    hf -q run x -d -- bash -c "printf 'first\n 10%%\r\033[2K 50%%\r\033[1;32m 70%%\033[0m\033]0;title\007 of\033[3Call\302\233K\r'; touch said; sleep 600"
    wait_until 20 test -e said
    wait_until 20 is_field x '.last_line' " 70% of all"
    [[ "$(hf status x)" == *$'\n  last line   70% of all\n'* ]]
}

@test "in the foreground reports are recorded, and the query is left to the caller's terminal" {
    command -v python3 >/dev/null || skip "no python3"
    cat >asks.sh <<'SH'
stty raw -echo
printf '\033]7501;?\033\\'
IFS= read -r -t 20 -n 4 answer
printf '%s' "$answer" >answer
printf '\033]7501;state=blocked:msg=YWJj\033\\'
until [ -e go ]; do sleep 0.02; done
SH
    # A terminal with an answer of its own.
    cat >terminal.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while True:
    try:
        seen += os.read(fd, 4096)
    except OSError:
        break
    if b"\033]7501;?\033\\" in seen and not os.path.exists("asked"):
        open("asked", "w").close()
        os.write(fd, b"MINE")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
    spawn python3 terminal.py "$HOLDFAST" run x -- bash asks.sh
    wait_until 30 is_field x '.activity | .state, .text' $'blocked\nabc'
    is_field x '.needs[0].code' asks
    [ "$(cat answer)" = MINE ]
    touch go
    expect 0 hf wait x -w 30
}
