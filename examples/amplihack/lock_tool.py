#!/usr/bin/env python3
"""lock_tool.py lock [--message TEXT] | unlock [--force] | check: amplihack's continuous work mode, kept by Holdfast.

The mode itself is Holdfast's (`holdfast keep`): per session, with its time, its counts and its events. The file .lock_active shows it to
amplihack and says which session it belongs to.
"""
import argparse
import hashlib
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Dict, Optional

HOLDFAST = os.environ.get("HOLDFAST", "holdfast")
SESSION_VARIABLES = ("AMPLIHACK_SESSION_ID", "CLAUDE_SESSION_ID", "CLAUDE_CODE_SESSION_ID")
NO_SESSION = "unknown"  # which is also what `holdfast name sanitize` makes of nothing


def project_root() -> Path:
    """$CLAUDE_PROJECT_DIR, else the nearest directory above that has .claude, so that a sub-directory finds the same lock."""
    given = os.environ.get("CLAUDE_PROJECT_DIR")
    if given:
        return Path(given)
    here = Path.cwd()
    return next((path for path in (here, *here.parents) if (path / ".claude").is_dir()), here)


LOCK_DIR = project_root() / ".claude" / "runtime" / "locks"
LOCK_FILE = LOCK_DIR / ".lock_active"
MESSAGE_FILE = LOCK_DIR / ".lock_message"


def number(variable: str, default: int) -> int:
    try:
        return max(1, int(os.environ.get(variable, default)))
    except ValueError:
        return default


def holdfast(*words: str, stdin: bytes = b"", env: Optional[Dict[str, str]] = None) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([HOLDFAST, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, env=env)


def keep(*words: str) -> "subprocess.CompletedProcess[bytes]":
    """Every session is named by --session. The ids of the environment are not sanitized, so they would seem to be another session's."""
    return holdfast("-q", "keep", *words, env={name: text for name, text in os.environ.items() if name not in (*SESSION_VARIABLES, "HOLDFAST_SESSION")})


def sanitize(session: Optional[str]) -> str:
    if not session:
        return NO_SESSION
    done = holdfast("name", "sanitize", "--", session.replace("\0", "_"))
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip())
    name = done.stdout.decode().rstrip("\n")
    return name if len(name) <= 80 else hashlib.sha256(name.encode()).hexdigest()


def session_of_environment() -> Optional[str]:
    return next((os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)), None)


def read_lock(path: Path = LOCK_FILE) -> Dict[str, str]:
    """The lines of the lock file. A session id that was not written by `lock` counts as none: then only the time ends the lock."""
    with open(path, encoding="utf-8", errors="replace") as file:
        pairs = (line.rstrip("\n").split(": ", 1) for line in file.read(4096).splitlines() if ": " in line)
        found = {key: value for key, value in pairs}
    owner = found.get("session_id", "")
    if "/" in owner or ".." in owner or not owner:
        found.pop("session_id", None)
    return found


def create_lock(message: Optional[str] = None) -> int:
    LOCK_DIR.mkdir(parents=True, exist_ok=True)
    mine = session_of_environment()
    # First the mode: without a file it blocks nothing, if we are killed in between.
    text = message if message and 0 < len(message.encode()) <= 1000 else "Work is left to do."
    done = keep("on", "--session", sanitize(mine), "--goal", text, "--ttl", f"{number('AMPLIHACK_LOCK_TTL_SECONDS', 86400)}s",
                "--max", str(number("AMPLIHACK_MAX_LOCK_ITERATIONS", 50)))
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip())
    try:
        fd = os.open(LOCK_FILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        print("⚠ WARNING: Lock was already active")
    else:
        with open(fd, "w") as file:
            file.write(f"locked_at: {datetime.now(timezone.utc).isoformat()}\n")
            if mine:  # without a session the lock is for every one, until its time is over
                file.write(f"session_id: {sanitize(mine)}\n")
        print("✓ Lock enabled - Claude will continue working until unlocked")
        print("  Use /amplihack:unlock to disable")
    if message:
        MESSAGE_FILE.write_text(message)
        print(f"  Custom instruction: {message}")
    return 0


def clear_lock(session: str) -> None:
    for path in (LOCK_FILE, MESSAGE_FILE):
        path.unlink(missing_ok=True)
    for name in {session, NO_SESSION}:
        keep("off", "--session", name)


def remove_lock(force: bool = False) -> int:
    """A user may always unlock; an agent only what is its own session's."""
    try:
        owner = read_lock().get("session_id")
    except FileNotFoundError:
        print("ℹ Lock was not enabled")
        return 0
    mine = session_of_environment()
    if owner and mine and sanitize(mine) != owner and not force:
        raise PermissionError(f"it belongs to session {owner} (--force removes it all the same)")
    clear_lock(owner or NO_SESSION)
    print("✓ Lock disabled - Claude will stop normally")
    return 0


def check_lock() -> int:
    try:
        found = read_lock()
    except FileNotFoundError:
        print("ℹ Lock is NOT active")
        return 0
    print("✓ Lock is ACTIVE")
    for key, value in found.items():
        print(f"  {key}: {value}")
    if MESSAGE_FILE.exists():
        print(f"  Custom instruction: {MESSAGE_FILE.read_text().strip()}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Lock tool for continuous work mode")
    verbs = parser.add_subparsers(dest="command", required=True)
    verbs.add_parser("lock").add_argument("--message", "-m")
    verbs.add_parser("unlock").add_argument("--force", action="store_true")
    verbs.add_parser("check")
    args = parser.parse_args()
    what = {"lock": "create", "unlock": "remove", "check": "check"}[args.command]
    try:
        if args.command == "lock":
            return create_lock(args.message)
        return remove_lock(args.force) if args.command == "unlock" else check_lock()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"✗ ERROR: Failed to {what} lock: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
