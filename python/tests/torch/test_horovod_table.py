"""The API of horovod.torch, and a process set that outlives a worker."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from conftest import Job
from hvd_elastic import horovod

# The modules and names that public programs import, beside those that horovod_table.py calls.
IMPORTED = {
    "horovod": "run",
    "horovod.runner": "run",
    "horovod.torch.mpi_ops": "allreduce_async_ allgather_async broadcast_async_ synchronize size rank Average",
    "horovod.torch.optimizer": "DistributedOptimizer _DistributedOptimizer",
    "horovod.torch.functions": "broadcast_object broadcast_parameters broadcast_optimizer_state allgather_object",
    "horovod.torch.compression": "Compression",
    "horovod.torch.sync_batch_norm": "SyncBatchNorm",
    "horovod.torch.elastic": "run TorchState ElasticSampler",
    "horovod.torch.elastic.state": "TorchState StateHandler get_handler_registry set_handler_registry",
    "horovod.torch.elastic.sampler": "ElasticSampler",
    "horovod.common.elastic": "run_fn State ObjectState",
    "horovod.common.exceptions": "HorovodInternalError HostsUpdatedInterrupt",
    "horovod.common.process_sets": "ProcessSet global_process_set add_process_set remove_process_set",
    "horovod.common.util": "gloo_built mpi_built nccl_built",
}
PROGRAMS = Path(__file__).resolve().parent / "programs"
COMMAND = [sys.executable, "-m", "hvd_elastic.horovod"]


def test_imports() -> None:
    horovod.install()
    for module, names in IMPORTED.items():
        found = importlib.import_module(module)
        assert [name for name in names.split() if not hasattr(found, name)] == [], module


@pytest.mark.parametrize("negotiate", ["0", "1"])
def test_table(job: Job, negotiate: str) -> None:
    job.set_hosts("127.0.0.1:3")
    options = ("--min-np", "3", "--env", f"HVD_NEGOTIATE={negotiate}")
    job.start_command([*COMMAND, str(PROGRAMS / "horovod_table.py"), str(job.folder)], np=3, options=options)
    lines = job.finish()
    assert sum("is right" in line for line in lines) == 27, job.said()
    assert "round 2" not in job.said()


def test_process_set_and_a_death(job: Job) -> None:
    job.set_hosts("127.0.0.1:3")
    job.hold()
    program = str(PROGRAMS / "set_of_ranks.py")
    job.start_command([*COMMAND, program, "300"], np=3, options=("--min-np", "3"))
    job.await_line("step 100")
    job.kill(job.find_worker(1, program))
    lines = job.finish()
    assert "round 2 (recovery): size 3" in job.said()
    assert sum("total 600.0" in line for line in lines) == 3, job.said()
