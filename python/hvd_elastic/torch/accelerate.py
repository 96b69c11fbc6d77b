# mypy: disable-error-code="import-not-found,misc"
"""Hugging Face Accelerate: an Accelerator for each round.

    @hvd_elastic.run
    def train(state):
        accelerator = hvd_elastic.torch.accelerate.accelerator(mixed_precision="bf16")
        ddp, stepper = accelerator.prepare(model, optimizer)
        for x, y in state.batches(loader): ...

An Accelerator keeps rank and size in objects of the process, which this function forgets when a round begins. Model
and optimizer are those of the State, which is made before; the loader is not prepared, as `state.batches` deals it.
"""

from __future__ import annotations

from typing import Any

import accelerate
import accelerate.state
import torch
import torch.distributed as dist
from hvd_elastic_autoload import NAME, set_place

from .._session import session
from . import backend as _backend  # noqa: F401 (registers the backend)


def accelerator(**options: Any) -> accelerate.Accelerator:
    """Returns the Accelerator of this round; call it in the function that `hvd_elastic.run` wraps.

    options: those of accelerate.Accelerator.
    """
    session().enter()
    set_place(session())  # Accelerate reads these variables
    if not dist.is_initialized():
        dist.init_process_group(NAME)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()
    options.setdefault("cpu", not torch.cuda.is_available())
    return accelerate.Accelerator(**options)
