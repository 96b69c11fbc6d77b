"""A program that joins the round before it has made its State, commits nothing, and has no decorator.

It checks that it is warned of each of these, once. A job of one worker.
"""

from __future__ import annotations

import os
import warnings

import hvd_elastic
import hvd_elastic.torch as hvt
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def check(name: str, caught: list[warnings.WarningMessage], *texts: str) -> None:
    """The warnings are as many as the texts, and each has its text."""
    got = [str(warning.message) for warning in caught]
    wrong = len(got) != len(texts) or any(text not in warning for text, warning in zip(texts, got))
    print(f"WRONG {got}" if wrong else "ok", name, flush=True)


def refused(name: str, text: str) -> None:
    """A Sampler cannot be made now."""
    try:
        hvt.Sampler(data, batch_size=4, name=name)
    except hvd_elastic.HvdError as error:
        print("ok" if text in str(error) else f"WRONG {error}", name, flush=True)
    else:
        print("WRONG: no error", name, flush=True)


data = list(range(10))
model = torch.nn.Linear(1, 1)
dist.init_process_group("hvd")
sampler = hvt.Sampler(data, batch_size=4)
loader: DataLoader[int] = DataLoader(data, batch_sampler=sampler)  # type: ignore[arg-type]
DistributedDataParallel(model)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    state = hvt.State(model=model)
check("late", caught, "State was made when a collective (DistributedDataParallel(model) makes one) had already joined")
refused("early", "make State and Sampler before the first collective")
os.environ["HVD_BACKEND"] = "hvd"
refused("forced", "leave these out, which are for unmodified programs")
del os.environ["HVD_BACKEND"]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    for _ in range(2):
        for _ in state.batches(loader, commit_every=0):
            pass
check("no commit", caught, "3 batches were trained with commit_every=0 and without state.commit()")

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    state.commit()
    state.commit()
check("no decorator", caught, "or a collective (DistributedDataParallel(model) is one)", "put @hvd_elastic.run before")


@hvd_elastic.run
def train(state: hvt.State) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        hvt.State(more=torch.zeros(1))
        for _ in state.batches(loader, commit_every=0):
            state.commit()
    check("in train", caught)


train(state)
