"""torch.distributed with the backend hvd: its collectives, what is built on them, and DDP while a worker dies."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from conftest import Job

PROGRAMS = Path(__file__).resolve().parent / "programs"


def test_collectives_and_a_death(job: Job) -> None:
    job.set_hosts("127.0.0.1:2")
    command = [sys.executable, str(PROGRAMS / "ddp.py"), "400", "sharded"]
    job.start_command(command, np=2, options=("--min-np", "2"))
    rounds = job.await_line("round of 2 rank 1")
    job.await_line("step 60")
    os.kill(job.worker(rounds[0]), signal.SIGKILL)
    lines = job.finish()
    checks = [line.split("check ")[1] for line in lines if "check " in line]
    assert len(checks) == 2 * 16, job.said()
    assert all(check.endswith(" ok") for check in checks), job.said()
    joined = [line for line in lines if "round of 2 rank" in line]
    assert len(joined) == 4, job.said()
    assert all("step 0 " not in line for line in joined[2:]), job.said()
    assert sum("as in peace: True" in line for line in lines) == 2, job.said()
