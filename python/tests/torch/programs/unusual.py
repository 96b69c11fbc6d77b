"""Trainings that do what a plain loop does not, with a worker that dies: unusual.py CASE STEPS.

order     the ranks run their branches in different orders, so their hooks fire in different orders
unused    a branch is used by no rank in some steps, and by rank 0 alone in others
moved     parameters, buffers and the optimizer's state get new memory
loaded    load_state_dict of model and optimizer
frozen    a layer is trained from a later step on
late, dampening, own    optimizers whose state appears in the first step, or at a time of its own

At the end each worker says whether the model is, bit for bit, that of a run in peace, which it plays by itself for all
ranks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import torch

case, steps = sys.argv[1], int(sys.argv[2])


class Own(torch.optim.Optimizer):
    """A user's optimizer, whose state appears in the third step, and grows in the fifth."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.05})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        del closure
        for group in self.param_groups:
            group["steps"] = group.get("steps", 0) + 1
            for param in group["params"]:
                if param.grad is None:
                    continue
                if group["steps"] >= 3:
                    mean = self.state[param].setdefault("mean", torch.zeros_like(param))
                    mean.mul_(0.9).add_(param.grad)
                if group["steps"] >= 5:
                    self.state[param].setdefault("most", torch.zeros(1)).clamp_(min=float(param.grad.abs().max()))
                param.sub_(self.state[param].get("mean", param.grad), alpha=group["lr"])


class Net(torch.nn.Module):
    """Two branches of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = torch.nn.ModuleDict({name: torch.nn.Linear(6, 6) for name in "abc"})
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: torch.Tensor, names: str) -> torch.Tensor:
        for name in names:
            x = (self.branches[name](x) * self.scale).tanh()
        return x


def made() -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(7)
    net = Net()
    if case == "late":
        return net, torch.optim.NAdam(net.parameters(), lr=0.05)
    if case == "dampening":
        return net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, dampening=0.3)
    if case == "own":
        return net, Own(net.parameters())
    if case == "frozen":
        net.branches["b"].requires_grad_(False)
    return net, torch.optim.AdamW(net.parameters(), lr=0.05)


def names_of(step: int, rank: int) -> str:
    if case == "order":
        return "abc" if (step + rank) % 2 else "cba"
    if case == "unused":
        return ("ac", "abc" if rank == 0 else "ac", "abc")[step % 3]
    return "abc"


def loss_of(net: Net, step: int, rank: int) -> torch.Tensor:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1000 * step + rank))
    return net(x, names_of(step, rank)).square().mean()


def change(net: Net, optimizer: torch.optim.Optimizer, step: int) -> None:
    """What the case does between two steps."""
    if case == "moved" and step % 7 == 3:
        for param in net.parameters():
            param.data = param.data.clone()
        net.scale = net.scale.clone() * 1.01
        for values in optimizer.state.values():
            for key, value in values.items():
                values[key] = value.clone()
    if case == "loaded" and step % 7 == 3:
        net.load_state_dict({name: value * 0.9 for name, value in net.state_dict().items()})
        optimizer.load_state_dict(optimizer.state_dict())
    if case == "frozen" and step == steps // 4:
        net.branches["b"].requires_grad_(True)


def in_peace(size: int) -> Net:
    """The same training, by one process for all ranks."""
    net, optimizer = made()
    for step in range(steps):
        total: dict[str, torch.Tensor] = {}
        for rank in range(size):
            net.zero_grad()
            loss_of(net, step, rank).backward()
            for name, param in net.named_parameters():
                grad = torch.zeros_like(param) if param.grad is None else param.grad
                total[name] = total[name] + grad if name in total else grad.clone()
        for name, param in net.named_parameters():
            param.grad = total[name] / size if param.requires_grad else None
        optimizer.step()
        change(net, optimizer, step)
    return net


net, plain = made()
optimizer = hvt.DistributedOptimizer(plain, named_parameters=net.named_parameters())
state = hvt.State(net=net, optimizer=optimizer, step=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    print(
        "round of", hvd_elastic.size(), "rank", hvd_elastic.rank(), "step", state.step, "pid", os.getpid(), flush=True
    )
    if case == "frozen":
        net.branches["b"].requires_grad_(state.step > steps // 4)
    while state.step < steps:
        if state.step == steps - 1:
            held.wait()
        optimizer.zero_grad()
        loss_of(net, state.step, hvd_elastic.rank()).backward()
        optimizer.step()
        change(net, optimizer, state.step)
        state.step += 1
        if state.step % 10 == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
peace = in_peace(hvd_elastic.size()).state_dict()
differ = [name for name, value in net.state_dict().items() if not torch.equal(value, peace[name])]
print("as in peace:", not differ, differ, flush=True)
