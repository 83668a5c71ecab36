#!/usr/bin/env bats
# Random interleavings of a user's commits, a user's edits and the landings of agents, against a model (tests/helper/land_property.py).
load ../helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s HOME="$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    mkdir probe
    hf -q plan new probe
    hf plan add probe p "$PWD/probe" --strategy overlay >/dev/null 2>&1 || skip "NO OVERLAY HERE"
    hf -q plan rm probe --discard
}

teardown() { chmod -R u+rwX "$BATS_TEST_TMPDIR" || true; }

# holds SEED STEPS
holds() {
    mkdir "seed$1"
    timeout --kill-after=5 400 /usr/bin/python3 "$BATS_TEST_DIRNAME/../../helper/land_property.py" "$1" "$2" "seed$1" || return 1
    chmod -R u+rwX "seed$1" && rm -rf "seed$1"
}

@test "L14: users who commit and edit while agents land: exit 0 is on the branch, nothing else is, no work and no edit is lost, every commit is green" {
    holds 4 10
    if [ -n "${HF_LONG:-}" ]; then
        for seed in $(seq 1 40); do holds "$((RANDOM * 100 + seed))" 20; done
    fi
}
