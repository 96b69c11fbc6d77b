"""hvd_elastic.launch and python -m hvd_elastic."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import hvd_elastic
import pytest
from conftest import Job


def launch(job: Job, monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> list[Any]:
    for name in ("HOME", "TMPDIR", "HVD_PY_TEST", "HVD_TRACEABLE", "HVD_LIBRARY"):
        monkeypatch.setenv(name, job.environment()[name])
    limits = ("--state-dir", str(job.folder / "state"), "--blacklist-cooldown-range", "0", "0")
    return hvd_elastic.launch(*arguments, options=limits, **options)


def test_results(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 10

    def work(add: int) -> int:  # not importable: cloudpickle takes it
        import hvd_elastic as hvd

        return factor * hvd.rank() + int(hvd.allreduce(1, op=hvd.Sum)) + add

    assert launch(job, monkeypatch, work, (5,), np=3) == [8, 18, 28]


def test_failure(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        raise KeyError("a bug of the function")

    with pytest.raises(RuntimeError, match="exit code"):
        launch(job, monkeypatch, work, np=1)


def test_module(job: Job) -> None:
    command = [sys.executable, "-m", "hvd_elastic", "--version"]
    said = subprocess.run(command, env=job.environment(), capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert hvd_elastic.version() in said.stdout
