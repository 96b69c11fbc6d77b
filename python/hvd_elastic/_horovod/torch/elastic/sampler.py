"""A sampler that goes on with the samples that an epoch has left when the membership changes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from .. import mpi_ops


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Deals the samples of a data set that have not been processed in this epoch to the ranks.

    Call record_batch after each batch, and set_epoch when an epoch begins; keep the sampler in the state.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.rank = 0
        self.num_replicas = 1
        self.remaining_indices: list[int] = []
        self.num_samples = 0
        self.total_size = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: all samples are unprocessed."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Notes that all ranks have processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    @property
    def processed_indices(self) -> list[int]:
        return self._order()[: self.processed_num]

    def _order(self) -> list[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def reset(self) -> None:
        """Deals what is left anew, to the ranks that there are now."""
        self.num_replicas = mpi_ops.size()
        self.rank = mpi_ops.rank()
        self.remaining_indices = self._order()[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def __iter__(self) -> Iterator[int]:
        indices = list(self.remaining_indices)
        while indices and len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
