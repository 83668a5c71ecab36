# The English of the tree: tools/prose finds text that reads like a translation, and prose.list has what is left of it.

setup() { cd "$BATS_TEST_DIRNAME/../.." || return 1; }

@test "no file reads more like a translation than prose.list allows, and other files have at most 25 hits in 10,000 words" {
    run tools/prose --check tests/tree/prose.list
    [ "$status" -eq 0 ] || { echo "$output"; echo "(tools/prose -v PATTERN FILE shows the lines of a pattern)"; return 1; }
}

@test "a file that grows, a new file over the limit, a plain file that is still listed: tools/prose finds each" {
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/docs" "$tree/tools"
    cp tools/prose "$tree/tools/"
    cd "$tree"
    git init -q
    printf 'Nobody is told what it was.\n' >docs/old.md
    printf 'The file is unchanged.\n' >docs/plain.md
    git add docs
    printf '3 docs/old.md\n' >list
    tools/prose --check list
    # A number may only shrink.
    echo 'Whoever stands there is told.' >>docs/old.md
    run tools/prose --check list
    [ "$status" -eq 1 ]
    [[ "$output" == "docs/old.md: 6 hits in "*"; it may have 3: "*nobody* ]] || { echo "$output"; return 1; }
    tools/prose --list >list
    [ "$(cat list)" = "6 docs/old.md" ]
    # A new file has the limit of all.
    cp docs/old.md docs/new.md
    git add docs
    run tools/prose --check list
    [ "$status" -eq 1 ]
    [[ "$output" == "docs/new.md: "* ]]
    git rm -qf docs/new.md
    # What is plain or gone leaves the list.
    printf '6 docs/old.md\n4 docs/plain.md\n2 docs/gone.md\n' >list
    run tools/prose --check list
    [ "$status" -eq 1 ]
    [[ "$output" == *"docs/plain.md: 0 hits in "*" words are few enough: remove it from list"* && "$output" == *"docs/gone.md does not exist"* ]]
}

@test "tools/prose reads comments, strings, titles and printed lines, and no code" {
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/src" "$tree/tests" "$tree/tools"
    cp tools/prose "$tree/tools/"
    cd "$tree"
    git init -q
    printf '/* Nobody\n * stands */ int anybody; /* meanwhile */\nint f(void) { return g("all the same"); }\n' >src/a.c
    printf '@test "nobody" {\n    stood\n    echo "for ever" # beside\n}\n# once more\n' >tests/a.bats
    printf '"""Nobody.\n\nMeanwhile.\n"""\nstood = "stands"\n' >tools/a.py
    git add .
    [ "$(tools/prose --files src tests tools/a.py | awk '{ print $1, $3 }' | sort)" = "$(printf '%s\n' '3 tools/a.py' '4 src/a.c' '4 tests/a.bats')" ]
    [ "$(tools/prose -v nobody)" = "$(printf '%s\n' 'src/a.c:1: /* Nobody' 'tests/a.bats:1: @test "nobody" {' 'tools/a.py:1: """Nobody.')" ]
    run tools/prose -v no-such-pattern
    [ "$status" -eq 2 ]
}
