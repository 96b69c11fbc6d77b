"""Sends and receives of torch.distributed: each way to send, what does not fit, a pipeline of which a stage dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "pipeline.py")


@pytest.mark.parametrize("hosts", ["127.0.0.1:3", "127.0.0.1:2 127.0.0.2:1"])
def test_a_stage_dies(job: Job, hosts: str) -> None:
    job.set_hosts(hosts)
    job.hold()
    job.start_command([sys.executable, PROGRAM, "150"], np=3, options=("--min-np", "3"))
    job.await_line("step 40$")
    rounds = [line for line in job.lines() if "rank 1 step 1 pid" in line]
    job.kill(job.worker(rounds[-1]))
    lines = job.finish()
    checks = [line for line in lines if "check " in line]
    assert len(checks) == 1 + 3 + 3 + 1 + 2, job.said()
    assert all(check.endswith(" ok") for check in checks), job.said()
    assert sum("told True" in line for line in lines) >= 2, job.said()
    later = [line for line in lines if " rank " in line and " step " in line][6:]
    assert len(later) == 3, job.said()
    assert all(int(line.split("step ")[1].split()[0]) >= 40 for line in later), job.said()
    assert sum("as in peace: True" in line for line in lines) == 3, job.said()
