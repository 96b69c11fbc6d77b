"""Ctrl-C while the program waits in the library.

The main thread runs Python's signal handlers only when a call of the library has returned. So a signal that comes
meanwhile is also written to a pipe; the thread that reads the pipe revokes the round, which ends the wait.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from . import _lib

_main = threading.main_thread().ident
_pipe: tuple[int, int] = (-1, -1)
_other = -1  # the descriptor to which signals are written besides, of asyncio for example
_watches = False  # also while the program is not in the library


def _watch() -> None:
    while True:
        data = os.read(_pipe[0], 64)
        if _other >= 0:
            with contextlib.suppress(OSError):
                os.write(_other, data)
        if signal.SIGINT in data and _is_default():
            _lib.lib.hvd_revoke(b"KeyboardInterrupt: a worker was interrupted")


def _is_default() -> bool:
    """Whether the program has no handler of its own for Ctrl-C."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def watch() -> None:
    """From now on Ctrl-C ends the round also while the main thread waits outside of the library, in C++ code."""
    global _other, _watches
    if _watches or threading.get_ident() != _main or not _is_default() or not _lib.has("hvd_revoke"):
        return
    if _pipe[0] < 0:
        _begin()
    _other = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    _watches = True


def _begin() -> None:
    global _pipe
    _pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(_pipe[0], True)
    threading.Thread(target=_watch, name="hvd-interrupt", daemon=True).start()


def blocking(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function of the library that waits for other workers. Ctrl-C ends the wait.

    A program with a handler of its own for SIGINT is left alone: its handler runs when the call has returned.
    """
    global _other
    if _watches or threading.get_ident() != _main or not _is_default() or not _lib.has("hvd_revoke"):
        return function(*arguments)
    if _pipe[0] < 0:
        _begin()
    _other = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    try:
        return function(*arguments)
    finally:
        signal.set_wakeup_fd(_other)


def forked() -> None:
    """In a child that fork has made: its parent's thread is not there, and the pipe is its parent's."""
    global _pipe, _main, _watches
    if _pipe[0] >= 0:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(-1)
    _pipe, _watches = (-1, -1), False
    _main = threading.main_thread().ident
