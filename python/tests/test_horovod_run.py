"""horovod.run: the results of a function in rank order, and arguments that it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import Job
from hvd_elastic._horovod import run


@pytest.fixture(autouse=True)
def environment(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR", "HVD_PY_TEST", "HVD_TRACEABLE", "HVD_LIBRARY"):
        monkeypatch.setenv(name, job.environment()[name])


def place(factor: int, add: int) -> tuple[int, int, str]:
    import horovod
    import hvd_elastic as hvd

    return factor * hvd.rank() + int(hvd.allreduce(1, op=hvd.Sum)) + add, hvd.min_np(), horovod.__name__


place.__module__ = "__main__"  # so that it travels by value


def test_results(job: Job) -> None:
    hostfile = job.folder / "hostfile"
    hostfile.write_text("127.0.0.1 slots=3\n")
    options: dict[str, Any] = {"cooldown_range": (0, 0), "start_timeout": 60, "reset_limit": 3, "verbose": True}
    got = run(place, (10,), {"add": 5}, num_proc=3, min_np=2, max_num_proc=3, hostfile=str(hostfile), **options)
    assert got == [(8, 2, "hvd_elastic._horovod"), (18, 2, "hvd_elastic._horovod"), (28, 2, "hvd_elastic._horovod")]


def test_discovery_and_a_failure(job: Job) -> None:
    def work() -> None:
        raise KeyError("a bug of the function")

    job.set_hosts("127.0.0.1:1")
    with pytest.raises(RuntimeError, match="the job of work ended with exit code"):
        run(work, np=1, host_discovery_script=str(job.discovery), cooldown_range=(0, 0))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"use_mpi": True}, "use_mpi=True: hvd-elastic uses no MPI; leave use_mpi out"),
        ({"mpi_args": "--oversubscribe"}, "leave mpi_args out"),
        ({"nprocs": 2}, "there is no argument 'nprocs'"),
        ({"num_proc": 2, "np": 3}, "num_proc=2 and np=3 contradict each other; pass num_proc alone"),
        ({"hosts": "a:1", "hostfile": "b"}, "hosts and hostfile each say which hosts there are; pass one of them"),
        ({"cooldown_range": (1,)}, "pass (LOW, HIGH) in seconds"),
    ],
)
def test_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        run(place, **options)
