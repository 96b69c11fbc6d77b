"""Children of workers: they know the place, and leave the job alone."""

from __future__ import annotations

from conftest import Job


def test_children(job: Job) -> None:
    job.start("children.py", np=2)
    lines = job.finish()
    assert sum("] ok " in line for line in lines) == 6, job.said()
