"""A training whose workers kill themselves where the plan says: deaths.py ddp|optimizer EPOCHS [STEP:RANK:PHASE...].
PHASE! raises an exception there instead.

Each death happens once: a file named after it is made before. A rank beyond the size counts from 0 again. At the end
each worker prints the digest of its model and optimizer, and the loss of the last epoch; both are those of a run in
peace. Every batch has the same samples however many workers share it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable

import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, get_worker_info

how, epochs, plan = sys.argv[1], int(sys.argv[2]), [word.split(":") for word in sys.argv[3:]]
SAMPLES, BATCH = 240, 12


class Planned(Exception):
    """An exception of the program's own."""


def die_if_planned(phase: str) -> None:
    """Ends this process if the plan has a death here that has not happened yet. Step * is any but the first round's."""
    for step, rank, planned in plan:
        mark = f"died-{step}-{rank}-{planned}"
        if planned.rstrip("!") != phase or int(rank) % hvd_elastic.size() != hvd_elastic.rank() or os.path.exists(mark):
            continue
        if step == "*" and not any(name.startswith("died-") for name in os.listdir()):
            continue
        if step in ("*", str(state.step)):
            open(mark, "w").close()
            if planned.endswith("!"):
                raise Planned(f"in {phase}")
            os.kill(os.getpid(), signal.SIGKILL)


class Fatal(torch.autograd.Function):
    """The worker may die when the backward pass comes here."""

    @staticmethod
    def forward(context: object, x: torch.Tensor, phase: str) -> torch.Tensor:
        context.phase = phase  # type: ignore[attr-defined]
        return x.clone()

    @staticmethod
    def backward(context: object, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        die_if_planned(context.phase)  # type: ignore[attr-defined]
        return grads[0], None


class Net(torch.nn.Module):
    """Two layers, in two buckets of DDP."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 300), torch.nn.Linear(300, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = Fatal.apply(self.first(x).tanh(), "between")
        die_if_planned("forward")
        return Fatal.apply(self.last(hidden), "before")


class Rows(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> torch.Tensor:
        die_if_planned("loader_child" if get_worker_info() else "loader")
        return torch.full((8,), number / SAMPLES)


class Note:
    """A part of the state; the worker may die while it is pickled, or loaded."""

    def __reduce__(self) -> tuple[Callable[[], Note], tuple[()]]:
        die_if_planned("pickling")
        return loaded_note, ()


def loaded_note() -> Note:
    die_if_planned("loading")
    return Note()


if how == "ddp":
    dist.init_process_group("hvd")
torch.manual_seed(7)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
if how == "optimizer":
    optimizer = hvt.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
optimizer.register_step_pre_hook(lambda *_: die_if_planned("step"))
sampler = hvt.Sampler(SAMPLES, BATCH, mode="global", seed=3)
children = 1 if any(phase == "loader_child" for _, _, phase in plan) else 0
loader = DataLoader(Rows(), batch_sampler=sampler, num_workers=children)
state = hvt.State(model=net, optimizer=optimizer, step=0, loss=0.0, last=0.0, note=Note())
state.register_reset_callbacks([lambda: die_if_planned("reset")])


def one_step(model: torch.nn.Module, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss = model(x).square().mean() * sampler.weight
    loss.backward()
    die_if_planned("after")
    if how == "optimizer":
        die_if_planned("synchronize")
        optimizer.synchronize()  # type: ignore[attr-defined]
        with optimizer.skip_synchronize():  # type: ignore[attr-defined]
            optimizer.step()
    else:
        optimizer.step()
    mean = hvt.allreduce(loss.detach(), op="average")
    state.loss += float(mean)
    state.step += 1
    if state.step % 10 == 0:
        print("step", state.step, "of", hvd_elastic.size(), flush=True)
    die_if_planned("commit")


@hvd_elastic.run
def train(state: hvt.State) -> None:
    model = DistributedDataParallel(net, init_sync=False, bucket_cap_mb=1) if how == "ddp" else net
    while sampler.epoch < epochs:
        for x in state.batches(loader):
            die_if_planned("committed")  # the commit of the step before
            one_step(model, x)
        state.last, state.loss = state.loss, 0.0


train(state)
digest = hashlib.sha256()
for tensor in [*net.state_dict().values(), *(s["momentum_buffer"] for s in optimizer.state.values())]:
    digest.update(tensor.numpy().tobytes())
print("end", digest.hexdigest()[:16], f"{state.last:.9g}", "steps", state.step, flush=True)
