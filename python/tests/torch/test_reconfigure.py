"""torch's own gloo, whose members hvd decides, while a worker is killed and replaced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Job

LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")
PROGRAM = str(Path(__file__).resolve().parent / "programs" / "own_gloo.py")


@pytest.mark.parametrize("victim", [0, pytest.param(2, marks=LARGE)])
def test_a_death(job: Job, victim: int) -> None:
    """The first and the last rank. The survivors' group is the same object; rank 0 takes the store along."""
    job.set_hosts("127.0.0.1:3")
    job.hold()
    job.start_command([sys.executable, PROGRAM, "600"], np=3)
    starts = job.await_line("rank . of 3 step 0", 3)
    job.await_line("step 60")
    line = next(line for line in starts if f"rank {victim} of 3" in line)
    job.kill(job.worker(line))
    job.await_line("rank . of 2 step", 2)
    lines = job.finish()
    joined = [line for line in lines if " of 3 step " in line][3:]
    assert len(joined) == 3, job.said()
    assert all(" step 0 " not in line for line in joined), job.said()
    ends = {line.split("end: ")[1] for line in lines if "end: " in line}
    assert len(ends) == 1, job.said()
    assert ends.pop().startswith("3 members"), job.said()


def test_a_chain_of_waits(job: Job) -> None:
    """A survivor that waits for another survivor hears that this one has left; torch's patience is a minute."""
    job.set_hosts("127.0.0.1:3")
    job.start_command([sys.executable, str(Path(PROGRAM).with_name("own_gloo_chain.py"))], np=3)
    lines = job.finish()
    waited = [line for line in lines if "waited, and got:" in line]
    assert len(waited) == 2, job.said()
    assert not any("imed out" in line for line in waited), job.said()
