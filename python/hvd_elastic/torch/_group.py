"""Groups of ranks, which live longer than a round: opened again at the beginning of each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Optional

from .. import _error, _lib
from .._session import session

_open: list[Group] = []
_watched = False


class Group:
    """Some of the ranks, which make collectives among themselves.

    All members of the round make the same groups in the same order. A group ends with its round; it is opened again
    when the next one begins, with those of its ranks that exist there.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        if len(set(ranks)) != len(ranks) or not ranks:
            raise ValueError(f"group {list(ranks)}: the ranks are not different numbers; name each rank once")
        global _watched
        if not _watched:
            _watched = True
            session().on_round(_open_again, lasting=True)
        session().enter()
        self.ranks = sorted(ranks)
        self.handle: Optional[int] = None
        self._create()
        _open.append(self)

    def _create(self) -> None:
        handle = ctypes.c_void_p()
        there = [rank for rank in self.ranks if rank < session().place("size")]
        ranks = (ctypes.c_int * len(there))(*there)
        code = _lib.lib.hvd_group_create_of(ranks, len(there), ctypes.byref(handle))
        if code:
            session().failed(code)
            _error.check(code)
        self.handle = handle.value

    def close(self) -> None:
        """Ends the group, on all ranks of the round."""
        if self.handle is not None:
            _open.remove(self)
            handle, self.handle = self.handle, None
            code = _lib.lib.hvd_group_close(handle)
            if code:
                session().failed(code)
                _error.check(code)

    @property
    def rank(self) -> int:
        """The rank of this worker within the group; -1: it is no member."""
        return int(_lib.lib.hvd_group_rank(self.handle))

    @property
    def size(self) -> int:
        """How many members the group has; 0 on ranks that are no members."""
        return int(_lib.lib.hvd_group_size(self.handle))


def _open_again() -> None:
    for group in list(_open):
        group._create()


def raw(group: Optional[Group]) -> Optional[int]:
    """The library's group; None: all ranks."""
    return None if group is None else group.handle


def members_of(group: Optional[Group]) -> int:
    """How many ranks take part."""
    session().enter()
    return session().place("size") if group is None else group.size


def rank_in(group: Optional[Group]) -> int:
    """The rank of this worker among those that take part."""
    session().enter()
    return session().place("rank") if group is None else group.rank
