"""The examples of the module's README run as they stand, one after the other."""
import os
import re

from conftest import PACKAGE


def test_the_examples_of_the_readme_run(capfd):
    with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    assert len(examples) >= 7 and text.count("```") == 2 * len(examples)
    names = {"__name__": "readme"}
    for number, example in enumerate(examples, 1):
        exec(compile(example, f"README.md, example {number}", "exec"), names)
    assert "SUCCEEDED working" in capfd.readouterr().out
