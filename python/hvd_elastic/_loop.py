"""The thread in which the library's training loop runs.

The program's own thread waits for it in Python, where Ctrl-C reaches it. Commits, checks and restores are calls of
the library's training thread, so they are handed to this thread too.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Optional

from . import _lib

Answer = tuple[int, str]  # a code of the library and, if it is negative, its text


class Loop:
    """Makes the calls of the library's training thread, in a thread of its own.

    Invariant: each order of the program has an answer of its own, so an order that Ctrl-C has broken off leaves
    nothing behind for the next one.
    """

    def __init__(self, state: int) -> None:
        self._state = state
        self._begun = False
        self._orders: queue.SimpleQueue[Optional[tuple[Callable[..., int], tuple[Any, ...], queue.SimpleQueue[Answer]]]]
        self._orders = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="hvd-loop", daemon=True).start()

    def next(self, code: int, why: str) -> Answer:
        """Ends the round with this code, for this reason if it is a failure, and waits for the next round.

        0: train now; FINISHED: the training is done; other codes: the run has ended.
        """
        return self.call(self._next, code, why)

    def call(self, function: Callable[..., int], *arguments: Any) -> Answer:
        """Calls a function of the library in the loop's thread."""
        answer: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._orders.put((function, arguments, answer))
        return answer.get()

    def end(self) -> None:
        """Ends the thread, when the run has ended."""
        self._orders.put(None)

    def _next(self, code: int, why: str) -> int:
        if not self._begun:
            self._begun = True
            code = _lib.lib.hvd_elastic_begin(self._state)
            if code:
                return code
        if why and code <= 0 and _lib.has("hvd_fail"):
            _lib.lib.hvd_fail(why.encode())
        return int(_lib.lib.hvd_elastic_next(self._state, code))

    def _serve(self) -> None:
        while True:
            order = self._orders.get()
            if order is None:
                return
            function, arguments, answer = order
            code = function(*arguments)
            answer.put((code, _lib.last_error() if code < 0 else ""))
