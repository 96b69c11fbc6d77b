"""A program reports values, and an operator sees them."""

from __future__ import annotations

import json
import select
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, Job


def reported(job: Job) -> dict[str, dict[str, object]]:
    """The values that the driver shows, by name, when it shows some."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        answer = json.loads(job.run([job.elastic, "status", "--state-dir", str(job.folder / "state"), "--json"]))
        if answer["reported"]:
            return {value["name"]: value for value in answer["reported"]}
        select.select([], [], [], 0.05)
    pytest.fail(f"nothing is reported\n{job.said()}")


def test_values_of_rank_0(job: Job, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    job.start("reports.py", str(stop), np=2, options=("--beat", "100ms"))
    job.await_line("reported", 2)
    values = reported(job)
    stop.touch()
    job.finish()
    assert set(values) == {"loss", "rank", "not/a/number", "a" * 63}, job.said()
    assert values["loss"]["value"] == 0.5
    assert values["rank"]["value"] == 0
    assert values["not/a/number"]["value"] == "NaN"
    assert values["loss"]["round"] == 1
    assert job.said().count("is no name of a value") == 1


def test_before_init(job: Job) -> None:
    program = "import hvd_elastic, pytest\nwith pytest.raises(ValueError): hvd_elastic.report('loss', 1)\n"
    program += "hvd_elastic.init()\nassert not hvd_elastic.report('loss', 1)  # there has been no round yet\n"
    job.run([job.python, "-c", program])
