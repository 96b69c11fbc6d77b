"""Hooks in any order, unused parameters, moved ones, load_state_dict, late states; and names that are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAMS = Path(__file__).resolve().parent / "programs"
LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")
CASES = ["order", "unused", "own"]
CASES += [pytest.param(case, marks=LARGE) for case in ("moved", "frozen", "loaded", "late", "dampening")]


@pytest.mark.parametrize("case", CASES)
def test_death(job: Job, case: str) -> None:
    """A worker dies and is replaced: the model is that of a run in peace, bit for bit."""
    job.set_hosts("127.0.0.1:2")
    job.hold()
    command = [sys.executable, str(PROGRAMS / "unusual.py"), case, "60"]
    job.start_command(command, np=2, options=("--min-np", "2"))
    rounds = job.await_line("round of 2 rank 1")
    job.await_line("step 20$")
    job.kill(job.worker(rounds[0]))
    lines = job.finish()
    assert sum("round of 2 rank" in line for line in lines) == 4, job.said()
    assert sum("as in peace: True" in line for line in lines) == 2, job.said()


def test_wrong_states(job: Job) -> None:
    """Names that stand for two things, and an attribute that cannot be pickled: each error names it."""
    command = [sys.executable, str(PROGRAMS / "wrong_states.py")]
    said = subprocess.run(command, env=job.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr
    assert [line.split()[0] for line in said.stdout.splitlines()] == ["ok"] * 8, said.stdout
