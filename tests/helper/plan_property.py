#!/usr/bin/python3
"""Random operations in a sandbox and a commit give the same tree as the operations done directly.

    plan_property.py STRATEGY FIRST-SEED COUNT DIRECTORY      (environment: HOLDFAST)
    plan_property.py ops ROOT SEED N                          what runs inside

Every third sequence is taken back afterwards, and must give the tree of before. Prints a line of JSON; exits 1 when
a tree differs.
"""
import errno, os, random, shutil, stat, sys

HOLDFAST = os.environ.get("HOLDFAST", "holdfast")


def make_tree(root, seed):
    r = random.Random(seed)
    os.makedirs(root)
    dirs = ["."]
    for i in range(6):
        dirs.append(os.path.join(r.choice(dirs), "d%d" % i))
        os.mkdir(os.path.join(root, dirs[-1]))
    for i in range(14):
        path = os.path.join(root, r.choice(dirs), "f%d" % i)
        with open(path, "w") as f:
            f.write("base%d\n" % i * r.randint(1, 50))
        os.chmod(path, r.choice([0o644, 0o600, 0o755, 0o444]))
    os.symlink("f0", os.path.join(root, "sl"))


def walk(root):
    found = []
    for top, dirs, files in os.walk(root):
        found += [os.path.relpath(os.path.join(top, n), root) for n in dirs + files]
    return sorted(found)


def move(a, b):
    try:
        os.rename(a, b)
    except OSError as e:
        if e.errno != errno.EXDEV:
            raise
        if os.path.isdir(b):
            os.rmdir(b)
        shutil.copytree(a, b, symlinks=True)
        shutil.rmtree(a)


def append(path, text):
    with open(path, "a") as f:
        f.write(text)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def operate(root, seed, n):
    r = random.Random(seed)
    os.chdir(root)
    for k in range(n):
        entries = walk(".")
        dirs = ["."] + [p for p in entries if os.path.isdir(p) and not os.path.islink(p)]
        files = [p for p in entries if p not in dirs]
        o, f, d = r.randrange(15), r.choice(files) if files else None, r.choice(dirs)
        y = os.path.join(r.choice(dirs), r.choice(["n%d" % k, "f%d" % r.randrange(14), "d%d" % r.randrange(6)]))
        mode, dir_mode = r.choice([0o600, 0o640, 0o755, 0o444]), r.choice([0o700, 0o755, 0o750])
        plain = f and not os.path.islink(f)
        try:
            if o == 0: write(y, "new%d\n" % k)
            elif o == 1 and plain: append(f, "app%d\n" % k)
            elif o == 2 and f: os.unlink(f)
            elif o == 3: os.mkdir(y)
            elif o == 4 and d != ".": shutil.rmtree(d)
            elif o == 5 and f: move(f, y)
            elif o == 6 and d != ".": move(d, y)
            elif o == 7: os.symlink("t%d" % k, y)
            elif o == 8 and plain: os.chmod(f, mode)
            elif o == 9 and d != ".": os.chmod(d, dir_mode)
            elif o == 10 and plain: os.link(f, y)
            elif o == 11 and d != ".": shutil.rmtree(d); write(d, "was dir\n")
            elif o == 12 and f: os.unlink(f); os.mkdir(f)
            elif o == 13 and d != ".": shutil.rmtree(d); os.mkdir(d); write(d + "/in", "opaque\n")
            elif o == 14 and plain: os.setxattr(f, "user.k%d" % (k % 3), b"v%d" % k)
        except OSError:
            pass


def snapshot(root):
    tree = {}
    for p in walk(root):
        q = os.path.join(root, p)
        s = os.lstat(q)
        if stat.S_ISLNK(s.st_mode):
            tree[p] = ("link", os.readlink(q))
            continue
        attrs = sorted((n, os.getxattr(q, n)) for n in os.listxattr(q) if n.startswith("user."))
        if stat.S_ISDIR(s.st_mode):
            tree[p] = ("dir", stat.S_IMODE(s.st_mode), attrs)
        else:
            with open(q, "rb") as f:
                tree[p] = ("file", stat.S_IMODE(s.st_mode), attrs, f.read())
    return tree


def run(*words):
    import subprocess  # here, as below: what runs inside starts faster without it
    return subprocess.run([HOLDFAST, *words], check=True, capture_output=True, text=True).stdout.strip()


def operate_apart(root, seed, n):
    """In a process of its own, which has another working directory."""
    child = os.fork()
    if child == 0:
        try:
            operate(root, seed, n)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def sequence(base, strategy, seed):
    import subprocess
    target, model = base + "/t", base + "/m"
    make_tree(target, seed)
    make_tree(model, seed)
    before, n = snapshot(target), 3 + seed % 25
    operate_apart(model, seed, n)
    run("plan", "new", "p")
    run("plan", "add", "p", "s", target, "--strategy", strategy)
    if strategy == "overlay":
        run("plan", "enter", "p", "--", sys.executable, "-I", "-S", os.path.abspath(__file__), "ops", target, str(seed), str(n))
    else:
        operate_apart(run("plan", "path", "p", "s"), seed, n)
    if snapshot(target) != before:
        return "the target changed before the commit"
    try:
        run("plan", "commit", "p")
    except subprocess.CalledProcessError as e:
        return "commit refused: " + e.stdout + e.stderr
    got, want = snapshot(target), snapshot(model)
    if got != want:
        return "differs: %r" % [(p, got.get(p), want.get(p)) for p in sorted(set(got) | set(want)) if got.get(p) != want.get(p)][:4]
    if seed % 3 == 0:
        run("plan", "undo", "p")
        if snapshot(target) != before:
            return "the undo differs"
    return None


def main():
    import json, subprocess
    strategy, first, count, base = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    bad = []
    for seed in range(first, first + count):
        subprocess.run(["chmod", "-R", "u+rwx", base], capture_output=True)
        shutil.rmtree(base, ignore_errors=True)
        os.makedirs(base)
        os.environ["HOLDFAST_DIR"] = base + "/state"
        why = sequence(base, strategy, seed)
        if why:
            bad.append((seed, why[:600]))
    print(json.dumps({"strategy": strategy, "first": first, "sequences": count, "different": len(bad), "examples": bad[:3]}))
    return 1 if bad else 0


if sys.argv[1] == "ops":
    operate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    sys.exit(main())
