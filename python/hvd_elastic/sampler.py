"""Samples, each exactly once in an epoch, however often the membership changes."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator
from typing import Optional

from . import _error, _lib
from ._session import session


class Batch:
    """This rank's part of a batch."""

    __slots__ = ("epoch", "first", "samples", "total")

    def __init__(self, batch: _lib.Batch) -> None:
        self.epoch = int(batch.epoch)
        self.first = int(batch.first)  # the index of the batch's first sample in its epoch
        self.total = int(batch.total)  # samples of all ranks: divide a sum of gradients by it
        size = batch.count * ctypes.sizeof(ctypes.c_uint64)
        self.samples = array("Q", ctypes.string_at(batch.samples, size) if size else b"")

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[int]:
        return iter(self.samples)


class Sampler:
    """Distributes the numbers 0 to samples - 1 over the ranks, newly shuffled in each epoch.

    Its progress is an entry of the state, so make it before the first round. A turn of a loop over it is a batch; the
    loop ends with the epoch:

        sampler = hvd_elastic.Sampler(len(data), batch=64)
        while sampler.epoch < 10:
            for batch in sampler: ...

    mode "global": ``batch`` is the number of samples of all ranks together, and a step stays the same when the
    membership changes. "local": of each rank. With HVD_SAMPLE_LOG=DIR each batch is logged, and hvd-audit proves that
    no sample was lost or used twice.
    """

    def __init__(self, samples: int, batch: int, mode: str = "global", seed: int = 0, name: str = "sampler") -> None:
        modes = {"global": _lib.BATCH_GLOBAL, "local": _lib.BATCH_LOCAL}
        if mode not in modes:
            raise ValueError(f"Sampler: there is no mode {mode!r}; pass 'global' or 'local'")
        self.samples = samples
        self.batch = batch
        self._here = session()
        early = self._here.joined_early()
        if early:
            raise _error.HvdError(f"Sampler: {name!r} {early}", _lib.E_STATE)
        pointer = ctypes.c_void_p()
        make = _lib.lib.hvd_sampler_create
        self._entries = self._here.state
        state = self._entries.pointer
        _error.check(make(state, name.encode(), samples, batch, modes[mode], seed, ctypes.byref(pointer)))
        self.pointer = pointer.value

    @property
    def epoch(self) -> int:
        """How many epochs are finished."""
        self._check()
        return int(_lib.lib.hvd_sampler_epoch(self.pointer))

    def _check(self) -> None:
        """Raises if the sampler is of a training that has ended, as the library has none then."""
        assert self._entries.pointer is not None

    def __iter__(self) -> Iterator[Batch]:
        while (batch := self.take()) is not None:
            yield batch

    def take(self) -> Optional[Batch]:
        """Returns the next batch, which counts as used from the next commit on. None: the epoch has ended."""
        batch = _lib.Batch()
        self._check()
        self._here.enter()
        if self._here.ask(_lib.lib.hvd_sampler_next, self.pointer, ctypes.byref(batch)) == _lib.EPOCH_END:
            return None
        return Batch(batch)

    def look(self, ahead: int) -> Optional[Batch]:
        """Returns the batch that take() will return after ``ahead`` more, if the membership stays as it is.

        Nothing counts as used, so a loader may fetch it. None: the epoch has no such batch.
        """
        if not _lib.has("hvd_sampler_at"):
            raise _error.error_of(_lib.E_UNSUPPORTED, "this libhvd has no hvd_sampler_at; install a newer one")
        self._check()
        self._here.enter()
        room = (ctypes.c_uint64 * self.batch)()
        batch = _lib.Batch()
        code = _lib.lib.hvd_sampler_at(self.pointer, ahead, room, self.batch, ctypes.byref(batch))
        if code == _lib.EPOCH_END:
            return None
        _error.check(code)
        batch.samples = ctypes.cast(room, ctypes.POINTER(ctypes.c_uint64))
        return Batch(batch)
