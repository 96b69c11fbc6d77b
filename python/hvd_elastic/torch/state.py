"""`State`: models, optimizers and tensors as the state of a training.

Tensors are registered where they are, once each, so a commit copies memory and pickles almost nothing. A tensor that
has moved since (an optimizer's `load_state_dict`, `.to()`) is put back into the registered memory before a commit. A
tensor without registered memory, as it came later or has another shape now, is *loose*: it is pickled.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import torch
from torch.utils.data import DataLoader

from .. import _calls, _error, _state
from . import data as _data
from . import rng as _rng
from ._core import Tensor
from .optimizer import _Distributed

Get = Callable[[], Any]
Put = Callable[[Tensor], None]

# A torch type -> the library's type of an entry; tensors of other types are entries of bytes.
_TYPES = {
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}

# Optimizers whose state, if all of it is zero, is the state before the first step.
_ZERO_IS_FRESH = (
    torch.optim.Adadelta,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.SGD,
)


class _Slot:
    """A place that holds a tensor: a parameter of a module, or a value of an optimizer's state."""

    __slots__ = ("get", "home", "name", "put")

    def __init__(self, name: str, get: Get, put: Put) -> None:
        self.name = name
        self.get = get
        self.put = put
        self.home: Optional[Tensor] = None  # the registered memory

    def _fits(self, tensor: Tensor) -> bool:
        home = self.home
        return (
            home is not None
            and tensor.shape == home.shape
            and tensor.dtype == home.dtype
            and tensor.device == home.device
        )

    def settle(self) -> Optional[Tensor]:
        """Called before a commit. If the tensor has moved, copies its values into the registered memory, and lets
        the module use that memory again. Returns a loose tensor; None: the tensor is not loose.
        """
        now = self.get()
        if not isinstance(now, torch.Tensor):
            return None
        if not self._fits(now):
            return now.detach()
        assert self.home is not None
        if now.data_ptr() != self.home.data_ptr():
            self.home.copy_(now.detach())
            self.put(self.home)
        return None

    def adopt(self) -> None:
        """After a restore: the registered memory has the values, wherever the tensor is now."""
        now = self.get()
        if self.home is not None and (not isinstance(now, torch.Tensor) or now.data_ptr() != self.home.data_ptr()):
            self.put(self.home)


def _module_slots(name: str, module: torch.nn.Module) -> Iterator[_Slot]:
    for path, part in module.named_modules():
        prefix = f"{name}.{path}." if path else f"{name}."
        for table in (part._parameters, part._buffers):
            for key in table:
                yield _Slot(prefix + key, *_in_table(table, key))


def _in_table(table: dict[str, Any], key: str) -> tuple[Get, Put]:
    def put(tensor: Tensor) -> None:
        if isinstance(table.get(key), torch.Tensor):
            table[key].data = tensor
        else:
            table[key] = tensor

    return lambda: table.get(key), put


def _params_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _optimizer_slots(name: str, optimizer: torch.optim.Optimizer) -> Iterator[_Slot]:
    for number, param in enumerate(_params_of(optimizer)):
        for key, value in optimizer.state.get(param, {}).items():
            if isinstance(value, torch.Tensor):
                yield _Slot(f"{name}.state.{number}.{key}", *_in_optimizer(optimizer, number, key))


def _in_optimizer(optimizer: torch.optim.Optimizer, number: int, key: str) -> tuple[Get, Put]:
    def get() -> Any:
        return optimizer.state.get(_params_of(optimizer)[number], {}).get(key)

    def put(tensor: Tensor) -> None:
        optimizer.state[_params_of(optimizer)[number]][key] = tensor

    return get, put


def _is_dense(tensor: Tensor) -> bool:
    """Whether the tensor's elements lie in one piece of memory, in any order of its dimensions."""
    return tensor.layout == torch.strided and (
        tensor.is_contiguous() or bool(torch.ops.aten.is_non_overlapping_and_dense(tensor))
    )


# ---- optimizers ----


def _class_of(optimizer: torch.optim.Optimizer) -> type[torch.optim.Optimizer]:
    """The class of the optimizer, without what DistributedOptimizer has added."""
    kind = type(optimizer)
    return kind.__bases__[1] if issubclass(kind, _Distributed) else kind


def _has_known_state(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the state of a fresh optimizer is known: all of it is zero."""
    return _class_of(optimizer) in _ZERO_IS_FRESH and not any(g.get("dampening") for g in optimizer.param_groups)


@contextlib.contextmanager
def _without_effect(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Within it a step has length 0, gradients of 0, and no hooks."""
    params = [param for param in _params_of(optimizer) if param.requires_grad]
    grads = [param.grad for param in params]
    rates = [group["lr"] for group in optimizer.param_groups]
    hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    optimizer._optimizer_step_pre_hooks = OrderedDict()
    optimizer._optimizer_step_post_hooks = OrderedDict()
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for param in params:
        param.grad = torch.zeros_like(param)
    try:
        yield
    finally:
        for param, grad in zip(params, grads):
            param.grad = grad
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate
        optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks = hooks


def make_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Makes the tensors that the optimizer would make in its first step, without changing a parameter."""
    with _without_effect(optimizer):
        _class_of(optimizer).step(optimizer)
    for values in optimizer.state.values():
        for value in values.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def _options_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def _load_options(optimizer: torch.optim.Optimizer, options: list[dict[str, Any]]) -> None:
    for group, loaded in zip(optimizer.param_groups, options):
        group.update(loaded)


# ---- the state ----

_count = 0


class State(_state.State):
    """The training state: each keyword is an attribute, and an entry of that name.

    Modules and tensors are registered where they are, and so is the state of an optimizer, which is made first if there
    is none. Objects with `state_dict` and `load_state_dict` (learning rate schedulers, GradScaler) are kept by these.
    All other values are pickled. The random generators of each rank belong to the state; `rng=False` leaves them out.

        state = hvd_elastic.torch.State(model=model, optimizer=optimizer, epoch=0)

    Make it before the first collective, and wrap the model in DistributedDataParallel afterwards.
    """

    def __init__(self, *, rng: bool = True, **entries: Any) -> None:
        own = self.__dict__
        own["_slots"] = {}
        own["_memory"] = set()  # (address, bytes) of what is registered
        own["_modules"] = []
        own["_optimizers"] = {}
        own["_loose"] = {}
        super().__init__(**entries)
        global _count
        _count += 1  # of states, which are made in the same order by all workers
        own["_entries"].add_object(f"torch.loose.{_count}", lambda: own["_loose"], self._load_loose)
        if rng:
            own["_entries"].add_object(f"torch.rng.{_count}", _rng.get, _rng.put, per_rank=True)

    def _add(self, name: str, value: Any) -> None:
        own = self.__dict__
        entries: _state.Entries = own["_entries"]
        if isinstance(value, torch.nn.parallel.DistributedDataParallel):
            value = value.module
        own[name] = value
        if isinstance(value, torch.nn.Module):
            own["_modules"].append(value)
            self._register(_module_slots(name, value))
        elif isinstance(value, torch.optim.Optimizer):
            self._add_optimizer(name, value)
        elif isinstance(value, torch.Tensor):
            self._register([_Slot(name, lambda: own[name], lambda tensor: own.__setitem__(name, tensor))])
        elif hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            entries.add_object(name, value.state_dict, value.load_state_dict)
        else:
            super()._add(name, value)

    def _add_optimizer(self, name: str, optimizer: torch.optim.Optimizer) -> None:
        own = self.__dict__
        entries: _state.Entries = own["_entries"]
        if not _has_known_state(optimizer):
            entries.add_object(name, optimizer.state_dict, optimizer.load_state_dict)
            return
        if not optimizer.state:
            make_optimizer_state(optimizer)
        own["_optimizers"][name] = optimizer
        self._register(_optimizer_slots(name, optimizer))
        entries.add_object(
            f"{name}.options", lambda: _options_of(optimizer), lambda options: _load_options(optimizer, options)
        )

    def _register(self, slots: Iterable[_Slot]) -> None:
        """Registers the tensors' memory, each once, unless the first round has begun."""
        own = self.__dict__
        entries: _state.Entries = own["_entries"]
        for slot in slots:
            tensor = slot.get()
            own["_slots"][slot.name] = slot
            if not isinstance(tensor, torch.Tensor) or entries.sealed or not _is_dense(tensor):
                continue
            home = slot.home = tensor.detach()
            place = (home.data_ptr(), home.numel() * home.element_size())
            if place in own["_memory"] and place[1]:
                continue  # of tied weights
            own["_memory"].add(place)
            if home.dtype in _TYPES:
                dtype = _calls.DTYPE[_TYPES[home.dtype]]
                entries.add_array(slot.name, place[0], home.numel(), dtype, keep=home)
            else:
                entries.add_bytes(slot.name, *place, keep=home)

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if isinstance(value, torch.nn.parallel.DistributedDataParallel):
            value = value.module
        if value is old:
            return
        if isinstance(old, torch.Tensor) and isinstance(value, torch.Tensor) and old.shape == value.shape:
            with torch.no_grad():
                old.copy_(value)
        elif isinstance(old, (torch.nn.Module, torch.optim.Optimizer)):
            old.load_state_dict(value.state_dict())
        else:
            super().__setattr__(name, value)

    # ---- tensors that move, and loose ones ----

    def _settle(self) -> None:
        """Before a commit: puts back what has moved, and notes what is loose."""
        own = self.__dict__
        for name, optimizer in own["_optimizers"].items():
            count = sum(len(values) for values in optimizer.state.values())
            if own.setdefault(f"_count.{name}", count) != count:  # a group of parameters has been added
                own[f"_count.{name}"] = count
                for slot in _optimizer_slots(name, optimizer):
                    own["_slots"].setdefault(slot.name, slot)
        loose = {}
        with torch.no_grad():
            for slot in own["_slots"].values():
                tensor = slot.settle()
                if tensor is not None:
                    loose[slot.name] = tensor
        self._warn_of(sorted(loose.keys() - own["_loose"].keys()))
        own["_loose"] = loose

    def _warn_of(self, names: list[str]) -> None:
        if names and not self.__dict__["_loose"]:
            warnings.warn(
                f"state: {', '.join(names[:3])}{' and others' if len(names) > 3 else ''} came after the first round or "
                "changed shape, or a collective (DistributedDataParallel(model) is one) was made before State, so each "
                "commit pickles it; make such tensors before State, State before the first collective, and DDP in the "
                "function that hvd_elastic.run calls",
                stacklevel=4,
            )

    def _load_loose(self, loose: dict[str, Tensor]) -> None:
        own = self.__dict__
        own["_loose"] = loose
        for name, tensor in loose.items():
            slot = own["_slots"].get(name) or self._slot_to_come(name)
            if slot is None:
                continue
            now = slot.get()
            if isinstance(now, torch.Tensor) and now.shape == tensor.shape and now.dtype == tensor.dtype:
                with torch.no_grad():
                    now.copy_(tensor)
            else:
                slot.put(tensor.clone())

    def _slot_to_come(self, name: str) -> Optional[_Slot]:
        """The place of a tensor that other workers have in their optimizer's state already."""
        for prefix, optimizer in self.__dict__["_optimizers"].items():
            number, _, key = name[len(prefix) + len(".state.") :].partition(".")
            if name.startswith(f"{prefix}.state.") and int(number) < len(_params_of(optimizer)):
                return _Slot(name, *_in_optimizer(optimizer, int(number), key))
        return None

    def _adopt(self) -> None:
        """After a restore: the objects refer to the memory that was restored."""
        own = self.__dict__
        for slot in own["_slots"].values():
            if slot.name not in own["_loose"]:
                slot.adopt()

    # ---- commits ----

    def on_reset(self) -> None:
        """Called at the beginning of each round, when the state is loaded. Old gradients are forgotten."""
        self.__dict__["_entries"].load_rank()
        self._adopt()
        for module in self.__dict__["_modules"]:
            for param in module.parameters():
                param.grad = None
        super().on_reset()

    def commit(self) -> None:
        """Makes the present state the newest commit, and checks for news.

        A death costs the steps since the last commit. All ranks make equally many commits and checks.
        """
        self._settle()
        super().commit()

    def batches(self, loader: DataLoader[Any], commit_every: int = 1) -> Iterator[Any]:
        """The batches that are left of the sampler's epoch, from a DataLoader over an `hvd_elastic.torch.Sampler`.

        When the loop asks for the next batch, the last one is trained: after each `commit_every` of them, and at the
        end of the epoch, it makes a commit. 0: the program itself commits. A batch that was fetched and not committed
        comes again, so prefetching workers lose and repeat nothing.

            while sampler.epoch < epochs:
                for x, y in state.batches(loader): ...
        """
        sampler = _data.sampler_of(loader)
        entries: _state.Entries = self.__dict__["_entries"]
        asked = entries.asked
        trained = 0
        for batch in sampler.batches(loader):
            yield batch
            trained += 1
            if commit_every and trained % commit_every == 0:
                self.commit()
        if commit_every and trained % commit_every:
            self.commit()
        if trained and entries.asked == asked:
            warnings.warn(
                f"state.batches: {trained} batches were trained with commit_every=0 and without state.commit() or "
                "state.check(): a death loses all of them, and no worker can join before the next commit; call "
                "state.commit() in the loop, or leave out commit_every=0",
                stacklevel=2,
            )
        sampler.end_epoch()

    def check(self) -> None:
        """Checks for news without a commit: raises HostsUpdated, Revoked, Left or Done when there is some."""
        try:
            super().check()
        except _error.HostsUpdated:
            self._settle()  # this is the state with which the next round begins
            self.__dict__["_entries"].save_rank()
            raise

    def restore(self) -> None:
        """Goes back to the last commit, on this rank only. After a death that happens by itself."""
        super().restore()
        self._adopt()

    def save(self, folder: str) -> None:
        """Writes the state to a folder (docs/checkpoints.md). In a job one rank saves."""
        self._settle()
        super().save(folder)

    def load(self, folder: str) -> bool:
        """Reads the state from a folder; False: there is none yet. All ranks load the same."""
        found = super().load(folder)
        self._adopt()
        return found
