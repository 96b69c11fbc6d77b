"""HSDP on a mesh of 2 x 2 ranks with the backend hvd, while a worker dies: hsdp.py STEPS. Every round makes the mesh
and the sharded model anew, from the weights of the last commit. At the end says whether the weights are those of a
training by one process alone.
"""

from __future__ import annotations

import os
import sys

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
from hvd_elastic.torch import backend as _backend  # noqa: F401 (registers the backend)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

steps = int(sys.argv[1])
EVERY = 5  # steps between two commits


def made() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8))


def loss_of(net: torch.nn.Module, step: int, rank: int) -> torch.Tensor:
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
    return net(x).square().mean()


def in_peace(size: int) -> torch.nn.Module:
    """The same training, by one process for all ranks."""
    net = made()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(size):
            (loss_of(net, step, rank) / size).backward()
        optimizer.step()
    return net


def groups_of(mesh: DeviceMesh) -> None:
    """Both dimensions of the mesh add up what they should."""
    me = dist.get_rank()
    for name, wanted in (("shard", 4 * (me // 2) + 1), ("replicate", 2 * (me % 2) + 2)):
        x = torch.tensor([me])
        dist.all_reduce(x, group=mesh.get_group(name))
        print("check", name, "ok" if x.item() == wanted else f"WRONG: {x.item()}, not {wanted}", flush=True)
    twin = dist.new_group([0, 1])
    if me < 2:
        x = torch.tensor([me])
        dist.all_reduce(x, group=twin)
        print("check twin", "ok" if x.item() == 1 else "WRONG", flush=True)


dist.init_process_group("hvd")
net = made()
state = hvt.State(model=net, step=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    print("round", hvd_elastic.round_number(), "rank", dist.get_rank(), "pid", os.getpid(), flush=True)
    groups_of(mesh)
    sharded = made()
    sharded.load_state_dict(net.state_dict())
    for layer in (sharded[0], sharded[2]):  # type: ignore[index]
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
    while state.step < steps:
        if state.step == steps - 1:
            held.wait()
        optimizer.zero_grad()
        loss_of(sharded, state.step, dist.get_rank()).backward()
        optimizer.step()
        state.step += 1
        if state.step % EVERY == 0 or state.step == steps:
            with torch.no_grad():
                for mine, theirs in zip(net.parameters(), sharded.parameters()):
                    mine.copy_(theirs.full_tensor() if isinstance(theirs, DTensor) else theirs)
            print("step", state.step, flush=True)
            state.commit()


train(state)
wanted = in_peace(4)
close = all(torch.allclose(a, b, atol=1e-6) for a, b in zip(net.parameters(), wanted.parameters()))
print("as in peace:", close, flush=True)
