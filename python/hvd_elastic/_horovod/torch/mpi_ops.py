"""Places and collectives under Horovod's names."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch

from ... import _calls, _error, _lib
from ..._session import session
from ...torch import _core, ops
from ...torch._core import Pending, Tensor
from ...torch._group import members_of
from ...torch.compression import Compression
from ...torch.optimizer import sparse_allreduce
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, add_process_set, before_opening, global_process_set
from ..common.util import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from . import negotiate

Average, Sum, Adasum, Min, Max, Product = 0, 1, 2, 3, 4, 5
_OPS = {Average: "average", Sum: "sum", Min: "min", Max: "max", Product: "product"}
_up = False
elastic_depth = 0  # of functions that elastic.run has wrapped


# ---- places ----


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. Process sets that are given are made at once, which waits for the other ranks."""
    global _up
    if comm is not None:
        raise ValueError(
            "horovod: init(comm=...) asks for a communicator of MPI, or for a part of the ranks, which does not exist "
            "here; leave comm out, and name parts of the ranks in process_sets"
        )
    session().init()
    _up = True
    if isinstance(process_sets, (list, tuple)):
        for process_set in process_sets:
            add_process_set(process_set)


def shutdown() -> None:
    """The session goes on until the program ends, so init() may be called again."""
    global _up
    _up = False


def is_initialized() -> bool:
    return _up


def _place(name: str) -> Callable[[], int]:
    def place() -> int:
        if not _up:
            raise ValueError(f"horovod: {name}() was called before init(); call hvd.init() first")
        return session().place(name)

    place.__name__ = name
    return place


rank, size = _place("rank"), _place("size")
local_rank, local_size = _place("local_rank"), _place("local_size")
cross_rank, cross_size = _place("cross_rank"), _place("cross_size")


def is_homogeneous() -> bool:
    return True


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Writes a timeline from here on; mark_cycles has no meaning, as there are no cycles."""
    _error.check(_lib.lib.hvd_timeline_start(os.fsencode(file_path)))


def stop_timeline() -> None:
    _error.check(_lib.lib.hvd_timeline_stop())


# ---- errors, names and handles ----


def _join_next_round() -> None:
    """Leaves a round in which a call has failed, if that has ended it."""
    here = session()
    if not here.revoked:  # the next call says whether the round has ended
        call = _lib.Call()
        call.kind = _calls.KIND["barrier"]
        code = _lib.lib.hvd_run(ctypes.byref(call))
        here.failed(code)
        if code != _lib.E_REVOKED:
            here.dead = code < 0
            return
    here.leave(_lib.E_REVOKED)
    here.enter()
    here.state.commit()  # shows the driver that the job gets on; without it each new round waits longer


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """What the library raises becomes HorovodInternalError, but for wrong arguments.

    After a mismatch a program that is not elastic goes on: its next collective joins a new round.
    """
    here = session()
    if here.inside and here.dead and not elastic_depth:
        _join_next_round()
    try:
        yield
    except HorovodInternalError:
        raise
    except _error.InvalidArgument:
        raise
    except (_error.Revoked, _error.HvdError) as error:
        raise HorovodInternalError(str(error)) from error


def _translating(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        with _translated():
            return function(*args, **options)

    return wrapper


def op_of(op: Optional[int], average: Optional[bool] = None) -> str:
    """The library's reduction."""
    if op is not None and average is not None:
        raise ValueError("horovod: op and average were both given; give op alone")
    if op is None:
        op = Sum if average is False else Average
    if op == Adasum:
        raise NotImplementedError(
            "horovod: op=Adasum does not exist in hvd_elastic, as its library has no such reduction; use op=hvd.Average"
        )
    if op not in _OPS:
        raise ValueError(f"horovod: there is no op {op}; use hvd.Average, Sum, Min, Max or Product")
    return _OPS[op]


_numbers = itertools.count()
_pending: dict[int, tuple[Any, Optional[str]]] = {}
_names: dict[str, int] = {}  # of calls that have not been waited for, with the round of the call


def _alike(tensors: Sequence[Tensor], *more: object) -> object:
    """The facts of a call that are equal on all ranks."""
    return [(tuple(tensor.shape), str(tensor.dtype)) for tensor in tensors], *more


def _alike_rows(tensors: Sequence[Tensor], *more: object) -> object:
    """The same, for tensors whose first dimensions may differ."""
    return [(tuple(tensor.shape[1:]), tensor.dim(), str(tensor.dtype)) for tensor in tensors], *more


def _handle(
    name: Optional[str], kind: str, start: Callable[[], Any], equal: object = None, process_set: Any = None
) -> int:
    """Starts a call under a number. ``equal``: see negotiate.hold."""
    known = f"{kind}.{name}" if name else None
    if known and session().inside and _names.get(known) == session().round:
        raise ValueError(f"horovod: a tensor with the name {name} is on its way already; choose another name")
    with _translated():
        held = negotiate.WANTED and process_set is not None
        pending = negotiate.hold(kind, name, equal, process_set, start) if held else start()
    if known:
        _names[known] = session().round
    number = next(_numbers)
    _pending[number] = (pending, known)
    return number


def _now(name: Optional[str], kind: str, call: Callable[[], Any], equal: object, process_set: ProcessSet) -> Any:
    """Makes a call and waits for its result. ``equal``: see negotiate.hold."""
    if not negotiate.WANTED:
        return call()

    def start() -> Pending:
        result = call()
        return Pending([], lambda: result)

    return negotiate.hold(kind, name, equal, process_set, start).wait()


def _wait_for_all() -> None:
    """A group is opened when all that was started is through. The results stay for synchronize."""
    for pending, _ in _pending.values():
        with contextlib.suppress(Exception):
            pending.wait()


before_opening.append(_wait_for_all)


def poll(handle: int) -> bool:
    """Whether synchronize would return at once."""
    if handle not in _pending:
        raise ValueError(f"horovod: there is no handle {handle}; synchronize() has ended it")
    return bool(_pending[handle][0].done())


def synchronize(handle: int) -> Any:
    """Waits for the result; None for a handle that has been waited for."""
    pending, name = _pending.pop(handle, (None, None))
    _names.pop(name or "", None)
    if pending is None:
        return None
    with _translated():
        return pending.wait()


def _group(process_set: ProcessSet) -> Any:
    if process_set is not global_process_set and not process_set.included():
        raise ValueError(f"horovod: this process is not in {process_set}; call collectives of a set on its members")
    return process_set.group


def _common(name: Optional[str], pre: float, post: float, process_set: ProcessSet) -> dict[str, Any]:
    return {"name": name, "prescale": pre, "postscale": post, "group": _group(process_set)}


# ---- allreduce ----


@_translating
def allreduce(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """The tensors of all ranks, averaged or reduced otherwise; it has a gradient."""
    packed, ctx = compression.compress(tensor)
    common, wanted = _common(name, prescale_factor, postscale_factor, process_set), op_of(op, average)
    equal = _alike([packed], wanted, prescale_factor, postscale_factor)
    out = _now(name, "allreduce", lambda: ops.allreduce(packed, wanted, **common), equal, process_set)
    return compression.decompress(out, ctx)  # type: ignore[no-any-return]


@_translating
def allreduce_(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Allreduce in place."""
    common, wanted = _common(name, prescale_factor, postscale_factor, process_set), op_of(op, average)
    equal = _alike([tensor], wanted, prescale_factor, postscale_factor)
    _now(name, "allreduce", lambda: ops.allreduce_(tensor, wanted, **common), equal, process_set)
    return tensor


def _start_all(
    tensors: Sequence[Tensor],
    outs: Sequence[Tensor],
    op: str,
    pre: float,
    post: float,
    process_set: ProcessSet,
    name: Optional[str],
) -> Pending:
    shapes = [(tuple(t.shape), str(t.dtype)) for t in tensors]
    options = {"prescale": pre, "postscale": post, "group": _group(process_set)}
    return _core.allreduce(tensors, outs, op, tag=_core.tag_of("allreduce", name or "", shapes), **options)


def _one(pending: Pending) -> Pending:
    return Pending([pending], lambda: pending.wait()[0])


def allreduce_async(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts allreduce without a gradient; gives a handle."""
    wanted, out = op_of(op, average), torch.empty_like(tensor, memory_format=torch.contiguous_format)
    factors = (prescale_factor, postscale_factor, process_set, name)
    equal = _alike([tensor], wanted, prescale_factor, postscale_factor)
    return _handle(name, "allreduce", lambda: _one(_start_all([tensor], [out], wanted, *factors)), equal, process_set)


def allreduce_async_(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts allreduce_; gives a handle."""
    wanted = op_of(op, average)
    factors = (prescale_factor, postscale_factor, process_set, name)
    equal = _alike([tensor], wanted, prescale_factor, postscale_factor)
    return _handle(
        name, "allreduce", lambda: _one(_start_all([tensor], [tensor], wanted, *factors)), equal, process_set
    )


@_translating
def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    packed = [compression.compress(tensor) for tensor in tensors]
    sent = [tensor for tensor, _ in packed]
    common, wanted = _common(name, prescale_factor, postscale_factor, process_set), op_of(op, average)
    equal = _alike(sent, wanted, prescale_factor, postscale_factor)
    outs = _now(name, "allreduce", lambda: ops.grouped_allreduce(sent, wanted, **common), equal, process_set)
    return [compression.decompress(out, ctx) for out, (_, ctx) in zip(outs, packed)]


def grouped_allreduce_async(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    outs = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in tensors]
    factors = (op_of(op, average), prescale_factor, postscale_factor, process_set, name)
    return _handle(
        name, "allreduce", lambda: _start_all(tensors, outs, *factors), _alike(tensors, *factors[:3]), process_set
    )


def grouped_allreduce_async_(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    factors = (op_of(op, average), prescale_factor, postscale_factor, process_set, name)
    return _handle(
        name, "allreduce", lambda: _start_all(tensors, tensors, *factors), _alike(tensors, *factors[:3]), process_set
    )


def grouped_allreduce_(tensors: Sequence[Tensor], *args: Any, **options: Any) -> Any:
    return synchronize(grouped_allreduce_async_(tensors, *args, **options))


def sparse_allreduce_async(
    tensor: Tensor, name: Optional[str], op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], Tensor]:
    """Starts the reduction of sparse tensors; the function that it gives waits for the result."""
    with _translated():
        return sparse_allreduce(tensor, name, op_of(op), _group(process_set))


# ---- allgather, broadcast, alltoall, reducescatter ----


@_translating
def allgather(tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Tensor:
    group = _group(process_set)
    call = functools.partial(ops.allgather, tensor, name=name, group=group)
    return _now(name, "allgather", call, _alike_rows([tensor]), process_set)  # type: ignore[no-any-return]


def allgather_async(tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    group = _group(process_set)
    call = functools.partial(ops.allgather_async, tensor, name=name, group=group)
    return _handle(name, "allgather", call, _alike_rows([tensor]), process_set)


@_translating
def grouped_allgather(
    tensors: Sequence[Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> list[Tensor]:
    group = _group(process_set)

    def call() -> list[Tensor]:
        return [ops.allgather(tensor, group=group) for tensor in tensors]

    return _now(name, "allgather", call, _alike_rows(tensors), process_set)  # type: ignore[no-any-return]


def grouped_allgather_async(
    tensors: Sequence[Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    group = _group(process_set)

    def start() -> Pending:
        parts = [ops.allgather_async(tensor, group=group) for tensor in tensors]
        return Pending(parts, lambda: [part.wait() for part in parts])

    return _handle(name, "allgather", start, _alike_rows(tensors), process_set)


def _root(root_rank: int, process_set: ProcessSet) -> int:
    if root_rank not in (process_set.ranks or []):
        raise HorovodInternalError(f"broadcast: there is no rank {root_rank} in {process_set.ranks}; name one of these")
    return root_rank


@_translating
def broadcast(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    root, group = _root(root_rank, process_set), _group(process_set)
    call = functools.partial(ops.broadcast, tensor, root, name=name, group=group)
    return _now(name, "broadcast", call, _alike([tensor], root), process_set)  # type: ignore[no-any-return]


@_translating
def broadcast_(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    root, group = _root(root_rank, process_set), _group(process_set)
    call = functools.partial(ops.broadcast_, tensor, root, name=name, group=group)
    return _now(name, "broadcast", call, _alike([tensor], root), process_set)  # type: ignore[no-any-return]


def broadcast_async_(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    group, root = _group(process_set), _root(root_rank, process_set)
    call = functools.partial(ops.broadcast_async_, tensor, root, name=name, group=group)
    return _handle(name, "broadcast", call, _alike([tensor], root), process_set)


def broadcast_async(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return broadcast_async_(tensor.detach().clone(), root_rank, name, process_set)


@_translating
def alltoall(
    tensor: Tensor, splits: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The rows that came; with splits also how many came from each rank."""
    call = functools.partial(ops.alltoall, tensor, splits, name=name, group=_group(process_set))
    out, received = _now(name, "alltoall", call, _alike_rows([tensor]), process_set)
    return out if splits is None else (out, received)


def alltoall_async(
    tensor: Tensor, splits: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    with torch.no_grad():
        result = alltoall(tensor.detach(), splits, name, process_set)
    return _handle(name, "alltoall", lambda: Pending([], lambda: result))


@_translating
def reducescatter(
    tensor: Tensor,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    packed, ctx = compression.compress(tensor)
    call = functools.partial(
        ops.reducescatter, packed, op_of(op), **_common(name, prescale_factor, postscale_factor, process_set)
    )
    equal = _alike([packed], op, prescale_factor, postscale_factor)
    out = _now(name, "reducescatter", call, equal, process_set)
    return compression.decompress(out, ctx)  # type: ignore[no-any-return]


def reducescatter_async(
    tensor: Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    common = _common(name, prescale_factor, postscale_factor, process_set)
    call = functools.partial(ops.reducescatter_async, tensor, op_of(op), **common)
    equal = _alike([tensor], op, prescale_factor, postscale_factor)
    return _handle(name, "reducescatter", call, equal, process_set)


@_translating
def grouped_reducescatter(
    tensors: Sequence[Tensor],
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    factors = {"prescale_factor": prescale_factor, "postscale_factor": postscale_factor}
    return [reducescatter(t, None, compression, op, process_set, **factors) for t in tensors]


def grouped_reducescatter_async(
    tensors: Sequence[Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    common = _common(None, prescale_factor, postscale_factor, process_set)

    def start() -> Pending:
        parts = [ops.reducescatter_async(tensor, op_of(op), **common) for tensor in tensors]
        return Pending(parts, lambda: [part.wait() for part in parts])

    equal = _alike(tensors, op, prescale_factor, postscale_factor)
    return _handle(name, "reducescatter", start, equal, process_set)


@_translating
def barrier(process_set: ProcessSet = global_process_set) -> None:
    _now(None, "barrier", functools.partial(ops.barrier, group=_group(process_set)), None, process_set)


@_translating
def join(device: int = -1) -> int:
    """Says that this rank has no more data; gives the rank that joined last.

    Another rank's wrong call ends the round. This rank then joins again in the next one, unless the program is elastic.
    """
    last = ctypes.c_int(-1)
    call = _lib.Call()
    call.kind = _calls.KIND["join"]
    call.last = ctypes.pointer(last)
    negotiate.settle()
    while True:
        try:
            _calls.submit(call)
            negotiate.joined()
            return last.value
        except (_error.Mismatch, _error.Revoked):
            if elastic_depth:
                raise
            _join_next_round()


__all__ = [name for name in dir() if not name.startswith("_")]
__all__ += ["ccl_built", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "mpi_built", "mpi_enabled"]
__all__ += ["members_of", "mpi_threads_supported", "nccl_built", "rocm_built"]
