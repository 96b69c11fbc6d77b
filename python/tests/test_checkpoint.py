"""A program asks for durable checkpoints, and waits for them or not."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TREE, Job


class Store:
    """A store of --checkpoint-command that can hold the parts of checkpoints, or refuse them."""

    def __init__(self, folder: Path) -> None:
        self.objects = folder / "objects"
        self.objects.mkdir()
        self.broken = folder / "broken"
        self.gate = folder / "gate"
        self.program = folder / "store"
        self.program.write_text(
            f"""#!/bin/sh
case "$1 $2" in
  'put commit-'*)
    if [ -e '{self.broken}' ]; then echo 'the store is full' >&2; exit 1; fi
    if [ -p '{self.gate}' ]; then : <'{self.gate}'; fi ;;
esac
exec '{TREE}/tests/shell/store.sh' '{self.objects}' "$@"
"""
        )
        self.program.chmod(0o755)
        self.options = ("--checkpoint-command", str(self.program), "--checkpoint-interval", "1h")

    def hold(self) -> None:
        """Parts of checkpoints wait from now on."""
        os.mkfifo(self.gate)

    def release(self) -> None:
        """Lets those that wait go on, and all that come later."""
        if self.gate.exists() and stat.S_ISFIFO(self.gate.stat().st_mode):
            handle = os.open(self.gate, os.O_RDWR | os.O_NONBLOCK)
            self.gate.unlink()
            os.close(handle)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in which nothing waits after the test."""
    made = Store(tmp_path)
    yield made
    made.release()


def durable(lines: list[str]) -> list[int]:
    return [int(found.group(1)) for line in lines if (found := re.search(r"durable (\d+)", line))]


def test_all_killed(job: Job, tmp_path: Path) -> None:
    """The training goes on from the checkpoint for which it has waited, or from a later one."""
    options = ("--checkpoint-dir", str(tmp_path / "kept"), "--checkpoint-interval", "1h")
    job.start("checkpoints.py", "waits", "1000000", options=options)
    last = durable(job.await_line("durable", 3))[-1]
    job.kill_all()
    assert list((tmp_path / "kept").glob("commit-*/COMPLETE"))
    job.start("checkpoints.py", "waits", str(last + 200), options=options)
    starts = [int(line.split()[-3]) for line in job.await_line("round of 2", 2)]
    assert min(starts) >= last, job.said()
    lines = job.finish()
    assert any(f"result {last + 200} {last + 200}.0 {last + 200}.0" in line for line in lines), job.said()


def test_not_waited(job: Job, store: Store) -> None:
    """Requests that the program drops cost nothing; another thread than the asker waits for the last one."""
    job.start("checkpoints.py", "drops", "3000", options=store.options)
    lines = job.finish()
    assert durable(lines) == [3000], job.said()
    assert list(store.objects.glob("commit-*/COMPLETE"))


def test_time_limit(job: Job, store: Store) -> None:
    """A wait that is over leaves the request, which another wait finds complete."""
    store.hold()
    job.start("checkpoints.py", "reports", "10", options=store.options)
    job.await_line("TimedOut -14 after 10: the checkpoint is not complete after 0.05 s")
    store.release()
    assert durable(job.finish()) == [10, 10], job.said()


def test_store_fails(job: Job, store: Store) -> None:
    """The wait says why there is no checkpoint, each time, and the training goes on."""
    store.broken.touch()
    job.start("checkpoints.py", "waits", "30", options=store.options)
    lines = job.finish()
    failed = [line for line in lines if "HvdError -7 after" in line and "the store is full" in line]
    assert len(failed) == 3, job.said()


def test_no_directory(job: Job) -> None:
    job.start("checkpoints.py", "waits", "10")
    lines = job.finish()
    assert any("HvdError -4 after 10" in line and "--checkpoint-dir DIR" in line for line in lines), job.said()


def test_death_while_waiting(job: Job, store: Store) -> None:
    """A member dies: the wait ends with Revoked, and the program asks again in the next round."""
    store.hold()
    job.start("checkpoints.py", "waits", "20", np=3, options=store.options)
    ranks = job.await_line("round of 3 rank", 3)
    job.await_line("asked 10")
    victim = next(line for line in ranks if "rank 2" in line)
    os.kill(job.worker(victim), signal.SIGKILL)
    job.await_line("revoked: the round was revoked before the checkpoint was complete")
    store.release()
    lines = job.finish()
    assert durable(lines)[-1:] == [20], job.said()
    assert any("result 20 20.0 20.0" in line for line in lines), job.said()


def test_interrupt(job: Job, store: Store) -> None:
    """Ctrl-C ends the wait for a checkpoint that does not become complete."""
    store.hold()
    job.start("waits.py", "checkpoint", options=store.options)
    job.await_line("absent")
    line = job.await_line("waits pid")[0]
    os.kill(job.worker(line), signal.SIGINT)
    job.await_line("interrupted")
