"""Trains with a prefetching DataLoader: loader.py EPOCHS WORKERS [persistent]. Counts, in the state, how often each
sample came out of the loader. After its first epoch it waits until the file "go" is there.
"""

from __future__ import annotations

import os
import select
import sys

import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
from hvd_elastic.torch import backend as _backend  # noqa: F401 (registers the backend)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

epochs, workers = int(sys.argv[1]), int(sys.argv[2])
SAMPLES = 997


class Numbers(Dataset[tuple[int, torch.Tensor]]):
    """Each sample is its number, and a row made of it."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> tuple[int, torch.Tensor]:
        return number, torch.full((8,), number / SAMPLES)


dist.init_process_group("hvd")
data = Numbers()
sampler = hvt.Sampler(data, batch_size=6, seed=3)
loader = DataLoader(
    data,
    batch_sampler=sampler,
    num_workers=workers,
    prefetch_factor=4 if workers else None,
    persistent_workers="persistent" in sys.argv,
)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
state = hvt.State(model=model, optimizer=optimizer, seen=torch.zeros(SAMPLES, dtype=torch.int64), steps=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    ddp = DistributedDataParallel(model, init_sync=False)
    print("round of", dist.get_world_size(), "steps", state.steps, "pid", os.getpid(), flush=True)
    while sampler.epoch < epochs:
        for numbers, rows in state.batches(loader, commit_every=3):
            optimizer.zero_grad()
            (ddp(rows).square().mean() * sampler.weight).backward()
            optimizer.step()
            used = torch.zeros(SAMPLES, dtype=torch.int64)
            used[numbers] = 1 if sampler.weight else 0
            dist.all_reduce(used)
            state.seen += used
            state.steps += 1
            if sampler.epoch == 1 and state.steps % 10 == 0:
                print("in epoch 1", flush=True)
        if sampler.epoch == 1:
            print("epoch 1", flush=True)
            while not os.path.exists("go"):
                select.select([], [], [], 0.01)
    print("each sample", sorted(set(state.seen.tolist())), "times, sampler at", sampler.epoch, flush=True)


train(state)
