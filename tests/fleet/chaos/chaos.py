#!/usr/bin/env python3
"""Many clients on simulated hosts take the same locks while members, hosts and links fail. `run` starts it; see there."""
import argparse
import os
import random
import subprocess
import sys
import threading
import time

import directed
import history
from clients import Client, Kind
from faults import Faults
from fleet import Fleet
from judge import Verdict


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleet", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--holdfast")
    parser.add_argument("--witness", required=True)
    parser.add_argument("--clock", required=True)
    parser.add_argument("--client", choices=["holdfast", "etcdctl"], default="holdfast")
    parser.add_argument("--ttl", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--sessions", action="store_true", help="also `run`: two hosts, one name")
    parser.add_argument("scenario", choices=["random", "cut-off", "control", "history"])
    return parser.parse_args()


def crowd(kind, args, over):
    """Six for an exclusive lock, four for two slots, four readers and a writer; two sessions of one name."""
    hosts = kind.fleet.hosts
    crew = []
    if args.client == "etcdctl":
        crew = [("etcdctl", "x", "x")] * 6
    else:
        crew = [("lock", "x", "x")] * 6 + [("lock", "two", "2")] * 4
        crew += [("lock", "rw", "s")] * 3 + [("lock", "rw", "x")]
        crew += [("run", "session", "x")] * 3 if args.sessions else []
    return [Client(kind, f"{name}{i}", hosts[i % len(hosts)], how, name, mode, args.seed + i, over)
            for i, (how, name, mode) in enumerate(crew)]


def settle(kind, fleet, clients, verdict, ttl):
    """All is healed: every client ends, and every host can take every lock again."""
    end = time.monotonic() + 120
    while not fleet.healthy() and time.monotonic() < end:
        time.sleep(0.1)
    for client in clients:
        client.join(timeout=200)
        if client.is_alive() or client.stuck:
            verdict.wrong(client.stuck or f"{client.label}: does not end")
    if kind.args.client == "etcdctl":
        return
    for name in sorted({c.name_of_lock for c in clients}):
        for host in fleet.hosts:
            how, mode = next((c.how, c.mode) for c in clients if c.name_of_lock == name)
            done = kind.start(host, how, name, mode, 1, f"after.{host}", wait=20 + 4 * ttl, stderr=subprocess.PIPE)
            said = done.communicate(timeout=200)[1].decode(errors="replace").strip()
            if done.returncode != 0:
                verdict.wrong(f"{name}: {host} cannot take it after everything is healed: exit {done.returncode}: {said}")


def random_faults(kind, fleet, args, verdict):
    over = threading.Event()
    faults = Faults(fleet, args.seed, args.ttl, over, kind.clock)
    clients = crowd(kind, args, over)
    for thread in clients + [faults]:
        thread.start()
    end = time.monotonic() + args.seconds
    while time.monotonic() < end and not faults.failed:
        time.sleep(0.1)
    over.set()
    faults.join(timeout=60)
    if faults.failed:
        verdict.wrong(f"a fault could not be made or undone, so this run is void: {faults.failed}")
    settle(kind, fleet, clients, verdict, args.ttl)
    calls = {c[0]: c[1:] for client in clients for c in client.calls}
    for name in verdict.names():
        verdict.look_at(name, calls, all(c.mode == "x" for c in clients if c.name_of_lock == name))
    statuses = {}
    for _, _, status in calls.values():
        statuses[status] = statuses.get(status, 0) + 1
    verdict.lines.append("exit statuses: " + ", ".join(f"{s}: {n}" for s, n in sorted(statuses.items())))
    verdict.lines.append(f"{sum(faults.done.values())} faults: " + ", ".join(f"{k} {n}" for k, n in sorted(faults.done.items())))


def main():
    args = arguments()
    os.umask(0)
    os.makedirs(args.work, exist_ok=True)
    fleet = Fleet(args.fleet)
    verdict = Verdict(args.work)
    kind = Kind(fleet, args, args.work)
    print(f"# seed {args.seed}, lease {args.ttl} s, {args.scenario}, {args.client}", flush=True)
    if args.scenario == "random":
        random_faults(kind, fleet, args, verdict)
    elif args.scenario == "history":
        history.run(kind, fleet, args, verdict)
    else:
        directed.run(kind, fleet, args, verdict)
    for line in verdict.lines:
        print(f"# {line}")
    for fault in verdict.faults_found:
        print(f"WRONG {fault}")
    print(f"{verdict.starts} holds, {len(verdict.faults_found)} faults found")
    return 1 if verdict.faults_found else 0


if __name__ == "__main__":
    sys.exit(main())
