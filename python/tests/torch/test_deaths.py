"""Workers of a training die in each phase of a step, and are replaced: the training ends as one in peace.

    HVD_TORCH_LARGE=1 python/tests/run python/tests/torch/test_deaths.py -k campaign --kills 125 --seeds 8 -s

plays 1,000 deaths, and as many joins, at moments that the seeds choose: with rounds of three workers alone ("fixed"),
and again with two that go on until the third is back ("elastic"). A seed that fails is played again with --first-seed.
"""

from __future__ import annotations

import functools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import conftest
import pytest
from conftest import Job, build_folder

PROGRAMS = Path(__file__).resolve().parent / "programs"
PHASES = {
    "ddp": ["forward", "before", "between", "after", "step", "commit", "committed", "loader", "pickling"],
    "optimizer": ["forward", "after", "synchronize", "step", "commit", "committed", "loader", "pickling"],
}
STEPS_OF_AN_EPOCH = 20
LARGE = pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")
# Each death costs the start of a Python that imports torch. Without HVD_TORCH_LARGE=1 a worker dies where a collective
# is under way or the state is between two commits, and the exceptions are raised in the other places.
DEATHS = {
    "ddp": ["before", "between", "after", "commit"],
    "optimizer": ["after", "synchronize", "commit", "pickling"],
}
EXCEPTIONS = ["forward", "between", "step", "committed", "loader", "pickling"]
if "HVD_TORCH_LARGE" in os.environ:
    DEATHS, EXCEPTIONS = PHASES, PHASES["ddp"]


def play(job: Job, how: str, epochs: int, plan: list[str], least: int) -> list[str]:
    """Runs a training with these deaths on three workers, and returns what those have said at the end."""
    log = job.folder / "samples"
    log.mkdir()
    job.set_hosts("127.0.0.1:3")
    command = [sys.executable, str(PROGRAMS / "deaths.py"), how, str(epochs), *plan]
    job.start_command(command, np=3, options=("--min-np", str(least), "--env", f"HVD_SAMPLE_LOG={log}"))
    patience, conftest.PATIENCE = conftest.PATIENCE, conftest.PATIENCE * (1 + len(plan) / 4)
    try:
        lines = job.finish()
    finally:
        conftest.PATIENCE = patience
    audit = subprocess.run(
        [str(build_folder() / "tools" / "hvd-audit"), str(log)], capture_output=True, text=True, check=False
    )
    assert audit.returncode == 0, audit.stdout + audit.stderr + job.said()
    assert "exactly once" in audit.stdout, audit.stdout
    died = {name for name in os.listdir(job.folder) if name.startswith("died-")}
    assert died == {"died-" + word.replace(":", "-") for word in plan}, job.said()
    return [line.split("end ")[1] for line in lines if re.search(r"\] end \w{16} ", line)]


@functools.cache
def in_peace(how: str, epochs: int) -> str:
    """The end of a training without a death."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder))
        try:
            ends = play(job, how, epochs, [], 3)
        finally:
            job.clean_up()
        assert len(ends) == 3, job.said()
        assert len(set(ends)) == 1, ends
        return ends[0]


def check_as_in_peace(job: Job, how: str, plan: list[str]) -> None:
    """The training with these deaths, on a fixed number of workers, ends as one in peace: bit for bit."""
    numbers = [int(word.split(":")[0]) for word in plan if word[0] != "*"]
    epochs = max(numbers) // STEPS_OF_AN_EPOCH + 1
    ends = play(job, how, epochs, plan, 3)
    assert set(ends) == {in_peace(how, epochs)}, job.said()


@pytest.mark.parametrize("how", ["ddp", "optimizer"])
def test_each_phase(job: Job, how: str) -> None:
    """One training in which a worker dies in each of these phases: rank 0, then rank 1, and so on."""
    plan = [f"{2 + number}:{number % 3}:{phase}" for number, phase in enumerate(DEATHS[how])]
    check_as_in_peace(job, how, [*plan, "*:1:reset"])


def test_an_exception_in_each_callback(job: Job) -> None:
    """Where a program's own code is called, it may raise: the worker has failed, for this reason, and is replaced."""
    plan = [f"{2 + number}:{number % 3}:{phase}!" for number, phase in enumerate(EXCEPTIONS)]
    check_as_in_peace(job, "ddp", [*plan, "*:1:reset!", "*:2:loading!"])
    for phase in [*EXCEPTIONS, "reset", "loading"]:
        assert f"Planned: in {phase}" in job.said(), phase


@LARGE
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize(("how", "phase"), [(how, phase) for how, phases in PHASES.items() for phase in phases])
def test_one_phase(job: Job, how: str, phase: str, rank: int) -> None:
    check_as_in_peace(job, how, [f"5:{rank}:{phase}"])


def test_two_at_once(job: Job) -> None:
    """Two of three die in one step, and then one of those that are new, while its state is loaded."""
    check_as_in_peace(job, "ddp", ["4:0:before", "4:2:between", "*:2:reset"])


def test_a_worker_of_the_loader(job: Job) -> None:
    """A child that fetches samples dies: the trainer ends with the error of torch, and is replaced."""
    check_as_in_peace(job, "ddp", ["0:1:loader_child"])  # a child knows the step at which it was forked
    assert "DataLoader worker" in job.said()


def planned(seed: int, kills: int) -> list[str]:
    """So many deaths, one to four steps apart, of any rank in any phase."""
    draw, step, plan = random.Random(seed), 2, []
    for _ in range(kills):
        plan.append(f"{step}:{draw.randrange(3)}:{draw.choice(PHASES['ddp'])}")
        step += draw.randint(1, 4)
    return plan


@pytest.mark.parametrize("size", [pytest.param("fixed", marks=LARGE), "elastic"])
def test_campaign(tmp_path: Path, request: pytest.FixtureRequest, size: str) -> None:
    """fixed: the model is that of peace, bit for bit. elastic: the loss is that of peace but for the order of sums."""
    kills, first = request.config.getoption("--kills"), request.config.getoption("--first-seed")
    for seed in range(first, first + request.config.getoption("--seeds")):
        plan = planned(seed, kills)
        epochs = int(plan[-1].split(":")[0]) // STEPS_OF_AN_EPOCH + 1
        peace = in_peace("ddp", epochs)
        (tmp_path / str(seed)).mkdir()
        job = Job(tmp_path / str(seed))
        begun = time.monotonic()
        try:
            ends = play(job, "ddp", epochs, plan, 3 if size == "fixed" else 1)
        finally:
            job.clean_up()
        assert len(set(ends)) == 1, job.said()
        if size == "fixed":
            assert ends[0] == peace, job.said()
        else:
            assert float(ends[0].split()[1]) == pytest.approx(float(peace.split()[1]), rel=1e-3), job.said()
        took = time.monotonic() - begun
        print(f"\nseed {seed}, {size}: {kills} deaths in {took:.0f} s; end {ends[0]}; in peace {peace}", flush=True)
