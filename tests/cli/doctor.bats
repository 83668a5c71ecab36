load helper

@test "doctor: on a sound machine every row has a status; nothing is made" {
    run hf doctor
    [ "$status" -eq 0 ]
    says "does not exist yet"
    for check in kernel proc pidfd pidfs cgroup userns overlay rename reflink inotify; do says " $check "; done
    [ ! -e "$HOLDFAST_DIR" ]
}

@test "doctor: the format that it tells is that of the directory" {
    hf journal emit note text=x
    expect 0 hf doctor
    says "yours alone, format $(cut -d' ' -f2 "$HOLDFAST_DIR/FORMAT")"
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
    [ "$status" -ne 77 ] || skip "seccomp is not available here"
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

@test "doctor: where sandboxes cannot be made, the failing call, the sysctls and the remedy are named" {
    hf journal emit note text=x
    run timeout 20 "$HELPERS/helper-enosys" fsopen -- "$HOLDFAST" doctor --json
    [ "$status" -ne 77 ] || skip "NO SECCOMP FILTERS HERE"
    is_json '.checks[] | select(.check == "overlay") | .status == "absent" and (.found | contains("fsopen") and contains("5.11"))'
    is_json '.checks[] | select(.check == "userns").found | contains("max_user_namespaces=")'
    run timeout 20 "$HELPERS/helper-enosys" seccomp -- "$HOLDFAST" doctor --json
    is_json '.checks[] | select(.check == "rename").status == "absent"'
    if [ "$(id -u)" = 0 ]; then
        run "$HELPERS/helper-userns" --last "$HOLDFAST" --dir "$BATS_TEST_TMPDIR/other" doctor --json
        [ "$status" -ne 77 ] || skip "NO USER NAMESPACES HERE"
        is_json '.checks[] | select(.check == "userns").found | contains("max_user_namespaces=0")'
    fi
    [ -z "$(ls -A "$HOLDFAST_DIR/plans")" ]
    [ -z "$(find /tmp -maxdepth 1 -name 'holdfast-doctor.*' -user "$(id -u)" -newer "$BATS_TEST_TMPDIR" 2>/dev/null)" ]
}

# as_user COMMAND...: as an ordinary user, in a directory of its own ($place), with a copy of the program ($program)
as_user() {
    place=$(mktemp -d)
    program=$place/holdfast
    cp "$HOLDFAST" "$program"
    mkdir "$place/home"
    if [ "$(id -u)" = 0 ]; then
        chown -R 65534:65534 "$place"
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$place")
    else
        as=(env -C "$place")
    fi
}

@test "doctor: a HOME in which nothing can be made is FAIL, with what to do" {
    as_user
    chmod 0500 "$place/home"
    expect 4 timeout 20 "${as[@]}" env -u HOLDFAST_DIR -u XDG_STATE_HOME HOME="$place/home" "$program" doctor
    says "FAIL    directory"
    says "$place/home: Permission denied"
    says "HOLDFAST_DIR"
    expect 4 timeout 20 "${as[@]}" env -u HOLDFAST_DIR -u XDG_STATE_HOME HOME=/nonexistent "$program" doctor --json
    is_json '.exit == 4 and (.checks[] | select(.check == "directory").status == "FAIL")'
    chmod 0700 "$place/home"
    expect 0 timeout 20 "${as[@]}" env -u HOLDFAST_DIR -u XDG_STATE_HOME HOME="$place/home" "$program" doctor
    [ -z "$(ls -A "$place/home")" ]
    rm -rf "$place"
}

@test "doctor: a directory that is there but takes nothing is FAIL" {
    [ "$(id -u)" = 0 ] || skip "only root mounts"
    hf journal emit note text=x
    run unshare --mount --propagation private bash -c \
        'mount --bind "$HOLDFAST_DIR" "$HOLDFAST_DIR" && mount -o remount,bind,ro "$HOLDFAST_DIR" || exit 77; "$HOLDFAST" doctor'
    [ "$status" -ne 77 ] || skip "no mounts here"
    [ "$status" -eq 4 ]
    says "Read-only file system"
}

@test "doctor: a directory of another user in the place of locks/ is FAIL" {
    hf journal emit note text=x
    mkdir -m 755 "$HOLDFAST_DIR/locks"
    expect 4 hf doctor
    says "FAIL    locks"
}

@test "doctor: a damaged clock of tokens is named, before and after it was put away (L2)" {
    expect 0 hf lock run x -- true
    first=$(hf lock run x -- printenv HOLDFAST_TOKEN)
    echo nonsense >"$HOLDFAST_DIR/locks/name/.token"
    expect 1 hf doctor
    says "locks/name/.token"
    rm "$HOLDFAST_DIR/locks/name/x"
    second=$(hf lock run x -- printenv HOLDFAST_TOKEN)
    [ "$second" -gt "$first" ]
    expect 1 hf doctor
    says "locks.name..token."
    expect 0 hf journal query --event record_quarantined --json
    says "locks/name/.token"
}
