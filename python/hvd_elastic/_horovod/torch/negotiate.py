"""Calls in any order: with HVD_NEGOTIATE=1 a call is held back until all ranks have made it, as Horovod does.

mpi_ops hands its calls to `hold`. A rank that waits for a call takes turns with the other ranks: each tells which calls
it holds, and those that all ranks hold are started, in one order. So ranks may make named calls in different orders. A
wrong call is an error of this call alone, and the round goes on. Each turn costs two small sums, so this is no default.

Each turn is a sum to which a rank that has joined gives zeros: that tells the others that it has joined.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from ... import _error, _lib
from ..._session import session
from ...torch import _core
from ...torch._core import Pending
from ...torch._group import members_of, rank_in, raw
from ..common.process_sets import ProcessSet

WANTED = os.environ.get("HVD_NEGOTIATE") == "1"
_AFTER_JOIN = ("allreduce", "barrier")  # in which the library stands in for a joined rank


class _Row(NamedTuple):
    """What a member tells in a turn."""

    polls: bool  # it may go on without any of its calls
    calls: dict[int, int]  # the digest of a call's name -> that of what must be equal on all ranks


class Held:
    """A call that has been made here; once all ranks have made it, it is started. Used like a Pending."""

    def __init__(self, queue: _Queue, key: int, what: str, digest: int, start: Callable[[], Pending]) -> None:
        self.what, self.digest = what, digest
        self._queue, self._key, self._start = queue, key, start
        self._pending: Optional[Pending] = None
        self._error: Optional[Exception] = None

    def begin(self) -> None:
        try:
            self._pending = self._start()
        except Exception as error:
            self._error = error

    def fail(self, why: str) -> None:
        self._error = _error.Mismatch(f"{self.what}: {why}", _lib.E_MISMATCH)

    def _begun(self) -> bool:
        return self._pending is not None or self._error is not None

    def done(self) -> bool:
        """Whether wait would return at once. Takes one turn if the call has not been started."""
        if not self._begun():
            self._queue.turn(polls=True)
        return self._error is not None or (self._pending is not None and self._pending.done())

    def wait(self) -> Any:
        try:
            while not self._begun():
                self._queue.turn(polls=False)
        finally:
            self._queue.held.pop(self._key, None)
        if self._error is not None:
            raise self._error
        assert self._pending is not None
        return self._pending.wait()


class _Queue:
    """The calls on one process set that have not been started."""

    def __init__(self, process_set: ProcessSet) -> None:
        self.process_set = process_set
        self.held: dict[int, Held] = {}
        self.unnamed: Counter[str] = Counter()  # how many calls of a kind had no name
        self._round = 0

    def add(self, kind: str, name: Optional[str], equal: object, start: Callable[[], Pending]) -> Held:
        self._note_round()
        if not name:
            self.unnamed[kind] += 1
            name = f"number {self.unnamed[kind]} without a name"
        key = _digest(kind, name)
        if key in self.held:
            raise ValueError(f"horovod: a tensor with the name {name} is on its way already; choose another name")
        self.held[key] = Held(self, key, f"{kind} {name}", _digest(equal), start)
        return self.held[key]

    def turn(self, polls: bool) -> None:
        """Tells the other members which calls are held here, and starts those that all members hold."""
        self._note_round()
        rows = self._exchange(polls)
        present = [row for row in rows if row is not None]
        common = set.intersection(*(set(row.calls) for row in present))
        for key in sorted(common):
            held = self.held.pop(key)
            if any(row.calls[key] != held.digest for row in present):
                held.fail("the ranks differ in type, shape, root or reduction; make the same call on all of them")
            elif len(present) < len(rows) and held.what.split()[0] not in _AFTER_JOIN:
                held.fail(
                    "another rank has joined, and only allreduce goes on without it; make this call before join()"
                )
            else:
                held.begin()
        if not common and not any(row.polls for row in present):
            here = ", ".join(held.what for held in self.held.values()) or "none"
            raise _error.Mismatch(
                f"all ranks wait, each for a call that another one has not made; calls held here: {here}; "
                "make the same calls on all ranks",
                _lib.E_MISMATCH,
            )

    def _note_round(self) -> None:
        """Calls of a round that has ended will never be started."""
        if session().enter() == self._round:
            return
        self._round = session().round
        for held in self.held.values():
            held.fail("the round in which it was made has ended; make it again")
        self.held.clear()
        self.unnamed.clear()

    def _exchange(self, polls: bool) -> list[Optional[_Row]]:
        """The row of each member; None: it has joined."""
        told = self._table([1, int(polls), len(self.held)])
        room = max(count for _, _, count in told)
        mine = [number for key, held in self.held.items() for number in (key, held.digest)]
        calls = self._table(mine + [0] * (2 * room - len(mine))) if room else [[] for _ in told]
        return [
            _Row(bool(polls), dict(zip(numbers[0 : 2 * count : 2], numbers[1 : 2 * count : 2]))) if there else None
            for (there, polls, count), numbers in zip(told, calls)
        ]

    def _table(self, numbers: list[int]) -> list[list[int]]:
        """The numbers of each member."""
        group = self.process_set.group
        table = torch.zeros((members_of(group), len(numbers)), dtype=torch.int64)
        table[rank_in(group)] = torch.tensor(numbers)
        tag = _core.tag_of("which calls are held", len(numbers))
        _core.allreduce([table], [table], "sum", group=raw(group), tag=tag, start=False).wait()
        rows: list[list[int]] = table.tolist()
        return rows


def _digest(*parts: object) -> int:
    return _core.tag_of(*parts) >> 1  # fits an int64


_queues: dict[Optional[int], _Queue] = {}  # of each process set


def hold(kind: str, name: Optional[str], equal: object, process_set: ProcessSet, start: Callable[[], Pending]) -> Held:
    """Holds a call back until all ranks of the set have made it. ``equal`` is what must be equal on all of them."""
    number = process_set.process_set_id
    if number not in _queues or _queues[number].process_set is not process_set:
        _queues[number] = _Queue(process_set)
    return _queues[number].add(kind, name, equal, start)


def settle() -> None:
    """Makes all calls that are held here, as this rank is about to join: later it would give them zeros."""
    for queue in _queues.values():
        while queue.held:
            queue.turn(polls=False)


def joined() -> None:
    """All ranks have joined, each after calls of its own: calls without a name are numbered anew."""
    for queue in _queues.values():
        queue.unnamed.clear()
