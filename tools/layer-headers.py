#!/usr/bin/env python3
"""Lays out one include directory per layer in the build tree, by symbolic links.

    layer-headers.py SOURCE_ROOT OUT_DIR LAYER HEADER...

makes OUT_DIR/LAYER/holdfast/HEADER (public) and OUT_DIR/LAYER/hf/LAYER (the layer's own headers). A layer is compiled
with the directories of itself and of lower layers only, so including a higher or a sibling layer's header fails.

A HEADER "src/PATH" is a private header, or a folder of them, of another layer, for the CLI: OUT_DIR/LAYER/hf/PATH.
"""
import os
import shutil
import sys

source, out, layer, *headers = sys.argv[1:]
top = os.path.join(out, layer)
shutil.rmtree(top, ignore_errors=True)
os.makedirs(os.path.join(top, "holdfast"))
for header in headers:
    if header.startswith("src/"):
        link = os.path.join(top, "hf", header[len("src/"):])
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.join(source, header), link)
        continue
    os.symlink(os.path.join(source, "include", "holdfast", header), os.path.join(top, "holdfast", header))
own = os.path.join(source, "src", layer)
if os.path.isdir(own):
    os.mkdir(os.path.join(top, "hf"))
    os.symlink(own, os.path.join(top, "hf", layer))
