"""DDP whose rank 1 kills itself in step 5: recover.py backward|commit [kept]. Its replacement imports torch when
the others have made five steps without it. They say how often all garbage was collected after the death. With "kept" a
cycle of references keeps the DDP of the dead round, as a program's own objects may do.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys

DIED, STEPPED, DEATH, LAST = "died", "stepped", 5, 40

is_replacement = os.path.exists(DIED)
while is_replacement and not os.path.exists(STEPPED):
    select.select([], [], [], 0.01)

import hvd_elastic  # noqa: E402
import hvd_elastic.torch as hvt  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

where = sys.argv[1]
collections = 0


def count(phase: str, info: dict[str, int]) -> None:
    """Called by Python at each collection of garbage."""
    global collections
    collections += phase == "start" and info["generation"] == 2


def die(*_: object) -> None:
    """Ends this worker here."""
    with open(DIED, "w"):
        os.kill(os.getpid(), signal.SIGKILL)


class Fatal(torch.autograd.Function):
    """Kills the worker when the backward pass comes to it: the bucket of the last layer has been reduced then."""

    @staticmethod
    def forward(context: object, x: torch.Tensor) -> torch.Tensor:
        del context
        return x.clone()

    @staticmethod
    def backward(context: object, *grads: torch.Tensor) -> torch.Tensor:
        del context
        die()
        return grads[0]


dist.init_process_group("hvd")
torch.manual_seed(7)
first, last = torch.nn.Linear(16, 300), torch.nn.Linear(300, 1000)


class Net(torch.nn.Module):
    """Two layers, in two buckets."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = first, last

    def forward(self, x: torch.Tensor, fatal: bool) -> torch.Tensor:
        x = self.first(x)
        return self.last(Fatal.apply(x) if fatal else x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
state = hvt.State(model=net, optimizer=optimizer, step=0)
gc.disable()  # the interpreter's own collections are not counted
gc.callbacks.append(count)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    global collections
    after, collections = collections, 0
    ddp = DistributedDataParallel(net, init_sync=False, bucket_cap_mb=1)
    cycle = [ddp]
    if "kept" in sys.argv:
        cycle.append(cycle)  # type: ignore[arg-type]
    print("round of", dist.get_world_size(), "from", state.step, "collections", after, flush=True)
    alone = 0
    while state.step < LAST or dist.get_world_size() == 2:
        fatal = state.step == DEATH and dist.get_rank() == 1 and not os.path.exists(DIED)
        optimizer.zero_grad()
        x = torch.randn(4, 16, generator=torch.Generator().manual_seed(state.step))
        ddp(x, fatal and where == "backward").square().mean().backward()
        optimizer.step()
        state.step += 1
        if fatal and where == "commit":
            die()
        state.commit()
        alone += dist.get_world_size() == 2
        if alone == 5:
            open(STEPPED, "w").close()


train(state)
print("weights", sum(p.double().sum().item() for p in net.parameters()), flush=True)
