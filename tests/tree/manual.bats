# The manual: each verb and option on its page, and examples that work.
load helper

@test "the manual has each verb on its page with the options that its help shows, and no others, within 80 columns" {
    /usr/bin/python3 -B tests/tree/manual.py "$BUILD/cli/holdfast" docs/man/*.[17]
    # What differs is found, in both directions.
    mkdir "$BATS_TEST_TMPDIR/man"
    cp docs/man/* "$BATS_TEST_TMPDIR/man"
    sed -i '/^\.It Fl Fl slots/s/slots/slits/; s/^\.Op Fl s |/.Op/' "$BATS_TEST_TMPDIR/man/holdfast-lock.1"
    run -1 /usr/bin/python3 -B tests/tree/manual.py "$BUILD/cli/holdfast" "$BATS_TEST_TMPDIR"/man/*
    for words in "--slots is not explained" "no verb has ('', 'slits', True)" "the synopsis of lock run lacks --shared"; do
        [[ "$output" == *"$words"* ]] || { echo "$words"; echo "$output"; return 1; }
    done
}

# Each page by itself, in a state directory of its own.
@test "the examples of the manual work as they stand" {
    repository_with_agent
    for page in "$TOP"/docs/man/*.1; do
        /usr/bin/python3 -B "$TOP/tests/tree/manual.py" --examples "$page" >"$BATS_TEST_TMPDIR/examples.sh"
        export HOLDFAST_DIR="$BATS_TEST_TMPDIR/${page##*/}"
        PATH="$BATS_TEST_TMPDIR/bin:$BUILD/cli:$PATH" HOME="$BATS_TEST_TMPDIR" run timeout 100 bash -ex "$BATS_TEST_TMPDIR/examples.sh" </dev/null
        [ "$status" -eq 0 ] || { echo "${page##*/}: $output"; return 1; }
        git stash -q -u
    done
}
