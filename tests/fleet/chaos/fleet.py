"""The fleet as it looks from its own middle: addresses, processes, hosts. For a process that `cluster in net` has started."""
import http.client
import itertools
import json
import os
import signal
import subprocess
import time


def now():
    """Nanoseconds on the clock of the witness."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


class Fleet:
    def __init__(self, directory):
        self.dir, self.places = directory, itertools.count()
        found = os.listdir(directory)
        self.members = sorted(f[:-4] for f in found if f.startswith("m") and f.endswith(".pid"))
        self.hosts = sorted(f[:-4] for f in found if f.startswith("h") and f.endswith(".pid"))

    @staticmethod
    def address(node):
        return f"198.18.0.{int(node[1:]) + (100 if node[0] == 'h' else 0)}"

    def endpoints(self):
        return [f"{self.address(m)}:2379" for m in self.members]

    def pid(self, node):
        return int(read(f"{self.dir}/{node}.pid"))

    def enter(self, host):
        """The words before a command that runs on that host."""
        return ["nsenter", "--target", str(self.pid(host)), "--mount", "--net", "--pid", "--uts", "--wd=/"]

    # -- network

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def drop(self, sender, receiver):
        """No packet from one to the other (receiver None: to nobody); returns the function that undoes it."""
        # Each rule has a place of its own: two faults may drop the same packets.
        rule = ["pref", str(100 + next(self.places) % 800), "from", self.address(sender)]
        if receiver:
            rule += ["to", self.address(receiver)]
        self.ip("rule", "add", *rule, "blackhole")
        return lambda: self.ip("rule", "del", *rule, "blackhole")

    def isolate(self, node):
        undo = [self.drop(node, None)] + [self.drop(n, node) for n in self.members + self.hosts if n != node]
        return lambda: [u() for u in undo]

    def link_down(self, node):
        self.ip("link", "set", f"r-{node}", "down")

        def up():
            self.ip("link", "set", f"r-{node}", "up")
            self.ip("route", "replace", self.address(node), "dev", f"r-{node}")
        return up

    # -- members

    def signal(self, member, number):
        try:
            os.kill(self.pid(member), number)
        except ProcessLookupError:
            pass

    def restart(self, member):
        with open(f"{self.dir}/requests", "w", encoding="utf-8") as requests:
            requests.write(f"start {member}\n")

    def ask(self, member, path, body=""):
        """One HTTP request to a member; "" when it does not answer within a second."""
        connection = http.client.HTTPConnection(self.address(member), 2379, timeout=1)
        try:
            connection.request("POST" if body else "GET", path, body or None)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()

    def leader(self):
        for member in self.members:
            try:
                status = json.loads(self.ask(member, "/v3/maintenance/status", "{}"))
                if status["leader"] == status["header"]["member_id"]:
                    return member
            except (ValueError, KeyError):
                continue
        return self.members[0]

    def healthy(self):
        return all('"health":"true"' in self.ask(m, "/health") for m in self.members)

    # -- processes

    def processes(self, host):
        """(pid here, command line) of every process of a host but its first one."""
        space = os.stat(f"/proc/{self.pid(host)}/ns/pid").st_ino
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if os.stat(f"/proc/{entry}/ns/pid").st_ino != space:
                    continue
            except OSError:
                continue
            words = read(f"/proc/{entry}/cmdline").split("\0")
            if words[0] and words[0] != "sleep" and "--host" not in words:
                yield int(entry), words

    def machinery(self, host):
        """The processes of a host that are not the witness: what holds, renews and ends."""
        return [pid for pid, words in self.processes(host) if "witness" not in words[0]]

    def workers(self, host):
        return [pid for pid, words in self.processes(host) if "witness" in words[0]]


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def freeze(pids):
    """Stops them; returns what lets them go on. nsenter stops itself when its child is stopped, and goes on too."""
    parents = [int(line.split()[1]) for pid in pids for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("PPid:")]
    parents = [pid for pid in parents if read(f"/proc/{pid}/comm").strip() == "nsenter"]
    send(pids, signal.SIGSTOP)
    return lambda: send(list(pids) + parents, signal.SIGCONT)


def lives(pid):
    """Not even a zombie that nobody has reaped counts."""
    state = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"
