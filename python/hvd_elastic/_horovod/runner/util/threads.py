"""Threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def in_thread(target: Callable[..., Any], args: tuple[Any, ...] = (), daemon: bool = True) -> threading.Thread:
    """Calls a function in a thread of its own."""
    thread = threading.Thread(target=target, args=args, daemon=daemon)
    thread.start()
    return thread
