"""What `import torch` loads of hvd-elastic, by the entry points of the wheel: the name "hvd" for a backend.

It stands outside of the package hvd_elastic, so that a program without a job does not load libhvd.
`torch.distributed.init_process_group("hvd")` loads the rest. With `HVD_BACKEND=hvd` in the environment of a worker
`import torch` joins the round: from then on RANK and WORLD_SIZE are there and exact, as a program for torchrun wants.
With `HVD_TORCH_ENV=1`, which `hvd-elastic --torch-env` sets, so are MASTER_ADDR and MASTER_PORT, and the program's own
backend is left alone.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any, Optional

NAME = "hvd"
TORCH_ENV = "HVD_TORCH_ENV"
ON_LOSS = "HVD_TORCH_ON_LOSS"

# A variable of torchrun -> a number of the place of the worker.
_PLACE = {
    "RANK": "rank",
    "WORLD_SIZE": "size",
    "LOCAL_RANK": "slot",
    "LOCAL_WORLD_SIZE": "local_size",
    "GROUP_RANK": "cross_rank",
}


def autoload() -> None:
    """The entry point of the group torch.backends: called at the end of `import torch`."""
    distributed: Any = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        return
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    original = c10d.init_process_group
    if hasattr(original, "hvd_original"):
        return
    if os.environ.get("HVD_BACKEND") == NAME or os.environ.get(TORCH_ENV):
        join()

    @functools.wraps(original)
    def init_process_group(backend: Optional[str] = None, *args: Any, **options: Any) -> None:
        if backend == NAME or os.environ.get("HVD_BACKEND"):
            _backend()._init_process_group(backend, *args, **options)
        else:
            try:
                original(backend, *args, **options)
            except ValueError as error:
                if "HVD_AGENT" not in os.environ or "environment variable" not in str(error):
                    raise
                raise ValueError(
                    f"{error}; this process runs under hvd-elastic, which sets no RANK; use the backend "
                    '"hvd", or start the job of an unmodified program with --env HVD_BACKEND=hvd or --torch-env'
                ) from error

    init_process_group.hvd_original = original  # type: ignore[attr-defined]
    c10d.init_process_group = init_process_group
    distributed.init_process_group = init_process_group


def register() -> None:
    """The entry point of the group torch.distributed.backends, which PyTorch 2.14 and later ask for a backend."""
    _backend().register()


def _backend() -> Any:
    return importlib.import_module("hvd_elastic.torch.backend")


def join() -> None:
    """Joins the round, for a program that knows nothing of it, and sets RANK, WORLD_SIZE and so on as torchrun does."""
    if "HVD_AGENT" not in os.environ:
        return
    error = importlib.import_module("hvd_elastic._error")
    session = importlib.import_module("hvd_elastic._session").session()
    session.init()
    if session.is_child:
        return
    try:
        session.enter()
    except (error.Left, error.Done):
        raise SystemExit(0) from None
    set_place(session)
    if os.environ.get("HVD_BACKEND") == NAME:
        shrink = importlib.import_module("hvd_elastic._torch_shrink").shrink()
        if shrink is not None:
            shrink.begin()
    if os.environ.get(TORCH_ENV) and os.environ.get("HVD_BACKEND") != NAME:
        importlib.import_module("hvd_elastic._torch_env").offer(session)


def set_place(session: Any) -> None:
    """Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and GROUP_RANK to the place of this worker in the round."""
    for name, place in _PLACE.items():
        os.environ[name] = str(session.place(place))
