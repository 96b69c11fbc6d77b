"""hvd_elastic.torch: elastic training with PyTorch.

    import hvd_elastic
    import hvd_elastic.torch

    state = hvd_elastic.torch.State(model=model, optimizer=optimizer, epoch=0)

    @hvd_elastic.run
    def train(state): ...

Nothing here is compiled against PyTorch: tensors are handed to libhvd by their addresses.
"""

from __future__ import annotations

from . import _version  # noqa: F401 (refuses a PyTorch that is too old, before anything else needs it)

# isort: split
import torch.distributed

from ._core import Pending
from ._group import Group
from ._names import Average, Max, Min, Product, Sum
from .compression import Compression
from .data import Sampler
from .ops import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async_,
    grouped_allreduce,
    reducescatter,
    reducescatter_async,
)
from .optimizer import DistributedOptimizer
from .state import State

if torch.distributed.is_available():  # not so in each build of PyTorch
    from . import backend  # noqa: F401 (registers the backend hvd)

__all__ = [
    "Average",
    "Compression",
    "DistributedOptimizer",
    "Group",
    "Max",
    "Min",
    "Pending",
    "Product",
    "Sampler",
    "State",
    "Sum",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async_",
    "grouped_allreduce",
    "reducescatter",
    "reducescatter_async",
]
