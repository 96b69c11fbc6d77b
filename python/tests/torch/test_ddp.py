"""torch.distributed with the backend hvd: its collectives, what is built on them, and DDP while a worker dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAMS = Path(__file__).resolve().parent / "programs"
LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")


def test_collectives_and_a_death(job: Job) -> None:
    job.set_hosts("127.0.0.1:2")
    job.hold()
    command = [sys.executable, str(PROGRAMS / "ddp.py"), "400", "sharded"]
    job.start_command(command, np=2, options=("--min-np", "2"))
    rounds = job.await_line("round of 2 rank 1")
    job.await_line("step 60")
    job.kill(job.worker(rounds[0]))
    lines = job.finish()
    checks = [line.split("check ")[1] for line in lines if "check " in line]
    assert len(checks) == 2 * 20, job.said()
    assert all(check.endswith(" ok") for check in checks), job.said()
    joined = [line for line in lines if "round of 2 rank" in line]
    assert len(joined) == 4, job.said()
    assert all("step 0 " not in line for line in joined[2:]), job.said()
    assert sum("as in peace: True" in line for line in lines) == 2, job.said()


def test_hsdp_and_a_death(job: Job) -> None:
    """A mesh of 2 x 2: its groups are opened by their members alone, again in the round after a death."""
    job.set_hosts("127.0.0.1:4")
    job.hold()
    command = [sys.executable, str(PROGRAMS / "hsdp.py"), "200"]
    job.start_command(command, np=4, options=("--min-np", "4"))
    first = job.await_line("rank 3 pid")
    job.await_line("step 30")
    job.kill(job.worker(first[0]))
    lines = job.finish()
    checks = [line for line in lines if "check " in line]
    rounds = [line for line in lines if " rank " in line and " pid " in line]
    assert len(rounds) == 8, job.said()
    assert len(checks) == 2 * (4 * 2 + 2), job.said()
    assert all(check.endswith(" ok") for check in checks), job.said()
    assert sum("as in peace: True" in line for line in lines) == 4, job.said()


@pytest.mark.parametrize("words", [pytest.param(("backward",), marks=LARGE), ("commit",), ("backward", "kept")])
def test_survivors_go_on_at_once(job: Job, words: tuple[str, ...]) -> None:
    """After a death the others make steps before the replacement has imported torch, and collect no garbage for that.

    Only if a cycle of references keeps the DDP of the dead round do they collect garbage, once.
    """
    job.set_hosts("127.0.0.1:3")
    job.start_command([sys.executable, str(PROGRAMS / "recover.py"), *words], np=3)
    lines = job.finish()
    rounds = [line.split("] ")[1] for line in lines if "round of" in line]
    assert rounds.count("round of 3 from 0 collections 0") == 3, job.said()
    wanted = f"round of 2 from {6 if 'commit' in words else 5} collections {words.count('kept')}"
    assert rounds.count(wanted) == 2, job.said()
    assert sum(line.startswith("round of 3") for line in rounds[5:]) == 3, job.said()
    weights = {line.split("weights ")[1] for line in lines if "weights" in line}
    assert len(weights) == 1, job.said()
