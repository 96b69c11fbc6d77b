"""Asks for checkpoints in a commit loop: checkpoints.py HOW STEPS.

HOW: "waits" for each, or "drops" all but the last, or "reports" how the wait for each has ended.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Optional

import hvd_elastic as hvd
import numpy

how, steps = sys.argv[1], int(sys.argv[2])
every = 10
state = hvd.State(sums=numpy.zeros(100), step=0)


def wait_for(request: hvd.Checkpoint, timeout: Optional[float] = None) -> None:
    try:
        request.wait(timeout)
        print("durable", state.step, flush=True)
    except hvd.HvdError as error:
        print(f"{type(error).__name__} {error.code} after {state.step}: {error}", flush=True)
    except hvd.Revoked as error:
        print("revoked:", error, flush=True)
        raise


def ask() -> None:
    request = state.checkpoint()
    print("asked", state.step, flush=True)
    if how == "waits":
        wait_for(request)
        assert request.done()
        request.wait()  # again: the same result
    elif how == "reports":
        wait_for(request, 0.05)
        wait_for(request)
        wait_for(request)
    elif state.step == steps:
        waiter = threading.Thread(target=wait_for, args=(request,))
        waiter.start()
        waiter.join()


@hvd.run
def train(state: hvd.State) -> None:
    print("round of", hvd.size(), "rank", hvd.rank(), "from step", state.step, "pid", os.getpid(), flush=True)
    while state.step < steps:
        state.sums += hvd.allreduce(1 / hvd.size(), op=hvd.Sum)
        state.step += 1
        state.commit()
        if hvd.rank() == 0 and state.step % every == 0:
            ask()
    hvd.barrier()


train(state)
print("result", state.step, round(float(state.sums.min()), 6), round(float(state.sums.max()), 6), flush=True)
