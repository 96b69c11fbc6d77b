"""The decorator run: calls a training function again after each change of the membership."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from . import _error, _lib
from ._session import session


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a training function elastic.

    The function reads everything from the state and goes on from there, as it is called once in each round. It is
    called again when a call in it has raised Revoked or HostsUpdated; let these exceptions out. A worker that was
    asked to leave ends here with exit code 0.

        @hvd_elastic.run
        def train(state): ...
        train(state)

    When the function has returned, the round stays open until the program ends, so that it may still make
    collectives.
    """

    @functools.wraps(func)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        here = session()
        here.has_function = True
        here.trained = False
        while True:
            try:
                here.enter()
                result = func(*arguments, **keywords)
                here.trained = True
                return result
            except (_error.Left, _error.Done) as over:
                _flush()
                here.leave(over.code)
                raise SystemExit(0) from None
            except _error.RoundOver as over:
                here.leave(over.code)
            except BaseException as error:
                if not here.is_of_round(error):
                    code = error.code if isinstance(error, _error.HvdError) else _lib.E_EXCEPTION
                    here.leave(code, _error.words(error))
                    raise
                here.leave(_lib.E_REVOKED)

    return wrapper


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
