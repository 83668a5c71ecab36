"""What the witness wrote, judged: overlaps, tokens, and the history as a whole."""
import glob
import os

import linear


class Verdict:
    def __init__(self, work):
        self.work, self.faults_found, self.lines = work, [], []
        self.starts = self.ends = 0

    def wrong(self, text):
        self.faults_found.append(text)

    def read(self, name):
        events = []
        with open(f"{self.work}/{name}.log", encoding="utf-8") as log:
            for line in log:
                event, token, client, when = line.split()
                events.append((int(when), event, int(token), client))
        return sorted(events)

    def names(self):
        return sorted(os.path.basename(p)[:-4] for p in glob.glob(f"{self.work}/*.log"))

    def look_at(self, name, calls, exclusive):
        """`calls`: client -> (call, return, exit status) of those that returned."""
        events = self.read(name)
        starts = [e for e in events if e[1] == "start"]
        ends = {e[3]: e for e in events if e[1] == "end"}
        self.starts += len(starts)
        self.ends += len(ends)
        for when, event, token, client in events:
            if event in ("overlap", "regress"):
                self.wrong(f"{name}: {event}: {client} with token {token} at {when}")
        tokens = [e[2] for e in starts]
        if len(set(tokens)) != len(tokens):
            self.wrong(f"{name}: a token was given twice")
        if 0 in tokens:
            self.wrong(f"{name}: a holder without a token")
        if exclusive:
            self.linearize(name, starts, ends, calls)

    def linearize(self, name, starts, ends, calls):
        """The acquire ends before the command starts; the release begins after it has ended. A hold without an end was lost."""
        history = []
        for when, _, token, client in starts:
            call, back, _ = calls.get(client, (when, None, None))
            history.append({"op": "acquire", "call": min(call, when), "return": when, "result": "ok", "token": token})
            if client in ends and back:
                history.append({"op": "release", "call": ends[client][0], "return": back, "result": "ok", "token": token})
            else:
                history.append({"op": "lose", "call": when, "return": None, "result": "unknown", "token": token})
        answer = linear.judge(history)
        if answer is False:
            self.wrong(f"{name}: the history of {len(history)} operations is not linearizable")
        self.lines.append(f"{name}: {len(starts)} holds, {len(starts) - len(ends)} of them cut short; history of {len(history)} operations "
                          + {True: "linearizable", False: "NOT linearizable", None: "not decided"}[answer])
