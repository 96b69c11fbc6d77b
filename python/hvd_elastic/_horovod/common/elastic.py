"""Elastic states, and the function that runs a training over them."""

from __future__ import annotations

import copy
import functools
import queue
from collections.abc import Callable
from typing import Any

from ... import _run
from ..._session import session
from .exceptions import HorovodInternalError, HostsUpdatedInterrupt

_states = 0


class _HostMessages(queue.Queue[Any]):
    """Not empty when a change of the membership is coming, which is all that programs ask it."""

    def empty(self) -> bool:
        return super().empty() and session().news() == 0


class State:
    """The state that a training would lose. Programs make subclasses."""

    def __init__(self, bcast_object: Any, get_rank: Any) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages: queue.Queue[Any] = _HostMessages()
        self._last_updated_timestamp = 0
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: list[Callable[[], None]]) -> None:
        """Adds functions that are called when a later round has begun, with its rank and size."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self._host_messages = _HostMessages()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state, and checks for a change of the membership."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks at once if the membership changes: all call it equally often."""
        session().state.check()

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """For subclasses."""


class ObjectState(State):
    """A state of objects: each keyword is an attribute, which is pickled at each commit."""

    def __init__(self, bcast_object: Any, get_rank: Any, **kwargs: Any) -> None:
        global _states
        super().__init__(bcast_object, get_rank)
        self._prefix = f"horovod.{_states}."
        _states += 1
        self._late = session().state.sealed  # a collective has been made before, so the library has no state of ours
        self._saved_state = dict(kwargs)
        self._committed = False
        for name, value in kwargs.items():
            setattr(self, name, value)
            self._keep(name)

    def _keep(self, name: str) -> None:
        def put(value: Any) -> None:
            object.__setattr__(self, name, value)
            self._saved_state[name] = value

        session().state.add_object(self._prefix + name, lambda: self._saved_state[name], put)

    def save(self) -> None:
        """Notes the present values, as a commit will keep them."""
        for name in self._saved_state:
            self._saved_state[name] = getattr(self, name)

    def commit(self) -> None:
        self.save()
        self._committed = True
        session().state.commit()

    def restore(self) -> None:
        """Goes back to what was saved last."""
        if self._committed:
            session().state.restore()
        for name, value in self._saved_state.items():
            object.__setattr__(self, name, value)

    def sync(self) -> None:
        """Gives all ranks what rank 0 has saved."""
        self._saved_state.update(self._bcast_object(copy.copy(self._saved_state)))
        for name, value in self._saved_state.items():
            object.__setattr__(self, name, value)
        self._committed = False


def run_fn(func: Callable[..., Any], reset: Any = None) -> Callable[..., Any]:
    """Runs a training again after each change of the membership, from the state that was committed last."""

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        from ..torch import mpi_ops

        first = [session().round]

        @_run.run
        def turn() -> Any:
            here = session()
            if first[0] == 0 and here.round <= 1:
                first[0] = here.round
            if getattr(state, "_late", False):
                state._late = False  # type: ignore[attr-defined]
                state.sync()
            if here.round != first[0]:
                first[0] = here.round
                state.on_reset()
            mpi_ops.elastic_depth += 1
            try:
                return func(state, *args, **kwargs)
            except HorovodInternalError as error:
                if not here.dead:  # an error that the library does not know: the other ranks go back, too
                    here.revoke(str(error))
                raise
            finally:
                mpi_ops.elastic_depth -= 1

        return turn()

    return wrapper


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "run_fn"]
