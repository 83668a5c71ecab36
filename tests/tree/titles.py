#!/usr/bin/env python3
"""Lists every test as FILE, a tab and its whole title.

tests/tree/titles.py                  the list
tests/tree/titles.py --check FILE [MIN]   the proofs of FILE (docs/INVARIANTS.md) that are no such test; exit 1 if there are any,
                                      or fewer than MIN (100) proofs
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
TEXT = r'"((?:\\.|[^"\\])*)"'


def titles(path, text):
    if path.suffix == ".bats":
        return [re.sub(r'\\(["$`\\])', r"\1", title) for title in re.findall(rf"^@test {TEXT} \{{", text, re.M)]
    if path.parts[1] in ("unit", "store"):
        return re.findall(r"\b[A-Z_]*TEST\((\w+)\)", text)
    if path.parts[1] == "stress":
        # A part's name may stand before the title: "%s: the title".
        return [title.removeprefix("%s: ") for title in re.findall(TEXT, text)]
    if path.parts[1] == "model":
        return re.findall(r"^    '[a-z]+\|(?:holds|searched|found|long)\|([^|]*)\|", text, re.M)
    return []


def all_titles():
    for path in sorted((TOP / "tests").rglob("*")):
        path = path.relative_to(TOP)
        if path.suffix in (".bats", ".c") or path == pathlib.Path("tests/model/run"):
            for title in titles(path, (TOP / path).read_text()):
                yield f"{path}\t{title}"


def main():
    if sys.argv[1:2] != ["--check"]:
        print("\n".join(all_titles()))
        return 0
    known = set(all_titles())
    proofs = re.findall(r"^- `(tests/[^`]*)`: (.*)$", pathlib.Path(sys.argv[2]).read_text(), re.M)
    missing = [f"{file} has no test: {title}" for file, title in proofs if f"{file}\t{title}" not in known]
    if len(proofs) < int(sys.argv[3] if len(sys.argv) > 3 else 100):
        missing.append(f"only {len(proofs)} proofs found")
    print("\n".join(missing))
    return bool(missing)


sys.exit(main())
