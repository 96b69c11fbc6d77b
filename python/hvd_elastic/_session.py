"""The session: this process as a worker of the job.

There is one session in a process. It is *outside* of a round, *inside* of one, or has *ended*. Inside it may be
*dead*: a call of this round has failed, so every further call fails too, until the round is left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Optional

from . import _error, _interrupt, _lib
from ._loop import Loop
from ._state import Entries

_PLACE = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "slot", "min_np", "max_np")


class Session:
    """This process as a worker of the job."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: Optional[Entries] = None
        self._loop: Optional[Loop] = None
        self._on_round: list[Callable[[], None]] = []  # of the present training
        self._on_each_round: list[Callable[[], None]] = []  # of each training
        self._place: dict[str, int] = {}
        self.is_over: Optional[Callable[[BaseException], bool]] = None  # for an error of a foreign backend
        self.disconnect: Optional[Callable[[], None]] = None  # a foreign backend, when its round has failed
        self._code = 0  # with which the round was left, for the next call of the loop
        self.initialized = False
        self.is_child = False  # a process that multiprocessing or fork made of a worker
        self.inside = False
        self.ended = False
        self.dead = False
        self.revoked = False  # dead, because the round was revoked
        self.told = 0  # the news that a commit or a check has brought in this round
        self.has_function = False  # the program has called a function that hvd_elastic.run wraps
        self.trained = False  # that function has returned, and has not been called again
        self.round = 0

    # ---- joining ----

    def init(self) -> None:
        """Joins the job. A second call changes nothing."""
        if self.initialized:
            return
        with self._lock:
            if self.initialized:
                return
            if _in_child():
                self._be_child()
            else:
                _error.check(_lib.lib.hvd_init())
                self._note_place()
                os.environ[_MARK] = f"{os.getpid()} {_worker()}"
                _watch_exit(self)
            self.initialized = True

    def begin_anew(self) -> None:
        """Joins the job; without a driver, after the end of a training, begins another one."""
        with self._lock:
            if self.ended and not self.is_child and "HVD_AGENT" not in os.environ:
                self.shutdown()
                if self._loop is not None:
                    self._loop.end()
                if self._entries is not None:
                    self._entries.close()
                self._loop = self._entries = self.is_over = self.disconnect = None
                self._on_round = []
                self.initialized = self.ended = self.has_function = self.trained = False
                self.round = 0
            self.init()

    def _be_child(self) -> None:
        """A child of a worker is no worker: it has the place of its parent, and makes no collectives."""
        self.is_child = True
        for name in _PLACE:
            self._place[name] = int(os.environ.get(f"HVD_{name.upper()}", "1" if name in _SIZES else "0"))

    def _note_place(self) -> None:
        """Keeps the place, also in the environment, from which children of this process read it."""
        for name in _PLACE:
            self._place[name] = getattr(_lib.lib, f"hvd_{name}")()
            os.environ[f"HVD_{name.upper()}"] = str(self._place[name])

    def place(self, name: str) -> int:
        """Returns a number of the place: "rank", "size", "local_rank" and so on."""
        if not self.initialized:
            raise ValueError(f"hvd_elastic.{name}(): init() has not been called; call it first")
        return self._place[name]

    @property
    def state(self) -> Entries:
        """The entries of the state. They are registered before the first round is entered."""
        if self._entries is None:
            self._entries = Entries(self)
        return self._entries

    def on_round(self, callback: Callable[[], None], lasting: bool = False) -> None:
        """Adds a function that is called in each round, when the state is loaded, in the order of additions.

        lasting: also in another training of this process; such functions come first.
        """
        (self._on_each_round if lasting else self._on_round).append(callback)

    def joined_early(self) -> str:
        """Tells what joined the round before the function of hvd_elastic.run, and the remedy; empty: nothing."""
        if not self.inside or self.has_function:
            return ""
        if any(os.environ.get(name) for name in ("HVD_BACKEND", "HVD_TORCH_ENV", "HVD_TORCH_ON_LOSS")):
            return (
                "was made when HVD_BACKEND=hvd (or --torch-env, HVD_TORCH_ON_LOSS, hvd_elastic.torch.run) had already "
                "joined the round; leave these out, which are for unmodified programs, and start this one with python"
            )
        return (
            "was made when a collective (DistributedDataParallel(model) makes one) had already joined the round, and a "
            "worker that joins later would make that collective alone, which ends the job with a Mismatch; make State "
            "and Sampler before the first collective, and DDP in the function that hvd_elastic.run calls"
        )

    # ---- rounds ----

    def enter(self) -> int:
        """Joins a round, unless the session is in one, and returns its number."""
        if self.inside:
            return self.round
        with self._lock:
            if self.inside:
                return self.round
            self.init()
            self._must_be_worker()
            if self.ended:
                raise _error.HvdError(
                    "the training of this process has ended, so it cannot join another round; "
                    "call collectives before hvd_elastic.shutdown() and before the end of the program",
                    _lib.E_STATE,
                )
            self._next(self._code, "")
            for callback in [*self._on_each_round, *self._on_round]:
                callback()
            return self.round

    def _next(self, code: int, why: str) -> None:
        """Ends the last round with this code and begins the next one, or raises what has come instead."""
        if self._loop is None:
            self._loop = Loop(self.state.seal())
        answer, text = self._loop.next(code, why)
        self.inside = answer == 0
        self.dead = False
        self.revoked = False
        self.told = 0
        self._code = 0
        if self.inside:
            self._note_place()
            self.round = _lib.lib.hvd_round()
            return
        self.ended = True
        self.state.raise_kept()
        if answer != _lib.FINISHED:
            raise _error.error_of(answer, text)

    def leave(self, code: int, why: str = "") -> bool:
        """Leaves the round.

        code: HOSTS_UPDATED or REVOKED: enter() joins the next round. 0: the training is done. A negative code: this
        worker has failed; ``why`` says so in words, also after a training that is done. True: the training is not
        done after all, as the round was revoked meanwhile; the session is in the next round.
        """
        with self._lock:
            if not self.inside:
                return False
            self.inside = False
            if code < 0 and self.disconnect is not None:
                self.disconnect()
            if code in (_lib.HOSTS_UPDATED, _lib.E_REVOKED):
                self._code = code
                return False
            try:
                self._next(code, why)
            except (_error.RoundOver, _error.HvdError):
                if code == 0:
                    raise
            return self.inside

    def failed(self, code: int) -> None:
        """Notes what a call of this round has returned."""
        if code < 0 and code not in (_lib.E_TIMEOUT, _lib.E_NOTFOUND):
            self.dead = True
            self.revoked = self.revoked or code == _lib.E_REVOKED
        elif 0 < code < _lib.EPOCH_END:
            self.told = code

    def is_of_round(self, error: BaseException) -> bool:
        """Tells whether the exception says only that the round is over.

        A framework may have made another RuntimeError of the library's Revoked, or a foreign backend have failed.
        """
        if isinstance(error, _error.HvdError):
            return False
        if isinstance(error, _error.RoundOver) or (self.is_over is not None and self.is_over(error)):
            return True
        return self.inside and self.revoked and isinstance(error, RuntimeError)

    def news(self) -> int:
        """Returns 0, HOSTS_UPDATED (a change is coming) or E_REVOKED (the round is over)."""
        if self.dead or self.told:
            return _lib.E_REVOKED if self.dead else self.told
        return int(_lib.lib.hvd_news()) if self.inside and _lib.has("hvd_news") else 0

    def revoke(self, why: str) -> None:
        """Ends the round for all members, without a failure; each goes back to the last commit."""
        _error.check(_lib.lib.hvd_revoke(why.encode()))

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function of the training thread, and raises what it returns unless that is 0."""
        code = self.ask(function, *arguments)
        if code:
            raise _error.error_of(code)

    def ask(self, function: Callable[..., int], *arguments: Any) -> int:
        """The same, but returns news, and raises only errors."""
        code, text = self.hand_over(function, *arguments)
        if code:
            self.failed(code)
        if code < 0:
            self.state.raise_kept()
            raise _error.error_of(code, text)
        return code

    def hand_over(self, function: Callable[..., int], *arguments: Any) -> tuple[int, str]:
        """The same, but returns the code and its text, and takes neither as news of the round."""
        self._must_be_worker()
        if self._loop is None or not self.inside:
            raise _error.HvdError(
                "a commit, check, restore or step of a sampler was called outside of a round; make this call in the "
                "function that hvd_elastic.run calls, or after the first collective, which joins the round",
                _lib.E_STATE,
            )
        return self._loop.call(function, *arguments)

    def _must_be_worker(self) -> None:
        if self.is_child:
            raise _error.HvdError(
                "this process is a child of a worker and takes no part in the job; "
                "call collectives and commits in the worker itself",
                _lib.E_STATE,
            )

    # ---- the end ----

    def shutdown(self, failure: str = "") -> None:
        """Says that the training is done, and leaves the job. failure: why the program fails after its training."""
        if self.is_child or not self.initialized:
            return
        while self.inside:
            self.leave(0, failure)
        _lib.lib.hvd_shutdown()

    def end(self, failure: Optional[BaseException]) -> None:
        """At the end of the program; ``failure`` is the exception that has ended it."""
        if self.is_child or not self.initialized:
            return
        if failure is None:
            self.shutdown()
        elif self.inside and self.is_of_round(failure):
            self.leave(_lib.E_STATE, _error.words(failure))  # the worker that starts in its place goes on
        elif self.inside and self.trained:
            with contextlib.suppress(_error.RoundOver, _error.HvdError):  # the program has shown its own exception
                self.shutdown(_error.words(failure))
        elif self.inside:
            self.leave(_lib.E_EXCEPTION, _error.words(failure))

    def forked(self) -> None:
        """In a child that fork has made: it keeps the numbers of its parent."""
        self.is_child = self.initialized
        self.inside = False
        self._lock = threading.RLock()
        _interrupt.forked()


_MARK = "HVD_PY_WORKER"  # in the environment: the process that is the worker, for its children


def _worker() -> str:
    return os.environ.get("HVD_AGENT", "") + os.environ.get("HVD_INCARNATION", "")


def _in_child() -> bool:
    """Tells whether this process is a child of a worker, made by multiprocessing or by exec."""
    multiprocessing = sys.modules.get("multiprocessing.process")  # a child of multiprocessing has it
    if multiprocessing is not None and (
        multiprocessing.parent_process() is not None or getattr(multiprocessing.current_process(), "_inheriting", False)
    ):
        return True
    pid, _, worker = os.environ.get(_MARK, "").partition(" ")
    return worker != "" and worker == _worker() and pid != str(os.getpid())


_SIZES = ("size", "local_size", "cross_size", "min_np", "max_np")
_session = Session()
_failure: Optional[BaseException] = None


def session() -> Session:
    """Returns the session of this process."""
    return _session


_watched = False


def _watch_exit(session: Session) -> None:
    """Ends the session when the program ends; a program that an exception has ended has failed."""
    global _watched
    if _watched:
        return
    _watched = True
    hook = sys.excepthook

    def note(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        global _failure
        _failure = value
        hook(kind, value, trace)

    sys.excepthook = note
    atexit.register(lambda: session.end(_failure))


os.register_at_fork(after_in_child=lambda: _session.forked())
