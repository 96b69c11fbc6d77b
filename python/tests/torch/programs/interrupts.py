"""Ctrl-C in a training with PyTorch while rank 1 does not come: interrupts.py PHASE."""

from __future__ import annotations

import os
import select
import sys
from typing import Any

import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

phase = sys.argv[1]


class Slow(Dataset[int]):
    """Samples that do not come."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> int:
        select.select([], [], [], 600)
        return number


def wait(model: Any, net: torch.nn.Module) -> None:
    """Waits for what the other rank does not do, or for a sample."""
    if phase == "backward":
        model(torch.ones(4, 8)).sum().backward()
    elif phase == "barrier":
        dist.barrier()
    elif phase == "work":
        work = dist.all_reduce(torch.ones(4), async_op=True)
        assert work is not None
        work.wait()
    elif phase == "future":
        work = dist.all_reduce(torch.ones(4), async_op=True)
        assert work is not None
        work.get_future().wait()
    elif phase == "step":
        optimizer = hvt.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    elif phase == "loader":
        next(iter(DataLoader(Slow(), num_workers=1)))
    elif phase == "receive":
        dist.recv(torch.ones(4), 1)
    else:
        raise AssertionError(phase)


dist.init_process_group("hvd")
net = torch.nn.Linear(8, 1)
state = hvt.State(model=net)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    del state
    model = DistributedDataParallel(net, init_sync=False)
    if dist.get_rank() == 1:
        print("absent", flush=True)
        select.select([], [], [], 600)
    print("waits pid", os.getpid(), flush=True)
    wait(model, net)


try:
    train(state)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
