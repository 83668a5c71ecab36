#!/usr/bin/env bats
# The checker of histories: it accepts what a lock may do and refuses what it may not.
bats_require_minimum_version 1.5.0

history() {
    local op call back result token
    while read -r op call back result token; do
        [ -n "$op" ] || continue
        printf '{"op":"%s","call":%s,"return":%s,"result":"%s"%s}\n' "$op" "$call" "${back/-/null}" "$result" "${token:+,\"token\":$token}"
    done >"$BATS_TEST_TMPDIR/history"
    run python3 "${BATS_TEST_DIRNAME}/chaos/linear.py" "$BATS_TEST_TMPDIR/history"
    echo "$output"
}
accepted() { history; [ "$status" -eq 0 ]; }
refused() { history; [ "$status" -eq 1 ]; }

@test "one after the other is accepted" {
    accepted <<'H'
acquire 1 2 ok 5
acquire 3 4 busy
release 5 6 ok 5
acquire 7 8 ok 6
check 9 10 yes 6
check 11 12 no 5
release 13 14 refused 5
H
}

@test "overlapping calls are accepted in the order that explains them" {
    accepted <<'H'
acquire 1 20 ok 9
acquire 2 5 ok 7
release 6 8 ok 7
acquire 3 7 busy
H
}

@test "L1: two holders are refused" {
    refused <<'H'
acquire 1 2 ok 5
acquire 3 4 ok 6
release 7 8 ok 6
H
}

@test "L2: a token that does not rise is refused" {
    refused <<'H'
acquire 1 2 ok 5
release 3 4 ok 5
acquire 5 6 ok 5
H
    refused <<'H'
acquire 1 2 ok 5
release 3 4 ok 5
acquire 5 6 ok 4
H
}

@test "busy while nobody holds is refused" {
    refused <<'H'
acquire 1 2 ok 5
release 3 4 ok 5
acquire 5 6 busy
H
}

@test "a release that frees nothing, and a check of what was released, are refused" {
    refused <<'H'
acquire 1 2 ok 5
release 3 4 ok 6
H
    refused <<'H'
acquire 1 2 ok 5
release 3 4 ok 5
check 5 6 yes 5
H
}

@test "an unknown outcome may have happened, later or never" {
    accepted <<'H'
acquire 1 - unknown
acquire 3 4 busy
lose 3 - unknown
acquire 5 6 ok 9
H
    accepted <<'H'
acquire 1 - unknown
acquire 3 4 ok 8
H
    # But not before it was called, and not undone by nothing.
    refused <<'H'
acquire 3 4 busy
acquire 5 - unknown
H
    refused <<'H'
acquire 1 2 ok 8
release 3 - unknown 8
acquire 4 5 ok 9
check 6 7 yes 8
H
}

@test "a lost hold explains the next one, and only after it was lost" {
    accepted <<'H'
acquire 1 2 ok 5
lose 2 - unknown 5
acquire 3 4 ok 6
H
    refused <<'H'
acquire 1 2 ok 5
acquire 3 4 ok 6
lose 5 - unknown 5
H
}

@test "a long history of many clients is decided" {
    python3 - "$BATS_TEST_DIRNAME/chaos" <<'P'
import random, sys
sys.path.insert(0, sys.argv[1])
import linear
rng = random.Random(7)
def history(wrong):
    now, token, ops, free_at = 0, 0, [], 0
    for i in range(2000):
        start = free_at + rng.randint(1, 5)
        token += 1
        ops.append({"op": "acquire", "call": start - rng.randint(1, 40), "return": start + rng.randint(1, 3), "result": "ok", "token": token})
        end = start + 10
        ops.append({"op": "release", "call": end - 2, "return": end + rng.randint(1, 30), "result": "ok", "token": token})
        if wrong == i:
            ops.append({"op": "check", "call": end + 31, "return": end + 32, "result": "yes", "token": token})
        free_at = end
    return ops
assert linear.judge(history(None)) is True
assert linear.judge(history(1500)) is False
P
}
