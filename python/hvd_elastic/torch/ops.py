"""Collectives on tensors, with gradients.

Each function is a collective: all members of the round call it in the same order. A function without `_async` waits for
the result. One with `_async` returns a `Pending`: call `wait()` for the result. A gradient is made by a collective too,
so all ranks run backward through the same operations.

The first collective of a process waits for a round. An error is one of `hvd_elastic`'s; `Revoked` says that a member
has died: let it go out of the function that `hvd_elastic.run` wraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from . import _core
from ._core import Pending, Tensor
from ._group import Group, members_of, rank_in, raw
from ._names import Average, Op, Sum, reduction

# The reduction, the name, the factors before and after, the group.
_Options = tuple[str, Optional[str], float, float, Optional[Group]]


def _tag(what: str, name: str | None, tensors: Sequence[Tensor]) -> int:
    return _core.tag_of(what, name or "", [(tuple(t.shape), str(t.dtype)) for t in tensors])


def allreduce_async(
    tensor: Tensor,
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> Pending:
    """Starts `allreduce`, without gradients."""
    (pending, outs) = _start_allreduce([tensor], None, op, name, prescale, postscale, group, True)
    return _core.Pending([pending], lambda: outs[0])


def _start_allreduce(
    tensors: Sequence[Tensor],
    outs: Sequence[Tensor] | None,
    op: str | Op,
    name: str | None,
    prescale: float,
    postscale: float,
    group: Group | None,
    start: bool,
) -> tuple[Pending, Sequence[Tensor]]:
    outs = [torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors] if outs is None else outs
    pending = _core.allreduce(
        tensors,
        outs,
        op,
        prescale=prescale,
        postscale=postscale,
        group=raw(group),
        tag=_tag("allreduce", name, tensors),
        start=start,
    )
    return pending, outs


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, options: _Options, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.options = options
        pending, outs = _start_allreduce(tensors, None, *options, False)
        pending.wait()
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        op, name, prescale, postscale, group = ctx.options
        dense = [g.contiguous() for g in gradients]
        return (None, *_Allreduce.apply((op, name and name + ".grad", prescale, postscale, group), *dense))


def allreduce(
    tensor: Tensor,
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> Tensor:
    """The tensors of all ranks, reduced element by element. Its gradient is the same allreduce of the gradients."""
    return _Allreduce.apply((op, name, prescale, postscale, group), tensor)[0]  # type: ignore[no-any-return]


def allreduce_(
    tensor: Tensor,
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> Tensor:
    """`allreduce` in place, without gradients."""
    _start_allreduce([tensor], [tensor], op, name, prescale, postscale, group, False)[0].wait()
    return tensor


def allreduce_async_(
    tensor: Tensor,
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> Pending:
    """Starts `allreduce_`."""
    pending, _ = _start_allreduce([tensor], [tensor], op, name, prescale, postscale, group, True)
    return _core.Pending([pending], lambda: tensor)


def grouped_allreduce(
    tensors: Sequence[Tensor],
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> list[Tensor]:
    """`allreduce` of several tensors; those of one type make one call of the library."""
    return list(_Allreduce.apply((op, name, prescale, postscale, group), *tensors))


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str | None, group: Group | None, tensor: Tensor) -> Tensor:
        members = members_of(group)
        pending = _core.allgather(tensor, members=members, group=raw(group), name=name or "", start=False)
        out, ctx.lengths = pending.wait()
        ctx.group, ctx.scalar = group, tensor.dim() == 0
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        reduced = allreduce(gradient.contiguous(), Average, group=ctx.group)
        mine = torch.split(reduced, ctx.lengths)[rank_in(ctx.group)]
        return None, None, mine.reshape(()) if ctx.scalar else mine


def allgather(tensor: Tensor, *, name: str | None = None, group: Group | None = None) -> Tensor:
    """The tensors of all ranks, one behind the other in the first dimension, in which they may differ.

    The gradient is this rank's part of the average of the gradients, as Horovod defines it.
    """
    return _Allgather.apply(name, group, tensor)  # type: ignore[no-any-return]


def allgather_async(tensor: Tensor, *, name: str | None = None, group: Group | None = None) -> Pending:
    """Starts `allgather`, without gradients. The lengths are exchanged before the function returns."""
    pending = _core.allgather(tensor, members=members_of(group), group=raw(group), name=name or "", start=True)
    return _core.Pending([pending], lambda: pending.wait()[0])


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, root: int, name: str | None, group: Group | None, tensor: Tensor) -> Tensor:
        ctx.root, ctx.group = root, group
        return broadcast_(tensor.detach().clone(memory_format=torch.contiguous_format), root, name=name, group=group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        reduced = allreduce(gradient.contiguous(), Average, group=ctx.group)
        if rank_in(None) != ctx.root:
            reduced = reduced * 0
        return None, None, None, reduced


def broadcast(tensor: Tensor, root: int, *, name: str | None = None, group: Group | None = None) -> Tensor:
    """The tensor of the rank `root`. Its gradient is the average of the gradients on that rank, and 0 on the others."""
    return _Broadcast.apply(root, name, group, tensor)  # type: ignore[no-any-return]


def broadcast_(tensor: Tensor, root: int, *, name: str | None = None, group: Group | None = None) -> Tensor:
    """`broadcast` in place, without gradients."""
    _core.broadcast([tensor], root, group=raw(group), tag=_tag("broadcast", name, [tensor]), start=False).wait()
    return tensor


def broadcast_async_(tensor: Tensor, root: int, *, name: str | None = None, group: Group | None = None) -> Pending:
    """Starts `broadcast_`."""
    pending = _core.broadcast([tensor], root, group=raw(group), tag=_tag("broadcast", name, [tensor]))
    return _core.Pending([pending], lambda: tensor)


def _splits_of(tensor: Tensor, splits: Sequence[int] | Tensor | None, members: int) -> list[int]:
    if splits is None:
        if tensor.dim() == 0 or tensor.shape[0] % members:
            raise ValueError(
                f"alltoall: {list(tensor.shape)} cannot be divided into {members} equal parts by rows; give splits"
            )
        return [tensor.shape[0] // members] * members
    rows = splits.tolist() if isinstance(splits, torch.Tensor) else list(splits)
    if not all(isinstance(row, int) for row in rows):
        raise ValueError("alltoall: splits are not whole numbers; give a list of int, or a tensor of an integer type")
    if len(rows) != members or sum(rows) > tensor.shape[0] or min(rows) < 0:
        raise ValueError(
            f"alltoall: splits {rows} do not fit {members} ranks and {tensor.shape[0]} rows; give one for each rank"
        )
    return rows


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, splits: list[int], name: str | None, group: Group | None, tensor: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.group, ctx.rows = group, tensor.shape[0]
        pending = _core.alltoall(
            tensor,
            splits,
            members=members_of(group),
            me=rank_in(group),
            group=raw(group),
            name=name or "",
            start=False,
        )
        out, received = pending.wait()
        ctx.received = received
        counts = torch.tensor(received, dtype=torch.int32)
        ctx.mark_non_differentiable(counts)
        return out, counts

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Any, ...]:
        back, _ = _Alltoall.apply(ctx.received, None, ctx.group, gradient.contiguous())
        if back.shape[0] < ctx.rows:  # rows that went nowhere
            rest = back.new_zeros((ctx.rows - back.shape[0], *back.shape[1:]))
            back = torch.cat([back, rest])
        return None, None, None, back


def alltoall(
    tensor: Tensor,
    splits: Sequence[int] | Tensor | None = None,
    *,
    name: str | None = None,
    group: Group | None = None,
) -> tuple[Tensor, Tensor]:
    """Sends splits[i] rows to rank i (None: equally many). Gives what came, and how many rows came from each rank."""
    rows = _splits_of(tensor, splits, members_of(group))
    return _Alltoall.apply(rows, name, group, tensor)  # type: ignore[no-any-return]


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, options: _Options, tensor: Tensor) -> Tensor:
        ctx.options = options
        return reducescatter_async(tensor, *options, False).wait()  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        op, _, prescale, postscale, group = ctx.options
        factor = prescale * postscale
        if reduction(op) == Sum:
            factor *= members_of(group)
        if factor != 1.0:
            gradient = gradient * factor
        return None, allgather(gradient.contiguous(), group=group)


def reducescatter_async(
    tensor: Tensor,
    op: str | Op = Average,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
    start: bool = True,
) -> Pending:
    """Starts `reducescatter`, without gradients."""
    return _core.reducescatter(
        tensor,
        op,
        members=members_of(group),
        me=rank_in(group),
        prescale=prescale,
        postscale=postscale,
        group=raw(group),
        tag=_tag("reducescatter", name, [tensor]),
        start=start,
    )


def reducescatter(
    tensor: Tensor,
    op: str | Op = Average,
    *,
    name: str | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: Group | None = None,
) -> Tensor:
    """Reduces the tensors of all ranks, and gives each rank its part of the rows; the first ranks get one row more."""
    return _Reducescatter.apply((op, name, prescale, postscale, group), tensor)  # type: ignore[no-any-return]


def barrier(*, group: Group | None = None) -> None:
    """Waits until all ranks have called it."""
    _core.barrier(group=raw(group)).wait()
