"""Clients of the fleet: each takes a lock again and again, on its host, with the witness as the command inside."""
import os
import random
import subprocess
import threading

from fleet import now


class Kind:
    """How a client takes a lock: `holdfast lock run`, `holdfast run`, or `etcdctl lock` to try the harness itself."""

    def __init__(self, fleet, args, work):
        self.fleet, self.args, self.work = fleet, args, work
        # One host's clock can be made wrong (clock.c). The others run the programs and nothing else.
        self.clock = f"{work}/clock"

    def environment(self, host):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST", "ETCD"))}
        state = f"{self.work}/state-{host}"
        env.update(HOLDFAST_DIR=state, HOLDFAST_STORE=self.store(), HOLDFAST_JOURNAL_WAIT="5s", ETCDCTL_API="3")
        if host == self.fleet.hosts[-1]:
            env.update(LD_PRELOAD=self.args.clock, HF_TEST_CLOCK=self.clock)
        return env

    def store(self):
        return f"etcd://{','.join(self.fleet.endpoints())}/chaos?call-timeout={self.args.ttl * 1000 // 3}ms"

    def witness(self, name, mode, ms, client, tree):
        return [self.args.witness, self.work, name, mode, str(ms), client, "1" if tree else "0"]

    def command(self, how, name, mode, ms, client, wait):
        ttl = self.args.ttl
        if how == "etcdctl":
            endpoints = ",".join(f"http://{e}" for e in self.fleet.endpoints())
            return ["etcdctl", f"--endpoints={endpoints}", "lock", f"--ttl={ttl}", name, *self.witness(name, mode, ms, client, False)]
        options = ["--ttl", f"{ttl}s", "-w", f"{wait}s"]
        if how == "run":
            return [self.args.holdfast, "run", name, *options, "--grace", "1s", "--", *self.witness(name, "x", ms, client, True)]
        options += {"x": [], "s": ["-s"]}.get(mode, ["--slots", mode])
        # A reader takes part in the same lock as the writers, with its own kind of hold.
        return [self.args.holdfast, "lock", "run", name, *options, "--", *self.witness(name, mode, ms, client, False)]

    def start(self, host, how, name, mode, ms, client, wait=20, **popen):
        command = self.fleet.enter(host) + self.command(how, name, mode, ms, client, wait)
        return subprocess.Popen(command, env=self.environment(host), stdin=subprocess.DEVNULL, **popen)


class Client(threading.Thread):
    """Until `over` is set. The journal of what it did is in `calls`: (call, return, exit status)."""

    def __init__(self, kind, label, host, how, name, mode, seed, over):
        super().__init__(daemon=True)
        self.kind, self.label, self.host, self.how = kind, label, host, how
        self.name_of_lock, self.mode, self.over = name, mode, over
        self.random = random.Random(seed)
        self.calls, self.stuck = [], None

    def hold(self):
        """Most holds are short; a third is long, up to four times the lease: only those live through faults."""
        if self.random.random() < 0.67:
            return self.random.randint(5, 60)
        return self.random.randint(500, 4000 * self.kind.args.ttl)

    def run(self):
        serial = 0
        while not self.over.is_set():
            serial += 1
            client = f"{self.label}.{serial}"
            call = now()
            with open(f"{self.kind.work}/{self.label}.said", "ab") as said:
                process = self.kind.start(self.host, self.how, self.name_of_lock, self.mode, self.hold(), client, stdout=said, stderr=said)
            try:
                status = process.wait(timeout=180)
            except subprocess.TimeoutExpired:
                self.stuck = f"{client}: no end after 180 s"
                return
            self.calls.append((client, call, now(), status))
            self.over.wait(self.random.random() * 0.05 if status == 0 else 0.2)
