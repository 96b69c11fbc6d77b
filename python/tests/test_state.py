"""The training state: arrays in place, pickled values, files; and samples that are used once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import TESTS, Job, build_folder


def test_alone(job: Job, tmp_path: Path) -> None:
    command = [sys.executable, str(TESTS / "programs" / "states.py"), str(tmp_path)]
    said = subprocess.run(
        command,
        env={**job.environment(), "HVD_PY_ROOM": str(1 << 20)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert said.stdout.count("ok ") == 9, said.stdout + said.stderr


def test_samples(job: Job, tmp_path: Path) -> None:
    """A worker dies in the middle of an epoch; each sample of each epoch is used once, says hvd-audit."""
    log = tmp_path / "samples"
    log.mkdir()
    job.start("samples.py", "3", np=3, options=("--env", f"HVD_SAMPLE_LOG={log}"))
    lines = job.await_line("pid", 3)
    job.await_line("epoch 1")
    os.kill(job.worker(lines[2]), signal.SIGKILL)
    (job.folder / "go").touch()
    lines = job.finish()
    assert any("done 3000" in line for line in lines), job.said()
    audit = subprocess.run([str(build_folder() / "tools" / "hvd-audit"), str(log)], capture_output=True, text=True)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert "exactly once" in audit.stdout, audit.stdout
