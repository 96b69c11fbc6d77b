"""Collectives on arrays: numpy, the buffer protocol, DLPack and the array interfaces.

Results are new arrays of numpy (or array.array, for an array.array), unless ``out`` says where they go. An input that
is not contiguous is copied. All ranks make the same calls in the same order.
"""

from __future__ import annotations

import array as stdlib_array
import ctypes
import enum
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

from . import _arrays, _calls, _error, _lib
from ._session import session


class Op(enum.IntEnum):
    """What a reduction does with the elements of all ranks."""

    Sum = _lib.SUM
    Average = _lib.AVERAGE
    Min = _lib.MIN
    Max = _lib.MAX
    Product = _lib.PRODUCT
    And = _lib.AND  # of each bit; of booleans as a whole
    Or = _lib.OR
    Xor = _lib.XOR


Sum, Average, Min, Max, Product = Op.Sum, Op.Average, Op.Min, Op.Max, Op.Product
And, Or, Xor = Op.And, Op.Or, Op.Xor


class Group:
    """Some of the ranks, which make collectives without the others.

    A group that is made before the first round is divided anew in each round; all ranks make it. A group that is made
    in a round ends with it; its making is a collective of all ranks.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks = tuple(ranks)
        session().init()
        handle = ctypes.c_void_p()
        list_ = (ctypes.c_int * len(self.ranks))(*self.ranks)
        _error.check(_lib.lib.hvd_group_create_of(list_, len(self.ranks), ctypes.byref(handle)))
        self.pointer = handle.value

    @classmethod
    def open(cls, ranks: Sequence[int], tag: int = 0) -> Group:
        """Opens a group of these ranks in the running round, by a call of the members alone.

        The call waits for no member; the first collective of the group does. Two groups of the same ranks need two
        tags.
        """
        session().enter()
        group = cls.__new__(cls)
        group.ranks = tuple(ranks)
        handle = ctypes.c_void_p()
        list_ = (ctypes.c_int * len(group.ranks))(*group.ranks)
        code = _lib.lib.hvd_group_open(list_, len(group.ranks), tag, ctypes.byref(handle))
        if code:
            session().failed(code)
            _error.check(code)
        group.pointer = handle.value
        return group

    def rank(self) -> int:
        """Returns the rank of this worker within the group; -1: this worker is not a member."""
        return int(_lib.lib.hvd_group_rank(self.pointer))

    def size(self) -> int:
        """Returns how many members the group has; 0: this worker is not a member."""
        return int(_lib.lib.hvd_group_size(self.pointer))

    def close(self) -> None:
        """Ends a group that was made in this round: a collective of all ranks, but not for a group of open()."""
        _error.check(_lib.lib.hvd_group_close(self.pointer))


class _Plan(NamedTuple):
    """A collective that is ready to be made."""

    call: _lib.Call
    keep: Any
    finish: Callable[[], Any]  # makes the result when the call is through

    def run(self) -> Any:
        _calls.submit(self.call)
        return self.finish()

    def start(self) -> Request:
        return Request(_calls.launch(self.call, self), self.finish)


class Request:
    """A started collective. The buffers are the program's again when wait() has returned."""

    def __init__(self, request: _calls.Request, finish: Callable[[], Any]) -> None:
        self._request = request
        self._finish = finish

    def done(self) -> bool:
        """Tells whether wait() would return at once."""
        return self._request.done()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result and returns it. After ``timeout`` seconds raises TimedOut; the request stays."""
        self._request.wait(timeout)
        return self._finish()


# ---- inputs and results ----


def _input(source: Any) -> _arrays.Array:
    try:
        found = _arrays.of(source)
    except ValueError:
        if not hasattr(source, "__array__"):
            raise
        import numpy

        found = _arrays.of(numpy.ascontiguousarray(source))
    if found is None:
        raise TypeError(
            f"{type(source).__name__} is no array; pass numpy's, or memory with the buffer protocol or DLPack"
        )
    return found


def _output(out: Any, array: _arrays.Array, shape: tuple[int, ...]) -> _arrays.Array:
    """Finds the memory of a result: ``out``, or new memory like the input's."""
    made = _arrays.of(_arrays.like(array, shape) if out is None else out)
    if made is None or made.readonly:
        raise TypeError(f"out ({type(out).__name__}) is no writable array; pass one, or None")
    wanted = 1
    for length in shape:
        wanted *= length
    if made.count != wanted or made.name != array.name:
        raise _error.InvalidArgument(
            f"out has {made.count} elements of {made.name}, and the result has {wanted} of {array.name}; "
            "pass memory that fits, or None",
            _lib.E_INVAL,
        )
    return made


def _number_type(array: _arrays.Array) -> int:
    if array.dtype is None:
        known = ", ".join(sorted(_calls.DTYPE))
        raise _error.InvalidArgument(
            f"elements of type {array.name} cannot be reduced; convert them to one of {known}", _lib.E_INVAL
        )
    return array.dtype


def _moved_type(array: _arrays.Array) -> tuple[int, int]:
    """The type with which elements travel when they are only moved, and how many of it an element is."""
    return (array.dtype, 1) if array.dtype is not None else (_lib.UINT8, array.itemsize)


def _scale(factor: float) -> float:
    """For the library 0 is no factor; integers take none."""
    return 0.0 if factor == 1.0 else factor


def _members(group: Optional[Group]) -> tuple[int, int]:
    session().enter()
    if group is None:
        return session().place("rank"), session().place("size")
    return group.rank(), group.size()


def _call(kind: int, group: Optional[Group], dtype: int, count: int, tag: int = 0) -> _lib.Call:
    return _calls._call_of(
        kind, 0, 0, count, dtype, 0, 0, None if group is None else group.pointer, None, None, 0.0, 0.0, None, tag
    )


# ---- allreduce ----


def _allreduce(
    value: Any, op: Op, out: Any, group: Optional[Group], prescale: float, postscale: float, tag: int
) -> _Plan:
    array = _input(value)
    result = _output(out, array, array.shape)
    call = _call(_lib.ALLREDUCE, group, _number_type(array), array.count, tag)
    call.op, call.prescale, call.postscale = op, _scale(prescale), _scale(postscale)
    call.in_, call.out = array.address or None, result.address or None
    return _Plan(call, (array, result), lambda: result.source)


def _allreduce_number(value: float, op: Op, group: Optional[Group]) -> Any:
    whole = isinstance(value, int) and op != Op.Average
    memory = stdlib_array.array("q" if whole else "d", [value])
    return _allreduce(memory, op, memory, group, 1.0, 1.0, 0).run()[0]


def allreduce(
    value: Any,
    op: Op = Average,
    *,
    out: Any = None,
    group: Optional[Group] = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    tag: int = 0,
) -> Any:
    """Reduces an array, a list of arrays or a number over all ranks and returns the result, equal on all ranks.

    A list of arrays of one type is one call. ``prescale`` and ``postscale`` multiply elements of floating types before
    and after. ``tag`` must be equal on all ranks.
    """
    if isinstance(value, (int, float)):
        return _allreduce_number(value, op, group)
    if isinstance(value, (list, tuple)):
        return _grouped(value, op, out, group, prescale, postscale, tag)
    return _allreduce(value, op, out, group, prescale, postscale, tag).run()


def allreduce_(value: Any, op: Op = Average, **options: Any) -> Any:
    """Reduces in place an array, or a list of arrays; takes the options of allreduce but ``out``."""
    return allreduce(value, op, out=value, **options)


def allreduce_async(
    value: Any,
    op: Op = Average,
    *,
    out: Any = None,
    group: Optional[Group] = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    tag: int = 0,
) -> Request:
    """Starts an allreduce of one array, and returns at once. With out=value it is in place."""
    return _allreduce(value, op, out, group, prescale, postscale, tag).start()


def _grouped(
    values: Sequence[Any],
    op: Op,
    outs: Optional[Sequence[Any]],
    group: Optional[Group],
    prescale: float,
    postscale: float,
    tag: int,
) -> list[Any]:
    """One call with pieces for each type, in the order in which the types come first."""
    arrays = [_input(value) for value in values]
    results = [_output(outs[i] if outs else None, array, array.shape) for i, array in enumerate(arrays)]
    by_type: dict[int, list[tuple[int, int, int]]] = {}
    for array, result in zip(arrays, results):
        piece = (array.address, result.address, array.count)
        by_type.setdefault(_number_type(array), []).append(piece)
    pointer = None if group is None else group.pointer
    for dtype, pieces in by_type.items():
        _calls.run(
            _lib.ALLREDUCE,
            dtype=dtype,
            op=op,
            group=pointer,
            prescale=_scale(prescale),
            postscale=_scale(postscale),
            pieces=pieces,
            tag=tag,
        )
    return [result.source for result in results]


# ---- broadcast ----


def _broadcast(value: Any, root: int, out: Any, group: Optional[Group]) -> _Plan:
    array = _input(value)
    rank, _ = _members(None)
    result = _output(out, array, array.shape)
    if rank == root and result.address != array.address:
        ctypes.memmove(result.address, array.address, array.nbytes)
    dtype, times = _moved_type(array)
    call = _call(_lib.BROADCAST, group, dtype, array.count * times)
    call.root, call.out = root, result.address or None
    return _Plan(call, (array, result), lambda: result.source)


def broadcast(value: Any, root: int = 0, *, out: Any = None, group: Optional[Group] = None) -> Any:
    """Returns the array of the rank ``root`` on all ranks; theirs have the same shape and type."""
    return _broadcast(value, root, out, group).run()


def broadcast_(value: Any, root: int = 0, *, group: Optional[Group] = None) -> Any:
    """Fills the array with that of the rank ``root``."""
    return _broadcast(value, root, value, group).run()


def broadcast_async(value: Any, root: int = 0, *, out: Any = None, group: Optional[Group] = None) -> Request:
    """Starts a broadcast and returns at once. With out=value it is in place."""
    return _broadcast(value, root, out, group).start()


# ---- allgather, alltoall, reducescatter ----


def _row(array: _arrays.Array) -> int:
    """How many elements one entry of the first dimension has."""
    count = 1
    for length in array.shape[1:]:
        count *= length
    return count


class _Ragged:
    """The result of a collective whose size the senders know."""

    def __init__(self, array: _arrays.Array, times: int, members: int) -> None:
        self.array = array
        self.times = times
        self.counts = (ctypes.c_size_t * max(members, 1))()
        self.received = _lib.Received()
        self.received.counts = self.counts

    def rows(self) -> list[int]:
        """How many entries of the first dimension came from each member."""
        unit = _row(self.array) * self.times
        return [count // unit if unit else 0 for count in self.counts]

    def result(self) -> Any:
        """Takes the result from the library."""
        shape = (sum(self.rows()), *self.array.shape[1:])
        made = _arrays.like(self.array, shape)
        if self.received.data:
            target = _arrays.of(made)
            assert target is not None
            ctypes.memmove(target.address, self.received.data, target.nbytes)
            _lib.lib.hvd_free(self.received.data)
        return made


def _ragged(kind: int, array: _arrays.Array, group: Optional[Group]) -> tuple[_lib.Call, _Ragged]:
    _, members = _members(group)
    dtype, times = _moved_type(array)
    ragged = _Ragged(array, times, members)
    call = _call(kind, group, dtype, array.count * times)
    call.in_ = array.address or None
    call.received = ctypes.pointer(ragged.received)
    return call, ragged


def _first_dimension(array: _arrays.Array, function: str) -> int:
    if not array.shape:
        raise _error.InvalidArgument(
            f"{function}: the array has no dimension; pass one of a dimension or more", _lib.E_INVAL
        )
    return array.shape[0]


def _allgather(value: Any, group: Optional[Group]) -> _Plan:
    array = _input(value)
    if not array.shape:
        array.shape = (1,)
    call, ragged = _ragged(_lib.ALLGATHER_RAGGED, array, group)
    return _Plan(call, (array, ragged), ragged.result)


def allgather(value: Any, *, group: Optional[Group] = None) -> Any:
    """Returns the arrays of all ranks, in rank order, joined along the first dimension, which may differ."""
    return _allgather(value, group).run()


def allgather_async(value: Any, *, group: Optional[Group] = None) -> Request:
    """Starts an allgather and returns at once."""
    return _allgather(value, group).start()


def alltoall(value: Any, splits: Optional[Sequence[int]] = None, *, group: Optional[Group] = None) -> Any:
    """Sends a part of the array to each rank and returns the parts that came, in rank order.

    ``splits``: how many entries of the first dimension go to each rank; the result is then a pair, of the array and of
    how many entries came from each rank. None: equal parts.
    """
    array = _input(value)
    length = _first_dimension(array, "alltoall")
    _, members = _members(group)
    if splits is None:
        if length % max(members, 1):
            raise _error.InvalidArgument(
                f"alltoall: {length} entries cannot be divided among {members} ranks; pass splits", _lib.E_INVAL
            )
        parts = [length // members] * members
    else:
        parts = [int(part) for part in splits]
        if len(parts) != members or sum(parts) != length or min(parts, default=0) < 0:
            raise _error.InvalidArgument(
                f"alltoall: splits {parts} does not divide {length} entries among {members} ranks; "
                "pass a number for each rank, together as many as the array has",
                _lib.E_INVAL,
            )
    call, ragged = _ragged(_lib.ALLTOALL_RAGGED, array, group)
    unit = _row(array) * ragged.times
    counts = (ctypes.c_size_t * members)(*(part * unit for part in parts))
    call.counts = counts
    result = _Plan(call, (array, ragged, counts), ragged.result).run()
    return result if splits is None else (result, ragged.rows())


def reducescatter(
    value: Any,
    op: Op = Average,
    *,
    group: Optional[Group] = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
) -> Any:
    """Reduces the array over all ranks and returns this rank's part of the first dimension.

    Parts differ by one entry at most; the first ranks get the larger ones.
    """
    array = _input(value)
    length = _first_dimension(array, "reducescatter")
    rank, members = _members(group)
    parts = [length // members + (i < length % members) for i in range(members)]
    result = _output(None, array, (parts[rank], *array.shape[1:]))
    unit = _row(array)
    counts = (ctypes.c_size_t * members)(*(part * unit for part in parts))
    call = _call(_lib.REDUCESCATTER, group, _number_type(array), result.count)
    call.op, call.prescale, call.postscale = op, _scale(prescale), _scale(postscale)
    call.in_, call.out, call.counts = array.address or None, result.address or None, counts
    return _Plan(call, (array, result, counts), lambda: result.source).run()


# ---- without arrays ----


def barrier(*, group: Optional[Group] = None) -> None:
    """Returns when all ranks have made this call."""
    _calls.submit(_call(_lib.BARRIER, group, 0, 0))


def join() -> int:
    """Tells the others that this rank has no more data, and returns the rank that joined last.

    Until all ranks have joined, this rank takes part in their allreduces and barriers with neutral elements.
    """
    last = ctypes.c_int(-1)
    call = _call(_lib.JOIN, None, 0, 0)
    call.last = ctypes.pointer(last)
    _calls.submit(call)
    return last.value


def broadcast_object(value: Any = None, root: int = 0, *, group: Optional[Group] = None) -> Any:
    """Returns the object of the rank ``root`` on all ranks; it is pickled."""
    rank, _ = _members(None)
    data = bytearray(pickle.dumps(value, protocol=5)) if rank == root else bytearray()
    size = stdlib_array.array("q", [len(data)])
    broadcast_(size, root, group=group)
    if rank != root:
        data = bytearray(size[0])
    broadcast_(data, root, group=group)
    return value if rank == root else pickle.loads(data)


def allgather_object(value: Any, *, group: Optional[Group] = None) -> list[Any]:
    """Returns the objects of all ranks, in rank order; they are pickled."""
    array = _input(stdlib_array.array("B", pickle.dumps(value, protocol=5)))
    call, ragged = _ragged(_lib.ALLGATHER_RAGGED, array, group)
    data = memoryview(_Plan(call, (array, ragged), ragged.result).run())
    found = []
    for length in ragged.rows():
        found.append(pickle.loads(data[:length]))
        data = data[length:]
    return found
