"""A prefetching DataLoader over hvd_elastic.torch.Sampler: each sample once, also when a worker dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TREE, Job, build_folder

PROGRAMS = Path(__file__).resolve().parent / "programs"
LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")


@pytest.mark.parametrize("words", [("2",), pytest.param(("2", "persistent"), marks=LARGE)])
def test_killed_and_replaced(job: Job, words: tuple[str, ...]) -> None:
    """A worker dies in the second epoch, with batches fetched ahead, and is replaced."""
    log = job.folder / "samples"
    log.mkdir()
    job.set_hosts("127.0.0.1:2")
    command = [sys.executable, str(PROGRAMS / "loader.py"), "3", *words]
    job.start_command(command, np=2, options=("--env", f"HVD_SAMPLE_LOG={log}"))
    rounds = job.await_line("round of 2 steps 0", 2)
    job.await_line("epoch 1$", 2)
    (job.folder / "go").touch()
    job.await_line("in epoch 1", 4)
    os.kill(job.worker(rounds[1]), signal.SIGKILL)
    lines = job.finish()
    told = [line for line in lines if "each sample" in line]
    assert told, job.said()
    assert all("each sample [3] times, sampler at 3" in line for line in told), job.said()
    assert sum("round of" in line for line in lines) >= 3, job.said()
    audit = subprocess.run([str(build_folder() / "tools" / "hvd-audit"), str(log)], capture_output=True, text=True)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert "exactly once" in audit.stdout, audit.stdout
    print(audit.stdout)


def test_wrong_uses(job: Job) -> None:
    command = [sys.executable, str(PROGRAMS / "loader_wrong.py")]
    said = subprocess.run(command, env=job.environment(), capture_output=True, text=True, timeout=100, check=False)
    assert said.returncode == 0, said.stderr
    assert [line.split()[0] for line in said.stdout.splitlines()] == ["ok"] * 8, said.stdout


def test_warnings(job: Job) -> None:
    """A program that says too little to be elastic is told so, once for each kind, with the remedy."""
    job.set_hosts("127.0.0.1:1")
    job.start_command([sys.executable, str(PROGRAMS / "unwary.py")], np=1)
    lines = job.finish()
    assert [line.split("] ")[1].split()[0] for line in lines] == ["ok"] * 6, job.said()


def test_example(job: Job) -> None:
    """The code of docs/pytorch.md is that of the example, which goes on when a worker dies."""
    shown = re.findall(r"```python\n(.*?)```", (TREE / "docs" / "pytorch.md").read_text(), re.DOTALL)
    example = TREE / "python" / "examples" / "ddp.py"
    assert shown, "docs/pytorch.md shows no code"
    for part in shown[0].split("\n...\n"):
        assert part in example.read_text()
    job.set_hosts("127.0.0.1:2")
    job.start_command([sys.executable, str(example)], np=2)
    job.await_line("of 2 from epoch 0", 2)
    job.await_line("epochs 2")
    os.kill(job.processes("HVD_RANK=1")[0], signal.SIGKILL)
    lines = job.finish()
    assert any("epochs 10" in line for line in lines), job.said()
    assert sum("from epoch" in line for line in lines) >= 3, job.said()
    losses = {line.split("at the end ")[1] for line in lines if "at the end" in line}
    assert len(losses) == 1, job.said()
    last = float(losses.pop())
    assert last < 0.1, job.said()
    means = {line.split()[-3]: float(line.split()[-1]) for line in lines if "epochs " in line}
    assert list(means) == [str(epoch) for epoch in range(1, 11)], job.said()
    assert all(last / 2 < mean < 1.5 for mean in means.values()), job.said()
    assert means["10"] < means["1"] / 2, job.said()
