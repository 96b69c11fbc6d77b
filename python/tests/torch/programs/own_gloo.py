"""DDP over torch's own gloo, whose members hvd decides: own_gloo.py STEPS."""

from __future__ import annotations

import os
import sys
import time

import held
import hvd_elastic
import hvd_elastic.torch as hvt
import hvd_elastic.torch.reconfigure as hvr
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps = int(sys.argv[1])
hvr.init_process_group("gloo")
torch.manual_seed(7)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 16))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
state = hvt.State(model=net, optimizer=optimizer, step=0)
group = dist.group.WORLD


@hvd_elastic.run
def train(state: hvt.State) -> None:
    assert dist.group.WORLD is group
    assert dist.get_backend() == "gloo"
    assert (dist.get_rank(), dist.get_world_size()) == (hvd_elastic.rank(), hvd_elastic.size())
    ddp = DistributedDataParallel(net, init_sync=False)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "step", state.step, "pid", os.getpid(), flush=True)
    while state.step < steps or dist.get_world_size() < 3:
        if state.step == steps - 1:
            held.wait()
        x = torch.randn(4, 16, generator=torch.Generator().manual_seed(1000 * state.step + dist.get_rank()))
        optimizer.zero_grad()
        ddp(x).square().mean().backward()
        optimizer.step()
        state.step += 1
        if state.step % 20 == 0:
            print("step", state.step, flush=True)
        time.sleep(0.002)
        state.commit()


train(state)
ones = torch.ones(1)
dist.all_reduce(ones)
weights = sum(p.double().sum().item() for p in net.parameters())
print("end:", int(ones), "members, weights", repr(weights), flush=True)
