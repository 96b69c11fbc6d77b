"""Workers die: the others go on from the last commit."""

from __future__ import annotations

import os
import signal

from conftest import Job


def test_kill_one_of_three(job: Job) -> None:
    job.start("sums.py", "600", "2", np=3)
    rounds = job.await_line("round of 3", 3)
    job.await_line("step 100")
    os.kill(job.worker(rounds[1]), signal.SIGKILL)
    lines = job.finish()
    assert any("round of 2" in line for line in lines), job.said()
    results = [line.split("result ")[1] for line in lines if "result" in line]
    assert results, job.said()
    assert set(results) == {"600 600.0 600.0"}, job.said()
