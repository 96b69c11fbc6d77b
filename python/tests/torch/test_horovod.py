"""Horovod's own files, unmodified, over hvd_elastic. They are found by HVD_HOROVOD_SOURCE, and never stored here."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from conftest import Job

PREFIX = [sys.executable, "-m", "hvd_elastic.horovod"]
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfEs", "--tb=short"]


@pytest.fixture
def source() -> Path:
    """A checkout of Horovod, or as much of it as these tests use."""
    named = os.environ.get("HVD_HOROVOD_SOURCE", "")
    if not named:
        pytest.skip("HVD_HOROVOD_SOURCE names no checkout of Horovod")
    found = Path(named)
    assert (found / "test").is_dir(), f"HVD_HOROVOD_SOURCE={named}: there is no folder named test; name a checkout"
    return found


def test_elastic_main_and_a_death(job: Job, source: Path) -> None:
    log = job.folder / "epochs.log"
    job.set_hosts("127.0.0.1:3")
    program = str(source / "test" / "integration" / "data" / "elastic_torch_main.py")
    words = ["--epochs", "3", "--batches-per-epoch", "400", "--discovery-wait", "0", "--logfile", str(log)]
    job.start_command([*PREFIX, program, *words], np=3)
    job.await_line("epoch 1 batch 0")
    victims = [pid for pid in job.processes("HOROVOD_RANK=1") if program.encode() in _command(pid)]
    assert len(victims) == 1, job.said()
    os.kill(victims[0], signal.SIGKILL)
    job.finish()
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert [epoch["epoch"] for epoch in epochs] == [0, 1, 2], job.said()
    assert epochs[0]["size"] == 3, job.said()
    assert epochs[2]["rendezvous"] >= 2, job.said()
    assert epochs[2]["commits"] == 3 * 401 - 1, job.said()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_states_and_samplers(job: Job, source: Path) -> None:
    job.set_hosts("127.0.0.1:1")  # its assertions hold for one worker only
    job.start_command([*PREFIX, *PYTEST, str(source / "test" / "single" / "test_torch_elastic.py")], np=1)
    assert any("2 passed" in line for line in job.finish()), job.said()


@pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="some minutes; HVD_TORCH_LARGE=1 runs it")
def test_operations(job: Job, source: Path) -> None:
    """test_torch.py but for the tests of names; docs/pytorch.md lists what fails, and why."""
    job.set_hosts("127.0.0.1:2")
    words = ["-k", "not duplicate_name_error", str(source / "test" / "parallel" / "test_torch.py")]
    job.start_command([*PREFIX, *PYTEST, *words])
    summary = job.await_line(r"\d+ failed, \d+ passed, \d+ skipped")
    print(summary[0])
    job.clean_up()
