"""Every collective against numpy, on one rank without a driver and on more ranks with one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import TESTS, Job

CHECKS = 12


def test_alone(job: Job) -> None:
    program = str(TESTS / "programs" / "ops.py")
    said = subprocess.run(
        [sys.executable, program], env=job.environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("ok ") == CHECKS


@pytest.mark.parametrize("hosts", ["127.0.0.1:3", "127.0.0.1:1 127.0.0.2:1"])
def test_ranks(job: Job, hosts: str) -> None:
    workers = sum(int(host.split(":")[1]) for host in hosts.split())
    job.start("ops.py", np=workers, hosts=hosts)
    lines = job.finish()
    assert sum("] ok " in line for line in lines) == CHECKS * workers, job.said()
