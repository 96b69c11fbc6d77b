"""Ctrl-C ends each wait, though the rank that is waited for does not come."""

from __future__ import annotations

import os
import signal

import pytest
from conftest import Job
from hvd_elastic import _lib

needs_revoke = pytest.mark.skipif(not _lib.has("hvd_revoke"), reason="libhvd has no hvd_revoke")


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param("run", marks=needs_revoke),
        pytest.param("request", marks=needs_revoke),
        pytest.param("gather", marks=needs_revoke),
        pytest.param("train", marks=needs_revoke),
        "compute",
        "round",
    ],
)
def test_interrupt(job: Job, phase: str) -> None:
    job.start("waits.py", phase, np=2, options=("--min-np", "2"))
    job.await_line("absent")
    line = job.await_line("waits pid")[0]
    job.await_asleep(job.worker(line))
    os.kill(job.worker(line), signal.SIGINT)
    job.await_line("interrupted")
