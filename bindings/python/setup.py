"""Metadata is in pyproject.toml. A wheel that carries the library is one for this machine's architecture, of any Python 3."""
import os
from sysconfig import get_platform

from setuptools import setup

CARRIES = os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "holdfast", "lib"))
options = {}
if CARRIES:
    options = {"bdist_wheel": {"py_limited_api": False, "python_tag": "py3", "plat_name": get_platform()}}

setup(options=options)
