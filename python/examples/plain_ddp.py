"""DDP as it is written for torchrun, with checkpoints of its own: plain_ddp.py EPOCHS FOLDER.

Nothing in it knows of hvd-elastic:

    torchrun --nproc-per-node 2 plain_ddp.py 20 /tmp
    hvd-elastic -np 2 -H 127.0.0.1:2 --env HVD_BACKEND=hvd --blacklist-cooldown-range 0 0 python plain_ddp.py 20 /tmp
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

epochs, folder = int(sys.argv[1]), sys.argv[2]
rank, size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
dist.init_process_group(backend="gloo", init_method="env://")
assert (rank, size) == (dist.get_rank(), dist.get_world_size())

inputs = torch.randn(640, 16, generator=torch.Generator().manual_seed(1))
dataset = TensorDataset(inputs, inputs.square().mean(dim=1, keepdim=True))
sampler: DistributedSampler[object] = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
checkpoint = os.path.join(folder, "checkpoint")
epoch = 0
if os.path.exists(checkpoint):
    loaded = torch.load(checkpoint)
    epoch = loaded["epoch"]
    ddp.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
print("rank", rank, "of", size, "slot", local_rank, "by", dist.get_backend(), "from epoch", epoch, flush=True)
while epoch < epochs:
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(ddp(x), y).backward()
        optimizer.step()
    epoch += 1
    if rank == 0:
        now = {"epoch": epoch, "model": ddp.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(now, checkpoint + ".new")
        os.rename(checkpoint + ".new", checkpoint)
        print("epochs", epoch, flush=True)
    dist.barrier()
print("parameters", sum(p.double().sum().item() for p in model.parameters()), flush=True)
dist.destroy_process_group()
