# file block: blocks put in, replaced and taken out.
load ../file_helper

@test "block: put in, replaced, taken out; comment by file type; literal; no write when nothing changes" {
    printf '# Title\n' >CLAUDE.md
    expect 0 hf file block CLAUDE.md rules --text 'be \g<0> kind \n $& `x` %s'
    [ "$(cat CLAUDE.md)" = $'# Title\n<!-- holdfast:rules:start -->\nbe \\g<0> kind \\n $& `x` %s\n<!-- holdfast:rules:end -->' ]
    inode=$(stat -c %i CLAUDE.md)
    expect 0 hf file block CLAUDE.md rules --text 'be \g<0> kind \n $& `x` %s'
    [ "$(stat -c %i CLAUDE.md)" = "$inode" ]
    printf 'a\nb\n' | expect 0 hf file block CLAUDE.md rules
    printf 'a\nb\n' | hf file block CLAUDE.md rules
    [ "$(sed -n 3,4p CLAUDE.md | paste -sd' ')" = "a b" ]
    expect 0 hf file block CLAUDE.md rules --remove
    [ "$(cat CLAUDE.md)" = '# Title' ]
    for pair in 'x.sh:# ' 'x.ts:// ' 'x.sql:-- ' 'x.css:/\* ' 'x.html:<!-- '; do
        hf file block "${pair%%:*}" id --create --text t
        grep -q "^${pair#*:}holdfast:id:start" "${pair%%:*}"
    done
    expect 2 hf file block x.json id --create --text t
    expect 0 hf file block x.any id --create --style dash --text t
    grep -q '^-- holdfast:id:end$' x.any
    expect 2 hf file block x.md 'bad id' --create --text t
    expect 2 hf file block x.md id --create --style poetry --text t
    expect 4 hf file block missing.md id --text t
    expect 0 hf file block missing.md id --remove
    [ ! -e missing.md ]
}

@test "block: CRLF, mixed, BOM and a missing final newline survive, byte for byte" {
    for content in 'a\r\nb\r\n' 'a\r\nb' 'a\nb\r\nc\r\n' '\xef\xbb\xbfa\n' '\xef\xbb\xbfa' '' 'a'; do
        printf "$content" >f.md
        cp f.md before.md
        expect 0 hf file block f.md x --text $'one\ntwo'
        cmp -n "$(stat -c %s before.md)" f.md before.md
        expect 0 hf file block f.md x --remove
        cmp f.md before.md
    done
    printf 'a\r\n' >f.md
    hf file block f.md x --text $'one\ntwo'
    [ "$(grep -c $'\r$' f.md)" -eq 5 ]
}

@test "block: orphaned, nested, reversed, duplicated markers: exit 3 with line numbers, nothing written" {
    s='<!-- holdfast:x:start -->' e='<!-- holdfast:x:end -->' y='<!-- holdfast:y:start -->'
    bad() { # bad WORDS LINES...
        local words=$1
        shift
        printf '%s\n' "$@" >f.md
        cp f.md before.md
        expect 3 hf file block f.md x --text new
        says "$words"
        expect 3 hf file block f.md x --remove
        cmp f.md before.md
    }
    bad "line 2: block 'x' starts and does not end" a "$s" b
    bad "line 1: block 'x' ends without a start" "$e"
    bad "ends in line 1 before it starts in line 2" "$e" "$s"
    bad "starts in line 1 and in line 3" "$s" "$e" "$s" "$e"
    bad "line 2: block 'x' starts again" "$s" "$s" "$e"
    bad "line 2: a marker of another block" "$s" "$y" "$e"
    bad "fenced code that begins in line 2" "$s" '```' "$e"
    [ "$(hf journal query --event file_refused --json | wc -l)" -eq 14 ]
    printf '%s\n' '```' "$s" "$e" '```' >f.md
    expect 0 hf file block f.md x --text new
    [ "$(grep -c 'holdfast:x:start' f.md)" -eq 2 ]
    expect 3 hf file block g.md x --create --text "$s"
    [ ! -e g.md ]
}

@test "block: another tool's markers" {
    start='<!-- PACT_MANAGED_START: Managed by pact-plugin -->' end='<!-- PACT_MANAGED_END -->'
    printf '%s\n' mine "$start" theirs "$end" more >CLAUDE.md
    expect 0 hf file block CLAUDE.md pact --start "$start" --end "$end" --text ours
    [ "$(cat CLAUDE.md)" = "$(printf '%s\n' mine "$start" ours "$end" more)" ]
    expect 2 hf file block CLAUDE.md pact --start "$start" --text ours
    expect 2 hf file block CLAUDE.md pact --start x --end x --text ours
    expect 0 hf file block CLAUDE.md pact --start "$start" --end "$end" --remove
    [ "$(cat CLAUDE.md)" = $'mine\nmore' ]
}

@test "block: --validate, --backup and --root work here, too; text that never ends is given up" {
    echo a >f.md
    expect 1 hf file block f.md x --text t --validate 'grep -q nowhere'
    [ "$(cat f.md)" = a ]
    expect 0 hf file block f.md x --text t --backup 1 --validate 'grep -q holdfast'
    [ "$(cat f.md.~1~)" = a ]
    mkdir in
    expect 3 hf file block f.md x --root in --text t
    mkfifo never
    expect 1 bash -c '"$HOLDFAST" file block f.md x --deadline 0.2s <>never'
    says "did not end"
}
