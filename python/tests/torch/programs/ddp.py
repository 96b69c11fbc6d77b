"""What torch.distributed does with the backend hvd, then a training with DDP: ddp.py STEPS. At the end says whether the
model is, bit for bit, that of a run in peace, which each worker plays by itself for all ranks.
"""

from __future__ import annotations

import os
import sys
import tempfile

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from hvd_elastic.torch import backend as _backend  # noqa: F401 (registers the backend)
from torch.nn.parallel import DistributedDataParallel

steps = int(sys.argv[1])


def check(name: str, got: object, wanted: object) -> None:
    """Says so if a collective has given something else."""
    print("check", name, "ok" if str(got) == str(wanted) else f"WRONG: {got}, not {wanted}", flush=True)


def collectives() -> None:
    """Each collective, where its result is known."""
    me, size = dist.get_rank(), dist.get_world_size()
    ones = torch.full((3,), float(me + 1))
    total = float(size * (size + 1) // 2)
    dist.all_reduce(ones)
    check("all_reduce", ones.tolist(), [total] * 3)
    work = dist.all_reduce(ones, op=dist.ReduceOp.AVG, async_op=True)
    assert work is not None
    work.wait()
    check("all_reduce async", ones.tolist(), [total] * 3)
    for op in (hvt.Sum, hvd_elastic.Sum, "sum"):
        check("allreduce by Op and by name", hvt.allreduce(torch.ones(1), op=op).item(), float(size))
    try:
        hvt.allreduce(torch.ones(1), op="mean")
    except ValueError as error:
        check("a wrong name", error, "there is no reduction 'mean'; use Sum, Average, Min, Max, Product, And, Or, Xor")
    x = torch.tensor([me])
    dist.broadcast(x, size - 1)
    check("broadcast", x.item(), size - 1)
    parts = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(me)))
    check("all_gather", [p.tolist() for p in parts], [[float(r)] * 2 for r in range(size)])
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * size))
    check("reduce_scatter", out.tolist(), [size * 2.0 * me, size * (2.0 * me + 1)])
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.arange(float(size)) + 10 * me)
    check("all_to_all", out.tolist(), [10.0 * r + me for r in range(size)])
    x = torch.tensor([float(me)])
    dist.reduce(x, 0)
    check("reduce", x.item() if me == 0 else "-", sum(range(size)) * 1.0 if me == 0 else "-")
    got = [torch.zeros(1) for _ in range(size)] if me == 0 else None
    dist.gather(torch.tensor([float(me)]), got)
    check("gather", [g.item() for g in got or []], [float(r) for r in range(size)] if me == 0 else [])
    out = torch.zeros(1)
    dist.scatter(out, [torch.tensor([5.0 + r]) for r in range(size)] if me == 0 else None)
    check("scatter", out.item(), 5.0 + me)
    objects: list[object] = [None] * size
    dist.all_gather_object(objects, {"rank": me})
    check("all_gather_object", objects, [{"rank": r} for r in range(size)])
    said: list[object] = [f"from {me}"]
    dist.broadcast_object_list(said, 0)
    check("broadcast_object", said, ["from 0"])
    dist.barrier()
    check("functional", funcol.all_reduce(torch.ones(2), "sum", dist.group.WORLD).tolist(), [float(size)] * 2)
    gathered = funcol.all_gather_single(torch.full((1,), float(me)), 0, dist.group.WORLD)
    check("functional gather", gathered.tolist(), [float(r) for r in range(size)])


def sharded() -> None:
    """DTensor, FSDP2 and a distributed checkpoint."""
    from torch.distributed.checkpoint import load, save
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.arange(12.0).reshape(6, 2)
    check("DTensor", distribute_tensor(whole, mesh, [Shard(0)]).full_tensor().tolist(), whole.tolist())
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 2))
    plain = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 2))
    plain.load_state_dict(net.state_dict())
    fully_shard(net, mesh=mesh)
    x = torch.ones(4, 6)
    for model in (net, plain):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    check("FSDP2", torch.allclose(net(x), plain(x), atol=1e-6), True)
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    assert folder[0] is not None
    before = net(x).detach().clone()
    save(net.state_dict(), checkpoint_id=folder[0])
    with torch.no_grad():
        for param in net.parameters():
            param.zero_()
    load(net.state_dict(), checkpoint_id=folder[0])
    check("DCP", torch.equal(net(x), before), True)


def made() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 16))


def loss_of(net: torch.nn.Module, step: int, rank: int) -> torch.Tensor:
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(1000 * step + rank))
    return net(x).square().mean()


def in_peace(size: int) -> torch.nn.Module:
    """The same training, by one process for all ranks."""
    net = made()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        total: list[torch.Tensor] = []
        for rank in range(size):
            optimizer.zero_grad()
            loss_of(net, step, rank).backward()
            grads = [p.grad.clone() for p in net.parameters() if p.grad is not None]
            total = [a + b for a, b in zip(total, grads)] if total else grads
        for param, grad in zip(net.parameters(), total):
            param.grad = grad / size
        optimizer.step()
    return net


dist.init_process_group("hvd")
net = made()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
state = hvt.State(model=net, optimizer=optimizer, step=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    ddp = DistributedDataParallel(net, init_sync=False)
    print(
        "round of", dist.get_world_size(), "rank", dist.get_rank(), "step", state.step, "pid", os.getpid(), flush=True
    )
    if state.step == 0 and "sharded" in sys.argv:
        collectives()
        sharded()
    while state.step < steps:
        if state.step == steps - 1:
            held.wait()
        optimizer.zero_grad()
        loss_of(ddp, state.step, dist.get_rank()).backward()
        optimizer.step()
        state.step += 1
        if state.step % 20 == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
peace = in_peace(dist.get_world_size())
differ = [name for name, value in net.state_dict().items() if not torch.equal(value, peace.state_dict()[name])]
print("as in peace:", not differ, differ, flush=True)
