"""Requests for a durable checkpoint (hvd_checkpoint), which a program waits for or not.

State.checkpoint makes them. Invariant: the library's request is given back once, by the first wait that gets a
result, or by a later ask for a checkpoint when the program has dropped it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Optional

from . import _error, _lib

if TYPE_CHECKING:
    from ._session import Session

_TURN = 0.2  # seconds for which the loop's thread waits at a time, so that Ctrl-C is not kept waiting
_FOREVER = 1e9
_dropped: list[int] = []  # requests that no program can wait for any more


def _is_done(handle: int) -> Optional[bool]:
    """None: the library has no such request any more."""
    ready = ctypes.c_int(0)
    return bool(ready.value) if _lib.lib.hvd_test(handle, ctypes.byref(ready)) == 0 else None


def _give_back_dropped() -> None:
    for handle in [handle for handle in _dropped if _is_done(handle) is not False]:
        _dropped.remove(handle)
        _lib.lib.hvd_wait(handle)


class Checkpoint:
    """A checkpoint that is asked for: agents write it while the training goes on."""

    def __init__(self, session: Session, state: int) -> None:
        self._handle: Optional[int] = None
        if not _lib.has("hvd_checkpoint"):
            raise _error.Unsupported(
                f"{_lib.path}: has no function hvd_checkpoint, so it is older than this package; "
                "install the wheel of the same version, or unset HVD_LIBRARY",
                _lib.E_UNSUPPORTED,
            )
        self._failure: Optional[Exception] = None
        self._session = session
        self._asker = threading.get_ident()
        _give_back_dropped()
        handle = ctypes.c_void_p()
        session.call(_lib.lib.hvd_checkpoint, state, ctypes.byref(handle))
        self._handle = handle.value

    def __del__(self) -> None:
        if self._handle is not None:
            _dropped.append(self._handle)

    def done(self) -> bool:
        """Tells whether wait() would return or raise at once."""
        return self._handle is None or _is_done(self._handle) is not False

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until the checkpoint is complete. After ``timeout`` seconds raises TimedOut; the request stays.

        Raises HvdError when there is no checkpoint, with the reason. A second wait gives the same result at once.
        """
        if self._handle is not None:
            self._await(self._handle, _FOREVER if timeout is None else timeout)
        if self._failure is not None:
            raise self._failure

    def _await(self, handle: int, seconds: float) -> None:
        """Raises what leaves the request open, and notes what ends it."""
        until = time.monotonic() + seconds
        code = _lib.E_TIMEOUT
        while code == _lib.E_TIMEOUT:
            left = max(until - time.monotonic(), 0)
            code, text = self._wait_for(handle, int(1e6 * min(left, _TURN)))
            if code == _lib.E_TIMEOUT and left == 0:
                raise _error.error_of(
                    code, f"the checkpoint is not complete after {seconds:g} s; wait for the request again"
                )
        if code == _lib.E_STATE and _is_done(handle) is not None:  # a change of the members comes first
            raise _error.error_of(code, text)
        self._handle = None
        self._failure = self._failure_of(code, text) if code else None

    def _wait_for(self, handle: int, timeout_us: int) -> tuple[int, str]:
        """Lets the thread wait in whose name the library knows the asker, unless another thread waits."""
        if threading.get_ident() == self._asker and _is_done(handle) is False:
            self._session.enter()
            return self._session.hand_over(_lib.lib.hvd_wait_for, handle, timeout_us)
        code = int(_lib.lib.hvd_wait_for(handle, timeout_us))
        return code, _lib.last_error() if code < 0 else ""

    def _failure_of(self, code: int, text: str) -> Exception:
        """A request of a round that is over may not end the running one."""
        if code == _lib.E_REVOKED and self._session.news() != code:
            return _error.HvdError(text, code)
        if code in (_lib.E_REVOKED, _lib.E_LOST):
            self._session.failed(code)
        return _error.error_of(code, text)
