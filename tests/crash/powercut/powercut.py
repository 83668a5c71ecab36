#!/usr/bin/python3
"""Power cuts during a commit: every state that the disk could have been left in is recovered.

    powercut.py FS MUTANT NOISE EXTRA      (environment: HOLDFAST, HELPERS, W: a directory on tmpfs)

A plan with changed, new and deleted files is committed on a real file system whose disk is recorded.
At each flush the disk is made anew from everything that was flushed before and none, all, or a random half
of the writes since, in random order; it is mounted, `holdfast plan recover` is run, and the target
must be all old or all new; all new once the commit was acknowledged. The plan must be known and say which. Prints one
line of JSON.

MUTANT "use": no commit, but a command that writes in a copy. A copy that is neither as before nor as the command left it
must not be committed, since it may be torn; once the command's end was told it is as that left it.
"use-unmarked": the same without the mark that says that it is in use, which must be found.

FS "ext4+ext4": the state directory and the target are on two file systems, each on its half of the disk.
"""
import json, os, random, struct, subprocess, sys, time

FS, MUTANT, NOISE, EXTRA = sys.argv[1], sys.argv[2], sys.argv[3] == "1", int(sys.argv[4])
W, HOLDFAST, HELPERS = os.environ["W"], os.environ["HOLDFAST"], os.environ["HELPERS"]
MNT, REC, IMG, STABLE, LOG = W + "/m", W + "/rec", W + "/img", W + "/stable", W + "/log"
SIZES = {"ext4": 16, "btrfs": 120, "xfs": 310}
MKFS = {"ext4": ["mkfs.ext4", "-q", "-J", "size=4"], "btrfs": ["mkfs.btrfs", "-q"], "xfs": ["mkfs.xfs", "-q"]}
KINDS = FS.split("+")  # one, or two of the same
SIZE = SIZES[KINDS[0]] << 20
ENV = dict(os.environ, HOLDFAST_DIR=MNT + "/state")
seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
random.seed(seed)


# After a power cut it is another boot: for these commands the kernel's boot id is a file of ours.
BOOT = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', W + "/boot"]


def new_boot():
    with open(W + "/boot", "w") as f:
        f.write("%08x-0000-4000-8000-%012x\n" % (random.getrandbits(32), random.getrandbits(48)))


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout.strip()


# What is mounted now, and its device. Each boot may give other devices: a target is then known by its path and inode.
PLACES = [MNT, MNT + "/t"][:len(KINDS)]
mounted = []


def attach(path, part):
    """Any device that is free. One that was given up is not, as long as some mount namespace has a copy of its mount."""
    for attempt in range(600):
        loop = run("losetup", "-f")
        if not os.path.exists(loop):
            run("mknod", loop, "b", "7", loop[len("/dev/loop"):])
        words = ["losetup", "-o", str(part * SIZE), "--sizelimit", str(SIZE), loop, path]
        if subprocess.run(words, capture_output=True).returncode == 0:
            break
        time.sleep(0.05)
    else:
        run(*words)
    # The device keeps in memory what it read of the image before, if anything had it open when that was taken away.
    run("blockdev", "--flushbufs", loop)
    return loop


def loop_mount(path):
    """Mounts all of it; False when one cannot be."""
    for part, place in enumerate(PLACES):
        loop = attach(path, part)
        if part:
            os.makedirs(place, exist_ok=True)
        # A slow machine must not commit what the commit has not synced.
        words = ["mount", *(["-o", "commit=300"] if KINDS[part] == "ext4" else []), loop, place]
        if subprocess.run(words, capture_output=True).returncode:
            run("losetup", "-d", loop)
            loop_umount()
            return False
        mounted.append((loop, place))
    return True


def umount(path):
    """What looks at every device or mount of the machine may have it open for a moment."""
    for _ in range(300):
        if subprocess.run(["umount", path], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", path)


def loop_umount():
    while mounted:
        loop, place = mounted.pop()
        umount(place)
        run("losetup", "-d", loop)


def snapshot(root):
    tree = {}
    for top, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(top, name)
            shown = os.path.relpath(path, root)
            if os.path.islink(path):
                tree[shown] = os.readlink(path)
            elif os.path.isdir(path):
                tree[shown] = "dir %o" % (os.lstat(path).st_mode & 0o7777)
            else:
                with open(path, "rb") as f:
                    tree[shown] = f.read()
    return tree


CHANGE = """
set -e; cd "$1"
for i in 0 1 2 3 4 5; do head -c 6000 /dev/zero | tr '\\0' n >d$((i%2))/f$i; done
head -c 6000 /dev/zero | tr '\\0' n >d1/new
mkdir whole whole/sub; echo whole >whole/sub/f
rm d0/gone; rm -r tree; rm d1/kind; mkdir d1/kind; echo k >d1/kind/f; chmod 700 d0
"""


# Some of its files are on disk before it ends, as with every program that syncs some of what it writes.
USE = """
set -e; cd "$1"; [ "$3" = use ] || rm ../used
for i in 0 1 2 3 4 5; do
    head -c 6000 /dev/zero | tr '\\0' n | dd of=d$((i%2))/f$i conv=notrunc 2>/dev/null
    [ $((i%3)) -ne 0 ] || sync d$((i%2))/f$i
    echo "$i" >>"$2"; sync "$2"
done
"""
COPY = MNT + "/state/plans/p/s/s/c"


def lay_out():
    os.makedirs(MNT + "/t/d0")
    os.makedirs(MNT + "/t/d1")
    os.makedirs(MNT + "/t/tree/deep")
    for i in range(6):
        open(MNT + "/t/d%d/f%d" % (i % 2, i), "wb").write(b"o" * 6000)
    for path in ("d0/gone", "tree/deep/f", "d1/kind"):
        open(MNT + "/t/" + path, "wb").write(b"o" * 3000)
    os.mkdir(MNT + "/state", 0o700)
    run(HOLDFAST, "plan", "new", "p", env=ENV)
    run(HOLDFAST, "plan", "add", "p", "s", MNT + "/t", "--strategy", "copy" if MUTANT.startswith("use") else "overlay", env=ENV)
    if MUTANT.startswith("use"):
        return snapshot(COPY), None
    run(HOLDFAST, "plan", "enter", "p", "--", "sh", "-c", CHANGE, "sh", MNT + "/t", env=ENV)
    old = snapshot(MNT + "/t")
    run("cp", "-a", MNT + "/t", W + "/model")
    run("sh", "-c", CHANGE, "sh", W + "/model")
    new = snapshot(W + "/model")
    run("rm", "-rf", W + "/model")
    assert old != new
    return old, new


def record():
    for part, kind in enumerate(KINDS):
        run("truncate", "-s", str(SIZE), W + "/part")
        run(*MKFS[kind], W + "/part")
        run("dd", "if=" + W + "/part", "of=" + IMG, "bs=1M", "conv=sparse", "seek=%d" % (part * SIZE >> 20))
        os.unlink(W + "/part")
    run("truncate", "-s", str(len(KINDS) * SIZE), IMG)
    assert loop_mount(IMG)
    old, new = lay_out()
    loop_umount()
    run("cp", "--sparse=always", IMG, STABLE)
    run(HELPERS + "/helper-recorder", REC, IMG, LOG)
    assert loop_mount(REC + "/disk")
    new_boot()
    if MUTANT.startswith("use"):
        return use(old)
    # Entering and settling write records as well, which the commit finds and no sync of theirs has carried.
    run(*BOOT, HOLDFAST, "plan", "enter", "p", "--", "true", env=ENV)
    # What is to land is dirty in memory, as after a sandbox that nobody has settled.
    for i in range(6):
        path = MNT + "/state/plans/p/s/s/u/d%d/f%d" % (i % 2, i)
        os.unlink(path)  # not truncated: ext4 flushes what is written after that
        with open(path, "xb") as f:
            f.write(b"n" * 6000)
    noise = MNT + "/noise" if NOISE else "-"
    out = run(*BOOT, HELPERS + "/helper-powercut-commit", MNT + "/state", "p", noise, MUTANT)
    acknowledged = os.stat(LOG).st_size
    for _ in range(3 if NOISE else 0):
        with open(MNT + "/noise", "ab") as f:
            f.write(b"after\n")
            f.flush()
            os.fsync(f.fileno())
    assert snapshot(MNT + "/t") == new, "the commit itself is wrong"
    loop_umount()
    umount(REC)
    return old, new, acknowledged, out


def use(old):
    run(*BOOT, HOLDFAST, "plan", "enter", "p", "--", "sh", "-c", USE, "sh", COPY, MNT + "/noise", MUTANT, env=ENV)
    acknowledged = os.stat(LOG).st_size
    run("sync", "-f", MNT)
    new = snapshot(COPY)
    assert new != old
    loop_umount()
    umount(REC)
    return old, new, acknowledged, "used"


def judge_use(acknowledged, old, new):
    tree, before = snapshot(COPY), snapshot(MNT + "/t")
    commit = subprocess.run([*BOOT, HOLDFAST, "plan", "commit", "p"], env=ENV, capture_output=True, text=True)
    torn = commit.returncode != 0 and "torn" in commit.stderr
    if torn and snapshot(MNT + "/t") != before:
        return "mixed: refused, and committed"
    # That the mark is gone is not synced: a copy may count as torn that is not.
    if acknowledged and tree != new:
        return "lost after the acknowledgement: " + commit.stderr
    if tree not in (old, new):
        return "torn" if torn else "mixed " + commit.stderr
    return "new" if tree == new else "old"


def read_log():
    data, at, records = open(LOG, "rb").read(), 0, []
    while at + 24 <= len(data):
        kind, offset, length = struct.unpack_from("QQQ", data, at)
        at += 24
        records.append((chr(kind), offset, data[at:at + length] if kind == ord("W") else b"", at))
        at += length if kind == ord("W") else 0
    return records


def write_all(path, writes):
    with open(path, "r+b") as f:
        for _, offset, data, _ in writes:
            f.seek(offset)
            f.write(data)


# What the record of the plan may say. Torn: power failed before what ended the sandbox's use was on disk.
STATES = {"old": ("ACTIVE", "ERRORED"), "new": ("COMMITTED",)}


def judge(writes, acknowledged, old, new):
    # A file of its own for each image: a file system that is still in some namespace writes into its own to the end.
    if os.path.exists(W + "/try"):
        os.unlink(W + "/try")
    run("cp", "--sparse=auto", STABLE, W + "/try")  # only what is not a hole
    write_all(W + "/try", writes)
    if not loop_mount(W + "/try"):
        return "unmountable"
    try:
        new_boot()
        if MUTANT.startswith("use"):
            return judge_use(acknowledged, old, new)
        recovery = subprocess.run([*BOOT, HOLDFAST, "plan", "recover", "p"], env=ENV, capture_output=True, text=True)
        tree = snapshot(MNT + "/t")
        verdict = "new" if tree == new else "old" if tree == old else "mixed"
        if verdict == "mixed" and os.environ.get("VERBOSE"):
            print(sorted(k for k in set(tree) | set(new) if tree.get(k) != new.get(k) and tree.get(k) != old.get(k)),
                  recovery.stderr, file=sys.stderr)
        if recovery.returncode:
            verdict += " recovery failed"
            if os.environ.get("VERBOSE"):
                print(recovery.stderr, file=sys.stderr)
        else:
            state = json.loads(run(HOLDFAST, "--json", "plan", "show", "p", env=ENV))["state"]
            if verdict in STATES and state not in STATES[verdict]:
                verdict += " failed: its record says " + state
        if acknowledged and verdict != "new":
            verdict = "lost after the acknowledgement: " + verdict
        return verdict
    finally:
        loop_umount()


def replay(old, new, acknowledged):
    pending, found, flushes = [], {}, 0
    records = read_log()
    ends = [i for i, record in enumerate(records) if record[0] == "S" or i + 1 == len(records)]
    # LIMIT: that many flushes, chosen anew in each run; always the last ones and those right after the acknowledgement.
    limit = int(os.environ.get("LIMIT", len(ends)))
    after = [i for i in ends if records[i][3] > acknowledged]
    taken = set(random.sample(ends, min(limit, len(ends)))) | set(ends[-3:]) | set(after[:3])
    for i, record in enumerate(records):
        if record[0] == "W":
            pending.append(record)
        if i not in ends:
            continue
        flushes += 1
        if i not in taken:
            write_all(STABLE, pending)
            pending = []
            continue
        over = bool(pending) and pending[0][3] >= acknowledged
        for variant in range(EXTRA + 2):
            chosen = [] if variant == 0 else list(pending) if variant == 1 else [p for p in pending if random.random() < 0.5]
            if variant > 1:
                random.shuffle(chosen)
            verdict = judge(chosen, over, old, new)
            found[verdict] = found.get(verdict, 0) + 1
            # A mutant is found by its first wrong image.
            if MUTANT not in ("0", "use") and verdict not in ("old", "new", "torn"):
                return flushes, found
            if variant == 0 and not pending:
                break
        write_all(STABLE, pending)
        pending = []
    return flushes, found


def clean():
    """Whatever went wrong, no mount and no loop device of ours stays."""
    for place in reversed(PLACES):
        subprocess.run(["umount", place], capture_output=True)
    for line in run("losetup", "-a").splitlines():
        if W + "/" in line:
            subprocess.run(["losetup", "-d", line.split(":")[0]], capture_output=True)
    if os.path.ismount(REC):
        umount(REC)


for directory in (MNT, REC):
    os.makedirs(directory, exist_ok=True)
begin = time.time()
try:
    old, new, acknowledged, out = record()
    flushes, found = replay(old, new, acknowledged)
except subprocess.CalledProcessError as error:
    print(error.cmd, error.stdout, error.stderr, file=sys.stderr)
    raise
finally:
    clean()
print(json.dumps({"fs": FS, "mutant": MUTANT, "noise": NOISE, "seed": seed, "flushes": flushes, "images": sum(found.values()),
                  "found": found, "commit": out, "seconds": round(time.time() - begin, 1)}))
