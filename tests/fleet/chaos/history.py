"""Scenario `history`: clients take, check and release one lock by single commands, everything is written down, and the history as a whole is
judged (linear.py). The lock's owner is a process of its own on the client's host; a client that did not learn the outcome of an acquire leaves
that owner and begins anew with another one.
"""
import json
import os
import random
import signal
import subprocess
import threading
import time

import linear
from faults import Faults
from fleet import now, read

CLIENTS, LEASE = 6, 60  # more clients at once make undecided histories; the lease outlives every fault


class Actor(threading.Thread):
    def __init__(self, kind, number, history, over):
        super().__init__(daemon=True)
        self.kind, self.host, self.over = kind, kind.fleet.hosts[number % len(kind.fleet.hosts)], over
        self.random, self.history, self.token, self.owner = random.Random(kind.args.seed + number), history, 0, None
        self.odd = []

    def hire(self):
        """A new owner on this host; its pid there."""
        self.dismiss()
        self.owner = subprocess.Popen(self.kind.fleet.enter(self.host) + ["tail", "-f", "/dev/null"])
        while True:  # nsenter forks, and the child has the pid that the host knows
            for pid in read(f"/proc/{self.owner.pid}/task/{self.owner.pid}/children").split():
                known = [line.split() for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("NSpid:")]
                if known and read(f"/proc/{pid}/comm").strip() == "tail":
                    self.pid, self.child = known[0][-1], int(pid)
                    return
            time.sleep(0.005)

    def dismiss(self):
        if self.owner:
            os.kill(self.child, signal.SIGKILL)
            self.owner.wait()
            self.owner = None

    def call(self, op, *words):
        begun = now()
        done = subprocess.run(self.kind.fleet.enter(self.host) + [self.kind.args.holdfast, "-q", "lock", op, "one", *words],
                              env=self.kind.environment(self.host), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        if done.returncode not in (0, 1, 3, 4):
            self.odd.append(f"lock {op}: exit {done.returncode}: {done.stderr.strip()}")
        return begun, now(), done.returncode, done.stdout.strip()

    def note(self, op, call, back, result, token):
        entry = {"op": op, "call": call, "return": back, "result": result}
        if token:
            entry["token"] = token
        self.history.append(entry)

    def acquire(self):
        call, back, status, said = self.call("acquire", "-n", "--pid", self.pid, "--ttl", f"{LEASE}s")
        if status == 0:
            self.token = int(said.split()[-1])
            self.note("acquire", call, back, "ok", self.token)
        elif status == 1:
            self.note("acquire", call, back, "busy", 0)
        else:  # it may hold, now or later, until its owner is dead or its lease over
            self.note("acquire", call, None, "unknown", 0)
            self.note("lose", call, None, "unknown", 0)
            self.hire()

    def check(self):
        call, back, status, _ = self.call("check", "--token", str(self.token))
        if status in (0, 3):
            self.note("check", call, back, "yes" if status == 0 else "no", self.token)

    def release(self):
        call, back, status, _ = self.call("release", "--token", str(self.token))
        if status == 0:
            self.note("release", call, back, "ok", self.token)
        elif status in (1, 3):  # an earlier try without an answer has done it
            self.note("release", call, back, "refused", self.token)
        else:
            self.note("release", call, None, "unknown", self.token)
            return
        self.token = 0

    def run(self):
        try:
            self.hire()
            while not self.over.is_set():
                if not self.token:
                    self.acquire()
                elif self.random.random() < 0.5:
                    self.check()
                else:
                    self.release()
                self.over.wait(self.random.random() * 0.05)
            while self.token:
                self.release()
        except (subprocess.TimeoutExpired, OSError, ValueError) as error:
            self.odd.append(f"{self.host}: {error}")
        finally:
            self.dismiss()


def run(kind, fleet, args, verdict):
    over, history = threading.Event(), []
    faults = Faults(fleet, args.seed, 2, over, kind.clock)
    # Only what leaves the lease alone: members and links, no dead owners. Outages are short against the lease.
    faults.kinds = [k for k in faults.kinds if not k[0].startswith(("process", "clock"))]
    actors = [Actor(kind, i, history, over) for i in range(CLIENTS)]
    for thread in actors + [faults]:
        thread.start()
    time.sleep(args.seconds)
    over.set()
    faults.join(timeout=60)
    if faults.failed:
        verdict.wrong(f"a fault could not be made or undone, so this run is void: {faults.failed}")
    for actor in actors:
        actor.join(timeout=150)
        for odd in actor.odd + (["a client does not end"] if actor.is_alive() else []):
            verdict.wrong(odd)
    answer = linear.judge(history)
    verdict.starts = sum(op["op"] == "acquire" and op["result"] == "ok" for op in history)
    if answer is False:
        verdict.wrong("the history is not linearizable")
    unknown = sum(op["result"] == "unknown" and op["op"] != "lose" for op in history)
    verdict.lines.append(f"{len(history)} operations, {unknown} with unknown outcome, {sum(faults.done.values())} faults: "
                         + {True: "linearizable", False: "NOT linearizable", None: "not decided"}[answer])
    with open(f"{args.work}/history", "w", encoding="utf-8") as file:
        for op in sorted(history, key=lambda op: op["call"]):
            file.write(json.dumps(op) + "\n")
