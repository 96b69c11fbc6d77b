"""Sets of ranks that make collectives among themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional, Union

from ..._session import session
from ...torch._group import Group

before_opening: list[Callable[[], None]] = []  # waits for what has been started


class ProcessSet:
    """Some of the ranks."""

    process_set_id: Optional[int] = None

    def __init__(self, ranks_or_comm: Sequence[int]) -> None:
        self.ranks: Optional[list[int]] = sorted(ranks_or_comm)
        self.group: Optional[Group] = None

    def size(self) -> Optional[int]:
        """How many ranks it has; None before add_process_set."""
        return len(self.ranks or []) if self.process_set_id is not None else None

    def rank(self) -> int:
        """The rank of this process within the set; -1: it is no member."""
        own = session().place("rank")
        return self.ranks.index(own) if self.ranks is not None and own in self.ranks else -1

    def included(self) -> Optional[bool]:
        """Whether this process is a member; None before add_process_set."""
        return self.rank() >= 0 if self.process_set_id is not None else None

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _GlobalSet(ProcessSet):
    process_set_id = 0

    def __init__(self) -> None:
        self.group = None

    @property
    def ranks(self) -> list[int]:  # type: ignore[override]
        return list(range(session().place("size")))


global_process_set = _GlobalSet()
_sets: dict[int, ProcessSet] = {0: global_process_set}


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Makes a set, on all ranks alike."""
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    same = [known for known in _sets.values() if known.ranks == added.ranks]
    if same:
        raise ValueError(f"{added.ranks}: there is a process set of these ranks already, {same[0]}; use that one")
    for wait in before_opening:
        wait()
    added.group = Group(added.ranks or [])
    added.process_set_id = max(_sets) + 1
    _sets[added.process_set_id] = added
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a set, on all ranks alike; False: it is no set, or the global one."""
    if process_set.process_set_id is None or process_set is global_process_set:
        return False
    del _sets[process_set.process_set_id]
    for wait in before_opening:
        wait()
    if process_set.group is not None:
        process_set.group.close()
    process_set.group, process_set.process_set_id = None, None
    return True


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    return {number: list(known.ranks or []) for number, known in _sets.items()}
