"""An elastic training that reduces over the ranks 0 and 2, then over all: set_of_ranks.py STEPS."""

from __future__ import annotations

import sys

import held
import horovod.torch as hvd
import torch

steps = int(sys.argv[1])
hvd.init()
state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0, total=0.0)
ends = hvd.add_process_set([0, 2])


@hvd.elastic.run
def train(state: hvd.elastic.ObjectState) -> None:
    while state.step < steps:
        if state.step == steps - 1:
            held.wait()
        part = torch.zeros(1)
        if ends.included():
            part = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=ends)
        state.total += hvd.allreduce(part, op=hvd.Max).item()
        state.step += 1
        if state.step % 10 == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
print("total", state.total, flush=True)
