"""A program raises an exception: the job fails, and the log of the driver names the exception."""

from __future__ import annotations

from pathlib import Path

from conftest import Job

BEHIND = (
    "the training has finished, but a worker failed: 127.0.0.1:0#1: exit code 1, the worker's program failed after its "
    "training: OSError: no space for the last file"
)


def test_within_training(job: Job) -> None:
    job.start("raises.py", "within", np=1, options=("--slot-restarts", "0"))
    job.finish(1)
    assert "the worker's program raised an exception: KeyError: 'a bug'" in job.said()
    assert "HVD_?" not in job.said()


def test_behind_training(job: Job) -> None:
    job.start("raises.py", "behind", np=1)
    job.finish(1)
    assert BEHIND in job.said()


def test_behind_training_first(job: Job) -> None:
    """The others end when the process of the worker that has raised is gone."""
    job.start("raises.py", "first", np=3)
    job.await_log("exit code 1")
    Path(job.folder, "go").touch()
    lines = job.finish(1)
    assert sum("ends" in line for line in lines) == 2, job.said()
    assert BEHIND in job.said()


def test_behind_training_last(job: Job) -> None:
    """The others have finished when the worker raises."""
    job.start("raises.py", "last", np=3)
    job.await_line("ends", 2)
    Path(job.folder, "go").touch()
    job.finish(1)
    assert BEHIND in job.said()
