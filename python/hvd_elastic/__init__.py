"""hvd_elastic: elastic, fault-tolerant training."""

from __future__ import annotations

from . import _session
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
)
from ._lib import version
from ._run import run
from ._state import State

__version__ = version()


def init() -> None:
    """Joins the job. Waits for no other worker; a second call changes nothing."""
    _session.session().init()


def rank() -> int:
    """Returns the number of this worker in the round: 0 to size() - 1. Provisional before the first round."""
    return _session.session().place("rank")


def size() -> int:
    """Returns how many workers the round has. Provisional before the first round."""
    return _session.session().place("size")


__all__ = [
    "Done",
    "HostsUpdated",
    "HvdError",
    "InvalidArgument",
    "Left",
    "Lost",
    "Mismatch",
    "NotFound",
    "OutOfMemory",
    "Revoked",
    "RoundOver",
    "State",
    "TimedOut",
    "Unsupported",
    "__version__",
    "init",
    "rank",
    "run",
    "size",
]
