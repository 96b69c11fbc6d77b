"""HVD_TORCH_ON_LOSS=shrink: an unmodified DDP program goes on with the survivors of a death.

    HVD_TORCH_LARGE=1 python/tests/run python/tests/torch/test_shrink.py -k campaign --kills 3 --seeds 20 -s

plays so many deaths in each of so many trainings of four workers, at places that the seeds choose.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest
from conftest import Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "shrinks.py")
COMMAND = [sys.executable, "-m", "hvd_elastic.torch.run", PROGRAM]
OPTIONS = ("--env", "HVD_TORCH_ON_LOSS=shrink", "--progress-restarts", "unlimited")
OPTIONS += ("--progress-restarts-job", "unlimited")
DETAILED = ("--log-level", "info,job:debug")
STEPS = 40
PHASES = ["forward", "forwarded", "between", "backward", "step", "metric", "barrier"]
LARGE = "HVD_TORCH_LARGE" in os.environ
# HVD_TORCH_LARGE=1: each phase with each rank.
DEATHS = [("between", 2), ("step", 0)]
DEATHS = [(where, rank) for where in PHASES for rank in range(3)] if LARGE else DEATHS


def ends_of(job: Job, lines: list[str]) -> list[str]:
    """What the workers have said at their ends, without the [rank host:slot]."""
    return [line.split("] ")[1] for line in lines if re.search(r"\] end \w{16} ", line)]


def check_one_death(job: Job, lines: list[str]) -> None:
    """Two of three have gone on, with equal models, each step made with three or two members, one skipped at most."""
    ends = ends_of(job, lines)
    assert len(ends) == 2, job.said()
    assert sum("starts" in line for line in lines) == 3, job.said()  # no program has started again
    assert len({end.split()[1] for end in ends}) == 1, job.said()
    for end in ends:
        by_size = {int(size): int(count) for size, count in re.findall(r"(\d): (\d+)", end)}
        assert set(by_size) == {3, 2}, end
        assert sum(by_size.values()) == STEPS, end
        assert re.search(r"skipped [01] ", end), end
    assert {end.split()[-1] for end in ends} == {"0", "1"}, ends
    assert "the program goes on with 2 workers, without those that began as rank" in job.said()


@pytest.mark.parametrize(("where", "rank"), DEATHS)
def test_death(job: Job, where: str, rank: int) -> None:
    job.set_hosts("127.0.0.1:3")
    options = (*OPTIONS, "--blacklist-cooldown-range", "1h", "1h")
    job.start_command([*COMMAND, str(STEPS), f"14:{rank}:{where}"], np=3, options=options)
    check_one_death(job, job.finish())


def test_two_deaths(job: Job) -> None:
    """Of four, one dies in the backward pass, another one in the step that follows the skipped one."""
    job.set_hosts("127.0.0.1:4")
    options = (*OPTIONS, "--blacklist-cooldown-range", "1h", "1h")
    job.start_command([*COMMAND, str(STEPS), "14:3:between", "15:1:forward"], np=4, options=options)
    ends = ends_of(job, job.finish())
    assert len(ends) == 2, job.said()
    assert len({end.split()[1] for end in ends}) == 1, job.said()


def test_too_few(job: Job) -> None:
    """Fewer than --min-np survive: the program starts again, on all."""
    job.set_hosts("127.0.0.1:3")
    mark = job.folder / "held"
    mark.touch()
    job.start_command([*COMMAND, str(STEPS)], np=3, options=(*OPTIONS, "--min-np", "3"))
    starts = job.await_line("rank 1 of 3 starts")
    job.await_line("step 20$")
    os.kill(job.worker(starts[0]), signal.SIGKILL)
    mark.unlink()
    lines = job.finish()
    assert sum("starts" in line for line in lines) == 6, job.said()
    ends = ends_of(job, lines)
    assert len(ends) == 3, job.said()
    assert all("{3: 40} skipped 0" in end for end in ends), ends


def test_too_late(job: Job) -> None:
    """A worker that replaces the dead one is not taken in: it ends at the next change, and the others go on."""
    job.set_hosts("127.0.0.1:3")
    mark = job.folder / "held"
    mark.touch()
    job.start_command([*COMMAND, str(STEPS), "14:1:between"], np=3, options=(*OPTIONS, *DETAILED))
    starts = job.await_line("rank . of 3 starts", 3)
    job.await_line("step 20$")
    job.await_log("127.0.0.1:1#4 is ready")
    victim = next(line for line in starts if "rank 2 of 3" in line)
    os.kill(job.worker(victim), signal.SIGKILL)
    mark.unlink()
    job.await_log("takes no worker in later")
    ends = ends_of(job, job.finish())
    assert len(ends) == 1, job.said()
    assert "1: " in ends[0], ends


@pytest.mark.skipif(not LARGE, reason="HVD_TORCH_LARGE=1 runs it")
def test_campaign(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The survivors end with equal models, and have lost a batch for each death at most."""
    kills, first = min(request.config.getoption("--kills"), 3), request.config.getoption("--first-seed")
    for seed in range(first, first + request.config.getoption("--seeds")):
        draw = random.Random(seed)
        ranks = draw.sample(range(4), kills)
        plan = [f"{draw.choice((14, 19))}:{rank}:{draw.choice(PHASES)}" for rank in ranks[:1]]
        plan += [f"{draw.choice((14, 15, 16, 20))}:{rank}:{draw.choice(PHASES[:-1])}" for rank in ranks[1:]]
        (tmp_path / str(seed)).mkdir()
        job = Job(tmp_path / str(seed))
        try:
            job.set_hosts("127.0.0.1:4")
            options = (*OPTIONS, "--blacklist-cooldown-range", "1h", "1h")
            job.start_command([*COMMAND, str(STEPS), *plan], np=4, options=options)
            lines = job.finish()
        finally:
            job.clean_up()
        ends = ends_of(job, lines)
        print(f"\nseed {seed}: {plan}: {ends}", flush=True)
        assert len(ends) == 4 - kills, job.said()
        assert sum("starts" in line for line in lines) == 4, job.said()
        assert len({end.split()[1] for end in ends}) == 1, job.said()
        for end in ends:
            assert sum(int(count) for count in re.findall(r"\d: (\d+)", end)) == STEPS, end
            assert int(end.split("skipped ")[1].split()[0]) <= kills, end
