"""States with a wrong name or value, each of which is an error in words. A job of one worker."""

from __future__ import annotations

from collections.abc import Callable

import hvd_elastic.torch as hvt
import torch


def expect(name: str, text: str, kind: type[BaseException], function: Callable[[], object]) -> None:
    """The function raises this kind of error, with this text."""
    try:
        function()
    except kind as error:
        print("ok" if text in str(error) else f"WRONG {error}", name)
    else:
        print("WRONG: no error", name)


class Scheduler:
    """Its state cannot be taken, and then not be given back."""

    error: Exception | None = KeyError("no state now")
    refuses = True

    def state_dict(self) -> dict[str, int]:
        if self.error is not None:
            raise self.error
        return {"at": 1}

    def load_state_dict(self, state: dict[str, int]) -> None:
        del state
        if self.refuses:
            raise ZeroDivisionError("no state taken")


def optimizer_of(*models: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for model in models for p in model.parameters()], lr=0.1)


one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
named = [*one.named_parameters(), *two.named_parameters()]
scheduler = Scheduler()
state = hvt.State(model=one, scheduler=scheduler, note="text")
expect(
    "two models",
    "has an entry 'model.weight' already; give this one another name",
    ValueError,
    lambda: hvt.State(model=two),
)
expect(
    "two models of an optimizer",
    "the names bias, weight stand for several parameters",
    ValueError,
    lambda: hvt.DistributedOptimizer(optimizer_of(one, two), named_parameters=named),
)
expect(
    "a model without names",
    "2 parameters of the optimizer have no name",
    ValueError,
    lambda: hvt.DistributedOptimizer(optimizer_of(one, two), named_parameters=one.named_parameters()),
)
expect("state_dict raises", "no state now", KeyError, state.commit)
scheduler.error = None
state.note = lambda: 0
expect("an attribute", "state.note (function) cannot be pickled", TypeError, state.commit)
state.note = "text"
state.commit()
expect("load_state_dict raises", "no state taken", ZeroDivisionError, state.restore)
scheduler.refuses = False
state.restore()
print("ok" if state.note == "text" else f"WRONG {state.note}", "restored")
expect("a method", "State(commit=...): commit is a method of the state", ValueError, lambda: hvt.State(commit=1))
