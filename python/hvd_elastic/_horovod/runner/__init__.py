"""`horovod.run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def run(func: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls a function in several processes. Not there yet."""
    raise NotImplementedError(
        "horovod.run does not exist in hvd_elastic; put the function into a program and start it with "
        "hvd-elastic -np N python -m hvd_elastic.horovod PROGRAM.py"
    )
