"""Workers die in a training with PyTorch: the model is that of a run in peace."""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import Job

PROGRAMS = Path(__file__).resolve().parent / "programs"


def test_killed_and_replaced(job: Job) -> None:
    job.set_hosts("127.0.0.1:2")
    job.hold()
    job.start_command([sys.executable, str(PROGRAMS / "adam.py"), "200"], np=2, options=("--min-np", "2"))
    rounds = job.await_line("round of 2 rank 1")
    job.await_line("step 60")
    job.kill(job.worker(rounds[0]))
    lines = job.finish()
    joined = [line for line in lines if "round of 2 rank" in line]
    assert len(joined) == 4, job.said()
    assert all("step 0 " not in line for line in joined[2:]), job.said()
    draws: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("[0 ") and " draw " in line:
            draws.setdefault(line.split()[-2], set()).add(line.split()[-1])
    assert len(draws) == 200, job.said()
    assert all(len(drawn) == 1 for drawn in draws.values()), "a repeated step drew another number"
    assert sum("as in peace: True" in line for line in lines) == 2, job.said()


def test_all_killed(job: Job, tmp_path: Path) -> None:
    """All processes are killed at once: the training goes on from the checkpoint for which it has waited."""
    command = [sys.executable, str(PROGRAMS / "adam.py"), "200", "20"]
    options = ("--min-np", "2", "--checkpoint-dir", str(tmp_path / "kept"), "--checkpoint-interval", "1h")
    job.set_hosts("127.0.0.1:2")
    job.start_command(command, np=2, options=options)
    job.await_line("durable 40")
    job.kill_all()
    job.start_command(command, np=2, options=options)
    rounds = job.await_line("round of 2 rank", 2)
    assert all(int(line.split()[-3]) >= 40 for line in rounds), job.said()
    assert sum("as in peace: True" in line for line in job.finish()) == 2, job.said()
