#!/usr/bin/env python3
"""Random interleavings of a user's commits, a user's edits and the landings of agents, against a model.

    land_property.py SEED STEPS DIRECTORY      with HOLDFAST set; exit 0: the model holds

The model. A run that exits 0 has its file on the branch; any other has not, and its work is kept. Every commit of the branch passes
the verifier. Every commit of the user is part of the branch. What the user has edited and not committed is in the work tree, byte by
byte, and nothing else differs from the branch. The repository is whole.

The verifier allows three files below x/ that say "slot". Each agent that makes one passes alone; of four the last to land is refused.
"""
import os
import random
import subprocess
import sys
import time

HOLDFAST = os.environ["HOLDFAST"]
VERIFY = 'grep -qx ok check && [ "$(cat x/* 2>/dev/null | grep -cx slot)" -le 3 ]'
LIMIT = 120


def git(*words, check=True):
    return subprocess.run(("git",) + words, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.rstrip("\n")


def git_until(*words):
    """As a user who tries again when a landing has the index for a moment."""
    end = time.monotonic() + LIMIT
    while True:
        done = subprocess.run(("git",) + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 0:
            return
        if time.monotonic() > end:
            raise SystemExit("git %s: %s" % (" ".join(words), done.stdout))
        time.sleep(0.02)


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Model:
    def __init__(self, seed, desk):
        self.random = random.Random(seed)
        self.desk = desk
        self.agents = {}   # name: (process, kind)
        self.waiting = []  # names of agents that are not let go yet
        self.edits = {}    # path: text that the user has not committed
        self.commits = []
        self.count = 0

    def start_agent(self):
        self.count += 1
        name = "agent%d" % self.count
        kind = self.random.choice(["file", "file", "slot", "slot", "shared", "breaks", "fails", "commits"])
        script = {
            "file": 'mkdir -p m; echo 1 >m/$N',
            "slot": 'mkdir -p m x; echo 1 >m/$N; echo slot >x/$N',
            "shared": 'mkdir -p m; echo 1 >m/$N; echo $N >shared',
            "breaks": 'mkdir -p m; echo 1 >m/$N; echo bad >check',
            "fails": 'mkdir -p m; echo 1 >m/$N; exit 3',
            "commits": 'mkdir -p m; echo 1 >m/$N; git add m/$N; git commit -qm $N; echo 2 >>m/$N; git commit -qam again',
        }[kind]
        go = os.path.join(self.desk, "go-" + name)
        script = 'N=%s; %s; touch "%s.in"; until [ -e "%s" ]; do sleep 0.02; done' % (name, script.replace("; exit 3", ""), go, go) + (
            "; exit 3" if kind == "fails" else "")
        with open(os.path.join(self.desk, name + ".out"), "w", encoding="utf-8") as out:
            process = subprocess.Popen([HOLDFAST, "run", name, "--in", ".", "--verify", VERIFY, "--", "sh", "-c", script],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.agents[name] = (process, kind)
        self.waiting.append(name)

    def let_go(self):
        if self.waiting:
            name = self.waiting.pop(self.random.randrange(len(self.waiting)))
            write(os.path.join(self.desk, "go-" + name), "")

    def user_commits(self):
        path = "u/%d" % self.random.randrange(4)
        if path in self.edits:
            del self.edits[path]
        write(path, "committed %d\n" % self.random.randrange(10**9))
        git_until("add", path)
        git_until("commit", "-q", "-m", "by the user", "--", path)
        self.commits.append(git("rev-parse", "HEAD"))

    def user_edits(self):
        path = self.random.choice(["shared", "u/0", "u/1", "mine"])
        self.edits[path] = "edited %d\n" % self.random.randrange(10**9)
        write(path, self.edits[path])

    def step(self):
        self.random.choice([self.start_agent, self.start_agent, self.let_go, self.let_go, self.user_commits, self.user_edits])()

    def finish(self):
        while self.waiting:
            self.let_go()
        for name, (process, _kind) in self.agents.items():
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                raise SystemExit("%s does not end" % name) from None

    def said(self, name):
        with open(os.path.join(self.desk, name + ".out"), encoding="utf-8") as out:
            return out.read()

    def check(self):
        wrong = []
        files = set(git("ls-tree", "-r", "--name-only", "main").split("\n"))
        candidates = git("for-each-ref", "--format=%(refname)", "refs/holdfast")
        plans = subprocess.run([HOLDFAST, "-q", "plan", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, (process, kind) in self.agents.items():
            landed = "m/" + name in files
            kept = ("refs/holdfast/" + name) in candidates.split("\n") or ("run:" + name) in plans.split()
            if landed != (process.returncode == 0):
                wrong.append("%s (%s): exit %d, and landed is %s" % (name, kind, process.returncode, landed))
            if not landed and not kept:
                wrong.append("%s (%s): its work is lost" % (name, kind))
            if kind in ("breaks", "fails") and landed:
                wrong.append("%s (%s) has landed" % (name, kind))
            if kind in ("file", "commits") and not landed:
                wrong.append("%s (%s) has not landed" % (name, kind))
        for commit in git("rev-list", "main").split("\n"):
            at = os.path.join(self.desk, "at")
            subprocess.run(["rm", "-rf", at], check=True)
            os.mkdir(at)
            subprocess.run('git archive "%s" | tar -x -C "%s"' % (commit, at), shell=True, check=True)
            if subprocess.run(["sh", "-c", VERIFY], cwd=at, check=False).returncode != 0:
                wrong.append("%s is not green" % commit)
        for commit in self.commits:
            if subprocess.run(["git", "merge-base", "--is-ancestor", commit, "main"], check=False).returncode != 0:
                wrong.append("the user's commit %s is lost" % commit)
        for path, text in self.edits.items():
            if open(path, encoding="utf-8").read() != text:
                wrong.append("the user's edit of %s is lost" % path)
        dirty = {row[3:] for row in git("status", "--porcelain", "-uall").split("\n") if row}
        dirty = {path.strip() for path in dirty}
        if dirty != set(self.edits):
            wrong.append("not clean: %s, edited: %s" % (sorted(dirty), sorted(self.edits)))
        if subprocess.run(["git", "fsck", "--strict", "--no-dangling"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            wrong.append("fsck")
        return wrong


def main():
    seed, steps, desk = int(sys.argv[1]), int(sys.argv[2]), os.path.abspath(sys.argv[3])
    repository = os.path.join(desk, "repo")
    os.environ.update(HOLDFAST_DIR=os.path.join(desk, "state"), GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    git("init", "-q", "-b", "main", repository)
    os.chdir(repository)
    git("config", "user.name", "U")
    git("config", "user.email", "u@example.org")
    for path, text in (("check", "ok\n"), ("shared", "1\n"), ("u/0", "0\n"), ("u/1", "0\n"), ("u/2", "0\n"), ("u/3", "0\n"), ("mine", "0\n")):
        write(path, text)
    git("add", "-A")
    git("commit", "-q", "-m", "base")
    model = Model(seed, desk)
    for _ in range(steps):
        model.step()
    model.finish()
    wrong = model.check()
    for line in wrong:
        print("seed %d: %s" % (seed, line))
    for name in model.agents if wrong else ():
        print("%s said: %s" % (name, model.said(name)))
    kinds = [kind for _process, kind in model.agents.values()]
    print("seed %d: %d agents (%s), %d commits and %d edits of the user, %d landed" % (
        seed, len(kinds), " ".join(sorted(kinds)), len(model.commits), len(model.edits),
        sum(process.returncode == 0 for process, _kind in model.agents.values())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
