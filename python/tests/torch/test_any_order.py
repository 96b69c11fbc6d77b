"""HVD_NEGOTIATE=1: programs for Horovod whose ranks make their calls in different orders."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "any_order.py")
COMMAND = [sys.executable, "-m", "hvd_elastic.horovod", PROGRAM]
OPTIONS = ("--min-np", "2", "--env", "HVD_NEGOTIATE=1")


@pytest.mark.parametrize("what", ["orders", "joins"])
def test_order(job: Job, what: str) -> None:
    job.set_hosts("127.0.0.1:2")
    job.start_command([*COMMAND, what], options=OPTIONS)
    lines = job.finish()
    assert sum("done in round 1" in line for line in lines) == 2, job.said()


def test_death(job: Job) -> None:
    job.set_hosts("127.0.0.1:2")
    job.start_command([*COMMAND, "death", str(job.folder)], options=OPTIONS)
    lines = job.finish()
    assert sum("steps 20 in round 3" in line for line in lines) == 2, job.said()
