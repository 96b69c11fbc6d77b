"""Collectives from raw buffers: addresses, counts and types.

A call takes what ``struct hvd_call`` takes. The first call joins a round. Whatever the call reads or writes must
stay where it is until the call is through; ``keep`` holds it until then.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _error, _interrupt, _lib
from ._session import session

DTYPE = {
    "uint8": _lib.UINT8,
    "int8": _lib.INT8,
    "int16": _lib.INT16,
    "uint16": _lib.UINT16,
    "uint32": _lib.UINT32,
    "uint64": _lib.UINT64,
    "bool": _lib.BOOL,
    "int32": _lib.INT32,
    "int64": _lib.INT64,
    "float16": _lib.FLOAT16,
    "bfloat16": _lib.BFLOAT16,
    "float32": _lib.FLOAT32,
    "float64": _lib.FLOAT64,
}
OP = {"sum": _lib.SUM, "average": _lib.AVERAGE, "min": _lib.MIN, "max": _lib.MAX, "product": _lib.PRODUCT}
OP |= {"and": _lib.AND, "or": _lib.OR, "xor": _lib.XOR}
KIND = {
    "allreduce": _lib.ALLREDUCE,
    "broadcast": _lib.BROADCAST,
    "allgather": _lib.ALLGATHER,
    "reducescatter": _lib.REDUCESCATTER,
    "alltoall": _lib.ALLTOALL,
    "barrier": _lib.BARRIER,
    "join": _lib.JOIN,
    "allgather_ragged": _lib.ALLGATHER_RAGGED,
    "alltoall_ragged": _lib.ALLTOALL_RAGGED,
    "reduce": _lib.REDUCE,
    "gather": _lib.GATHER,
    "scatter": _lib.SCATTER,
    "send": _lib.SEND,
    "recv": _lib.RECV,
}

Pieces = Union[Sequence[tuple[int, int, int]], "ctypes.Array[_lib.Piece]"]

_lock = threading.Lock()  # the library takes one call at a time
_started: dict[int, Request] = {}  # keeps what the started calls use


def pieces_of(items: Sequence[tuple[int, int, int]]) -> ctypes.Array[_lib.Piece]:
    """Makes the array of pieces for one call of (address of the input, address of the output, count)."""
    return (_lib.Piece * len(items))(*(_lib.Piece(*item) for item in items))


def _counts(counts: Optional[Sequence[int]]) -> Any:
    return None if counts is None else (ctypes.c_size_t * len(counts))(*counts)


def _call_of(
    kind: int,
    addr_in: int,
    addr_out: int,
    count: int,
    dtype: int,
    op: int,
    root: int,
    group: Optional[int],
    counts: Optional[Sequence[int]],
    out_counts: Optional[Sequence[int]],
    prescale: float,
    postscale: float,
    pieces: Optional[Pieces],
    tag: int,
) -> _lib.Call:
    call = _lib.Call()
    call.kind = kind
    call.group = group
    call.type = dtype
    call.op = op
    call.prescale = prescale
    call.postscale = postscale
    call.root = root
    call.in_ = addr_in or None
    call.out = addr_out or None
    call.count = count
    if counts is not None:
        call.counts = _counts(counts)
    if out_counts is not None:
        call.out_counts = _counts(out_counts)
    if pieces is not None:
        array = pieces if isinstance(pieces, ctypes.Array) else pieces_of(pieces)
        call.pieces = array
        call.piece_count = len(array)
    call.tag = tag
    return call


def submit(call: _lib.Call) -> None:
    """Makes the call and waits for its result."""
    here = session()
    if not here.inside:
        here.enter()
    with _lock:
        code = _interrupt.blocking(_lib.lib.hvd_run, ctypes.byref(call))
    if code:
        here.failed(code)
        _error.check(code)


def run(
    kind: int,
    addr_in: int = 0,
    addr_out: int = 0,
    count: int = 0,
    dtype: int = _lib.UINT8,
    *,
    op: int = _lib.SUM,
    root: int = 0,
    group: Optional[int] = None,
    counts: Optional[Sequence[int]] = None,
    out_counts: Optional[Sequence[int]] = None,
    prescale: float = 0.0,
    postscale: float = 0.0,
    pieces: Optional[Pieces] = None,
    tag: int = 0,
) -> None:
    """Makes a collective and waits for its result. ``group`` is the address of a hvd_group."""
    submit(
        _call_of(
            kind, addr_in, addr_out, count, dtype, op, root, group, counts, out_counts, prescale, postscale, pieces, tag
        )
    )


class Request:
    """A started call. Wait for it once; then the buffers are the program's again."""

    def __init__(self, handle: int, call: _lib.Call, keep: Any) -> None:
        self._handle: Optional[int] = handle
        self._call = call
        self._keep = keep
        self._done = False
        _started[handle] = self

    def done(self) -> bool:
        """Tells whether wait() would return at once."""
        if self._done or self._handle is None:
            return True
        ready = ctypes.c_int(0)
        _error.check(_lib.lib.hvd_test(self._handle, ctypes.byref(ready)))
        self._done = bool(ready.value)
        return self._done

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits for the result. After ``timeout`` seconds raises TimedOut, and the request stays.

        A second wait returns at once.
        """
        if self._handle is None:
            return
        if timeout is not None:
            self._await(timeout)
        handle, self._handle = self._handle, None
        code = _interrupt.blocking(_lib.lib.hvd_wait, handle)
        _started.pop(handle, None)
        self._keep = None
        if code:
            session().failed(code)
            _error.check(code)

    def _await(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        nap = 1e-5
        while not self.done():
            if time.monotonic() >= until:
                raise _error.error_of(
                    _lib.E_TIMEOUT, f"the collective is not through after {timeout:g} s; wait for the request again"
                )
            time.sleep(nap)
            nap = min(nap * 2, 0.02)


def start(
    kind: int,
    addr_in: int = 0,
    addr_out: int = 0,
    count: int = 0,
    dtype: int = _lib.UINT8,
    *,
    op: int = _lib.SUM,
    root: int = 0,
    group: Optional[int] = None,
    counts: Optional[Sequence[int]] = None,
    out_counts: Optional[Sequence[int]] = None,
    prescale: float = 0.0,
    postscale: float = 0.0,
    pieces: Optional[Pieces] = None,
    tag: int = 0,
    keep: Any = None,
) -> Request:
    """Starts a collective and returns at once. ``keep`` is held until the request is done."""
    call = _call_of(
        kind, addr_in, addr_out, count, dtype, op, root, group, counts, out_counts, prescale, postscale, pieces, tag
    )
    return launch(call, keep)


def launch(call: _lib.Call, keep: Any) -> Request:
    """Starts the call; ``keep`` is held until it is through."""
    here = session()
    if not here.inside:
        here.enter()
    handle = ctypes.c_void_p()
    with _lock:
        code = _lib.lib.hvd_start(ctypes.byref(call), ctypes.byref(handle))
    if code:
        here.failed(code)
        _error.check(code)
    assert handle.value is not None
    return Request(handle.value, call, keep)
