#!/usr/bin/env python3
"""Makes bindings/python/holdfast/_abi.py from the public headers: constants, enums, structs and functions.

    python-abi.py                print it
    python-abi.py --write        write it into the tree
    python-abi.py --layout       print a C program that prints every size and offset, for the test

The headers hold declarations that a preprocessor and four patterns can read (api.h says so); what does not fit one of
them is an error here, not a guess. A test compares the committed file with what this prints, and its layouts with the compiler's.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(TOP, "bindings/python/holdfast/_abi.py")

PLAIN = {
    "int": "c_int", "unsigned": "c_uint", "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64",
    "size_t": "c_size_t", "mode_t": "c_uint", "char": "c_char", "pid_t": "c_int", "uid_t": "c_uint",
}

# Enums that the module shows as classes: (class, enum, prefix of its constants, what it says). Every value there is becomes a member.
CLASSES = [
    ("Liveness", "hf_liveness", "HF_", "Dead is said only with proof; UNKNOWN (another pid namespace, another host) counts as alive."),
    ("Mode", "hf_lock_mode", "HF_LOCK_", "EXCLUSIVE: one holder. SHARED: any number of these, and no exclusive one. SLOTS: at most so many at once."),
    ("Kind", "hf_lock_kind", "HF_LOCK_KIND_", "What a lock protects. A name of one kind never meets the same name of another."),
    ("Style", "hf_block_style", "HF_STYLE_", "How the marker lines of a new block are commented; AUTO: by the file's name."),
    ("Strategy", "hf_strategy", "HF_STRATEGY_", "How a sandbox is made."),
    ("PlanState", "hf_plan_state", "HF_PLAN_", "The states of a plan, all on disk."),
    ("ChangeKind", "hf_change_kind", "HF_CHANGE_", "What a plan changed of one entry."),
    ("Outcome", "hf_outcome", "HF_OUTCOME_", "How an attempt of a session ended."),
    ("SessionState", "hf_session_state", "HF_SESSION_", "What a session is doing, judged from its record and from its processes."),
    ("Stop", "hf_stop", "HF_STOP_", "What a stop came to."),
    ("LandState", "hf_land_state", "HF_LAND_", "What became of a candidate. Only LANDED is success: it was read back from the repository."),
]


def preprocess(*flags, source='#include "holdfast/holdfast.h"\n'):
    command = [os.environ.get("CC", "gcc"), "-E", "-std=gnu11", "-I", os.path.join(TOP, "include"), *flags, "-x", "c", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def declarations():
    """The text of our own headers, preprocessed, without what the system's brought along."""
    ours, kept = False, []
    for line in preprocess().splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = "/holdfast/" in marker.group(1)
        elif ours:
            kept.append(line)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", " ".join(kept))
    return re.sub(r"\s+", " ", text)


def number(text):
    """The value of a constant expression, or None."""
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    if not re.fullmatch(r"[-+*/%<>|&~()\s0-9a-fA-Fx]+", text):
        return None
    try:
        return int(eval(text.replace("/", "//"), {}))  # digits and operators only
    except (SyntaxError, ZeroDivisionError, TypeError, NameError):
        return None


def constants():
    names = re.findall(r"^#define (HF_[A-Z0-9_]+) \S", preprocess("-dM"), re.M)
    asked = "".join(f'"{name}" {name}\n' for name in sorted(names))
    found = {}

    for name, value in re.findall(r'^"(\w+)" (.+)$', preprocess("-P", source='#include "holdfast/holdfast.h"\n' + asked), re.M):
        if number(value) is not None:
            found[name] = number(value)
    return found


def enum_values(body):
    values, next_value = {}, 0
    for item in filter(None, (part.strip() for part in body.split(","))):
        name, _, value = (part.strip() for part in item.partition("="))
        next_value = number(re.sub(r"\bHF_\w+", lambda m: str(values[m.group(0)]), value)) if value else next_value
        values[name] = next_value
        next_value += 1
    return values


class Types:
    """What is known so far, for the type of a field or a parameter."""

    def __init__(self):
        self.structs = {}

    def base(self, words):
        words = [w for w in words.split() if w not in ("const", "volatile")]
        if words[:1] == ["enum"]:
            return "c_int"
        if words[:1] == ["struct"]:
            return words[1] if words[1] in self.structs else None
        return PLAIN[" ".join(words)]

    def of(self, text, in_struct):
        """(name, ctypes expression) of "const char *name", "struct x name[4 + 1]", "int (*name)(void *)"."""
        function = re.fullmatch(r".*\(\*(\w+)\)\s*\(.*\)", text)
        if function:
            return function.group(1), "c_void_p"
        match = re.fullmatch(r"(.*?)(\**)\s*(const)?\s*(\**)\s*(\w+)\s*((?:\[[^]]*\])?)", text)
        if not match:
            raise SystemExit(f"python-abi: cannot read: {text}")
        words, stars, name, size = match.group(1), match.group(2) + match.group(4), match.group(5), match.group(6)
        plain = " ".join(w for w in words.split() if w != "const")
        if size and not in_struct:
            stars, size = stars + "*", ""
        if size:
            element = self.base(words) if not stars else "c_char_p" if plain == "char" and stars == "*" else "c_void_p"
            return name, f"{element} * {number(size[1:-1])}"
        if not stars:
            if plain.startswith("hf_") or not plain:
                return name, "c_void_p"
            return name, self.base(words)
        if plain == "char" and stars == "*" and "const" in words:
            return name, "c_char_p"
        if in_struct and plain == "char":
            return name, "POINTER(c_char_p)" if stars == "**" else "c_char_p"
        if in_struct and stars == "*" and plain.startswith("struct") and self.base(words):
            return name, f"POINTER({self.base(words)})"
        return name, "c_void_p"


def split_parameters(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in parts + [part.strip()] if p and p != "void"]


def read():
    text = declarations()
    types, enums, functions = Types(), {}, {}
    for match in re.finditer(r"enum (hf_\w+) \{([^}]*)\};|struct (hf_\w+) \{([^}]*)\};|"
                             r"(?:^|(?<=[;}])) ?((?:const )?(?:struct |enum )?\w+) (\**)(hf_\w+)\(((?:[^()]|\([^()]*\))*)\) ?(?=;)", text):
        if match.group(1):
            enums[match.group(1)] = enum_values(match.group(2))
        elif match.group(3):
            fields = []
            for field in filter(None, (part.strip() for part in match.group(4).split(";"))):
                # "uint64_t dev, ino" and "struct hf_proc_id supervisor, keeper"
                parts = split_parameters(field)
                first = types.of(parts[0], True)
                fields += [first] + [(p.lstrip("* "), first[1]) for p in parts[1:]]
            types.structs[match.group(3)] = fields
        else:
            returned, stars, name = match.group(5), match.group(6), match.group(7)
            if returned.startswith("typedef"):
                continue
            if stars:
                result = "c_char_p" if returned == "const char" else f"POINTER({types.base(returned)})" if types.base(returned) else "c_void_p"
            else:
                result = "None" if returned == "void" else types.base(returned)
            functions[name] = (result, [types.of(p, False)[1] if not re.search(r"\bhf_\w+_fn \*", p) else "c_void_p"
                                        for p in split_parameters(match.group(8))])
    return types.structs, enums, functions


def render():
    structs, enums, functions = read()
    exported = set(re.findall(r"^\t(hf_\w+);$", open(os.path.join(TOP, "src/holdfast.map")).read(), re.M))
    if exported != set(functions):
        raise SystemExit(f"python-abi: not read: {sorted(exported ^ set(functions))}")
    out = ['"""The public headers as ctypes: constants, structs, functions. Made by tools/python-abi.py; do not edit."""',
           "# fmt: off", "# flake8: noqa", "import enum",
           "from ctypes import (POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_uint64,",
           "                    c_void_p)", "from typing import Any, Dict, List, Tuple", ""]
    out += [f"{name} = {value}" for name, value in sorted(constants().items())]
    for enum, values in enums.items():
        out += ["", f"# enum {enum}"] + [f"{name} = {value}" for name, value in values.items()]
    for struct, fields in structs.items():
        out += ["", "", f"class {struct}(Structure):", "    _fields_ = ["]
        out += [f'        ("{name}", {kind}),' for name, kind in fields]
        out += ["    ]"]
    for name, enum, prefix, text in CLASSES:
        out += ["", "", f"class {name}(enum.IntEnum):", f'    """{text}"""', ""]
        out += [f"    {value[len(prefix):]} = {number}" for value, number in enums[enum].items()]
    out += ["", "", "STRUCTS: List[Any] = ["] + [f"    {struct}," for struct in structs] + ["]", ""]
    out += ["# name: (result, parameters)", "FUNCTIONS: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {"]
    out += [f'    "{name}": ({result}, ({"".join(p + ", " for p in parameters).rstrip()})),' for name, (result, parameters) in sorted(functions.items())]
    return "\n".join(out + ["}", ""])


def layout():
    out = ["#include <stddef.h>", "#include <stdio.h>", "#include <holdfast/holdfast.h>", "int main(void)", "{"]
    for struct, fields in read()[0].items():
        out.append(f'\tprintf("{struct} %zu", sizeof(struct {struct}));')
        out += [f'\tprintf(" {name}=%zu+%zu", offsetof(struct {struct}, {name}), sizeof(((struct {struct} *)0)->{name}));' for name, _ in fields]
        out.append('\tputchar(\'\\n\');')
    for values in read()[1].values():
        out += [f'\tprintf("{name} %lld\\n", (long long){name});' for name in values]
    return "\n".join(out + ["\treturn 0;", "}", ""])


if sys.argv[1:] == ["--write"]:
    with open(TARGET, "w") as file:
        file.write(render())
elif sys.argv[1:] == ["--layout"]:
    print(layout(), end="")
elif not sys.argv[1:]:
    print(render(), end="")
else:
    raise SystemExit(__doc__)
