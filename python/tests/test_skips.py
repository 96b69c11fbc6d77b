"""The exit code of python/tests/run: a file whose tests are all skipped has not passed, and the reasons are printed."""

import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize(
    ("names", "code", "end"),
    [
        (["has_no_moon", "has_no_sun"], 77, "skipped: there is no moon; there is no sun"),
        (["has_no_moon", "passes"], 0, "1 passed, 1 skipped in "),
        (["has_no_moon", "fails"], 1, "1 failed, 1 skipped in "),
        (["passes"], 0, "1 passed in "),
    ],
)
def test_all_tests_are_skipped(names: list[str], code: int, end: str) -> None:
    tests = [f"{TESTS}/programs/skips.py::test_{name}" for name in names]
    ran = subprocess.run([str(TESTS / "run"), *tests], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (code, ""), ran.stdout
    assert ran.stdout.splitlines()[-1].startswith(end), ran.stdout
    assert ("there is no moon" in ran.stdout) == ("has_no_moon" in names), ran.stdout


def test_no_test_is_found() -> None:
    words = [str(TESTS / "run"), f"{TESTS}/programs/skips.py", "-k", "nothing"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 77, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("skipped: pytest has found no test in "), ran.stdout
