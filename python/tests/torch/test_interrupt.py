"""Ctrl-C in each phase of a training with PyTorch, while another rank does not come."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from conftest import Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "interrupts.py")
LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")
PHASES = ["backward", "future", "loader", "receive"]
PHASES += [pytest.param(phase, marks=LARGE) for phase in ("barrier", "work", "step")]


@pytest.mark.parametrize("phase", PHASES)
def test_interrupt(job: Job, phase: str) -> None:
    job.set_hosts("127.0.0.1:2")
    job.start_command([sys.executable, PROGRAM, phase], np=2, options=("--min-np", "2"))
    job.await_line("absent")
    line = job.await_line("waits pid")[0]
    job.await_asleep(job.worker(line))
    begun = time.monotonic()
    os.kill(job.worker(line), signal.SIGINT)
    job.await_line("interrupted")
    print(f"\n{phase}: {1000 * (time.monotonic() - begun):.0f} ms from SIGINT to KeyboardInterrupt")
