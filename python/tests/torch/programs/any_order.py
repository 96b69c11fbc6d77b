"""Calls of horovod.torch that two ranks make in different orders, with HVD_NEGOTIATE=1: any_order.py WHAT [FOLDER]."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import horovod.torch as hvd
import hvd_elastic
import torch


def refused(function: Callable[[], object]) -> str:
    """The text of the error that a call ends with."""
    try:
        function()
    except (hvd.HorovodInternalError, ValueError) as error:
        return str(error)
    raise AssertionError("the call was not refused")


def orders() -> None:
    """The second rank makes its calls backwards; a wrong call and an unmatched one end no round."""
    names = [f"tensor {i}" for i in range(7)]
    mine = names if hvd.rank() == 0 else names[::-1]
    handles = {name: hvd.allreduce_async(torch.full((3,), float(name[-1])), name=name, op=hvd.Sum) for name in mine}
    assert "on its way" in refused(lambda: hvd.allreduce_async(torch.ones(3), name=names[0]))
    for name in mine:
        assert hvd.synchronize(handles[name]).tolist() == [2 * float(name[-1])] * 3
    first = hvd_elastic.round_number()
    assert "wrong: the ranks differ" in refused(lambda: hvd.allreduce(torch.zeros(hvd.rank() + 1), name="wrong"))
    said = refused(lambda: hvd.broadcast(torch.ones(1), 0, name=f"mine {hvd.rank()}"))
    assert f"calls held here: broadcast mine {hvd.rank()};" in said, said
    if hvd.rank() == 0:
        early = hvd.allgather_async(torch.ones(2), name="late")
        assert not hvd.poll(early)
        hvd.barrier()
    else:
        hvd.barrier()
        early = hvd.allgather_async(torch.ones(1), name="late")
    assert hvd.synchronize(early).tolist() == [1.0] * 3
    assert hvd_elastic.round_number() == first


def joins() -> None:
    """A rank that has joined is not disturbed by a call that cannot do without it.

    A call that it has made before and not waited for is made with its tensor.
    """
    held = hvd.allreduce_async(torch.ones(2), name="before", op=hvd.Sum)
    if hvd.rank() == 1:
        assert hvd.synchronize(held).tolist() == [2.0, 2.0]
        assert hvd.allreduce(torch.ones(2), name="alone", op=hvd.Sum).tolist() == [1.0, 1.0]
        assert "another rank has joined" in refused(lambda: hvd.allgather(torch.ones(1)))
        assert "another rank has joined" in refused(lambda: hvd.broadcast(torch.ones(1), 1))
    assert hvd.join() == 1
    if hvd.rank() == 0:
        assert hvd.synchronize(held).tolist() == [2.0, 2.0]
    assert hvd.allgather(torch.tensor([hvd.rank()])).tolist() == [0, 1]


def death(folder: Path) -> None:
    """A wrong call takes all ranks back to the last commit, and so does a death while the other rank waits.

    A call that was held in a round is not made in the next one.
    """
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)

    @hvd.elastic.run
    def train(state: hvd.elastic.ObjectState) -> None:
        while state.step < 20:
            held = hvd.allreduce_async(torch.ones(1), name="held", op=hvd.Sum)
            if state.step == 5 and hvd_elastic.round_number() == 1:
                hvd.allreduce(torch.zeros(hvd.rank() + 1), name="wrong")
            if state.step == 10 and hvd.rank() == 1 and not (folder / "died").exists():
                (folder / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            assert hvd.synchronize(held).item() == hvd.size()
            state.step += 1
            state.commit()

    train(state)
    print("steps", state.step, "in round", hvd_elastic.round_number(), flush=True)


hvd.init()
if sys.argv[1] == "death":
    death(Path(sys.argv[2]))
else:
    hvd.barrier()
    {"orders": orders, "joins": joins}[sys.argv[1]]()
    print("done in round", hvd_elastic.round_number(), flush=True)
