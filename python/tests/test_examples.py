"""The example with numpy, with a worker that is killed (test_wheel.py runs sums.py)."""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import TREE, Job, build_folder


def test_regression(job: Job, tmp_path: Path) -> None:
    """The result is that of a run in peace, and hvd-audit finds each sample once in an epoch."""
    program = "regression.py"
    samples = tmp_path / "samples"
    samples.mkdir()
    job.set_hosts("127.0.0.1:3")
    command = [sys.executable, str(TREE / "python" / "examples" / program), "20"]
    job.start_command(command, np=3, options=("--env", f"HVD_SAMPLE_LOG={samples}"))
    job.await_line("epochs 3 loss")
    job.kill_worker(1, program)
    lines = job.finish()
    assert any("of 2 from epoch" in line for line in lines), job.said()
    off = {line.split("off by ")[1] for line in lines if "off by" in line}
    assert len(off) == 1, job.said()
    assert float(off.pop()) < 0.02, job.said()
    assert any("epochs 20 loss 0.0" in line for line in lines), job.said()
    job.run([str(build_folder() / "tools" / "hvd-audit"), "--epochs", "20", str(samples)])
