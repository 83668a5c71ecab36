# ps: the table as people and programs see it, in a pipe and on a screen.
load ../session_helper

# on_screen COLUMNS ROWS WORDS...: what a terminal of that size gets, without carriage returns and colours
on_screen() {
    local columns=$1 rows=$2
    shift 2
    env -u COLUMNS -u LINES TERM=xterm LANG=C.UTF-8 LC_ALL=C.UTF-8 \
        script -qec "stty cols $columns rows $rows; '$HOLDFAST' $*" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g'
}

# fits COLUMNS: no line of what was shown is wider, in cells of the screen
fits() {
    python3 -c '
import sys, unicodedata
for line in sys.stdin.read().splitlines():
    cells = sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
    if cells > int(sys.argv[1]):
        sys.exit("%d cells: %s" % (cells, line))
' "$1"
}

# in_two_days WORDS...: our command, with the clock set on
in_two_days() {
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 faketime '+49 hours' "$HOLDFAST" "$@"
}

@test "ps as a table: one head, one row each; what runs first, then what ended, the newest on top" {
    expect 0 hf ps
    says "no sessions yet"
    [ -z "$(hf ps 2>/dev/null)" ]
    expect 1 hf ps never-run
    says "no such session"
    hf -q run b -- true
    hf -q run c -- true
    running a --deadline 1h
    expect 0 hf ps
    [ "${#lines[@]}" -eq 4 ]
    [[ "${lines[0]}" =~ ^NAME\ +STATE\ +AGE\ +LEFT\ +CPU\ +MEM\ +TRY\ +COMMAND$ ]]
    [[ "${lines[1]}" =~ ^a\ +running\ .*\ 59m ]]
    [[ "${lines[2]}" =~ ^c\ +done\ +[0-9]+s\ ago\ .*\ true\ \ \(exit\ 0,\ ran\  ]]
    [[ "${lines[3]}" == b* ]]
    expect 0 hf ps b a
    [ "${#lines[@]}" -eq 3 ]
    [[ "${lines[1]}" == b* && "${lines[2]}" == a* ]]
    [ "$(hf ls)" != "" ]
    [ "$(hf list -o name | tail -n +2)" = "$(printf 'a\nc\nb')" ]
}

@test "ps -o: wide has all, names choose and order, a wrong one is named; titles are columns" {
    running a
    expect 0 hf ps -o wide
    [[ "${lines[0]}" == NAME*STATE*PID*AGE*LEFT*PROCS*MEM*CPU*OUTPUT*TRY*TOKEN*CWD*COMMAND ]]
    [[ "${lines[1]}" == a*running*" $(cat up-a) "*"$PWD"*bash* ]]
    expect 0 hf ps -o pid,name
    [ "$(tr -s ' ' <<<"${lines[1]}" | sed 's/^ //')" = "$(cat up-a) a" ]
    expect 2 hf ps -o name,colour
    says "no column 'colour'"
    expect 2 hf ps -o ''
    expect 2 hf ps -o name,
}

@test "ps fits the screen: 80 columns, 40 columns, wide characters, long names; nothing is cut into a pipe" {
    hf -q run a-name-that-is-longer-than-anything-one-would-type-by-hand -- sh -c 'exit 3' || true
    hf -q run ünï-日本語日本語日本語日本語日本語 -- sh -c ': a command with many words, so that it does not fit; exit 4' || true
    for columns in 80 40 20; do
        on_screen "$columns" 24 ps >shown
        [ "$(wc -l <shown)" -eq 3 ]
        fits "$columns" <shown
    done
    on_screen 80 24 ps >shown
    grep -q '^a-name-that.*…  failed .*! ' shown
    on_screen 80 24 ps --no-trunc >shown
    grep -q one-would-type-by-hand shown
    on_screen 120 24 ps >wide
    grep -q 'exit 4' wide
    hf ps >shown
    grep -q one-would-type-by-hand shown
    grep -q 'does not fit; exit 4' shown
    # COLUMNS comes before what the terminal says.
    COLUMNS=50 script -qec "'$HOLDFAST' ps" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >shown
    fits 50 <shown
}

@test "ps on a narrow screen: why a session needs you and what to type come before its command and before figures" {
    hf -q run a-longer-name --verify 'echo; exit 3' -- sh -c ': a command with many words, so that it does not fit; exit 0' || true
    hf -q run done -- true
    on_screen 80 24 ps >shown
    grep -qE '^NAME +STATE +AGE +LEFT +CPU +MEM +TRY +COMMAND$' shown
    grep -qE '^a-longer-name .*  ! ver.*…: resume$' shown
    fits 80 <shown
    on_screen 60 24 ps >shown
    grep -qE '^NAME +STATE +AGE .*COMMAND$' shown
    [ "$(grep -c MEM shown)" -eq 0 ]
    grep -qE '^a-longer-name .*  ! ver.*…: resume$' shown
    fits 60 <shown
    # What was asked for stays.
    on_screen 60 24 ps -o name,mem,cpu,command >shown
    grep -qE '^NAME +MEM +CPU +COMMAND$' shown
    on_screen 50 24 ps --watch --times 1 >shown
    grep -q 'holdfast: 0 running, 2 ended, 1 needs you; ever' shown
    sed 's/\x1b\[[0-9;]*[A-Za-z]//g' shown | fits 50
}

@test "ps --watch draws anew at once when the screen changes its size" {
    hf -q run x -- true
    expect 0 env TERM=xterm python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" watch_resized
}

@test "ps shows what ended within a day; -a all; a name that is given is always shown" {
    command -v faketime >/dev/null || skip "no faketime"
    hf -q run old -- true
    hf -q run older -- true
    expect 0 hf ps -o name
    [ "$output" = "$(printf 'NAME\nolder\nold')" ]
    expect 0 in_two_days ps
    says "'holdfast ps -a' shows 2 older"
    running new
    expect 0 in_two_days ps -o name
    [ "$output" = "$(printf 'NAME\nnew')" ]
    expect 0 in_two_days ps -a -o name
    [ "$output" = "$(printf 'NAME\nnew\nolder\nold')" ]
    expect 0 in_two_days ps old
    [[ "${lines[1]}" == *"2d ago"* ]]
    expect 0 in_two_days ps --json
    is_json '.sessions | length == 1'
    expect 0 in_two_days ps -a --json
    is_json '.sessions | length == 3'
}

@test "ps --watch --times 2 shows it twice; no colours and no clearing when nobody looks" {
    hf run x -- true
    expect 0 hf ps --watch --times 2 --interval 10ms
    [ "$(grep -c done <<<"$output")" -eq 2 ]
    [[ "$output" != *$'\033'* ]]
    expect 0 hf --json ps --watch --times 2 --interval 10ms
    [ "$(jq -s length <<<"$output")" -eq 2 ]
}

@test "ps --watch on a screen redraws in place, has a title and a clock, and never scrolls" {
    for i in 1 2 3 4 5 6 7 8 9; do hf -q run "s$i" -- true; done
    on_screen 80 8 ps --watch --times 2 --interval 10ms >shown
    [ "$(grep -c 'holdfast: 0 running, 9 ended; every 10ms; [0-9][0-9]:' shown)" -eq 2 ]
    # Title, empty line, head and four rows; the eighth line is the cursor's.
    [ "$(grep -c done shown)" -eq 8 ]
    TERM=dumb script -qec "TERM=dumb '$HOLDFAST' ps --watch --times 1" /dev/null </dev/null >shown
    ! grep -q $'\033' shown
}

@test "colours on a terminal; none with NO_COLOR or on a dumb one" {
    hf run x -- true
    expect 0 env TERM=xterm script -qec "'$HOLDFAST' ps" /dev/null
    says $'\033[32mdone'
    expect 0 env NO_COLOR=1 script -qec "'$HOLDFAST' ps" /dev/null
    [[ "$output" != *$'\033'* ]]
    expect 0 env TERM=dumb script -qec "'$HOLDFAST' ps" /dev/null
    [[ "$output" != *$'\033'* ]]
}

@test "ps A B shows those that there are, says which is not there, exit 1" {
    hf -q run a -- true
    hf -q run b -- true
    run --separate-stderr hf ps b nosuch a -o name
    [ "$status" -eq 1 ]
    [ "$output" = "$(printf 'NAME\nb\na')" ]
    [[ "$stderr" == *"session 'nosuch': no such session"* ]]
    run --separate-stderr hf ps nosuch neither
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    expect 1 hf --json ps a nosuch
}
