"""hvd_elastic: elastic, fault-tolerant training.

    import hvd_elastic as hvd, numpy

    hvd.init()
    state = hvd.State(w=numpy.zeros(1000), step=0)

    @hvd.run
    def train(state):
        while state.step < 1000:
            state.w -= 0.1 * hvd.allreduce(gradient(state.w), op=hvd.Average)
            state.step += 1
            state.commit()

    train(state)

docs/python.md tells what happens when workers die and hosts come and go.
"""

from __future__ import annotations

from typing import Optional, SupportsFloat

from . import _lib, _session
from ._checkpoint import Checkpoint
from ._error import (
    Done,
    HostsUpdated,
    HvdError,
    InvalidArgument,
    Left,
    Lost,
    Mismatch,
    NotFound,
    OutOfMemory,
    Revoked,
    RoundOver,
    TimedOut,
    Unsupported,
    check,
)
from ._launch import launch
from ._lib import version
from ._ops import (
    And,
    Average,
    Group,
    Max,
    Min,
    Op,
    Or,
    Product,
    Request,
    Sum,
    Xor,
    allgather,
    allgather_async,
    allgather_object,
    allreduce,
    allreduce_,
    allreduce_async,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_object,
    join,
    reducescatter,
)
from ._run import run
from ._state import State
from .sampler import Batch, Sampler

__version__ = version()


def init() -> None:
    """Joins the job. Waits for no other worker; a second call changes nothing."""
    _session.session().begin_anew()


def shutdown() -> None:
    """Says that the training of this process is done. The end of the program does the same."""
    _session.session().shutdown()


def is_initialized() -> bool:
    """Tells whether init() has been called."""
    return _session.session().initialized


def rank() -> int:
    """Returns the number of this worker in the round: 0 to size() - 1. Provisional before the first round."""
    return _session.session().place("rank")


def size() -> int:
    """Returns how many workers the round has. Provisional before the first round."""
    return _session.session().place("size")


def local_rank() -> int:
    """Returns the number of this worker among those of its host. Choose a GPU by slot() instead."""
    return _session.session().place("local_rank")


def local_size() -> int:
    """Returns how many workers of the round this host has."""
    return _session.session().place("local_size")


def cross_rank() -> int:
    """Returns the number of this host among those that have a worker with this local rank."""
    return _session.session().place("cross_rank")


def cross_size() -> int:
    """Returns how many hosts have a worker with this local rank."""
    return _session.session().place("cross_size")


def slot() -> int:
    """Returns the slot of the host, which never changes and which no other live worker of the host has."""
    return _session.session().place("slot")


def min_np() -> int:
    """Returns the smallest number of workers with which the job trains."""
    return _session.session().place("min_np")


def max_np() -> int:
    """Returns the largest number of workers with which the job trains."""
    return _session.session().place("max_np")


def round_number() -> int:
    """Returns the number of the round; 0 before the first one. A later round has a higher number."""
    return _session.session().round


def news() -> Optional[str]:
    """Tells what has become known of the round: "revoked", "hosts updated", or None. Needs no other rank."""
    code = _session.session().news()
    return {_lib.E_REVOKED: "revoked", _lib.HOSTS_UPDATED: "hosts updated"}.get(code)


def report(name: str, value: SupportsFloat) -> bool:
    """Shows a value of the training to operators, as its loss: in status, top, the metrics and the page.

    All ranks may call it, and only rank 0's values are shown: average before what is to be averaged. It sends nothing
    and waits for no process. The value is anything that float() takes; on other ranks it is not even looked at. A name
    has 1 to 63 letters, digits and characters of _-./:@%+, and a worker has at most 32 names. Returns False if it
    is refused, for the reason that the driver's log has once; a training goes on without it.
    """
    session = _session.session()
    if session.place("rank") != 0:
        return True
    if not _lib.has("hvd_report"):
        return False
    return not _lib.lib.hvd_report(name.replace("\0", "?").encode("utf-8", "replace"), float(value))


def timeline_start(path: str) -> None:
    """Begins to write the times of this worker's activities to a file (docs/timeline.md)."""
    check(_lib.lib.hvd_timeline_start(path.encode()))


def timeline_stop() -> None:
    """Ends the timeline."""
    check(_lib.lib.hvd_timeline_stop())


__all__ = [
    "And",
    "Average",
    "Batch",
    "Checkpoint",
    "Done",
    "Group",
    "HostsUpdated",
    "HvdError",
    "InvalidArgument",
    "Left",
    "Lost",
    "Max",
    "Min",
    "Mismatch",
    "NotFound",
    "Op",
    "Or",
    "OutOfMemory",
    "Product",
    "Request",
    "Revoked",
    "RoundOver",
    "Sampler",
    "State",
    "Sum",
    "TimedOut",
    "Unsupported",
    "Xor",
    "__version__",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_object",
    "cross_rank",
    "cross_size",
    "init",
    "is_initialized",
    "join",
    "launch",
    "local_rank",
    "local_size",
    "max_np",
    "min_np",
    "news",
    "rank",
    "reducescatter",
    "report",
    "round_number",
    "run",
    "shutdown",
    "size",
    "slot",
    "timeline_start",
    "timeline_stop",
    "version",
]
