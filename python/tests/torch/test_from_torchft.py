"""The names of torchft that docs/pytorch.md maps exist in torchft, as ./dev setup torchft fetches it."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import TREE


def test_names() -> None:
    found = subprocess.run([str(TREE / "scripts" / "torchft")], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("torchft is not there; ./dev setup torchft fetches it")
    table = (TREE / "docs" / "pytorch.md").read_text().partition("## From torchft")[2].partition("\n## ")[0]
    names = sorted(set(re.findall(r"torchft\.(\w+)", table)) - {"from_torchft"})
    calls = sorted(set(re.findall(r"manager\.(\w+)\(", table)))
    words = sorted(set(re.findall(r"[(, ](\w+)=", " ".join(re.findall(r"`Manager\(.*?\)`", table)))))
    assert all([names, calls, words]), (names, calls, words)
    code = (
        "import inspect, torchft, torchft.local_sgd\n"
        f"missing = [n for n in {names} if not hasattr(torchft, n)]\n"
        f"missing += [n for n in {calls} if not hasattr(torchft.Manager, n)]\n"
        f"missing += [n for n in {words} if n not in inspect.signature(torchft.Manager).parameters]\n"
        "print('missing', missing)\n"
    )
    said = subprocess.run([found.stdout.strip(), "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "missing []" in said.stdout, said.stdout + said.stderr
