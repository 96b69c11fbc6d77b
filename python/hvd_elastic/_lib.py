"""The C library: where it lies, its structs and its functions.

Every other module calls the library through ``lib`` of this module. The numbers and structs mirror
``include/hvd/hvd.h``; tests/test_mirror.py compares them with a C program.
"""

from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Iterator
from typing import Any, Optional

# enum hvd_code
OK = 0
HOSTS_UPDATED = 1
LEFT = 2
DONE = 3
EPOCH_END = 4
FINISHED = 5
E_NOMEM = -1
E_INVAL = -2
E_LIMIT = -3
E_STATE = -4
E_NOTFOUND = -5
E_EXISTS = -6
E_IO = -7
E_FULL = -8
E_DENIED = -9
E_BUSY = -10
E_CORRUPT = -11
E_VERSION = -12
E_PROTO = -13
E_TIMEOUT = -14
E_REVOKED = -15
E_MISMATCH = -16
E_LOST = -17
E_UNSUPPORTED = -18
E_INTERNAL = -19
E_EXCEPTION = -20

# enum hvd_dtype
UINT8 = 0
INT8 = 1
INT32 = 2
INT64 = 3
FLOAT16 = 4
BFLOAT16 = 5
FLOAT32 = 6
FLOAT64 = 7
INT16 = 8
UINT16 = 9
UINT32 = 10
UINT64 = 11
BOOL = 12

# enum hvd_op
SUM = 0
AVERAGE = 1
MIN = 2
MAX = 3
PRODUCT = 4
AND = 5
OR = 6
XOR = 7

# enum hvd_kind
ALLREDUCE = 1
BROADCAST = 2
ALLGATHER = 3
REDUCESCATTER = 4
ALLTOALL = 5
BARRIER = 6
JOIN = 7
ALLGATHER_RAGGED = 9
ALLTOALL_RAGGED = 10
REDUCE = 11
GATHER = 12
SCATTER = 13
SEND = 14
RECV = 15

# enum hvd_batch_mode
BATCH_GLOBAL = 0
BATCH_LOCAL = 1

_size_p = ctypes.POINTER(ctypes.c_size_t)

MEMORY_FN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
SAVE_FN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
LOAD_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Piece(ctypes.Structure):
    """struct hvd_piece"""

    _fields_ = [
        ("in_", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
    ]


class Received(ctypes.Structure):
    """struct hvd_received"""

    _fields_ = [
        ("memory", MEMORY_FN),
        ("arg", ctypes.c_void_p),
        ("counts", _size_p),
        ("data", ctypes.c_void_p),
    ]


class Call(ctypes.Structure):
    """struct hvd_call"""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("group", ctypes.c_void_p),
        ("type", ctypes.c_int),
        ("op", ctypes.c_int),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
        ("root", ctypes.c_int),
        ("in_", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("counts", _size_p),
        ("out_counts", _size_p),
        ("pieces", ctypes.POINTER(Piece)),
        ("piece_count", ctypes.c_size_t),
        ("last", ctypes.POINTER(ctypes.c_int)),
        ("received", ctypes.POINTER(Received)),
        ("by_host", ctypes.c_int),
        ("tag", ctypes.c_uint64),
    ]


class Place(ctypes.Structure):
    """struct hvd_place"""

    _fields_ = [
        ("rank", ctypes.c_int),
        ("size", ctypes.c_int),
        ("local_rank", ctypes.c_int),
        ("local_size", ctypes.c_int),
        ("cross_rank", ctypes.c_int),
        ("cross_size", ctypes.c_int),
    ]


class Batch(ctypes.Structure):
    """struct hvd_batch"""

    _fields_ = [
        ("epoch", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("total", ctypes.c_size_t),
        ("count", ctypes.c_size_t),
        ("samples", ctypes.POINTER(ctypes.c_uint64)),
        ("shards", ctypes.c_size_t),
        ("shard_at", _size_p),
    ]


_int = ctypes.c_int
_ptr = ctypes.c_void_p
_str = ctypes.c_char_p
_size = ctypes.c_size_t

# The functions of hvd.h: their results, and the types of their arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "hvd_strerror": (_str, _int),
    "hvd_last_error": (_str,),
    "hvd_version": (_str,),
    "hvd_init": (_int,),
    "hvd_shutdown": (None,),
    "hvd_is_initialized": (_int,),
    "hvd_rank": (_int,),
    "hvd_size": (_int,),
    "hvd_local_rank": (_int,),
    "hvd_local_size": (_int,),
    "hvd_cross_rank": (_int,),
    "hvd_cross_size": (_int,),
    "hvd_slot": (_int,),
    "hvd_min_np": (_int,),
    "hvd_max_np": (_int,),
    "hvd_round": (ctypes.c_uint64,),
    "hvd_run": (_int, ctypes.POINTER(Call)),
    "hvd_start": (_int, ctypes.POINTER(Call), ctypes.POINTER(_ptr)),
    "hvd_test": (_int, _ptr, ctypes.POINTER(_int)),
    "hvd_wait": (_int, _ptr),
    "hvd_group_create_of": (_int, ctypes.POINTER(_int), _size, ctypes.POINTER(_ptr)),
    "hvd_group_close": (_int, _ptr),
    "hvd_group_rank": (_int, _ptr),
    "hvd_group_size": (_int, _ptr),
    "hvd_alloc": (_ptr, _size),
    "hvd_free": (None, _ptr),
    "hvd_timeline_start": (_int, _str),
    "hvd_timeline_stop": (_int,),
    "hvd_set_stream": (_int, _ptr),
    "hvd_state_create": (_ptr,),
    "hvd_state_free": (None, _ptr),
    "hvd_state_add": (_int, _ptr, _str, _ptr, _size),
    "hvd_state_add_per_rank": (_int, _ptr, _str, _ptr, _size),
    "hvd_state_add_array": (_int, _ptr, _str, _ptr, _size, _int),
    "hvd_state_add_array_per_rank": (_int, _ptr, _str, _ptr, _size, _int),
    "hvd_state_add_custom": (_int, _ptr, _str, _size, SAVE_FN, LOAD_FN, _ptr),
    "hvd_state_commit": (_int, _ptr),
    "hvd_state_commit_async": (_int, _ptr),
    "hvd_state_fence": (_int, _ptr),
    "hvd_state_check": (_int, _ptr),
    "hvd_state_restore": (_int, _ptr),
    "hvd_state_save": (_int, _ptr, _str),
    "hvd_state_load": (_int, _ptr, _str),
    "hvd_elastic_begin": (_int, _ptr),
    "hvd_elastic_next": (_int, _ptr, _int),
    "hvd_sampler_create": (_int, _ptr, _str, ctypes.c_uint64, _size, _int, ctypes.c_uint64, ctypes.POINTER(_ptr)),
    "hvd_sampler_next": (_int, _ptr, ctypes.POINTER(Batch)),
    "hvd_sampler_epoch": (ctypes.c_uint64, _ptr),
}

# Functions that an older library does not have; has() tells.
_LATER: dict[str, tuple[Any, ...]] = {
    "hvd_news": (_int,),
    "hvd_news_fd": (_int,),
    "hvd_wait_for": (_int, _ptr, ctypes.c_int64),
    "hvd_revoke": (_int, _str),
    "hvd_fail": (_int, _str),
    "hvd_report": (_int, _str, ctypes.c_double),
    "hvd_state_move": (_int, _ptr, _str, _ptr),
    "hvd_state_add_custom_per_rank": (_int, _ptr, _str, _size, SAVE_FN, LOAD_FN, _ptr),
    "hvd_sampler_at": (_int, _ptr, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), _size, ctypes.POINTER(Batch)),
    "hvd_checkpoint": (_int, _ptr, ctypes.POINTER(_ptr)),
    "hvd_group_open": (_int, ctypes.POINTER(_int), _size, ctypes.c_uint64, ctypes.POINTER(_ptr)),
}


def _candidates() -> Iterator[str]:
    """Where libhvd may lie: HVD_LIBRARY alone if it is set, else in this order."""
    named = os.environ.get("HVD_LIBRARY")
    if named:
        yield named
        return
    here = os.path.dirname(os.path.realpath(__file__))
    yield from sorted(glob.glob(os.path.join(glob.escape(here), "lib", "libhvd.so*")))
    tree = os.path.dirname(os.path.dirname(here))  # of a developer: python/hvd_elastic lies in the tree
    if os.path.exists(os.path.join(tree, "include", "hvd", "hvd.h")):
        for preset in ("python", "release"):
            path = os.path.join(tree, "build", preset, "worker", "libhvd.so")
            if os.path.exists(path):
                yield path
    system = _in_system()
    if system:
        yield system


def _in_system() -> Optional[str]:
    """The library that the system's linker finds. The search starts ldconfig and compilers, so it comes last."""
    import ctypes.util

    return ctypes.util.find_library("hvd")


def _open() -> ctypes.CDLL:
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
    why = "; ".join(tried) or "it is neither beside the package nor among the libraries of the system"
    raise ImportError(f"libhvd cannot be loaded: {why}; install the wheel, or set HVD_LIBRARY to the path of libhvd.so")


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(
                f"{library._name}: has no function {name}, so it is older than this package; "
                "install the wheel of the same version, or unset HVD_LIBRARY"
            )
        function.restype = result
        function.argtypes = arguments
    for name, (result, *arguments) in _LATER.items():
        function = getattr(library, name, None)
        if function is not None:
            function.restype = result
            function.argtypes = arguments
    return library


lib = _declare(_open())
path: str = lib._name


def has(name: str) -> bool:
    """Tells whether the library has this function."""
    return hasattr(lib, name)


def version() -> str:
    """Returns the version of the library."""
    return str(lib.hvd_version().decode())


def last_error() -> str:
    """Returns the text of this thread's last call that failed."""
    return str(lib.hvd_last_error().decode("utf-8", "replace"))
