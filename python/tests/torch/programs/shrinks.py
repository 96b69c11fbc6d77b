"""A DDP program that knows nothing of hvd-elastic: shrinks.py STEPS [STEP:RANK:WHERE...].

The worker that began with this rank kills itself in this step, there. Each of the others says, at the end, in how many
steps it has trained with how many members, and the digest of its model.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps, plan = int(sys.argv[1]), [word.split(":") for word in sys.argv[2:]]
dist.init_process_group("gloo")
first = dist.get_rank()
print("rank", first, "of", dist.get_world_size(), "starts", "pid", os.getpid(), flush=True)
step = 0


def die_if_planned(where: str) -> None:
    if [str(step), str(first), where] in plan:
        os.kill(os.getpid(), signal.SIGKILL)


class Fatal(torch.autograd.Function):
    """The worker may die when the backward pass comes here: the bucket of the last layer has been reduced then."""

    @staticmethod
    def forward(context: object, x: torch.Tensor) -> torch.Tensor:
        del context
        return x.clone()

    @staticmethod
    def backward(context: object, *grads: torch.Tensor) -> torch.Tensor:
        del context
        die_if_planned("between")
        return grads[0]


class Net(torch.nn.Module):
    """Two layers, in two buckets, and a buffer that rank 0 sends to all in each forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.norm = (
            torch.nn.Linear(16, 300),
            torch.nn.Linear(300, 1000),
            torch.nn.BatchNorm1d(16),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(Fatal.apply(self.first(self.norm(x))))


torch.manual_seed(7 + first)  # DDP makes the models equal
net = Net()
model = DistributedDataParallel(net, bucket_cap_mb=1)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)
trained: dict[int, int] = {}
skipped = 0
for step in range(steps):
    die_if_planned("forward")
    optimizer.zero_grad()
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(1000 * step + first))
    loss = model(x).square().mean()
    die_if_planned("forwarded")
    loss.backward()
    die_if_planned("backward")
    optimizer.step()
    die_if_planned("step")
    skipped += all(p.grad is None for p in net.parameters())
    scheduler.step()
    members = torch.ones(1)
    dist.all_reduce(members)
    die_if_planned("metric")
    trained[int(members)] = trained.get(int(members), 0) + 1
    if step % 5 == 4:
        dist.barrier()
        die_if_planned("barrier")
    if step % 10 == 9 and first == 0:
        print("step", step + 1, flush=True)
        while os.path.exists("held") and step == 19:
            torch.rand(1)

digest = hashlib.sha256()
for name, tensor in sorted(net.state_dict().items()):
    if "running" not in name:  # each rank has means of its own between two forward passes
        digest.update(tensor.numpy().tobytes())
print(
    "end", digest.hexdigest()[:16], "trained", trained, "skipped", skipped, "rank now", os.environ["RANK"], flush=True
)
