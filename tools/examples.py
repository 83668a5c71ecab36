#!/usr/bin/env python3
"""Cuts the C examples out of the public headers and docs/GUIDE.md and prints each as a program that compiles.

    examples.py FILE            how many examples it has
    examples.py FILE NUMBER     the program of that one

In a header an example is what stands indented below "Calling sequence" (or "and reading:" and the like) in the first
comment; in the guide it is a ```c block. What an example uses without declaring it must be in GIVEN.
"""
import re
import sys

GIVEN = """
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <holdfast/holdfast.h>
extern struct hf_state *state;
extern struct hf_journal *journal;
extern struct hf_locks *locks;
extern struct hf_err err;
extern int pid, r;
void work(uint64_t token);
void ended(void *arg, const struct hf_session_info *info);
"""


def of_header(text):
    comment = text[: text.index("*/")]
    lines = [re.sub(r"^ \*( |$)", "", line) for line in comment.split("\n")]
    examples, block, wanted = [], None, False
    for line in lines:
        if line.startswith("    ") and wanted:
            block = (block or []) + [line]
        elif line.strip() == "" and block:
            block.append("")
        elif line.strip():
            if block:
                examples.append(block)
            block = None
            wanted = line.rstrip().endswith(":") and (line.startswith("Calling sequence") or line.startswith("and ") or line.startswith("with "))
    return ["\n".join(block) for block in examples]


def of_page(text):
    return re.findall(r"^```c\n(.*?)^```$", text, re.M | re.S)


path = sys.argv[1]
text = open(path).read()
found = of_page(text) if path.endswith(".md") else of_header(text)
if len(sys.argv) == 2:
    print(len(found))
else:
    body = found[int(sys.argv[2])]
    includes = "\n".join(line for line in body.split("\n") if line.startswith("#include"))
    body = "\n".join(line for line in body.split("\n") if not line.startswith("#include"))
    if re.match(r"\s*void \w+\(", body):
        print(f"{GIVEN}{includes}\n{body}")
        sys.exit(0)
    print(f"{GIVEN}{includes}\nint example(void);\nint example(void)\n{{\n{body}\n\treturn 0;\n}}")
