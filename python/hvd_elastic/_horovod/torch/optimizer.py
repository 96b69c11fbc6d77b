"""DistributedOptimizer under Horovod's signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import torch

from ...torch import optimizer as _native
from ...torch.compression import Compression
from ..common.process_sets import ProcessSet, global_process_set
from .mpi_ops import Average, op_of

_DistributedOptimizer = _native._Distributed


def DistributedOptimizer(  # noqa: N802 (Horovod's name)
    optimizer: torch.optim.Optimizer,
    named_parameters: Any = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Optional[Union[int, Sequence[Sequence[torch.Tensor]]]] = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Makes an optimizer distributed; see hvd_elastic.torch.DistributedOptimizer."""
    if groups is not None and not isinstance(groups, int) and not all(isinstance(g, (list, tuple)) for g in groups):
        raise ValueError("groups: not a number and not a list of lists of parameters; give one of these")
    return _native.DistributedOptimizer(
        optimizer,
        named_parameters,
        compression,
        backward_passes_per_step,
        op_of(op),
        gradient_predivide_factor,
        num_groups if groups is None else groups,
        sparse_as_dense,
        process_set.group,
    )


__all__ = ["DistributedOptimizer", "_DistributedOptimizer"]
