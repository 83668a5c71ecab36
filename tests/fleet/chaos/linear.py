#!/usr/bin/env python3
"""Is a recorded history of one lock linearizable?  linear.py FILE...: exit 0 yes, 1 no, 3 not decided within the limit of steps.

A history is a list of operations, as JSON lines:

    {"op": "acquire", "call": 10, "return": 20, "result": "ok", "token": 7}
    {"op": "acquire", "call": 10, "return": 20, "result": "busy"}
    {"op": "release", "call": 30, "return": 40, "result": "ok", "token": 7}
    {"op": "check",   "call": 30, "return": 40, "result": "yes", "token": 7}
    {"op": "lose",    "call": 30, "return": null, "result": "unknown", "token": 7}

"name" separates locks. `return` null or result "unknown": the caller never learned the outcome; the operation takes effect at any
moment after its call, or never. An acquire without a known token takes some token that nobody else sees. "lose" is the end of a hold
that nobody asked for: an expired lease, a dead owner.

The model is (token that holds, highest token ever). The search is that of Wing and Gong with Lowe's memory: linearize any operation
that was called before every other open one returned, and never visit the same set of operations in the same state twice.
"""
import json
import sys

FREE = 0
HIDDEN = -1  # holds, with a token that no caller has seen


def effects(op, state):
    """The states that this operation may lead to; none: it cannot take effect here."""
    holder, highest = state
    kind, result, token = op["op"], op["result"], op.get("token")
    if kind == "acquire":
        if result == "busy":
            return [state] if holder != FREE else []
        if holder != FREE:
            return []
        if token is None:
            return [(HIDDEN, highest)]
        return [(token, token)] if token > highest else []
    if kind == "check":
        return [state] if (holder == token) == (result == "yes") else []
    if kind == "release" and result == "refused":
        return [state] if holder != token else []
    if kind in ("release", "lose"):
        if token is None:
            return [(FREE, highest)] if holder == HIDDEN else []
        return [(FREE, highest)] if holder == token else []
    raise ValueError(f"no such operation: {op}")


def is_open(op):
    return op["result"] == "unknown" or op["return"] is None


def judge(history, limit=2_000_000):
    """True, False, or None when `limit` steps did not decide."""
    ops = sorted(history, key=lambda op: op["call"])
    returns = [float("inf") if is_open(op) else op["return"] for op in ops]
    must = sum(1 << i for i, op in enumerate(ops) if not is_open(op))
    seen = set()
    stack = [(0, (FREE, 0))]
    steps = 0
    while stack:
        done, state = stack.pop()
        if done & must == must:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        steps += 1
        if steps > limit:
            return None
        first_return = float("inf")  # what has returned was before everything that was called later
        i = (~done & (done + 1)).bit_length() - 1
        candidates = []
        while i < len(ops) and ops[i]["call"] <= first_return:
            if not done >> i & 1:
                first_return = min(first_return, returns[i])
                candidates.append(i)
            i += 1
        # Last in, first out: the known outcomes in the order of their return are tried first, the open ones last.
        for i in sorted(candidates, key=lambda i: -returns[i]):
            if ops[i]["call"] <= first_return:
                stack += [(done | 1 << i, after) for after in effects(ops[i], state)]
    return False


def by_name(history):
    names = {}
    for op in history:
        names.setdefault(op.get("name", ""), []).append(op)
    return names


def main(paths):
    worst = 0
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            history = [json.loads(line) for line in lines if line.strip()]
        for name, ops in sorted(by_name(history).items()):
            answer = judge(ops)
            word = {True: "linearizable", False: "NOT linearizable", None: "not decided"}[answer]
            print(f"{path}: {name or 'history'}: {len(ops)} operations, {word}")
            worst = max(worst, {True: 0, False: 1, None: 3}[answer])
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
