"""The examples that need PyTorch, each with a worker that is killed (test_plain.py runs plain_ddp.py)."""

from __future__ import annotations

import re
import sys

from conftest import TREE, Job

EXAMPLES = TREE / "python" / "examples"


def run_with_a_death(job: Job, program: str, words: list[str], ready: str) -> list[str]:
    """Runs an example on two workers, of which one is killed and replaced, and returns the lines."""
    job.set_hosts("127.0.0.1:2")
    job.start_command([sys.executable, str(EXAMPLES / program), *words], np=2, options=("--min-np", "2"))
    job.await_line(ready)
    job.kill_worker(1, program)
    return job.finish()


def test_gpt(job: Job) -> None:
    """The loss falls, over the death too, and both workers have made all steps."""
    words = ["--epochs", "4", "--layers", "2", "--width", "64", "--context", "32", "--print-every", "10"]
    lines = run_with_a_death(job, "gpt.py", words, "step 60 loss")
    starts = [int(line.split("from step ")[1]) for line in lines if "from step" in line]
    assert len(starts) == 4, job.said()
    assert starts[:2] == [0, 0], job.said()
    assert min(starts[2:]) >= 59, job.said()
    found = [re.search(r"step (\d+) loss ([0-9.]+)$", line) for line in lines]
    losses = [(int(match[1]), float(match[2])) for match in found if match]
    assert [step for step, _ in losses] == sorted({step for step, _ in losses}), job.said()
    assert losses[0][1] > 2.5, job.said()
    assert losses[-1][1] < 1.8, job.said()
    ends = [match for line in lines if (match := re.search(r"after (\d+) steps it writes: ", line))]
    assert len(ends) == 1, job.said()
    assert 0 <= int(ends[0][1]) - losses[-1][0] < 10, job.said()


def test_ddp(job: Job) -> None:
    lines = run_with_a_death(job, "ddp.py", [], "epochs 2 loss")
    starts = [line for line in lines if "from epoch" in line]
    assert len(starts) == 4, job.said()
    assert all("from epoch 0" not in line for line in starts[2:]), job.said()
    ends = {line.split("at the end ")[1] for line in lines if "at the end" in line}
    assert len(ends) == 1, job.said()
    assert float(ends.pop()) < 0.1, job.said()
