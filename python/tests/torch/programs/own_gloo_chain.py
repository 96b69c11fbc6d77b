"""Rank 0 waits for rank 1, which waits for rank 2, which dies: own_gloo_chain.py."""

from __future__ import annotations

import os
import signal

import hvd_elastic
import hvd_elastic.torch as hvt
import hvd_elastic.torch.reconfigure as hvr
import torch
import torch.distributed as dist

hvr.init_process_group("gloo")
state = hvt.State(step=0)


@hvd_elastic.run
def train(state: hvt.State) -> None:
    rank = dist.get_rank()
    if state.step == 0 and dist.get_world_size() == 3 and int(os.environ["HVD_INCARNATION"]) <= 3:
        ones = torch.ones(1)
        dist.all_reduce(ones)
        if rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            dist.recv(ones, rank + 1)
        except RuntimeError as error:
            print("rank", rank, "waited, and got:", str(error).replace("\n", " "), flush=True)
            raise
    state.step = 1
    state.commit()


train(state)
print("end", flush=True)
