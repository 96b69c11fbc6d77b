"""Collectives on tensors: what the operations, the optimizer, the backend and the Horovod drop-in share.

A function here makes a collective of the library, or starts it. It returns a `Pending`, whose `wait` gives the
result. A `Pending` keeps the tensors alive until then. The library checks what must be equal on all ranks. The
shapes of an allgather and an alltoall, of which only a part must be equal, are compared here; a wrong shape is an
error on all ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _calls, _lib
from .._error import InvalidArgument, Mismatch
from .._session import session
from ._names import Op, reduction

Tensor = torch.Tensor

# A torch type -> the library's name of the type in which such a tensor is reduced.
_REDUCED: dict[torch.dtype, str] = {
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}
# A torch type without a type of the library -> the type through which it is reduced.
_THROUGH: dict[torch.dtype, torch.dtype] = {torch.int16: torch.int32, torch.bool: torch.uint8}


class Pending:
    """A collective that has been started. `wait` may be called again, and gives the same result."""

    __slots__ = ("_finish", "_kept", "_requests", "_result")

    def __init__(self, requests: Sequence[Any], finish: Callable[[], Any], kept: Any = None) -> None:
        self._requests = list(requests)
        self._finish: Callable[[], Any] | None = finish
        self._kept = kept
        self._result: Any = None

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return all(request.done() for request in self._requests)

    def wait(self, timeout: float | None = None) -> Any:
        """Waits for the result. After a failure all requests have ended, and the first error is raised."""
        first: BaseException | None = None
        while self._requests:
            try:
                self._requests[0].wait(timeout)
            except TimeoutError:
                raise  # the request stays
            except Exception as error:
                first = first or error
            self._requests.pop(0)
        finish, self._finish, self._kept = self._finish, None, None
        if first is not None:
            raise first
        if finish is not None:
            self._result = finish()
        return self._result


def tag_of(*parts: object) -> int:
    """A number that is equal on ranks whose parts are equal; the library compares it. Never 0."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little") | 1


class _Calls:
    """The calls of one collective on tensors: made at once, or started."""

    def __init__(self, start: bool, **common: Any) -> None:
        session().enter()
        self.start = start
        if "op" in common:
            common["op"] = reduction(common["op"])
        self.common = common
        self.requests: list[Any] = []
        self.kept: list[Any] = []

    def add(
        self, what: str, source: Tensor | None, into: Tensor | None, count: int, dtype: str, **options: Any
    ) -> None:
        """Makes or starts one call of the library."""
        self.kept += [source, into]
        at = [0 if tensor is None else tensor.data_ptr() for tensor in (source, into)]
        options |= self.common
        numbers: tuple[int, int, int, int, int] = (_calls.KIND[what], at[0], at[1], count, _calls.DTYPE[dtype])
        if self.start:
            self.requests.append(_calls.start(*numbers, **options, keep=self.kept))
        else:
            _calls.run(*numbers, **options)

    def pending(self, finish: Callable[[], Any]) -> Pending:
        return Pending(self.requests, finish, self.kept)


def _dense(tensor: Tensor) -> Tensor:
    """The tensor's data in one piece; a copy only if the tensor is not contiguous."""
    return tensor.detach().contiguous()


def _bytes_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _reducible(tensor: Tensor, prescale: float) -> Tensor:
    """The tensor in a type that the library reduces. The library scales floats alone: whole numbers are scaled here."""
    source = _dense(tensor)
    if source.dtype.is_complex:
        source = torch.view_as_real(source)
    elif not source.dtype.is_floating_point and prescale != 1.0:
        source = (source.double() * prescale).to(source.dtype)
    source = source.to(_THROUGH.get(source.dtype, source.dtype))
    if source.dtype not in _REDUCED:
        raise InvalidArgument(f"tensors of type {tensor.dtype} cannot be reduced; convert them to another type first")
    return source


def _deliver(result: Tensor, out: Tensor, postscale: float) -> None:
    """Puts the library's result where it belongs, unless the library has done that."""
    if out.dtype.is_complex:
        result = torch.view_as_complex(result)
    elif not out.dtype.is_floating_point and postscale != 1.0:
        result = (result.double() * postscale).to(out.dtype)
    if result.data_ptr() != out.data_ptr() or result.dtype != out.dtype:
        out.detach().copy_(result.view(out.shape))


def _factors(tensor: Tensor, prescale: float, postscale: float) -> dict[str, float]:
    return {"prescale": prescale, "postscale": postscale} if tensor.dtype.is_floating_point else {}


def allreduce(
    tensors: Sequence[Tensor],
    outs: Sequence[Tensor],
    op: str | Op,
    *,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Any = None,
    tag: int = 0,
    start: bool = True,
) -> Pending:
    """Reduces each tensor over the ranks into the tensor at the same place of outs, which may be the same tensor.

    Tensors of one type make one call of the library.
    """
    calls = _Calls(start, group=group, tag=tag, op=op)
    results: list[tuple[Tensor, Tensor]] = []
    by_type: dict[torch.dtype, list[tuple[Tensor, Tensor]]] = {}
    for tensor, out in zip(tensors, outs):
        source = _reducible(tensor, prescale)
        fits = out.is_contiguous() and out.dtype == source.dtype
        into = out.detach() if fits else torch.empty_like(source)
        results.append((into, out))
        by_type.setdefault(source.dtype, []).append((source, into))
    for dtype, pairs in by_type.items():
        pieces = [(source.data_ptr(), into.data_ptr(), source.numel()) for source, into in pairs]
        calls.kept += pairs
        factors = _factors(pairs[0][0], prescale, postscale)
        calls.add("allreduce", None, None, 0, _REDUCED[dtype], pieces=pieces, **factors)

    def finish() -> list[Tensor]:
        with torch.no_grad():
            for into, out in results:
                _deliver(into, out, postscale)
        return list(outs)

    return calls.pending(finish)


def broadcast(tensors: Sequence[Tensor], root: int, *, group: Any = None, tag: int = 0, start: bool = True) -> Pending:
    """Copies each tensor of the rank `root` (its rank in the round) to the same tensor of the others."""
    calls = _Calls(start, group=group, tag=tag, root=root)
    results = []
    for tensor in tensors:
        flat = _dense(tensor)
        results.append((flat, tensor))
        calls.add("broadcast", None, flat, _bytes_of(flat), "uint8")

    def finish() -> list[Tensor]:
        with torch.no_grad():
            for flat, tensor in results:
                if flat.data_ptr() != tensor.data_ptr():
                    tensor.detach().copy_(flat)
        return list(tensors)

    return calls.pending(finish)


def transfer(tensor: Tensor, peer: int, *, sends: bool, tag: int = 0) -> Pending:
    """Starts to send the tensor to the rank `peer` of the round, or to receive it from there."""
    if tensor.device.type != "cpu":
        raise NotImplementedError(
            f"backend hvd: send and recv of a tensor on {tensor.device}; copy it to the CPU, and send that"
        )
    calls = _Calls(True, root=peer, tag=tag)
    flat = _dense(tensor)
    dtype = _REDUCED.get(flat.dtype, "uint8")
    count = flat.numel() if flat.dtype in _REDUCED else _bytes_of(flat)
    calls.add("send" if sends else "recv", flat if sends else None, None if sends else flat, count, dtype)

    def finish() -> Tensor:
        if not sends and flat.data_ptr() != tensor.data_ptr():
            with torch.no_grad():
                tensor.detach().copy_(flat)
        return tensor

    return calls.pending(finish)


def _exchange(numbers: Sequence[int], members: int, group: Any) -> list[list[int]]:
    """The numbers of each member; all members give equally many."""
    mine = torch.tensor(numbers, dtype=torch.int64)
    theirs = torch.empty((members, len(numbers)), dtype=torch.int64)
    kind, dtype = _calls.KIND["allgather"], _calls.DTYPE["int64"]
    _calls.run(kind, mine.data_ptr(), theirs.data_ptr(), len(numbers), dtype, group=group)
    return theirs.tolist()


def _half(number: int) -> int:
    return number >> 1  # fits an int64


def _agree(what: str, name: str, shape: Sequence[int], dtype: torch.dtype, told: list[list[int]]) -> None:
    """Raises on all ranks if the first number of what was told, a digest of shapes and types, is not the same."""
    ranks = [rank for rank, numbers in enumerate(told) if numbers[0] != told[0][0]]
    if ranks:
        raise Mismatch(
            f"{what} {name or '(no name)'}: the tensors of ranks 0 and {ranks[0]} differ in name, type or shape (here "
            f"{dtype} {list(shape)}); give tensors that differ in nothing but their first dimension",
            _lib.E_MISMATCH,
        )


def allgather(tensor: Tensor, *, members: int, group: Any = None, name: str = "", start: bool = True) -> Pending:
    """The tensors of all members, one behind the other in the first dimension, which may differ; and their lengths."""
    session().enter()
    source = _dense(tensor)
    if source.dim() == 0:
        source = source.reshape(1)
    rest = source.shape[1:]
    told = _exchange([_half(tag_of("allgather", name, rest, source.dtype)), source.shape[0]], members, group)
    _agree("allgather", name, source.shape, source.dtype, told)
    lengths = [numbers[1] for numbers in told]
    out = torch.empty((sum(lengths), *rest), dtype=source.dtype, device=source.device)
    row = rest.numel() * source.element_size()
    calls = _Calls(start, group=group)
    if out.numel():
        counts = [length * row for length in lengths]
        calls.add("allgather", source, out, _bytes_of(source), "uint8", counts=counts)
    return calls.pending(lambda: (out, lengths))


def allgather_into(
    out: Tensor, source: Tensor, *, counts: Sequence[int] | None = None, group: Any = None, start: bool = True
) -> Pending:
    """Gathers the tensors of all members into `out`, in the order of ranks. `counts`: how many elements each member
    gives, if the numbers differ. An `out` that is not contiguous is filled when the caller waits. All members know
    the size of `out`: if it is 0, no member makes a call.
    """
    calls = _Calls(start, group=group)
    dense = _dense(source)
    into = out.detach() if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    size = source.element_size()
    options = {} if counts is None else {"counts": [count * size for count in counts]}
    if out.numel():
        calls.add("allgather", dense, into, _bytes_of(dense), "uint8", **options)

    def finish() -> Tensor:
        if into.data_ptr() != out.data_ptr():
            out.detach().copy_(into)
        return out

    return calls.pending(finish)


def alltoall_into(
    out: Tensor, source: Tensor, sent: Sequence[int], received: Sequence[int], *, group: Any = None, start: bool = True
) -> Pending:
    """Sends sent[i] rows to member i, and gets received[i] rows from it."""
    calls = _Calls(start, group=group)
    dense = _dense(source)
    into = out.detach() if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    row = dense.element_size() * (dense.shape[1:].numel() if dense.dim() > 1 else 1)
    counts = {"counts": [rows * row for rows in sent], "out_counts": [rows * row for rows in received]}
    calls.add("alltoall", dense, into, 0, "uint8", **counts)

    def finish() -> Tensor:
        if into.data_ptr() != out.data_ptr():
            out.detach().copy_(into)
        return out

    return calls.pending(finish)


def alltoall(
    tensor: Tensor,
    splits: Sequence[int],
    *,
    members: int,
    me: int,
    group: Any = None,
    name: str = "",
    start: bool = True,
) -> Pending:
    """Sends splits[i] rows of the tensor to member i; gives the rows that came, and how many from each member."""
    session().enter()
    source = _dense(tensor)
    rest = source.shape[1:]
    told = _exchange([_half(tag_of("alltoall", name, rest, source.dtype)), *splits], members, group)
    _agree("alltoall", name, source.shape, source.dtype, told)
    received = [numbers[1 + me] for numbers in told]
    out = torch.empty((sum(received), *rest), dtype=source.dtype, device=source.device)
    row = rest.numel() * source.element_size()
    calls = _Calls(start, group=group)
    counts = {"counts": [n * row for n in splits], "out_counts": [n * row for n in received]}
    if any(any(numbers[1:]) for numbers in told) and row:
        calls.add("alltoall", source, out, 0, "uint8", **counts)
    return calls.pending(lambda: (out, received))


def rows_of(rows: int, members: int) -> list[int]:
    """How many rows of a reducescatter each member gets: the first ones get one more."""
    return [rows // members + (member < rows % members) for member in range(members)]


def reducescatter(
    tensor: Tensor,
    op: str | Op,
    *,
    members: int,
    me: int,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Any = None,
    tag: int = 0,
    start: bool = True,
) -> Pending:
    """Reduces the tensors of all members, and gives each member its part of the rows."""
    if tensor.dim() == 0:
        raise InvalidArgument("reducescatter: a tensor without dimensions has no rows; give it one with reshape(1)")
    source = _reducible(tensor, prescale)
    lengths = rows_of(tensor.shape[0], members)
    rest = source.shape[1:]
    into = torch.empty((lengths[me], *rest), dtype=source.dtype, device=source.device)
    out = into if tensor.dtype == into.dtype else torch.empty((lengths[me], *tensor.shape[1:]), dtype=tensor.dtype)
    calls = _Calls(start, group=group, tag=tag, op=op)
    counts = [length * rest.numel() for length in lengths]
    factors = _factors(source, prescale, postscale)
    if source.numel():
        calls.add("reducescatter", source, into, into.numel(), _REDUCED[source.dtype], counts=counts, **factors)

    def finish() -> Tensor:
        _deliver(into, out, postscale)
        return out

    return calls.pending(finish)


def barrier(*, group: Any = None, start: bool = False) -> Pending:
    calls = _Calls(start, group=group)
    calls.add("barrier", None, None, 0, "uint8")
    return calls.pending(lambda: None)
