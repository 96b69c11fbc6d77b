"""/dev/shm is full: libhvd does not need it, and the workers of a DataLoader, which do, say so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "loader.py")
FULL = 'mount -t tmpfs -o size=4k tmpfs /dev/shm && head -c 4096 /dev/zero >/dev/shm/all && exec "$@"'


@pytest.fixture
def full() -> list[str]:
    """The beginning of a command that runs with a full /dev/shm of its own."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no program unshare")
    words = [unshare, "-m", "sh", "-c", FULL, "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount in a namespace of its own")
    return words


def test_training(job: Job, full: list[str]) -> None:
    """Two workers on one host train, and commit, without a byte of /dev/shm."""
    (job.folder / "go").touch()
    job.set_hosts("127.0.0.1:2")
    job.start_command([*full, sys.executable, PROGRAM, "2", "0"], np=2)
    lines = job.finish()
    assert sum("each sample [2] times" in line for line in lines) == 2, job.said()


def test_workers_of_a_loader(job: Job, full: list[str]) -> None:
    """The trainer gets torch's error, which names the cause; the job ends with it, as it comes again each time."""
    (job.folder / "go").touch()
    job.set_hosts("127.0.0.1:1")
    job.start_command([*full, sys.executable, PROGRAM, "2", "1"], np=1)
    job.finish(1)
    assert "No space left on device" in job.said() or "shared memory" in job.said()
