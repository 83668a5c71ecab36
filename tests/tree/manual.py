#!/usr/bin/env python3
"""Compares the pages of the manual with the tables of the program, or prints their examples.

    manual.py HOLDFAST PAGE...         says what differs; exits 1 if anything does
    manual.py --examples PAGE...       the examples as a script for bash

A page has the verbs whose help names it. Each of them stands in its SYNOPSIS with exactly the options that the help shows (unless
it says "options"), in a list as ".It Cm VERB", and in its EXAMPLES. The options that the page explains (".It Fl …") are those of its verbs.

In an example "# exit status N" behind a command is checked; every other command must succeed.
"""
import re
import subprocess
import sys

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
GLOBAL = {("", "dir", True), ("", "store", True), ("", "json", False), ("q", "quiet", False), ("h", "help", False)}


def sections(path):
    parts = re.split(r"^\.Sh (.+)\n", open(path).read(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def output(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout


def options_of_help(text):
    """Letter, name, whether it takes a value."""
    found = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: (\[?[A-Za-z]\S*))?(?: |$)", text, re.M)
    return {(letter, name, bool(value)) for letter, name, value in found}


def options_explained(text):
    found = set()
    for line in re.findall(r"^\.It (Fl .*)$", text, re.M):
        m = re.match(r"(?:Fl (\w) , )?Fl Fl ([\w-]+)( (?:Ar|Op|Cm) .*)?$", line)
        found.add((m[1] or "", m[2], bool(m[3])) if m else line)
    return found


def synopsis(text):
    """Verb → its options, by name or letter; None where it says "options"."""
    found = {}
    for block in re.split(r"^\.Nm(?: holdfast)?", text, flags=re.M)[1:]:
        m = re.match(r" Cm ([a-z| -]+)\n", block)
        if not m:
            continue
        names = set(re.findall(r"\bFl Fl ([a-z][\w-]*)", block))
        for letters in re.findall(r"\bFl ([a-zA-Z]+)\b", re.sub(r"Fl Fl[ \n]?[\w-]*", "", block)):
            names.update(letters)
        for verb in m[1].split(" | "):
            found[verb.strip()] = None if "Ar options" in block else names
    return found


def examples(path):
    text = sections(path).get("EXAMPLES", "")
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed", text, re.M)
    return "".join(blocks).replace("\\e", "\\").replace("\\-", "-").replace("\\&", "")


def script(path):
    lines = examples(path).replace("\\\n", " ").split("\n")
    for line in lines:
        m = re.match(r"(.*\S) +# exit status (\d+)$", line)
        print(f"status=0; {m[1]} || status=$?; [ $status -eq {m[2]} ]" if m else line)


def differences(holdfast, pages):
    verbs = re.findall(r"^  ([a-z]+(?: [a-z-]+)?) {2,}", output(holdfast, "help").split("\n  --dir")[0], re.M)
    by_page = {}
    for verb in verbs:
        text = output(holdfast, "help", *verb.split())
        page = re.search(r"^manual: man (\S+)$", text, re.M)
        if not page:
            yield f"the help of {verb} names no page"
            continue
        by_page.setdefault(page[1], {})[verb] = options_of_help(text)
    yield from (f"{page}: there is no such page" for page in by_page if not any(f"/{page}." in path for path in pages))
    for path in pages:
        page = re.sub(r".*/|\.\d$", "", path)
        parts, mine = sections(path), by_page.get(page, {})
        rendered = re.sub(".\b", "", output("mandoc", "-T", "utf8", "-O", "width=80", path))
        for line in rendered.split("\n"):
            if len(line) > 80:
                yield f"{page}: wider than 80 columns: {line.strip()}"
            lost = re.search(r"(?<![\w-])(?:Fl|Ar|Op|Cm|Pq|Ql|Sq|Dq|Ns|Oo|Oc|Ev|Pa)(?![\w-])|\\[a-z&(]", line)
            if lost:
                yield f"{page}: {lost[0]!r} is shown: {line.strip()}"
        for left, right in ("“”", "‘’", "()", "[]"):
            if page != "holdfast-session" and rendered.count(left) != rendered.count(right):
                yield f"{page}: {left} and {right} do not pair"
        if path.endswith(".7"):
            continue
        order = [name for name in parts if name in SECTIONS]
        if order != SECTIONS:
            yield f"{page}: sections {order}"
        short, shown = synopsis(parts["SYNOPSIS"]), examples(path)
        for verb, options in mine.items():
            if verb not in short:
                yield f"{page}: {verb} is not in the synopsis"
            elif short[verb] is not None:
                for letter, name, _ in options:
                    if letter not in short[verb] and name not in short[verb]:
                        yield f"{page}: the synopsis of {verb} lacks --{name}"
                for word in short[verb] - {name for _, name, _ in options} - {letter for letter, _, _ in options}:
                    yield f"{page}: {verb} has no option {word}"
            if not re.search(rf"^\.It Cm {verb}$", parts["DESCRIPTION"], re.M):
                yield f"{page}: {verb} is not described"
            if not re.search(rf"\bholdfast {verb}\b", shown):
                yield f"{page}: {verb} has no example"
        yield from (f"{page}: there is no command {verb}" for verb in short if verb not in mine)
        true = set().union(*mine.values(), GLOBAL if page == "holdfast" else ())
        told = options_explained("".join(parts[name] for name in parts if name != "SYNOPSIS"))
        yield from (f"{page}: --{o[1]} is not explained: {o}" for o in true - told)
        yield from (f"{page}: no verb has {o}" for o in told - true)


if sys.argv[1] == "--examples":
    for name in sys.argv[2:]:
        script(name)
else:
    problems = list(differences(sys.argv[1], sys.argv[2:]))
    sys.exit("\n".join(problems) or 0)
