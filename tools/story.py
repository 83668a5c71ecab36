"""The story that README and its picture show: a repository with tests, a stand-in for an agent, and a terminal of 80 columns."""
import os
import pty
import re
import struct
import subprocess
import fcntl
import tempfile
import termios

# The agent acts on words in its prompt. It commits as real agents do.
AGENT = r"""#!/bin/sh
case "$*" in
*"fix #160"*) sed -i 's/a - b/a + b/' calc.sh; git commit -qam "Fix add" ;;
*"faster add"*) sed -i 's/.*/add() { echo 0; }/' calc.sh; git commit -qam "Make add faster"; echo "add is 100 times faster" ;;
*"manual"*) holdfast wait fix-160; echo "usage: calc add A B" >MANUAL; git add MANUAL; git commit -qm "Write the manual" ;;
*"refactor"*) stubborn-server & exec sleep 300 ;;
esac
"""

# A process that an agent leaves behind: it ignores TERM and has left the agent's session.
SERVER = """#!/bin/sh
trap '' TERM
exec setsid sleep 300
"""

MAKEFILE = "test:\n\t@. ./calc.sh; a=2 b=2; test \"$$(add)\" = 4 || { echo 'FAIL: add 2 2 is not 4'; exit 1; }\n"


class Story:
    """A directory with the repository ~/app in it. run() types one command and returns the lines that it prints."""

    def __init__(self, holdfast, columns=80):
        self._place = tempfile.TemporaryDirectory()
        place, self._columns = self._place.name, columns
        self._bin, self.app = os.path.join(place, "bin"), os.path.join(place, "app")
        os.mkdir(self._bin)
        os.mkdir(self.app)
        for name, text in ("claude", AGENT), ("stubborn-server", SERVER):
            with open(os.path.join(self._bin, name), "w") as file:
                file.write(text)
            os.chmod(os.path.join(self._bin, name), 0o755)
        os.symlink(os.path.abspath(holdfast), os.path.join(self._bin, "holdfast"))
        self._env = dict(os.environ, PATH=self._bin + ":" + os.environ["PATH"], HOME=place, HOLDFAST_DIR=os.path.join(place, "state"),
                         TERM="dumb", NO_COLOR="1", GIT_CONFIG_SYSTEM="/dev/null", GIT_PAGER="cat", LC_ALL="C",
                         HOLDFAST_LIBEXEC=os.path.join(os.path.dirname(os.path.abspath(holdfast)), "..", "libexec"))
        self._env.pop("COLUMNS", None)
        with open(os.path.join(self.app, "Makefile"), "w") as file:
            file.write(MAKEFILE)
        with open(os.path.join(self.app, "calc.sh"), "w") as file:
            file.write("add() { echo $((a - b)); }\n")
        self.run("git config --global user.name You && git config --global user.email you@example.org && git init -q -b main && "
                 "git add . && git commit -qm Start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._place.cleanup()

    def run(self, command):
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, self._columns, 0, 0))
        done = subprocess.Popen(["sh", "-c", command], env=self._env, cwd=self.app, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner,
                                start_new_session=True)
        os.close(inner)
        text = b""
        while True:
            try:
                piece = os.read(outer, 65536)
            except OSError:  # the last process has closed its end
                break
            if not piece:
                break
            text += piece
        os.close(outer)
        done.wait()
        text = text.decode().replace("\r\n", "\n").replace(os.path.dirname(self.app), "~")
        return re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", text).splitlines()


def without_numbers(line):
    """Two runs differ in pids, times, sizes and commits, in the blanks that align them, and in how much of a row they leave room for."""
    if re.search(r"~(?!/)", line):
        line = " ".join(line.split()[:2])
    line = re.sub(r"\b[0-9a-f]{7,40}\b", "#", line)
    line = re.sub(r"[0-9]+(\.[0-9]+)?(us|ms|s|m|h|K|M|G)?\b", "#", line)
    return re.sub(r"\s+", " ", line).strip()
