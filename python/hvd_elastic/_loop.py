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
    """Runs hvd_elastic_run in a thread of its own, turned inside out.

    Invariant: each order of the program is answered once, by the loop's thread.
    """

    def __init__(self, state: int) -> None:
        self._state = state
        self._orders: queue.SimpleQueue[tuple[Optional[Callable[..., int]], tuple[Any, ...]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._train = _lib.TRAIN_FN(self._serve)
        self._code = 0
        self._thread: Optional[threading.Thread] = None

    def next(self, code: int) -> Answer:
        """Ends the round with this code and waits for the next one.

        0: train now; FINISHED: the training is done; other codes: the run has ended.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hvd-loop", daemon=True)
            self._thread.start()
        else:
            self._code = code
            self._orders.put((None, ()))
        return self._answers.get()

    def call(self, function: Callable[..., int], *arguments: Any) -> Answer:
        """Calls a function of the library in the loop's thread."""
        self._orders.put((function, arguments))
        return self._answers.get()

    def _answer(self, code: int) -> None:
        self._answers.put((code, _lib.last_error() if code < 0 else ""))

    def _serve(self, state: int, arg: int) -> int:
        """The function train of hvd_elastic_run."""
        del state, arg
        self._answers.put((0, ""))
        while True:
            function, arguments = self._orders.get()
            if function is None:
                return self._code
            self._answer(function(*arguments))

    def _run(self) -> None:
        code = _lib.lib.hvd_elastic_run(self._state, self._train, None)
        self._answer(code or _lib.FINISHED)
