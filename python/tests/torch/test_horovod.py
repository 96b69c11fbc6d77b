"""Horovod's own files, unmodified, over hvd_elastic. They are found by HVD_HOROVOD_SOURCE, and never stored here."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Job

PREFIX = [sys.executable, "-m", "hvd_elastic.horovod"]
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfEs", "--tb=short"]


def test_elastic_main_and_a_death(job: Job, horovod_source: Path) -> None:
    log = job.folder / "epochs.log"
    job.set_hosts("127.0.0.1:3")
    program = str(horovod_source / "test" / "integration" / "data" / "elastic_torch_main.py")
    words = ["--epochs", "3", "--batches-per-epoch", "400", "--discovery-wait", "0", "--logfile", str(log)]
    job.start_command([*PREFIX, program, *words], np=3)
    job.await_line("epoch 1 batch 0")
    job.kill_worker(1, program)
    job.finish()
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert [epoch["epoch"] for epoch in epochs] == [0, 1, 2], job.said()
    assert epochs[0]["size"] == 3, job.said()
    assert epochs[2]["rendezvous"] >= 2, job.said()
    assert epochs[2]["commits"] == 3 * 401 - 1, job.said()


class Scenario(NamedTuple):
    """A scenario of Horovod's own integration test; tests/conformance plays it with a program in C."""

    options: str
    lines: list[str]  # of each epoch: size, rank 0's host, the rank with which it began, how many rounds it has seen
    hosts: Sequence[str] = ("localhost:2 127.0.0.1:2",)  # what discovery prints when so many epochs are done
    exits: str = "{}"  # who fails when
    code: int = 0


LIKE_HOROVOD = " --blacklist-scope host --blacklist-forever"
ONE_FAILS, ALL_FAIL = '{"(1, 0)": [0]}', '{"(1, 0)": [0, 1, 2, 3]}'
COME_AND_GO = ["localhost:1", "localhost:1 127.0.0.1:1", "127.0.0.1:1"]
LEFT = ["4 localhost 0 1", "2 127.0.0.1 2 2", "2 127.0.0.1 2 2"]
SCENARIOS = {
    "hosts_added_and_removed": Scenario(
        "-np 1 --max-np 2", ["1 localhost 0 1", "2 localhost 0 2", "1 127.0.0.1 1 3"], COME_AND_GO
    ),
    "single_rank_failure": Scenario("--min-np 2 --max-np 4" + LIKE_HOROVOD, LEFT, exits=ONE_FAILS),
    "fault_tolerance_without_scaling": Scenario("--min-np 2" + LIKE_HOROVOD, LEFT, exits=ONE_FAILS),
    "all_ranks_failure": Scenario("--min-np 2" + LIKE_HOROVOD, LEFT[:1], exits=ALL_FAIL, code=1),
    "all_hosts_blacklisted": Scenario("--min-np 2" + LIKE_HOROVOD, LEFT[:1], exits='{"(1, 0)": [0, 2]}', code=1),
    "min_hosts_timeout": Scenario("--min-np 4 --elastic-timeout 60s" + LIKE_HOROVOD, LEFT[:1], exits=ONE_FAILS, code=3),
    "reset_limit": Scenario(
        "-np 1 --max-np 2 --reset-limit 1", ["1 localhost 0 1", "2 localhost 0 2"], COME_AND_GO, code=1
    ),
}


# No worker fails in two of these; min_hosts_timeout waits for its whole timeout, so once is enough.
ONCE = ("hosts_added_and_removed", "min_hosts_timeout", "reset_limit")
CASES = [(name, how) for name in SCENARIOS for how in ("exception", "kill") if how == "kill" or name not in ONCE]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_elastic_main_in(job: Job, horovod_source: Path, name: str, how: str) -> None:
    wanted = SCENARIOS[name]
    log = job.folder / "epochs.log"
    log.touch()
    for epochs, hosts in enumerate(wanted.hosts):
        (job.folder / f"hosts.{epochs}").write_text(hosts.replace(" ", "\n") + "\n")
    last = len(wanted.hosts) - 1
    job.discovery.write_text(
        f"#!/bin/sh\nn=$(wc -l <'{log}')\n[ $n -lt {last} ] || n={last}\ncat '{job.folder}'/hosts.$n\n"
    )
    schedule = [[epoch, hosts.split()] for epoch, hosts in enumerate(wanted.hosts)]
    program = str(horovod_source / "test" / "integration" / "data" / "elastic_torch_main.py")
    words = ["--logfile", str(log), "--discovery-wait", "90", "--discovery-schedule", json.dumps(schedule)]
    words += ["--exit-schedule", wanted.exits, "--exit-mode", how]
    job.start_command([*PREFIX, program, *words], np=4, options=tuple(wanted.options.split()))
    job.finish(wanted.code)
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    seen = [f"{line['size']} {line['hostname']} {line['start_rank']} {line['rendezvous']}" for line in epochs]
    assert seen == wanted.lines, job.said()
    assert [line["batch"] for line in epochs] == [10] * len(seen)


def test_states_and_samplers(job: Job, horovod_source: Path) -> None:
    job.set_hosts("127.0.0.1:1")  # its assertions hold for one worker only
    job.start_command([*PREFIX, *PYTEST, str(horovod_source / "test" / "single" / "test_torch_elastic.py")], np=1)
    assert any("2 passed" in line for line in job.finish()), job.said()


# Horovod's tests try each optimizer that PyTorch has. Muon is younger, and refuses the parameters of these tests.
WITHOUT_MUON = """import torch
if hasattr(torch.optim, "Muon"):
    torch.optim.Muon.__module__ = "younger"
"""


def test_operations(job: Job, horovod_source: Path) -> None:
    """All of test_torch.py, with calls in any order; docs/pytorch.md lists what is skipped, and why."""
    job.set_hosts("127.0.0.1:2")
    (job.folder / "without_muon.py").write_text(WITHOUT_MUON)
    words = ["-p", "without_muon", str(horovod_source / "test" / "parallel" / "test_torch.py")]
    job.start_command([*PREFIX, *PYTEST, *words], options=("--env", "HVD_NEGOTIATE=1"))
    job.await_line(r"\d+ passed", 2)
    lines = job.finish()
    skips = [line for line in lines if "SKIPPED" in line]
    print("\n".join(skips))
    totals = [line for line in lines if re.search(r"\d+ passed", line)]
    assert all("105 passed, 10 skipped" in line for line in totals), job.said()
