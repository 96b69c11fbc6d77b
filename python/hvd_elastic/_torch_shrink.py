"""An unmodified program of torch.distributed goes on with the survivors of a death: HVD_TORCH_ON_LOSS=shrink.

The program has no state to go back to, so the survivors must stay where they are, all at the same place. A *point* is a
step of an optimizer, or a collective for which the program waits; all members pass the same points in the same order,
and count them. No member passes a point before all have come to it: a step is voted on, a collective is followed by a
barrier. So after a death the counts differ by one at most. The survivors exchange them in the next round, and come
together:

    a member that is behind   has all that the point gives, and takes the verdict of those that have passed it
    a step                    is made if all survivors have the whole gradient, else skipped by all: the batch is lost
    a collective              is made again

Between two points a collective that nobody waits for (those of DDP) fails in silence, and spoils the gradient.

Called by the backend, and by what `import torch` loads, so this module does not import torch.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import NamedTuple, Optional

from hvd_elastic_autoload import ON_LOSS, set_place

from . import _calls, _error, _lib
from ._session import session

_NEW = -1  # the count of a worker that has made no training yet
_TAG = 0x736872696E6B  # of the exchanges: other collectives that meet one are a Mismatch
_FIRST_STEPS = 2  # after which DDP has chosen its buckets
_TOO_LATE = (
    "a program that shrinks (HVD_TORCH_ON_LOSS=shrink) takes no worker in later, so this one ends; use a State and "
    "hvd_elastic.run for a training that workers may join"
)


class _Told(NamedTuple):
    """What a member says of itself."""

    points: int
    last: int  # the verdict of the point before
    ready: int
    first: int  # its rank at the beginning


class Shrink:
    """The place of this process in its program."""

    def __init__(self) -> None:
        self._points = _NEW
        self._last = True
        self._catching = False  # others are at the next point already
        self._steps = 0
        self._first = 0
        self._origins: list[int] = []  # the first rank of each member of the round
        self.spoiled = False  # a collective without a waiter has failed since the last step

    # ---- the beginning ----

    def begin(self) -> None:
        """Meets the other members. A worker that comes when they are training ends here."""
        while self._points == _NEW:
            try:
                if session().revoked:
                    self._renew(False)
                rows = self._tell(False)
                there = [row for row in rows if row.points != _NEW]
                if not there:
                    self._first = session().place("rank")
                    self._origins = list(range(len(rows)))
                    self._points = 0
                elif len(there) >= session().place("min_np"):
                    session().leave(_lib.E_STATE, _TOO_LATE)
                    print(f"hvd-elastic: {_TOO_LATE}", file=sys.stderr, flush=True)
                    raise SystemExit(1)
                else:
                    self._barrier()  # the others end, as they are too few
            except _error.Revoked:
                continue

    def new_model(self) -> None:
        """DDP has been made: until it has chosen its buckets, a death ends the program."""
        self._steps = 0

    @property
    def tolerates(self) -> bool:
        """Whether the program goes on after a death now."""
        return self._steps >= _FIRST_STEPS

    @property
    def swallows(self) -> bool:
        """Whether a collective without a waiter would fail, or meet none of the others."""
        return self.tolerates and (session().revoked or self._catching)

    def is_first(self, rank: int) -> bool:
        """Whether the member with this rank had it from the beginning."""
        return self._points == _NEW or (0 <= rank < len(self._origins) and self._origins[rank] == rank)

    # ---- points ----

    def step(self) -> bool:
        """Before a step of an optimizer; False: all members skip it."""
        ready = not self.spoiled
        verdict: Optional[bool] = None
        if not self._catching:
            try:
                verdict = self._vote(ready)
            except _error.Revoked:
                if not self.tolerates:
                    raise
        if verdict is None:
            verdict = self._settle(ready)
        self._pass(verdict)
        self._steps += 1
        self.spoiled = self._catching
        return verdict

    def collective(self, make: Callable[[], None], again: Optional[Callable[[], None]]) -> None:
        """Makes a collective for which the program waits. ``again``: makes it in a round of fewer members."""
        ready = False
        if not self._catching:
            try:
                make()
                ready = True
                self._barrier()
                self._pass(True)
                return
            except _error.Revoked:
                if not self.tolerates:
                    raise
        while not self._settle(ready):
            if again is None:
                raise _error.Revoked(
                    "another worker was lost in a collective whose result depends on the number of workers; this "
                    "process ends, and hvd-elastic starts the program again"
                )
            try:
                again()
                ready = True
                self._barrier()
                break
            except _error.Revoked:
                ready = False
        self._pass(True)

    def _pass(self, verdict: bool) -> None:
        self._points += 1
        self._last = verdict

    def _settle(self, ready: bool) -> bool:
        """Comes together with the survivors. Returns the verdict on this point."""
        while True:
            try:
                if session().revoked:
                    self._renew(ready)
                rows = self._tell(ready)
                there = [row for row in rows if row.points != _NEW]
                self._must_be_enough(len(there))
                if len(there) < len(rows):
                    self._barrier()  # it fails when those that came too late have left
                    continue
            except _error.Revoked:
                continue
            except _error.Done:
                return True
            newest = max(there)
            if newest.points > self._points:
                self._catching = True
                return bool(newest.last)
            self._catching = False
            if min(there).points == self._points:
                return all(row.ready for row in there)

    def _must_be_enough(self, survivors: int) -> None:
        if survivors < session().place("min_np"):
            raise _error.HvdError(
                f"{survivors} workers have survived, and the job needs {session().place('min_np')}; the program starts "
                "again, or pass hvd-elastic a smaller --min-np",
                _lib.E_LOST,
            )

    # ---- rounds ----

    def _renew(self, ready: bool) -> None:
        """Joins the next round. If others have finished the job, a worker that has all it needs goes on alone."""
        session().leave(_lib.E_REVOKED)
        try:
            session().enter()
        except _error.Left:
            raise SystemExit(0) from None
        except _error.Done:
            if ready:
                raise
            raise SystemExit(0) from None
        set_place(session())

    def _tell(self, ready: bool) -> list[_Told]:
        """Exchanges the places of all members of the round."""
        mine = _Told(self._points, int(self._last), int(ready), self._first)
        size, width = session().place("size"), len(mine)
        sent = (ctypes.c_int64 * width)(*mine)
        got = (ctypes.c_int64 * (width * size))()
        kind, dtype = _calls.KIND["allgather"], _calls.DTYPE["int64"]
        _calls.run(kind, ctypes.addressof(sent), ctypes.addressof(got), width, dtype, tag=_TAG)
        rows = [_Told(*got[at : at + width]) for at in range(0, width * size, width)]
        if self._points != _NEW and all(row.points != _NEW for row in rows):
            self._note_lost([row.first for row in rows])
        return rows

    def _note_lost(self, origins: list[int]) -> None:
        lost = sorted(set(self._origins) - set(origins))
        self._origins = origins
        if lost and session().place("rank") == 0:
            print(
                f"hvd-elastic: the program goes on with {len(origins)} workers, without those that began as rank "
                f"{', '.join(map(str, lost))}",
                file=sys.stderr,
                flush=True,
            )

    def _vote(self, ready: bool) -> bool:
        """Whether all members are ready."""
        vote = ctypes.c_int64(ready)
        at, dtype = ctypes.addressof(vote), _calls.DTYPE["int64"]
        _calls.run(_calls.KIND["allreduce"], at, at, 1, dtype, op=_calls.OP["min"], tag=_TAG)
        return bool(vote.value)

    def _barrier(self) -> None:
        _calls.run(_calls.KIND["barrier"])


_shrink: Optional[Shrink] = None


def shrink() -> Optional[Shrink]:
    """The place of this process, if its job shrinks; None: a death ends the program, or hvd_elastic.run is used."""
    global _shrink
    wanted = os.environ.get(ON_LOSS, "")
    if wanted not in ("", "restart", "shrink"):
        raise ValueError(f"{ON_LOSS}={wanted} in the environment: the values are restart and shrink; set one of them")
    if wanted != "shrink" or "HVD_AGENT" not in os.environ or session().is_child or session().has_function:
        return None
    if _shrink is None:
        _shrink = Shrink()
    return _shrink
