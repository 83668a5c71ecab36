# The demo and the tour, on a machine that has git, what tools/deps installs, the essential programs of Debian and nothing else.
load helper

# The programs of such a machine: no ps, no pgrep, no jq.
only() {
    mkdir "$BATS_TEST_TMPDIR/bin"
    for program in awk bash basename cat chmod cp cut date dirname env find flock fold git grep head id install kill ln ls mkdir mktemp mv \
        readlink rm rmdir sed seq setsid sh sleep sort stat tail tar tee touch tr true uname uniq unshare wc xargs; do
        ln -s "$(type -P "$program")" "$BATS_TEST_TMPDIR/bin/$program"
    done
}

# shown SCRIPT: it ends, well, and no program was missing.
shown() {
    only
    # Longer than the waits in it, each of which has its own limit.
    timeout --kill-after=5 120 env -u HOLDFAST_JOURNAL_WAIT PATH="$BATS_TEST_TMPDIR/bin" "$EXAMPLES/$1" >shown 2>&1 </dev/null 3>&- || { cat shown; return 1; }
    if grep -E 'not found|still not so' shown; then return 1; fi
}

@test "the demo needs git and the programs of a fresh machine alone, and ends" {
    shown demo
    # Where no overlay can be made it reports that and ends.
    grep -q "No overlay can be made" shown || [ "$(grep -c 'check passes' shown)" -ge 3 ]
    if grep -E 'CHECK FAILS|ALIVE' shown; then return 1; fi
}

@test "the tour needs the programs of a fresh machine alone, and ends" {
    shown tour
    grep -q "What this machine offers" shown
}
