#!/usr/bin/env python3
"""Renders a public header as a section 3 manual page: the header is the manual, the page its printed form.

    header-man.py HEADER OUT_DIR [--section TITLE FILE]

writes OUT_DIR/holdfast_STEM.3 and one link page for each function. --section adds a section from an mdoc file.
With --list it only prints the functions that the header declares and whether a comment explains each,
with --pages the names of the files that it would write.
"""
import os
import re
import sys
import textwrap

DATE = "November 15, 2026"


def chunks(text):
    """Splits at blank lines that are neither in a comment nor between braces."""
    chunk, depth, in_comment = [], 0, False
    for line in text.split("\n"):
        if not line.strip() and not in_comment and depth == 0:
            if chunk:
                yield "\n".join(chunk)
            chunk = []
            continue
        chunk.append(line)
        in_comment = line.rfind("/*") > line.rfind("*/") if "/*" in line or "*/" in line else in_comment
        depth += line.count("{") - line.count("}") if not line.startswith(("#define", " *", "\t/*")) else 0
    if chunk:
        yield "\n".join(chunk)


def blocks(text):
    """Yields (comment, code) for each chunk; either may be empty."""
    for chunk in chunks(text):
        match = re.match(r"/\*(.*?)\*/\n?", chunk, re.S)
        comment = match.group(1).strip("\n") if match else ""
        comment = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in comment.split("\n")).strip()
        yield comment, chunk[match.end():].strip("\n") if match else chunk


def functions(declaration):
    return re.findall(r"HF_API[^;]*?\b(hf_\w+)\(", declaration)


def escape(line):
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in ".'" else line


def filled(lines):
    """One sentence per line, wrapped at 78 columns."""
    sentences = re.split(r"(?<=[.!?]) +|(?<=[.!?]\)) +", " ".join(line.strip() for line in lines))
    return [escape(line) for sentence in sentences for line in textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)]


LABELS = re.compile(r"(?:Ownership|Threads|Fork|Crash|Signals|Descriptors|Kinds|Limits)\b[^.:]*:")


def dash_list(lines):
    """Items "- text", each filled."""
    out = [".Bl -dash -compact"]
    for item in re.split(r"^- ", "\n".join(lines), flags=re.M)[1:]:
        out += [".It"] + filled(item.split("\n"))
    return out + [".El"]


def plain(lines):
    """Filled; a line that begins with a label begins a paragraph."""
    starts = [0] + [i for i, line in enumerate(lines) if i and LABELS.match(line)]
    return [out for start, end in zip(starts, starts[1:] + [len(lines)]) for out in [".Pp"] + filled(lines[start:end])]


def prose(text):
    """Paragraphs filled; indented blocks are lists of "- text", or literal."""
    out = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        first = next((i for i, line in enumerate(lines) if line.startswith("  ")), len(lines))
        if first:
            out += plain(lines[:first])
        block = textwrap.dedent("\n".join(lines[first:])).split("\n")
        if first == len(lines):
            continue
        if block[0].startswith("- "):
            out += dash_list(block)
        else:
            out += [".Bd -literal -offset 4n -compact"] + [escape(line) for line in block] + [".Ed"]
    return out


def main():
    arguments = sys.argv[1:]
    listing = "--list" in arguments
    listing_pages = "--pages" in arguments
    arguments = [a for a in arguments if a not in ("--list", "--pages")]
    header = arguments[0]
    text = open(header, encoding="utf-8").read()
    stem = os.path.basename(header)[:-2]
    pairs = list(blocks(text))
    declared = [(name, comment) for comment, code in pairs for name in functions(code)]
    if listing:
        explained = {name for name, comment in declared if comment}
        for name in functions(text):
            print(name, "explained" if name in explained else "BARE")
        return
    page = "holdfast_" + stem
    names = [name for name, _ in declared]
    if listing_pages:
        print("\n".join(f"{name}.3" for name in [page, *names]))
        return
    out_dir = arguments[1]
    head = pairs[0][0]
    title, _, body = head.partition("\n")
    summary = title.split(" - ", 1)[1].rstrip(".")
    lines = [f".Dd {DATE}", f".Dt {page.upper()} 3", ".Os Holdfast", ".Sh NAME"]
    if names:
        lines += [f".Nm {name} ," for name in names[:-1]] + [f".Nm {names[-1]}"]
    else:
        lines += [f".Nm {page}"]
    lines += [f".Nd {escape(summary)}", ".Sh LIBRARY", "libholdfast (\\-lholdfast)", ".Sh SYNOPSIS",
              f".In holdfast/{stem}.h", ".Sh DESCRIPTION"]
    lines += [line for i, line in enumerate(prose(body.strip())) if not (i == 0 and line == ".Pp")]
    for comment, code in pairs[1:]:
        code = re.sub(r"^#(ifndef|define) HOLDFAST_.*$|^HF_C_(BEGIN|END)$|^#include.*$|^#endif$|^/\* clang-format.*$", "", code, flags=re.M).strip()
        if not code or comment.startswith("clang-format"):
            continue
        if ".Sh INTERFACE" not in lines:
            lines.append(".Sh INTERFACE")
        code = re.sub(r"HF_API |\s*HF_MUST_CHECK", "", code)
        lines += [".Bd -literal"] + [escape(line.replace("\t", "    ")) for line in code.split("\n")] + [".Ed"]
        lines += prose(comment) if comment else []
    if len(arguments) > 2 and arguments[2] == "--section":
        lines += [f".Sh {arguments[3]}"] + open(arguments[4], encoding="utf-8").read().rstrip("\n").split("\n")
    lines += [".Sh SEE ALSO", ".Xr holdfast 1 ,", ".Xr holdfast_err 3"]
    os.makedirs(out_dir, exist_ok=True)
    with open(os.path.join(out_dir, page + ".3"), "w", encoding="utf-8") as out:
        out.write("\n".join(line for line in lines if line.strip()) + "\n")
    for name in names:
        with open(os.path.join(out_dir, name + ".3"), "w", encoding="utf-8") as out:
            out.write(f".so man3/{page}.3\n")


main()
