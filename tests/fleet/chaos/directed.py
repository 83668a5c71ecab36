"""One holder, one waiter, one fault, looked at closely.

cut-off   The holder's host is cut off in both directions. Its tree has to be gone before the next one holds; how long before is told.
control   The same, and everything on that host that could end the tree is stopped. Nothing can end it then: the overlap that follows
          is what the checker has to find. A run of chaos that finds none here would prove nothing.
"""
import os
import signal
import subprocess
import time

from fleet import freeze, lives, now, send


def wait_for(what, condition, seconds):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"no {what} within {seconds} s")
        time.sleep(0.001)


def event(verdict, name, which, client):
    if not os.path.exists(f"{verdict.work}/{name}.log"):
        return None
    return next((e for e in verdict.read(name) if e[1] == which and e[3] == client), None)


def once(kind, fleet, args, verdict, how, number):
    name = f"{args.scenario}-{how}-{number}"
    here, there = fleet.hosts[:2]
    said = open(f"{args.work}/{name}.said", "ab")
    holder = kind.start(here, how, name, "x", 60000, "holder", stdout=said, stderr=said)
    wait_for("holder", lambda: event(verdict, name, "start", "holder"), 60)
    waiter = kind.start(there, how, name, "x", 1, "waiter", wait=60, stdout=said, stderr=said)
    wait_for("waiter", lambda: fleet.machinery(there), 60)
    tree = fleet.workers(here)
    if args.scenario == "control":
        thaw = freeze(fleet.machinery(here))
    cut = now()
    heal = fleet.isolate(here)
    gone = 0
    while not gone or not waiter_came(verdict, name):
        if not gone and not any(lives(pid) for pid in tree):
            gone = now()
        if waiter_came(verdict, name) and not gone:
            break
        if now() - cut > 120e9:
            raise TimeoutError(f"{name}: the waiter never held; tree {'gone' if gone else 'alive'}")
        time.sleep(0.001)
    came = waiter_came(verdict, name)
    waiter.wait(timeout=60)
    heal()
    if args.scenario == "control":
        thaw()
    if how == "etcdctl":  # what it shows is shown; nothing ends its command
        send(fleet.machinery(here) + fleet.workers(here), signal.SIGKILL)
    try:
        holder.wait(timeout=60)
    except subprocess.TimeoutExpired:
        verdict.wrong(f"{name}: the holder does not end after its host is back")
        send(fleet.machinery(here) + fleet.workers(here), signal.SIGKILL)
    verdict.starts += 2
    if came[1] == "overlap" or not gone:
        verdict.wrong(f"{name}: overlap: the next one came {(came[0] - cut) / 1e9:.2f} s after the cut, and the tree of the first still lived")
    else:
        verdict.lines.append(f"{how}: cut off, tree gone after {(gone - cut) / 1e9:.2f} s, next holds after {(came[0] - cut) / 1e9:.2f} s, "
                             f"{(came[0] - gone) / 1e6:.0f} ms between them")


def waiter_came(verdict, name):
    return event(verdict, name, "start", "waiter") or event(verdict, name, "overlap", "waiter")


def run(kind, fleet, args, verdict):
    hows = ["etcdctl"] if args.client == "etcdctl" else ["lock", "run"] if args.sessions else ["lock"]
    for how in hows:
        for number in range(1, 3 if args.scenario == "cut-off" and how != "etcdctl" else 2):
            once(kind, fleet, args, verdict, how, number)
