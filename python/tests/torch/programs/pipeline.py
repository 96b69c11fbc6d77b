"""Sends and receives of torch.distributed, then a training in a pipeline of three stages: pipeline.py STEPS.

Each rank computes one stage of the model, and sends activations and gradients to its neighbours, in four
micro-batches. At the end says whether the model is, bit for bit, that of one process.
"""

from __future__ import annotations

import os
import sys

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist

steps, parts = int(sys.argv[1]), 4


def check(name: str, got: object, wanted: object) -> None:
    print("check", name, "ok" if str(got) == str(wanted) else f"WRONG: {got}, not {wanted}", flush=True)


def transfers() -> None:
    """Each way to send, where the result is known."""
    me, size = dist.get_rank(), dist.get_world_size()
    after, before = (me + 1) % size, (me - 1) % size
    x = torch.zeros(3)
    if me == 0:
        dist.send(torch.arange(3.0), 1, tag=5)
    elif me == 1:
        dist.recv(x, 0, tag=5)
        check("send", x.tolist(), [0.0, 1.0, 2.0])
    # all send around the ring before one receives, in an order that would stop calls that wait
    large = torch.full((300_000,), float(me))
    got = torch.empty_like(large)
    works = [dist.isend(large, after), dist.irecv(got, before)]
    dist.barrier()  # no collective waits for a transfer
    for work in works:
        assert work is not None
        work.wait()
    check("ring", (got == before).all().item(), True)
    pairs = torch.zeros((size, 2), dtype=torch.int64)
    ops = []
    for peer in range(size):
        if peer != me:
            ops.append(dist.P2POp(dist.irecv, pairs[peer], peer))
            ops.append(dist.P2POp(dist.isend, torch.tensor([me, peer]), peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    check("batch", [p.tolist() for i, p in enumerate(pairs) if i != me], [[i, me] for i in range(size) if i != me])
    columns = torch.zeros(4, 3)
    half = torch.arange(4, dtype=torch.int16) % 2 == 0  # a type that travels as bytes
    if me == 2:
        dist.send(torch.arange(4.0), 0)
        dist.send(half, 0)
    elif me == 0:
        dist.recv(columns[:, 1], 2)  # not contiguous
        there = torch.zeros(4, dtype=torch.bool)
        dist.recv(there, 2)
        check("column", [columns[:, 1].tolist(), there.tolist()], [[0.0, 1.0, 2.0, 3.0], half.tolist()])
    group = dist.new_group([0, 2])
    if me != 1:
        x = torch.tensor([me])
        if me == 0:
            dist.send(x, 2, group=group)
        else:
            dist.recv(x, 0, group=group)
        check("group", x.item(), 0)


def mismatch() -> None:
    """Ranks 0 and 1 name different tags: both are told, and rank 2 too if the round lasts that long."""
    try:
        if dist.get_rank() == 0:
            dist.send(torch.zeros(2), 1, tag=3)
        elif dist.get_rank() == 1:
            dist.recv(torch.zeros(2), 0, tag=4)
        dist.barrier()
    except ValueError as error:
        print("told", "tag 3" in str(error) and "tag 4" in str(error), error, flush=True)
        raise hvd_elastic.Revoked("the tags differ") from error


def made() -> torch.nn.ModuleList:
    torch.manual_seed(7)
    return torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)])


def batch_of(step: int, part: int) -> torch.Tensor:
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(parts * step + part))


def one_step(stages: torch.nn.ModuleList, step: int) -> None:
    """Forward and backward through the pipeline: all forwards first, as in GPipe."""
    me, last = dist.get_rank(), dist.get_world_size() - 1
    kept, sent = [], []
    for part in range(parts):
        x = batch_of(step, part)
        if me:
            dist.recv(x, me - 1, tag=part)
            x.requires_grad_()
        y = stages[me](x).tanh()
        kept.append((x, y))
        if me < last:
            sent.append(dist.isend(y.detach(), me + 1, tag=part))
    for part, (x, y) in enumerate(kept):
        if me == last:
            y.square().mean().backward()
        else:
            grad = torch.empty_like(y)
            dist.recv(grad, me + 1, tag=part)
            y.backward(grad)
        if me:
            assert x.grad is not None
            sent.append(dist.isend(x.grad, me - 1, tag=part))
    for work in sent:
        assert work is not None
        work.wait()
    for rank, stage in enumerate(stages):
        for param in stage.parameters():
            param.grad = param.grad if rank == me else torch.empty_like(param)
            assert param.grad is not None
            dist.broadcast(param.grad, rank)


def in_peace() -> torch.nn.ModuleList:
    stages = made()
    optimizer = torch.optim.SGD(stages.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            x = batch_of(step, part)
            for stage in stages:
                x = stage(x).tanh()
            x.square().mean().backward()
        optimizer.step()
    return stages


dist.init_process_group("hvd")
stages = made()
optimizer = torch.optim.SGD(stages.parameters(), lr=0.1, momentum=0.9)
state = hvt.State(model=stages, optimizer=optimizer, step=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    print(
        "round of", dist.get_world_size(), "rank", dist.get_rank(), "step", state.step, "pid", os.getpid(), flush=True
    )
    if state.step == 0:
        transfers()
        dist.barrier()  # the mismatch below must not reach a rank that is in a transfer still
        state.step += 1
        state.commit()
        mismatch()
    while state.step <= steps:
        if state.step == steps:
            held.wait()
        optimizer.zero_grad()
        one_step(stages, state.step - 1)
        optimizer.step()
        state.step += 1
        if state.step % 20 == 0 and dist.get_rank() == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
peace = in_peace().state_dict()
differ = [name for name, value in stages.state_dict().items() if not torch.equal(value, peace[name])]
print("as in peace:", not differ, differ, flush=True)
