"""Lightning, Accelerate and Transformers: a job of each, in which a worker is killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conftest import TREE, Job, build_folder

PROGRAMS = Path(__file__).resolve().parent / "programs"


def run_with_a_death(job: Job, program: str, words: list[str], ready: str, *options: str) -> list[str]:
    """Runs a program on two workers, of which one is killed and replaced, and returns the lines."""
    job.set_hosts("127.0.0.1:2")
    command = [sys.executable, str(PROGRAMS / program), *words]
    job.start_command(command, np=2, options=("--min-np", "2", *options))
    job.await_line(ready)
    job.kill_worker(1, program)
    return job.finish()


def check_elastic(job: Job, program: str, ready: str, end: str, tmp_path: Path) -> None:
    """600 samples, 10 for each of two ranks: 30 steps an epoch, each sample once."""
    samples = tmp_path / "samples"
    samples.mkdir()
    lines = run_with_a_death(job, program, ["6"], ready, "--env", f"HVD_SAMPLE_LOG={samples}")
    starts = [int(line.split("from step ")[1]) for line in lines if "from step" in line]
    assert len(starts) == 4, job.said()
    assert starts[:2] == [0, 0], job.said()
    assert starts[2] == starts[3] >= 39, job.said()
    ends = {line.split("] ")[1] for line in lines if "] end: " in line}
    assert len(ends) == 1, job.said()
    assert ends.pop().startswith(end), job.said()
    job.run([str(build_folder() / "tools" / "hvd-audit"), "--epochs", "6", str(samples)])


def test_lightning(job: Job, tmp_path: Path) -> None:
    """The optimizer's steps, the schedule's steps and the epochs are those of a run in peace."""
    end = f"end: step 180 epoch 6 rate {0.01 * 0.9**6:.6f} weights "
    check_elastic(job, "lightning_train.py", "step 40 epoch 1", end, tmp_path)


def test_accelerate(job: Job, tmp_path: Path) -> None:
    check_elastic(job, "accelerate_train.py", "step 40$", "end: step 180 epoch 6 weights ", tmp_path)


def test_transformers(job: Job, tmp_path: Path) -> None:
    """Trainer, unmodified: all processes start again, and go on from its own checkpoint."""
    site = tmp_path / "site" / "hvd_elastic-0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: hvd-elastic\nVersion: 0\n")
    (site / "entry_points.txt").write_text("[torch.backends]\nhvd_elastic = hvd_elastic_autoload:autoload\n")
    paths = f"PYTHONPATH={TREE / 'python'}{os.pathsep}{site.parent}"
    words = ["40", str(tmp_path / "checkpoints")]
    options = ("--env", paths, "--env", "HVD_BACKEND=hvd")
    lines = run_with_a_death(job, "trainer_train.py", words, "saved step 20", *options)
    starts = [line.split("] ")[1] for line in lines if "from step" in line]
    assert sorted(starts[:2]) == [f"rank {rank} of 2 by hvd from step 0" for rank in (0, 1)], job.said()
    assert len(starts) == 4, job.said()
    assert all(int(line.split("from step ")[1]) >= 20 for line in starts[2:]), job.said()
    ends = {line.split("] ")[1] for line in lines if "] end: " in line}
    assert len(ends) == 1, job.said()
    assert ends.pop().startswith("end: step 40 "), job.said()
