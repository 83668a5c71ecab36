"""Faults at random, up to three at once, each of which ends after a while. Biased to what tells most: cuts of whole hosts."""
import os
import random
import signal
import threading
import time

from fleet import freeze, lives, send


class Faults(threading.Thread):
    def __init__(self, fleet, seed, ttl, over, clock):
        super().__init__(daemon=True)
        self.clock = clock
        self.fleet, self.random, self.ttl, self.over = fleet, random.Random(seed), ttl, over
        self.done, self.busy, self.failed = {}, set(), None
        self.lock = threading.Lock()
        # Name, weight, what it touches (one fault at a time for each).
        self.kinds = [
            ("host cut off", 4, self.host_isolated), ("link down", 2, self.host_link), ("host deaf", 2, self.host_deaf),
            ("host mute", 2, self.host_mute), ("host cut from one member", 2, self.host_member),
            ("process killed", 3, self.process_killed), ("process stopped", 3, self.process_stopped),
            ("member killed", 2, self.member_killed), ("member stopped", 2, self.member_stopped),
            ("member cut off", 2, self.member_isolated), ("members cut one way", 1, self.members_one_way),
            ("leader killed", 1, self.leader_killed), ("leader stopped", 2, self.leader_stopped),
            ("leader cut off", 1, self.leader_isolated), ("quorum lost", 1, self.quorum_lost),
            ("clock stopped", 2, self.clock_stopped), ("clock slow", 2, self.clock_slow),
        ]

    def run(self):
        running = []
        try:
            while not self.over.is_set():
                running = [t for t in running if t.is_alive()]
                if len(running) < 3:
                    name, _, make = self.random.choices(self.kinds, [k[1] for k in self.kinds])[0]
                    begun = make()
                    if begun:
                        touched, undo = begun
                        self.done[name] = self.done.get(name, 0) + 1
                        lasts = self.random.choice([0.3, 1, self.ttl, 2 * self.ttl + 1])
                        running.append(threading.Thread(target=self.end_later, args=(touched, undo, lasts), daemon=True))
                        running[-1].start()
                self.over.wait(self.random.random())
            for thread in running:
                thread.join()
        except Exception as error:  # a fault that was not made proves nothing: the run is void
            self.failed = error

    def end_later(self, touched, undo, lasts):
        self.over.wait(lasts)
        try:
            undo()
        except Exception as error:
            self.failed = error
        with self.lock:
            self.busy -= set(touched)

    def take(self, *nodes):
        with self.lock:
            if self.busy & set(nodes):
                return False
            self.busy |= set(nodes)
            return True

    def some(self, nodes):
        return self.random.choice(nodes)

    # -- hosts

    def on_host(self, make):
        host = self.some(self.fleet.hosts)
        return ([host], make(host)) if self.take(host) else None

    def host_isolated(self):
        return self.on_host(self.fleet.isolate)

    def host_link(self):
        return self.on_host(self.fleet.link_down)

    def host_deaf(self):
        def make(host):
            undo = [self.fleet.drop(m, host) for m in self.fleet.members]
            return lambda: [u() for u in undo]
        return self.on_host(make)

    def host_mute(self):
        return self.on_host(lambda host: self.fleet.drop(host, None))

    def host_member(self):
        def make(host):
            member = self.some(self.fleet.members)
            undo = [self.fleet.drop(host, member), self.fleet.drop(member, host)]
            return lambda: [u() for u in undo]
        return self.on_host(make)

    def process_killed(self):
        def make(host):
            pids = self.fleet.machinery(host) + self.fleet.workers(host)
            send(self.random.sample(pids, min(1, len(pids))), signal.SIGKILL)
            return lambda: None
        return self.on_host(make)

    def process_stopped(self):
        """One process that holds or renews: the others of its session have to end the command in time."""
        def make(host):
            pids = self.fleet.machinery(host)
            return freeze(self.random.sample(pids, min(1, len(pids))))
        return self.on_host(make)

    # -- members

    def on_member(self, member, make):
        return ([member], make(member)) if self.take(member) else None

    def kill(self, member):
        self.fleet.signal(member, signal.SIGKILL)

        def undo():
            old = self.fleet.pid(member)
            while lives(old):
                time.sleep(0.01)
            self.fleet.restart(member)
            while self.fleet.pid(member) == old:
                time.sleep(0.01)
        return undo

    def stop(self, member):
        self.fleet.signal(member, signal.SIGSTOP)
        return lambda: self.fleet.signal(member, signal.SIGCONT)

    def member_killed(self):
        return self.on_member(self.some(self.fleet.members), self.kill)

    def member_stopped(self):
        return self.on_member(self.some(self.fleet.members), self.stop)

    def member_isolated(self):
        return self.on_member(self.some(self.fleet.members), self.fleet.isolate)

    def members_one_way(self):
        a, b = self.random.sample(self.fleet.members, 2)
        return ([a, b], self.fleet.drop(a, b)) if self.take(a, b) else None

    def leader_killed(self):
        return self.on_member(self.fleet.leader(), self.kill)

    def leader_stopped(self):
        return self.on_member(self.fleet.leader(), self.stop)

    def leader_isolated(self):
        return self.on_member(self.fleet.leader(), self.fleet.isolate)

    def quorum_lost(self):
        pair = self.random.sample(self.fleet.members, 2)
        if not self.take(*pair):
            return None
        undo = [self.stop(m) for m in pair]
        return pair, lambda: [u() for u in undo]

    # -- the clock of one host: up to what the margin of a lease answers for, so that a second holder is still a fault. What comes after
    # that is for the token to decide, and for clock.bats to prove.

    def clock_wrong(self, text):
        if not self.take(self.clock):
            return None
        with open(f"{self.clock}.new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(f"{self.clock}.new", self.clock)
        return [self.clock], lambda: os.unlink(self.clock)

    def clock_stopped(self):
        """Until it is behind by four fifths of the margin."""
        margin = max(0.1 * self.ttl, min(0.5, 0.25 * self.ttl))
        return self.clock_wrong(f"0 {int(800 * margin)}\n")

    def clock_slow(self):
        return self.clock_wrong("92\n")
