"""horovod.run with a function that uses horovod.torch."""

from __future__ import annotations

import pytest
from conftest import Job
from hvd_elastic._horovod import run


def test_results_in_rank_order(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR", "HVD_PY_TEST", "HVD_TRACEABLE", "HVD_LIBRARY", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, job.environment()[name])

    def train(rows: int) -> list[float]:
        import horovod.torch as hvd
        import torch

        hvd.init()
        mine = torch.full((rows,), float(hvd.rank()))
        return [float(hvd.rank()), *hvd.allreduce(mine, op=hvd.Sum).tolist()]

    assert run(train, (2,), num_proc=2, hosts="127.0.0.1:2", verbose=True) == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
