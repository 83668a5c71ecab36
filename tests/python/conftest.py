"""Set-up of the Python tests: a state directory each, helpers that wait for events, and TAP on standard output (--tap)."""
import os
import subprocess
import sys
import threading
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PACKAGE = os.path.join(TOP, "bindings", "python")
sys.path.insert(0, PACKAGE)

import holdfast  # noqa: E402

BOUND = 60  # seconds, for a machine with twenty runnable processes on two processors


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    yield holdfast.State()
    # A program has one state directory and keeps it open. Here each test has its own.
    holdfast._state._defaults.clear()


def wait_until(what, bound=BOUND):
    end = time.monotonic() + bound
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def waiters(name="x", **options):
    info = holdfast.look(name, **options)
    return len(info.waiters) if info else 0


def in_threads(number, call):
    """What the call returned in each of so many threads at once, and what it raised in the others."""
    results, errors = [], []

    def work():
        try:
            results.append(call())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    return results, errors


class Script:
    """A Python process of its own, which says what it has done on its standard output."""

    def __init__(self, text):
        env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen([sys.executable, "-u", "-c", "import holdfast, os, signal, sys, threading, time\n" + text],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def line(self):
        return self.process.stdout.readline().strip()

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        out, err = self.process.communicate(timeout=BOUND)
        return self.process.returncode, out.strip(), err


@pytest.fixture
def script():
    made = []

    def make(text):
        made.append(Script(text))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


HOLDER = """
with holdfast.lock({name!r}) as l:
    print("held")
    sys.stdin.readline()
"""


@pytest.fixture
def holder(script):
    """A process that holds a lock until it is told, or killed."""

    def make(name="x"):
        one = script(HOLDER.format(name=name))
        assert one.line() == "held"
        return one

    return make


# -- TAP ------------------------------------------------------------------------------


def pytest_addoption(parser, pluginmanager):
    parser.addoption("--tap", action="store_true", help="results as TAP on standard output")
    if not pluginmanager.hasplugin("terminal"):
        parser.addoption("--verbose", type=int, default=0, help="asked for by pytest itself, also without its terminal (-p no:terminal)")


class Tap:
    def __init__(self):
        self.number = 0

    def pytest_collection_finish(self, session):
        print(f"1..{len(session.items)}", flush=True)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed" and report.when == "setup":
            self.number += 1
            title = report.nodeid.split("/")[-1]
            if report.skipped:
                print(f"ok {self.number} {title} # SKIP {report.longrepr[2]}", flush=True)
            else:
                print(f"{'ok' if report.passed else 'not ok'} {self.number} {title}", flush=True)
        if report.failed:
            if report.when == "teardown":
                print(f"not ok {self.number} teardown of {report.nodeid}", flush=True)
            print("\n".join("# " + line for line in str(report.longrepr).splitlines()[-40:]), flush=True)


def pytest_configure(config):
    if config.getoption("--tap"):

        config.pluginmanager.register(Tap(), "tap")
