"""A loop with Accelerate whose workers may die: accelerate_train.py EPOCHS."""

from __future__ import annotations

import sys

import hvd_elastic
import hvd_elastic.torch as hvt
import hvd_elastic.torch.accelerate as hva
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

epochs = int(sys.argv[1])
inputs = torch.randn(600, 16, generator=torch.Generator().manual_seed(1))
dataset = TensorDataset(inputs, inputs.square().mean(dim=1, keepdim=True))
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sampler = hvt.Sampler(dataset, batch_size=10)
loader = DataLoader(dataset, batch_sampler=sampler)
state = hvt.State(model=model, optimizer=optimizer, steps=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    accelerator = hva.accelerator()
    ddp, stepper = accelerator.prepare(model, optimizer)
    assert (accelerator.process_index, accelerator.num_processes) == (hvd_elastic.rank(), hvd_elastic.size())
    assert type(ddp).__name__ == "DistributedDataParallel", type(ddp)
    print("rank", accelerator.process_index, "of", accelerator.num_processes, "from step", state.steps, flush=True)
    while sampler.epoch < epochs:
        for x, y in state.batches(loader):
            stepper.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(ddp(x), y) * sampler.weight)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            stepper.step()
            state.steps += 1
            if state.steps % 10 == 0 and accelerator.is_main_process:
                print("step", state.steps, flush=True)


train(state)
assert dist.get_backend() == "hvd"
weights = sum(p.double().sum().item() for p in model.parameters())
print("end: step", state.steps, "epoch", sampler.epoch, f"weights {weights!r}", flush=True)
