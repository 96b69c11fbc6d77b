# mypy: disable-error-code="import-not-found,misc,no-any-return"
"""Lightning: a Trainer in each round, which goes on where the last one has stopped.

    module = Module()
    sampler = hvd_elastic.torch.Sampler(dataset, batch_size=32)
    state = hvd_elastic.torch.lightning.State(module)

    @hvd_elastic.run
    def train(state):
        elastic = hvd_elastic.torch.lightning.Elastic(state, DataLoader(dataset, batch_sampler=sampler))
        trainer = Trainer(strategy=Strategy(), callbacks=[elastic], max_epochs=10, use_distributed_sampler=False)
        trainer.fit(module, elastic.loader)

A batch and its commit are one step: what a death takes is the batch that was in work. The last batch of an epoch is
committed with the epoch's end, when the schedulers have made their step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from hvd_elastic_autoload import NAME
from pytorch_lightning.plugins.environments import ClusterEnvironment
from pytorch_lightning.strategies import DDPStrategy
from torch.utils.data import DataLoader

from .._session import session
from . import backend as _backend  # noqa: F401 (registers the backend)
from . import data as _data
from . import state as _state


class HvdEnvironment(ClusterEnvironment):
    """The place of this worker, for Lightning."""

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return os.environ.get("HOROVOD_HOSTNAME", "localhost")

    @property
    def main_port(self) -> int:
        return 0  # the backend hvd needs none

    @staticmethod
    def detect() -> bool:
        return "HVD_AGENT" in os.environ

    def world_size(self) -> int:
        return self._place("size")

    def set_world_size(self, size: int) -> None:
        """The round says what the size is."""

    def global_rank(self) -> int:
        return self._place("rank")

    def set_global_rank(self, rank: int) -> None:
        """The round says what the rank is."""

    def local_rank(self) -> int:
        return self._place("slot")

    def node_rank(self) -> int:
        return self._place("cross_rank")

    def _place(self, name: str) -> int:
        session().init()
        return session().place(name)


class Strategy(DDPStrategy):
    """DistributedDataParallel over the backend hvd. The ranks are those of the round, whatever `devices` says."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("cluster_environment", HvdEnvironment())
        options.setdefault("init_sync", False)
        super().__init__(process_group_backend=NAME, **options)

    @property
    def root_device(self) -> torch.device:
        first = self.parallel_devices[0] if self.parallel_devices else torch.device("cpu")
        return first if first.type == "cpu" else torch.device(first.type, self.local_rank)

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        return {"num_replicas": self.world_size, "rank": self.global_rank}

    def _configure_launcher(self) -> None:
        """The processes are there."""

    def setup_distributed(self) -> None:
        """Joins the round. The random generators are those of the State."""
        session().enter()
        self.set_world_ranks()
        if not dist.is_initialized():
            dist.init_process_group(NAME)


def _parts(configured: Any) -> Iterator[Any]:
    """The optimizers and schedulers in what configure_optimizers has returned."""
    if isinstance(configured, dict):
        configured = list(configured.values())
    if isinstance(configured, (list, tuple)):
        for part in configured:
            yield from _parts(part)
    elif hasattr(configured, "state_dict") and hasattr(configured, "step"):
        yield configured


class State(_state.State):
    """The state of a LightningModule: its parameters, its optimizers and schedulers, and how far the training is.

    The optimizers are made now, by `module.configure_optimizers()`, and kept: each Trainer gets the same. Further
    keywords are entries, as those of hvd_elastic.torch.State.
    """

    steps: int

    def __init__(self, module: pl.LightningModule, **entries: Any) -> None:
        configured = module.configure_optimizers()
        made = list(_parts(configured))
        optimizers = [part for part in made if isinstance(part, torch.optim.Optimizer)]
        if not optimizers:
            raise TypeError("State: module.configure_optimizers() has returned no optimizer; return one or several")
        module.configure_optimizers = lambda: configured
        entries |= {f"optimizer{number}": part for number, part in enumerate(optimizers)}
        others = [part for part in made if not isinstance(part, torch.optim.Optimizer)]
        entries |= {f"scheduler{number}": part for number, part in enumerate(others)}
        super().__init__(module=module, steps=0, **entries)


class _Batches:
    """The batches that are left of an epoch. It has no length, which differs from round to round.

    Lightning begins an iteration, fetches a batch and may begin another one. While no batch is in use, a new iteration
    repeats what the last one gave.
    """

    def __init__(self, sampler: _data.Sampler, loader: DataLoader[Any]) -> None:
        self._sampler = sampler
        self._loader = loader
        self._running: Iterator[Any] | None = None
        self._given: list[Any] = []
        self.used = 0

    def __iter__(self) -> Iterator[Any]:
        if self._running is None or self.used:
            self._running, self._given, self.used = self._sampler.begun(self._loader), [], 0
        yield from list(self._given)
        for batch in self._running:
            if not self.used:
                self._given.append(batch)
            yield batch

    def use(self) -> None:
        """The next batch that was given is in use."""
        self._sampler.use()
        self.used += 1
        self._given = []


class Elastic(pl.Callback):
    """The callback that makes a Trainer go on in the next round.

    loader: a DataLoader whose batch_sampler is an hvd_elastic.torch.Sampler; `elastic.loader` is for Trainer.fit. A
    part of an epoch is an epoch for the Trainer: it calls on_train_epoch_start again, and counts batches from 0.
    """

    def __init__(self, state: State, loader: DataLoader[Any]) -> None:
        self._state = state
        self._sampler = _data.sampler_of(loader)
        self.loader = _Batches(self._sampler, loader)
        self._owed = False  # a commit, for the last batch of an epoch

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The counters of the new Trainer are those of the last commit."""
        fit = trainer.fit_loop
        for count in (fit.epoch_progress.current, fit.epoch_progress.total):
            count.ready = count.started = count.processed = count.completed = self._sampler.epoch
        steps = fit.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total
        by_hand = fit.epoch_loop.manual_optimization.optim_step_progress.total
        steps.ready = steps.completed = by_hand.ready = by_hand.completed = self._state.steps
        fit.epoch_loop._batches_that_stepped = self._state.steps

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._pay()

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self.loader.use()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self._state.steps = trainer.global_step
        self._owed = True
        if not trainer.is_last_batch:
            self._pay()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._sampler.end_epoch()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._pay()

    def _pay(self) -> None:
        if self._owed:
            self._owed = False
            self._state.commit()
