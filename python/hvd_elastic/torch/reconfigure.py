"""torch's own backends with hvd as their membership service (PyTorch 2.14 and later).

    hvd_elastic.torch.reconfigure.init_process_group("gloo")
    state = hvd_elastic.torch.State(model=model, ...)

    @hvd_elastic.run
    def train(state): ...

The default group is torch's. In each round libhvd says who is in it, and torch makes its connections anew, in the same
group object (`torch.distributed._reconfigure`). Collectives of torch go over gloo; commits, the news of a death and
the state of a joiner go over libhvd. When a member dies, gloo raises its own RuntimeError, which `hvd_elastic.run`
takes for the end of the round once the library knows of it. A member that leaves such a round closes its connections,
as other members of gloo may wait for this member and not for the dead one.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from typing import Any

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from .. import _lib, _ops
from .._session import session
from . import backend as _backend

PATIENCE = datetime.timedelta(seconds=60)  # for torch's connections of a round
NEWS_SECONDS = 10.0  # within which the library tells of a death that torch has noticed first

_store: Any = None


def init_process_group(name: str = "gloo") -> None:
    """Makes torch's default group over this backend. The first collective of libhvd, or `run`, joins a round."""
    global _store
    if not hasattr(c10d, "_reconfigure"):
        raise RuntimeError(f'{name}: this PyTorch is older than 2.14 and has no _reconfigure; use the backend "hvd"')
    session().init()
    _store = _backend._RoundStore()
    place = session().place
    _backend._torch_init(
        name, store=_store, rank=place("rank"), world_size=place("size"), timeout=PATIENCE, enable_reconfigure=True
    )
    if not c10d._supports_reconfigure():
        dist.destroy_process_group()
        raise RuntimeError(f'{name}: this backend cannot be reconfigured; use gloo, or the backend "hvd"')
    session().on_round(_begin_round, lasting=True)
    session().is_over = _is_over
    session().disconnect = _disconnect


def _begin_round() -> None:
    """The members of the round connect, in the order of their ranks."""
    group = dist.group.WORLD
    if group is None:
        return
    _store.be_alone(False)
    _store._now()  # a collective of libhvd; torch's threads find the store served
    handles = _ops.allgather_object(c10d._get_reconfigure_handle())
    c10d._reconfigure(2 * session().round, handles, timeout=PATIENCE).wait()
    c10d._world.pg_group_ranks[group] = {rank: rank for rank in range(session().place("size"))}


def _disconnect() -> None:
    """Closes torch's connections, which has no call for that in gloo: the group becomes one of this process alone.

    The next round connects the group again, and tells of an error that keeps it from that.
    """
    if dist.group.WORLD is None:
        return
    _store.be_alone(True)
    with contextlib.suppress(RuntimeError):
        alone = [c10d._get_reconfigure_handle()]
        c10d._reconfigure(2 * session().round + 1, alone, timeout=PATIENCE).wait()


def _is_over(error: BaseException) -> bool:
    """Whether the round is over, for an error that torch's backend has raised: the library may hear of it later."""
    if not isinstance(error, RuntimeError) or not session().inside:
        return False
    until = time.monotonic() + NEWS_SECONDS
    while session().news() != _lib.E_REVOKED:
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True
