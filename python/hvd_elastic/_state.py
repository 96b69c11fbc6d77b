"""The training state: entries of the C library, and the class State.

Arrays are registered where they are. All other values travel in one custom entry, "py", pickled together; those that
differ by rank in another one, "py.rank".
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from . import _arrays, _error, _lib
from ._checkpoint import Checkpoint

if TYPE_CHECKING:
    from ._session import Session

_ROOM = 256 << 20  # address space for "py"; bytes that are not written cost nothing
_RANK_ROOM = 64 << 10  # memory for "py.rank"
_LENGTH = ctypes.sizeof(ctypes.c_uint64)

Get = Callable[[], Any]
Set = Callable[[Any], None]


class _Objects:
    """Values by name, as the bytes of one entry."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Get, Set]] = {}
        self._waiting: dict[str, Any] = {}  # that were loaded before a value of this name was added

    def add(self, name: str, get: Get, put: Set) -> None:
        self.values[name] = (get, put)
        if name in self._waiting:
            put(self._waiting.pop(name))

    def dump(self) -> bytes:
        current = {name: get() for name, (get, _) in self.values.items()}
        try:
            return pickle.dumps({**self._waiting, **current}, protocol=5)
        except Exception as error:
            for name, value in current.items():
                self._name_culprit(name, value)
            raise TypeError(f"the state cannot be pickled: {error}") from error

    @staticmethod
    def _name_culprit(name: str, value: Any) -> None:
        try:
            pickle.dumps(value, protocol=5)
        except Exception as error:
            raise TypeError(
                f"state.{name} ({type(value).__name__}) cannot be pickled: {error}; "
                "keep it outside of the state, or give its class a __getstate__"
            ) from error

    def load(self, data: bytes) -> None:
        for name, value in pickle.loads(data).items():
            if name in self.values:
                self.values[name][1](value)
            else:
                self._waiting[name] = value


class Entries:
    """The entries of this process. They are registered before the first round is entered."""

    def __init__(self, session: Session) -> None:
        session.init()
        self._session = session
        self._keep: list[Any] = []  # the owners of registered memory
        self._names: set[str] = set()
        self._objects = _Objects()
        self._rank_objects = _Objects()
        self._rank_room = ctypes.create_string_buffer(int(os.environ.get("HVD_PY_RANK_ROOM", _RANK_ROOM)))
        self._kept: Optional[BaseException] = None  # raised in a callback; the caller of the library raises it
        self._save = _lib.SAVE_FN(self._on_save)
        self._load = _lib.LOAD_FN(self._on_load)
        self.asked = 0  # commits and checks so far
        self.sealed = False
        self._pointer: Optional[int] = 0 if session.is_child else _lib.lib.hvd_state_create()

    @property
    def pointer(self) -> int:
        """The hvd_state."""
        if self._pointer is None:
            raise _error.HvdError(
                "this State or Sampler is of a training that has ended; make another one after hvd_elastic.init()",
                _lib.E_STATE,
            )
        return self._pointer

    def close(self) -> None:
        """Gives the entries back; the training has ended."""
        pointer, self._pointer = self._pointer, None
        _lib.lib.hvd_state_free(pointer)
        self._keep.clear()

    # ---- registering ----

    def add_array(
        self, name: str, address: int, count: int, dtype: int, *, per_rank: bool = False, keep: Any = None
    ) -> None:
        """Adds an array where it is; the memory must not move. ``keep`` is its owner."""
        self._claim(name)
        add = _lib.lib.hvd_state_add_array_per_rank if per_rank else _lib.lib.hvd_state_add_array
        _error.check(add(self.pointer, name.encode(), address, count, dtype))
        self._keep.append(keep)

    def add_bytes(self, name: str, address: int, size: int, *, per_rank: bool = False, keep: Any = None) -> None:
        """Adds memory of any kind where it is; it must not move. ``keep`` is its owner."""
        self._claim(name)
        add = _lib.lib.hvd_state_add_per_rank if per_rank else _lib.lib.hvd_state_add
        _error.check(add(self.pointer, name.encode(), address, size))
        self._keep.append(keep)

    def add_object(self, name: str, get: Get, put: Set, *, per_rank: bool = False) -> None:
        """Adds a value without a fixed place: ``get`` returns it, ``put`` takes a loaded one. Allowed at any time."""
        self._claim(name)
        (self._rank_objects if per_rank else self._objects).add(name, get, put)

    def _claim(self, name: str) -> None:
        if name in self._names:
            raise ValueError(f"the state has an entry {name!r} already; give this one another name")
        self._names.add(name)

    def seal(self) -> int:
        """Adds the entries of objects, once, and returns the hvd_state."""
        if not self.sealed:
            self.sealed = True
            room = int(os.environ.get("HVD_PY_ROOM", _ROOM))
            _error.check(
                _lib.lib.hvd_state_add_custom(self.pointer, b"py", room, self._save, self._load, None),
            )
            _error.check(
                _lib.lib.hvd_state_add_per_rank(
                    self.pointer, b"py.rank", ctypes.addressof(self._rank_room), len(self._rank_room)
                )
            )
        return self.pointer

    # ---- callbacks of the library ----

    def _on_save(self, arg: int, into: int, room: int) -> int:
        del arg
        try:
            data = self._objects.dump()
            if len(data) > room:
                raise _error.HvdError(
                    f"the objects of the state take {len(data)} bytes, and there is room for {room}; "
                    "set HVD_PY_ROOM to more, equally for all workers",
                    _lib.E_LIMIT,
                )
            ctypes.memmove(into, data, len(data))
            return len(data)
        except BaseException as error:
            return self._keep_error(error)

    def _on_load(self, arg: int, at: int, size: int) -> int:
        del arg
        try:
            self._objects.load(ctypes.string_at(at, size))
            return 0
        except BaseException as error:
            return self._keep_error(error)

    def _keep_error(self, error: BaseException) -> int:
        self._kept = error
        return error.code if isinstance(error, _error.HvdError) else _lib.E_INVAL

    def raise_kept(self) -> None:
        """Raises what a callback has raised since the last call of this function."""
        kept, self._kept = self._kept, None
        if kept is not None:
            raise kept

    # ---- values that differ by rank ----

    def save_rank(self) -> None:
        """Puts the values that differ by rank into their entry: before each commit."""
        if not self._rank_objects.values:
            return
        data = self._rank_objects.dump()
        if len(data) + _LENGTH > len(self._rank_room):
            raise _error.HvdError(
                f"the objects of this rank take {len(data)} bytes, and there is room for "
                f"{len(self._rank_room) - _LENGTH}; set HVD_PY_RANK_ROOM to more, equally for all workers",
                _lib.E_LIMIT,
            )
        data = len(data).to_bytes(_LENGTH, "little") + data
        ctypes.memmove(self._rank_room, data, len(data))

    def load_rank(self) -> None:
        """Takes the values that differ by rank from their entry, if it has any: after each restore."""
        data = self._rank_room.raw
        length = int.from_bytes(data[:_LENGTH], "little")
        if length:
            self._rank_objects.load(data[_LENGTH : _LENGTH + length])

    # ---- commits ----

    def commit(self) -> None:
        """Makes the present state the newest commit, then checks for news."""
        pointer = self._in_round()
        self._note_asking("commit")
        self.save_rank()
        self._session.call(_lib.lib.hvd_state_commit, pointer)

    def _in_round(self) -> int:
        """Joins the round, unless the state is of another training. Returns the hvd_state."""
        pointer = self.pointer
        self._session.enter()
        return pointer

    def check(self) -> None:
        """Checks for news. All ranks make equally many commits and checks."""
        pointer = self._in_round()
        self._note_asking("check")
        self._session.call(_lib.lib.hvd_state_check, pointer)

    def _note_asking(self, name: str) -> None:
        """Counts commits and checks. The first one warns of a training without the decorator."""
        self.asked += 1
        if self.asked == 1 and not self._session.has_function and "HVD_AGENT" in os.environ:
            warnings.warn(
                f"state.{name}() is called, and no function that hvd_elastic.run wraps has been: the next change of "
                "the membership ends this process with an exception; put @hvd_elastic.run before the training function",
                stacklevel=4,
            )

    def restore(self) -> None:
        """Goes back to the last commit, on this rank only."""
        self._session.call(_lib.lib.hvd_state_restore, self._in_round())
        self.load_rank()

    def checkpoint(self) -> Checkpoint:
        """Asks for a durable checkpoint of the last commit."""
        return Checkpoint(self._session, self._in_round())

    def save(self, folder: str) -> None:
        """Writes the state to a folder, for this worker alone."""
        self.save_rank()
        self._on_disk(_lib.lib.hvd_state_save, folder)

    def load(self, folder: str) -> None:
        """Reads the newest complete state of a folder, or one checkpoint."""
        self._on_disk(_lib.lib.hvd_state_load, folder)
        self.load_rank()

    def _on_disk(self, function: Callable[..., int], folder: str) -> None:
        self.seal()
        path = os.fsencode(os.fspath(folder))
        if self._session.inside:
            self._session.call(function, self.pointer, path)
            return
        code = function(self.pointer, path)
        self.raise_kept()
        _error.check(code)


class State:
    """The training state of a program: each keyword is an attribute and an entry of that name.

    Arrays (numpy, and writable memory with the buffer protocol, DLPack or an array interface) are registered where
    they are: change them in place. An assignment copies into the registered memory. All other values are pickled at
    each commit.

        state = hvd_elastic.State(w=numpy.zeros(1000), step=0)
        state.w += hvd_elastic.allreduce(gradient)
        state.step += 1
        state.commit()
    """

    def __init__(self, **entries: Any) -> None:
        from ._session import session

        own = self.__dict__
        own["_entries"] = session().state
        own["_arrays"] = {}
        own["_callbacks"] = []
        early = session().joined_early()
        if early:
            warnings.warn(f"State {early}", stacklevel=2 + (type(self) is not State))
        for name, value in entries.items():
            if hasattr(type(self), name):
                raise ValueError(f"State({name}=...): {name} is a method of the state; give the entry another name")
            self._add(name, value)
        session().on_round(self.on_reset)

    def _add(self, name: str, value: Any) -> None:
        own = self.__dict__
        entries: Entries = own["_entries"]
        array = _arrays.writable(value)
        own[name] = value
        if array is not None:
            own["_arrays"][name] = array
        if array is None or entries.sealed:
            entries.add_object(name, lambda: own[name], lambda loaded: setattr(self, name, loaded))
        elif array.dtype is None:
            entries.add_bytes(name, array.address, array.nbytes, keep=array)
        else:
            entries.add_array(name, array.address, array.count, array.dtype, keep=array)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        registered: Optional[_arrays.Array] = own["_arrays"].get(name)
        if registered is None or own[name] is value:
            own[name] = value
        else:
            registered.assign(name, value)

    def on_reset(self) -> None:
        """Called at the beginning of each round, when the state is loaded: calls the reset callbacks."""
        for callback in self.__dict__["_callbacks"]:
            callback()

    def register_reset_callbacks(self, callbacks: list[Callable[[], None]]) -> None:
        """Adds functions that are called at the beginning of each round, when the state is loaded."""
        self.__dict__["_callbacks"].extend(callbacks)

    def commit(self) -> None:
        """Makes the present state the newest commit, and checks for news.

        A death costs the steps since the last commit. All ranks make equally many commits and checks.
        """
        self.__dict__["_entries"].commit()

    def check(self) -> None:
        """Checks for news without a commit: raises HostsUpdated, Revoked, Left or Done when there is some."""
        self.__dict__["_entries"].check()

    def restore(self) -> None:
        """Goes back to the last commit, on this rank only. After a death that happens by itself."""
        self.__dict__["_entries"].restore()

    def checkpoint(self) -> Checkpoint:
        """Asks for a durable checkpoint of the last commit in the job's --checkpoint-dir, and returns at once.

        One rank may ask, or all. ``wait()`` of the result returns when the checkpoint, or one of a later commit, is
        complete; a program may leave that out.
        """
        entries: Entries = self.__dict__["_entries"]
        return entries.checkpoint()

    def save(self, folder: str) -> None:
        """Writes the state to a folder (docs/checkpoints.md). In a job one rank saves."""
        self.__dict__["_entries"].save(folder)

    def load(self, folder: str) -> bool:
        """Reads the state from a folder; False: there is none yet. All ranks load the same."""
        with contextlib.suppress(_error.NotFound):
            self.__dict__["_entries"].load(folder)
            return True
        return False
