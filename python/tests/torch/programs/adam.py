"""Trains with AdamW, dropout and a learning rate schedule: adam.py STEPS [ASK].

At the end it says whether the model is, bit for bit, that of a run in peace, which each worker plays by itself for all
ranks. Rank 0 waits for a durable checkpoint after each ASK steps.
"""

from __future__ import annotations

import os
import random
import sys

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import torch

steps = int(sys.argv[1])
ask = int(sys.argv[2]) if len(sys.argv) > 2 else steps + 1


class Net(torch.nn.Module):
    """With tied weights, a buffer and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.dropout = torch.nn.Dropout(0.3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.second(self.dropout(torch.relu(self.first(x))))


def made() -> tuple[Net, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    torch.manual_seed(7)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    return net, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.9)


def loss_of(net: Net, step: int, rank: int) -> torch.Tensor:
    torch.manual_seed(1000 * step + rank)
    x = torch.randn(4, 8)
    return net(x).square().mean()


def in_peace(size: int) -> Net:
    """The same training, by one process for all ranks."""
    net, optimizer, scheduler = made()
    for step in range(steps):
        total: list[torch.Tensor] = []
        for rank in range(size):
            optimizer.zero_grad()
            loss_of(net, step, rank).backward()
            grads = [p.grad.clone() for p in net.parameters()]
            total = [a + b for a, b in zip(total, grads)] if total else grads
        for param, grad in zip(net.parameters(), total):
            param.grad = grad / size
        optimizer.step()
        scheduler.step()
    net.calls //= size
    return net


hvd_elastic.init()
net, optimizer, scheduler = made()
optimizer = hvt.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
state = hvt.State(net=net, optimizer=optimizer, scheduler=scheduler, step=0)
random.seed(hvd_elastic.rank())


@hvd_elastic.run
def train(state: hvt.State) -> None:
    print(
        "round of", hvd_elastic.size(), "rank", hvd_elastic.rank(), "step", state.step, "pid", os.getpid(), flush=True
    )
    while state.step < steps:
        if state.step == steps - 1:
            held.wait()
        optimizer.zero_grad()
        print("draw", state.step, random.random(), flush=True)
        loss_of(net, state.step, hvd_elastic.rank()).backward()
        optimizer.step()
        scheduler.step()
        state.step += 1
        if state.step == steps // 2:
            optimizer.load_state_dict(optimizer.state_dict())  # replaces all tensors of its state
        if state.step % 20 == 0:
            print("step", state.step, flush=True)
        state.commit()
        if state.step % ask == 0 and hvd_elastic.rank() == 0:
            state.checkpoint().wait()
            print("durable", state.step, flush=True)


train(state)
peace = in_peace(hvd_elastic.size())
differ = [name for name, value in net.state_dict().items() if not torch.equal(value, peace.state_dict()[name])]
print("as in peace:", not differ, differ, "last rate", scheduler.get_last_lr(), flush=True)
