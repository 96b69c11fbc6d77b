"""Codes of the library as exceptions, each with the library's text: first the culprit, last the remedy."""

from __future__ import annotations

from . import _lib


class RoundOver(Exception):
    """The round is over: leave the training function with this exception.

    ``hvd_elastic.run`` catches it and goes on with the next round.
    """

    code = 0


class Revoked(RoundOver, RuntimeError):
    """A member has died or failed: all members go back to the last commit."""

    code = _lib.E_REVOKED


class HostsUpdated(RoundOver):
    """The membership changes here; nothing is lost."""

    code = _lib.HOSTS_UPDATED


class Left(RoundOver):
    """This worker was asked to leave: the process should end with exit code 0."""

    code = _lib.LEFT


class Done(RoundOver):
    """Other workers have finished the job: the process should end with exit code 0."""

    code = _lib.DONE


class HvdError(RuntimeError):
    """An error of the library; ``code`` is its number in hvd.h."""

    def __init__(self, text: str, code: int = _lib.E_INTERNAL) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return type(self), (str(self), self.code)


class InvalidArgument(HvdError, ValueError):
    """An argument or an input is wrong (HVD_E_INVAL)."""


class Mismatch(HvdError, ValueError):
    """Two workers disagree about what should be equal (HVD_E_MISMATCH)."""


class NotFound(HvdError, LookupError):
    """What the program asked for does not exist (HVD_E_NOTFOUND)."""


class TimedOut(HvdError, TimeoutError):
    """A time limit has passed (HVD_E_TIMEOUT)."""


class Lost(HvdError, ConnectionError):
    """The driver, the agent or a peer is gone (HVD_E_LOST)."""


class Unsupported(HvdError, NotImplementedError):
    """Not available in this build or on this machine (HVD_E_UNSUPPORTED)."""


class OutOfMemory(HvdError, MemoryError):
    """Memory could not be allocated (HVD_E_NOMEM)."""


_ROUND_OVER: dict[int, type[RoundOver]] = {kind.code: kind for kind in (Revoked, HostsUpdated, Left, Done)}
_ERRORS: dict[int, type[HvdError]] = {
    _lib.E_INVAL: InvalidArgument,
    _lib.E_MISMATCH: Mismatch,
    _lib.E_NOTFOUND: NotFound,
    _lib.E_TIMEOUT: TimedOut,
    _lib.E_LOST: Lost,
    _lib.E_UNSUPPORTED: Unsupported,
    _lib.E_NOMEM: OutOfMemory,
}


def error_of(code: int, text: str = "") -> Exception:
    """Returns the exception for a code other than 0; without a text the code's own sentence."""
    text = text or str(_lib.lib.hvd_strerror(code).decode())
    if code == _lib.E_REVOKED and "; " not in text:
        text += (
            ", as another worker was lost or has failed: the log of the driver names it; without hvd_elastic.run this "
            "process ends, and hvd-elastic starts it again"
        )
    if code in _ROUND_OVER:
        return _ROUND_OVER[code](text)
    return _ERRORS.get(code, HvdError)(text, code)


def words(error: BaseException) -> str:
    """Returns the exception as a line of a log names it."""
    return f"{type(error).__name__}: {error}"


def check(code: int) -> None:
    """Raises the exception for what the last call of this thread has returned, unless it is 0."""
    if code:
        raise error_of(code, _lib.last_error() if code < 0 else "")
