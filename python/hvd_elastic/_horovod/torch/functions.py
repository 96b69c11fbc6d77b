"""Broadcasts of parameters, optimizers and objects."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Optional

import torch

from ...torch import _core
from ...torch.state import _class_of, _has_known_state, make_optimizer_state
from ..common.process_sets import ProcessSet, global_process_set
from . import mpi_ops


def broadcast_parameters(params: Any, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Gives all ranks the tensors of the rank root_rank: a state_dict, or pairs of names and tensors."""
    if isinstance(params, dict):
        pairs: list[Any] = sorted(params.items())
    elif isinstance(params, Iterable):
        pairs = [pair if isinstance(pair, tuple) else ("", pair) for pair in params]
    else:
        raise ValueError(f"broadcast_parameters: {type(params)} is no dict and no list; give model.state_dict()")
    tensors = [tensor for _, tensor in pairs if isinstance(tensor, torch.Tensor)]
    names = [name for name, tensor in pairs if isinstance(tensor, torch.Tensor)]
    shapes = [(tuple(tensor.shape), str(tensor.dtype)) for tensor in tensors]
    with mpi_ops._translated(), torch.no_grad():
        group = mpi_ops._group(process_set)
        _core.broadcast(tensors, root_rank, group=group, tag=_core.tag_of("parameters", names, shapes)).wait()


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: Optional[torch.nn.Module] = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Gives all ranks the state and the options of the optimizer of the rank root_rank."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "broadcast_optimizer_state: LBFGS has a state without a fixed layout; broadcast it as an object"
        )
    if not optimizer.state and _has_known_state(optimizer):
        make_optimizer_state(optimizer)
    for group in optimizer.param_groups:
        for param in group["params"]:
            if param.requires_grad and param.grad is None:
                param.grad = torch.zeros_like(param)  # as a first step would leave it
    state = optimizer.state_dict()
    mine = state if mpi_ops.rank() == root_rank else None
    theirs = broadcast_object(mine, root_rank, process_set=process_set)
    if mine is None:
        _class_of(optimizer).load_state_dict(optimizer, theirs)


def _packed(value: Any) -> torch.Tensor:
    import cloudpickle  # type: ignore[import-untyped]

    stream = io.BytesIO()
    cloudpickle.dump(value, stream)
    return torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8)


def _unpacked(data: torch.Tensor) -> Any:
    import cloudpickle

    return cloudpickle.loads(data.numpy().tobytes())


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The object of the rank root_rank."""
    is_root = mpi_ops.rank() == root_rank
    data = _packed(obj) if is_root else torch.empty(0, dtype=torch.uint8)
    length = torch.tensor([data.numel()])
    mpi_ops.broadcast_(length, root_rank, name and f"{name}.length", process_set)
    if not is_root:
        data = torch.empty(int(length.item()), dtype=torch.uint8)
    mpi_ops.broadcast_(data, root_rank, name, process_set)
    return obj if is_root else _unpacked(data)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all ranks, in the order of ranks."""
    data = _packed(obj)
    lengths = mpi_ops.allgather(torch.tensor([data.numel()]), name and f"{name}.length", process_set)
    whole = mpi_ops.allgather(data, name, process_set)
    return [_unpacked(part) for part in torch.split(whole, lengths.tolist())]


__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters"]
