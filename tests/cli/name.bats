load helper

@test "sanitize: the table of the design" {
    for pair in 'my-session_01|my-session_01' '../../etc/passwd|______etc_passwd' '   |___' 'a.b|a_b' 'ä|__'; do
        expect 0 hf name sanitize "${pair%%|*}"
        [ "$output" = "${pair##*|}" ]
    done
    expect 0 hf name sanitize $'abc\nid=evil'
    [ "$output" = abc_id_evil ]
    expect 0 hf name sanitize ''
    [ "$output" = unknown ]
}

@test "sanitize is idempotent (L12)" {
    once=$(hf name sanitize $'a/b\tc..ü')
    [ "$(hf name sanitize "$once")" = "$once" ]
}

@test "key: a/b, a_b and ab never meet, and unkey gives the name back (L12)" {
    keys=$(for n in a/b a_b ab a%2Fb . .. '~' $'\n' 'ü'; do hf name key "$n"; done)
    [ "$(sort -u <<<"$keys" | wc -l)" -eq 9 ]
    for n in a/b a_b a%2Fb . .. 'ü' "it's"; do
        [ "$(hf name unkey "$(hf name key "$n")")" = "$n" ]
    done
}

@test "key: empty and longer than 80 bytes are refused with exit 2" {
    expect 2 hf name key ''
    expect 0 hf name key "$(printf 'x%.0s' {1..80})"
    expect 2 hf name key "$(printf 'x%.0s' {1..81})"
    says "at most 80"
    expect 0 hf name key "$(printf '/%.0s' {1..80})"
    [ "${#output}" -eq 240 ]
}

@test "unkey: what no name has as its key is exit 3" {
    for bad in '%2f' '%41' 'a.b' '%' '%2' '../x' ''; do expect 3 hf name unkey "$bad"; done
}

@test "unkey on a terminal shows control bytes; a pipe gets the bytes" {
    command -v python3 >/dev/null || skip "no python3"
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$HOLDFAST" name unkey 'a%1B%5B2J' </dev/null >shown
    [ "$(tr -d '\r' <shown)" = 'a\x1b[2J' ]
    [ "$(hf name unkey 'a%1B%5B2J')" = $'a\e[2J' ]
}

@test "--json carries input and result; bytes that are not UTF-8 do not break it" {
    expect 0 hf --json name key a/b
    is_json '.v == 1 and .input == "a/b" and .key == "a%2Fb"'
    expect 0 hf --json name sanitize $'\xff\xfe'
    is_json '.sanitized == "__"'
    expect 2 hf --json name key ''
    jq -e '.error.code == "name" and .error.exit == 2' <<<"$(hf -q --json name key '')"
}
