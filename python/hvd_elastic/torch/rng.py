"""The random generators of a rank: they belong to its state, so that a repeated step draws the same numbers.

A worker that has died within a commit is replaced by one whose generators are one commit older than the rest.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


def get() -> dict[str, Any]:
    """The state of each generator of this process: torch's, Python's and, if the program uses numpy, numpy's."""
    state: dict[str, Any] = {"torch": torch.get_rng_state().numpy().tobytes(), "python": random.getstate()}
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
    return state


def put(state: dict[str, Any]) -> None:
    """Takes a state that `get` has returned."""
    torch.set_rng_state(_tensor(state["torch"]))
    random.setstate(state["python"])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(state["numpy"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(_tensor(state["cuda"]))


def _tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
