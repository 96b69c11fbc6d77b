"""The elastic state of PyTorch trainings."""

from __future__ import annotations

import copy
from typing import Any, Optional

import torch

from ...._session import session
from ....torch.state import State as _Tensors
from ...common.elastic import ObjectState
from .. import functions, mpi_ops
from .sampler import ElasticSampler


class StateHandler:
    """How one kind of object is saved. Programs may add kinds with set_handler_registry."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        self.value = value
        self.save()


class ModelStateHandler(StateHandler):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model)
        self._saved = copy.deepcopy(model.state_dict())

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(self._saved)

    def sync(self) -> None:
        functions.broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(StateHandler):
    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(optimizer)
        self._saved = copy.deepcopy(optimizer.state_dict())

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(self._saved)

    def sync(self) -> None:
        functions.broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(StateHandler):
    def __init__(self, sampler: ElasticSampler) -> None:
        super().__init__(sampler)
        self._saved = sampler.state_dict()

    def save(self) -> None:
        self._saved = self.value.state_dict()

    def restore(self) -> None:
        self.value.load_state_dict(self._saved)

    def sync(self) -> None:
        """The samples that any rank has processed are processed."""
        told = functions.allgather_object((self.value.epoch, self.value.processed_num, self.value.num_replicas))
        epoch = told[0][0]
        self.value.load_state_dict({"epoch": epoch, "processed_num": max(done for _, done, _ in told)})
        self.save()


_registry: list[tuple[type, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[type, type[StateHandler]]]:
    return _registry


def set_handler_registry(registry: list[tuple[type, type[StateHandler]]]) -> None:
    global _registry
    _registry = registry


def _handler_of(value: Any) -> Optional[StateHandler]:
    for kind, handler in _registry:
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """A model, an optimizer, and further objects, each an attribute.

    A commit keeps tensors where they are, and pickles the other objects.
    """

    _handlers: dict[str, StateHandler]
    _tensors: _Tensors

    def __init__(
        self,
        model: Optional[torch.nn.Module] = None,
        optimizer: Optional[torch.optim.Optimizer] = None,
        **kwargs: Any,
    ) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        handlers = {name: _handler_of(value) for name, value in kwargs.items()}
        own = self.__dict__
        own["_handlers"] = {name: handler for name, handler in handlers.items() if handler is not None}
        plain = {name: value for name, value in kwargs.items() if handlers[name] is None}
        super().__init__(functions.broadcast_object, mpi_ops.rank, **plain)
        own["_tensors"] = _Tensors(rng=False)
        for name, handler in own["_handlers"].items():
            own[name] = handler.value
            own["_tensors"]._add(self._prefix + name, handler.value)

    def __setattr__(self, name: str, value: Any) -> None:
        handlers = self.__dict__["_handlers"]
        if name in handlers and self.__dict__.get(name) is not value:
            handlers[name].set_value(value)
            setattr(self.__dict__["_tensors"], self._prefix + name, value)
        object.__setattr__(self, name, value)

    def save(self) -> None:
        """Notes the present values; the library copies tensors in commit()."""
        super().save()
        if type(self).commit is not TorchState.commit or not session().inside:
            for handler in self._handlers.values():
                handler.save()

    def commit(self) -> None:
        """Makes the present state the newest commit, and raises HostsUpdatedInterrupt if the membership changes."""
        super().save()
        self._committed = True
        self._tensors.commit()

    def check_host_updates(self) -> None:
        self._tensors.check()

    def restore(self) -> None:
        if self._committed:
            self._tensors.restore()
        else:
            for handler in self._handlers.values():
                handler.restore()
        for name, value in self._saved_state.items():
            object.__setattr__(self, name, value)

    def sync(self) -> None:
        """Gives all ranks the state of rank 0."""
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def reset(self) -> None:
        for handler in self._handlers.values():
            if isinstance(handler, SamplerStateHandler):
                handler.value.reset()
