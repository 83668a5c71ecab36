load helper

@test "doctor: on a sound machine every row has a status; nothing is made" {
    run hf doctor
    [ "$status" -eq 0 ]
    says "not there yet"
    for check in kernel proc pidfd pidfs cgroup userns overlay reflink inotify; do says " $check "; done
    [ ! -e "$HOLDFAST_DIR" ]
}

@test "doctor --json: versioned, each check with status and what it found" {
    hf journal emit note text=x
    expect 0 hf doctor --json
    is_json '.v == 1 and .exit == 0 and (.checks | length >= 12) and
             (.checks | all((.status | IN("ok", "absent", "warn", "FAIL")) and (.found | length > 0)))'
    is_json '.checks[] | select(.check == "journal").found | startswith("1 record(s), 0 problem(s)")'
}

@test "doctor: what is missing says what is used instead" {
    [ -x "$HELPERS/helper-enosys" ] || skip "no seccomp helper"
    run timeout 20 "$HELPERS/helper-enosys" pidfd_open -- "$HOLDFAST" doctor
    [ "$status" -ne 77 ] || skip "seccomp is not to be had here"
    says "signals are refused"
    run timeout 20 "$HELPERS/helper-enosys" pidfd_open -- "$HOLDFAST" doctor --json
    is_json '.checks[] | select(.check == "pidfd") | .status == "absent" and (.instead | length > 0)'
}

@test "doctor: a refused directory is exit 3 and FAIL, the rest is still checked" {
    mkdir -m 755 "$HOLDFAST_DIR"
    expect 3 hf doctor
    says "FAIL"
    says "kernel"
}

@test "doctor: a damaged journal is a warning with exit 1" {
    hf journal emit note text=one
    hf journal emit note text=two
    sed -i 's/one/One/' "$HOLDFAST_DIR/journal/events.jsonl"
    expect 1 hf doctor
    says "journal verify"
}

@test "NO_COLOR and pipes: no escape codes" {
    expect 0 hf doctor
    [[ "$output" != *$'\e'* ]]
}
