"""The code in docs/python.md is that of the example."""

from __future__ import annotations

import re

from conftest import TREE


def test_first_job() -> None:
    shown = re.findall(r"```python\n(.*?)```", (TREE / "docs" / "python.md").read_text(), re.DOTALL)
    example = (TREE / "python" / "examples" / "sums.py").read_text()
    assert shown, "docs/python.md shows no code"
    for code in shown:
        assert code in example
