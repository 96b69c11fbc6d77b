"""Memory of arrays, whoever has made them: numpy, the buffer protocol, DLPack, and the array interfaces."""

from __future__ import annotations

import array as stdlib_array
import ctypes
import sys
from collections.abc import Sequence
from typing import Any, Optional

from . import _lib

# of __array_interface__ and __cuda_array_interface__, without the byte order
_TYPESTR = {
    "u1": _lib.UINT8,
    "i1": _lib.INT8,
    "i2": _lib.INT16,
    "u2": _lib.UINT16,
    "u4": _lib.UINT32,
    "u8": _lib.UINT64,
    "b1": _lib.BOOL,
    "i4": _lib.INT32,
    "i8": _lib.INT64,
    "f2": _lib.FLOAT16,
    "f4": _lib.FLOAT32,
    "f8": _lib.FLOAT64,
}
_KIND = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u"}
_KIND |= {"N": "u", "e": "f", "f": "f", "d": "f", "?": "b", "c": "u"}
_DLPACK = {(0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (0, 64): "i8", (1, 8): "u1", (1, 16): "u2", (1, 32): "u4"}
_DLPACK |= {(1, 64): "u8", (2, 16): "f2", (2, 32): "f4", (2, 64): "f8", (6, 8): "b1"}
_NATIVE = "<" if sys.byteorder == "little" else ">"


class Array:
    """Contiguous memory of one type; ``owner`` keeps it."""

    __slots__ = ("address", "count", "dtype", "itemsize", "name", "owner", "readonly", "shape", "source")

    def __init__(
        self, source: Any, owner: Any, address: int, shape: tuple[int, ...], name: str, itemsize: int, readonly: bool
    ) -> None:
        self.source = source
        self.owner = owner
        self.address = address
        self.shape = shape
        self.name = name
        self.itemsize = itemsize
        self.readonly = readonly
        self.dtype: Optional[int] = _lib.BFLOAT16 if name == "bfloat16" else _TYPESTR.get(name)
        self.count = 1
        for length in shape:
            self.count *= length

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.count * self.itemsize

    def assign(self, name: str, value: Any) -> None:
        """Copies the elements of another array of the same shape and type into this one."""
        other = of(value)
        if other is None or other.count != self.count or other.name != self.name:
            have = f"{self.name}{list(self.shape)}"
            given = f"{type(value).__name__}" if other is None else f"{other.name}{list(other.shape)}"
            raise ValueError(
                f"state.{name} is an array {have}, registered where it is, and cannot become {given}; "
                "change it in place, or keep the value under another name"
            )
        ctypes.memmove(self.address, other.address, self.nbytes)


def _from_interface(source: Any, interface: dict[str, Any]) -> Array:
    typestr: str = interface["typestr"]
    address, readonly = interface["data"]
    shape = tuple(interface["shape"])
    itemsize = int(typestr[2:])
    strides: Optional[Sequence[int]] = interface.get("strides")
    if strides is not None and not _contiguous(shape, strides, itemsize):
        raise ValueError("the array is not contiguous; pass a contiguous copy of it")
    name = typestr[1:] if typestr[0] in ("|", "=", _NATIVE) else typestr
    return Array(source, source, address, shape, name, itemsize, readonly)


def _contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length == 0:
            return True
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def _from_buffer(source: Any, view: memoryview) -> Array:
    if not view.c_contiguous:
        raise ValueError("the array is not contiguous; pass a contiguous copy of it")
    code = view.format.lstrip("@=<" if _NATIVE == "<" else "@=>") or "B"
    name = f"{_KIND.get(code, 'V')}{view.itemsize}"
    if view.nbytes == 0:
        address = 0
    elif view.readonly:
        # ctypes takes no address of read-only memory; the object that PyObject_AsReadBuffer gave is gone
        source = view = memoryview(bytearray(view))
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        return Array(source, view, address, tuple(view.shape or ()), name, view.itemsize, True)
    else:
        address = ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B") if view.ndim else view))
    return Array(source, view, address, tuple(view.shape or ()), name, view.itemsize, view.readonly)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(source: Any) -> Array:
    """Reads the tensor of a capsule. The capsule is kept, not consumed: its end frees what it holds."""
    capsule = source.__dlpack__()
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    itemsize = max(1, tensor.bits // 8)
    if tensor.strides and not _contiguous(shape, [tensor.strides[i] * itemsize for i in range(tensor.ndim)], itemsize):
        raise ValueError("the array is not contiguous; pass a contiguous copy of it")
    name = "bfloat16" if (tensor.code, tensor.bits) == (4, 16) else _DLPACK.get((tensor.code, tensor.bits), "V")
    return Array(source, capsule, (tensor.data or 0) + tensor.byte_offset, shape, name, itemsize, False)


def of(source: Any) -> Optional[Array]:
    """Returns the memory of an array, or None for what is no array."""
    for attribute in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(source, attribute, None)
        if isinstance(interface, dict):
            return _from_interface(source, interface)
    if hasattr(source, "__dlpack__"):
        return _from_dlpack(source)
    if isinstance(source, (bytes, str)):
        return None
    try:
        view = memoryview(source)
    except TypeError:
        return None
    return _from_buffer(source, view)


def writable(source: Any) -> Optional[Array]:
    """Returns the memory of an array that may be written in place, or None."""
    if not hasattr(source, "__setitem__") and not hasattr(source, "__dlpack__"):
        return None
    found = of(source)
    return None if found is None or found.readonly else found


def like(array: Array, shape: tuple[int, ...]) -> Any:
    """Makes new memory of this array's type: an array.array if it is one, else numpy's."""
    if isinstance(array.source, stdlib_array.array):
        count = 1
        for length in shape:
            count *= length
        return stdlib_array.array(array.source.typecode, bytes(count * array.itemsize))
    import numpy

    dtype = getattr(array.source, "dtype", None)
    if not isinstance(dtype, numpy.dtype):
        if array.name == "bfloat16":
            raise TypeError("numpy has no bfloat16; give the result's memory with out=")
        dtype = numpy.dtype(array.name)
    return numpy.empty(shape, dtype)
