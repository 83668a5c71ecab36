"""What the benches in Python share: running a program, timing it, a row beside its peer, trees of files."""
import os
import shutil
import statistics
import subprocess
import time

GIT = ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
rows = []


def run(*words, **more):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def sh(script, *words):
    run("sh", "-ec", script, "sh", *words)


def timed(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1e6


def row(what, ours, peer, theirs, bar=0):
    us, peer_us = statistics.median(ours), statistics.median(theirs)
    ratio = us / peer_us
    print("  %-44s %11.1f us   %-34s %11.1f us   ratio %7.4f%s" % (what, us, peer, peer_us, ratio,
          "   bar %g%s" % (bar, "" if ratio <= bar else "  MISSED") if bar else ""), flush=True)
    rows.append({"what": what, "us": round(us, 2), "peer": peer, "peer_us": round(peer_us, 2), "ratio": round(ratio, 5), "bar": bar})


def make_tree(root, n):
    for i in range(n):
        directory = "%s/d%d" % (root, i // 50)
        if i % 50 == 0:
            os.makedirs(directory)
        with open("%s/f%d" % (directory, i), "w") as f:
            f.write("line %d\n" % i * 100)


def make_repository(root, n):
    make_tree(root, n)
    run(*GIT, "-C", root, "init", "-q")
    run(*GIT, "-C", root, "add", ".")
    run(*GIT, "-C", root, "commit", "-qm", "all")


def remove(path):
    run("chmod", "-R", "u+rwX", path)
    shutil.rmtree(path)
