"""`Sampler`: each sample of a data set exactly once in an epoch, through a DataLoader that fetches ahead.

A DataLoader asks its batch sampler for batches that are trained much later, or never if the round ends before. So the
sampler only looks ahead when it is asked; `State.batches` counts a batch as used when the loop gets it, and the next
commit keeps that count. After a round change the loader is iterated anew, from the count of the commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sized
from typing import Any, Optional, Union

import torch
from torch.utils import data as torch_data

from .. import _error, _lib
from .. import sampler as _sampler
from .._session import session


class _Turn:
    """One iteration over the loader: what has been fetched and not yet been taken."""

    __slots__ = ("fetched", "is_through", "round", "taken")

    def __init__(self, number: int) -> None:
        self.round = number
        self.fetched: deque[list[int]] = deque()
        self.taken = 0
        self.is_through = False


class Sampler(torch_data.Sampler[list[int]]):
    """A batch sampler, which gives the samples of each epoch in a new order to the ranks of the round.

        sampler = hvd_elastic.torch.Sampler(dataset, batch_size=64)
        loader = DataLoader(dataset, batch_sampler=sampler, num_workers=2)

    dataset: a data set with a length, or a number. batch_size: the samples of each rank, or with mode="global" those
    of all ranks together, so that a step stays the same when the membership changes. Its progress is an entry of the
    state, under this name: make it before the first collective. `State.batches(loader)` moves it.

    The last batch of an epoch may be smaller. A rank for which no sample is left gets one that another rank has, so
    that all ranks make equally many steps; its `weight` is 0 then.
    """

    def __init__(
        self, dataset: Union[Sized, int], batch_size: int, mode: str = "local", seed: int = 0, name: str = "sampler"
    ) -> None:
        samples = dataset if isinstance(dataset, int) else len(dataset)
        self._mode = mode
        self._seed = seed
        self._samples = _sampler.Sampler(samples, batch_size, mode, seed, name)
        self._turn: Optional[_Turn] = None
        self.weight = 1.0
        """For the loss of the present batch: with it DDP's average over ranks is the average over samples."""

    @property
    def epoch(self) -> int:
        """How many epochs are finished."""
        return self._samples.epoch

    def __len__(self) -> int:
        """How many batches an epoch has, with the ranks of now."""
        step = self._samples.batch * (1 if self._mode == "global" else session().place("size"))
        return -(-self._samples.samples // step)

    def __iter__(self) -> Iterator[list[int]]:
        last = self._turn
        if last is not None and last.is_through and last.fetched and not last.taken:
            raise _error.HvdError(
                "Sampler: the loader was iterated to its end, and no batch counts as used; "
                "iterate over state.batches(loader) instead",
                _lib.E_STATE,
            )
        turn = self._turn = _Turn(session().enter())
        return self._look(turn)

    def _look(self, turn: _Turn) -> Iterator[list[int]]:
        while True:
            self._check(turn)
            batch = self._samples.look(len(turn.fetched))
            if batch is None:
                turn.is_through = True
                return
            samples = list(batch)
            turn.fetched.append(samples)
            yield samples or [0]

    def _check(self, turn: _Turn) -> None:
        if turn is not self._turn or turn.round != session().round:
            raise _error.HvdError(
                f"Sampler: this iteration began in round {turn.round}, or another one has begun since; "
                "iterate over the loader anew in each round, once at a time",
                _lib.E_STATE,
            )

    def batches(self, loader: torch_data.DataLoader[Any]) -> Iterator[Any]:
        """The batches that are left of the epoch, each of which counts as used when it is given."""
        for batch in self.begun(loader):
            self.use()
            yield batch

    def use(self) -> None:
        """Counts the next batch that the loader has fetched as used."""
        turn = self._turn
        assert turn is not None
        self._check(turn)
        used = self._samples.take()
        fetched = turn.fetched.popleft()
        turn.taken += 1
        if used is None or list(used) != fetched:
            raise _error.HvdError(
                f"Sampler: the loader gave other samples ({fetched[:3]}...) than those of the present batch; "
                "let one loader at a time use a sampler",
                _lib.E_STATE,
            )
        self.weight = len(used) * session().place("size") / used.total

    def begun(self, loader: torch_data.DataLoader[Any]) -> Iterator[Any]:
        """An iterator of the loader. The seed that it draws is not taken from the generator of the training."""
        kept = loader.generator
        first = self._samples.look(0)
        if kept is None and first is not None:
            place = (self._seed * 1000003 + first.epoch) * 1000003 + first.first
            loader.generator = torch.Generator().manual_seed((place * 1000003 + session().place("rank")) % (1 << 63))
        try:
            return iter(loader)
        finally:
            loader.generator = kept

    def end_epoch(self) -> None:
        """After the last batch: the next epoch begins."""
        if self._samples.take() is not None:
            raise _error.HvdError(
                "Sampler: the loader ended before the epoch; let it take all batches of the sampler", _lib.E_STATE
            )


def sampler_of(loader: torch_data.DataLoader[Any]) -> Sampler:
    """The sampler of a loader, which must be one of these."""
    sampler = loader.batch_sampler
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"state.batches: the batch_sampler of the loader is a {type(sampler).__name__}; make the loader with "
            "DataLoader(dataset, batch_sampler=hvd_elastic.torch.Sampler(dataset, batch_size))"
        )
    return sampler
