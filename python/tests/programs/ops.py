"""Every collective against numpy, on however many ranks there are. Prints "ok NAME" for each that is right."""

from __future__ import annotations

import array
from collections.abc import Callable

import hvd_elastic as hvd
import numpy

hvd.init()
hvd.barrier()
rank, size = hvd.rank(), hvd.size()
TYPES = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "uint64", "int64", "float16", "float32", "float64"]
ops: dict[hvd.Op, Callable[..., numpy.ndarray]] = {
    hvd.Sum: numpy.sum,
    hvd.Min: numpy.min,
    hvd.Max: numpy.max,
    hvd.Product: numpy.prod,
}


def part(of: int, dtype: str, rows: int = 4) -> numpy.ndarray:
    """What a rank gives."""
    return (numpy.arange(rows * 3).reshape(rows, 3) % 5 + of + 1).astype(dtype)


def allreduce() -> None:
    for dtype in TYPES:
        parts = numpy.stack([part(r, dtype) for r in range(size)])
        for op, function in ops.items():
            got = hvd.allreduce(part(rank, dtype), op)
            assert got.dtype == dtype
            assert (got == function(parts, axis=0).astype(dtype)).all(), (dtype, op, got)
        got = hvd.allreduce(part(rank, dtype).astype("float64"), hvd.Average)
        assert numpy.allclose(got, parts.astype("float64").mean(axis=0))


def bits() -> None:
    mine = numpy.array([0b1100 + rank, 0b1010, rank], "uint16")
    stacked = numpy.stack([numpy.array([0b1100 + r, 0b1010, r], "uint16") for r in range(size)])
    for op, function in ((hvd.And, numpy.bitwise_and), (hvd.Or, numpy.bitwise_or), (hvd.Xor, numpy.bitwise_xor)):
        assert (hvd.allreduce(mine, op) == function.reduce(stacked)).all()
    assert hvd.allreduce(numpy.array([rank == 0, True]), hvd.And).tolist() == [size == 1, True]


def allreduce_forms() -> None:
    whole = part(rank, "float64")
    expected = sum(part(r, "float64") for r in range(size))
    assert (hvd.allreduce(whole[:, ::2], hvd.Sum) == expected[:, ::2]).all()  # not contiguous
    assert hvd.allreduce_(whole, hvd.Sum) is whole
    assert (whole == expected).all()
    assert hvd.allreduce(rank + 1, hvd.Sum) == size * (size + 1) // 2
    assert hvd.allreduce(1.5) == 1.5
    assert hvd.allreduce(numpy.float64(2.0), hvd.Max) == 2.0
    assert hvd.allreduce(numpy.array(3.0)).shape == ()
    assert hvd.allreduce(numpy.empty((0, 3))).shape == (0, 3)
    plain = array.array("d", [1.0, 2.0])
    assert list(hvd.allreduce(plain, hvd.Sum)) == [size, 2.0 * size]
    mixed = [numpy.full(3, 1.0), numpy.full(2, 2, "int32"), numpy.full((2, 2), 3.0)]
    got = hvd.allreduce(mixed, hvd.Sum)
    assert [item.tolist()[0] for item in got[:2]] == [size, 2 * size]
    assert (got[2] == 3.0 * size).all()
    assert (hvd.allreduce(numpy.ones(4), hvd.Sum, prescale=0.5, postscale=3.0) == 1.5 * size).all()


def requests() -> None:
    arrays = [numpy.full(1000, float(i + rank)) for i in range(20)]
    started = [hvd.allreduce_async(item, hvd.Sum, out=item) for item in arrays]
    for i, request in enumerate(started):
        assert request.wait() is arrays[i]
        assert (arrays[i] == i * size + size * (size - 1) / 2).all()
    assert started[0].wait() is arrays[0]
    assert started[0].done()


def broadcast() -> None:
    for dtype in [*TYPES, "bool", "complex128"]:
        for root in range(size):
            got = hvd.broadcast(part(rank, dtype), root)
            assert (got == part(root, dtype)).all()
    mine = part(rank, "float32")
    hvd.broadcast_(mine, size - 1)
    assert (mine == part(size - 1, "float32")).all()
    assert (hvd.broadcast_async(part(rank, "int64")).wait() == part(0, "int64")).all()


def gathers() -> None:
    for dtype in [*TYPES, "bool", "complex64"]:
        got = hvd.allgather(part(rank, dtype, rank + 1))
        assert (got == numpy.concatenate([part(r, dtype, r + 1) for r in range(size)])).all()
        assert got.dtype == dtype
    assert (hvd.allgather(numpy.array(float(rank))) == numpy.arange(size)).all()
    assert (hvd.allgather_async(numpy.full(2, rank)).wait() == numpy.repeat(numpy.arange(size), 2)).all()
    assert hvd.allgather(numpy.empty((0, 2))).shape == (0, 2)


def alltoall() -> None:
    sent = numpy.repeat(numpy.arange(size) * 10 + rank, 2)
    assert (hvd.alltoall(sent) == numpy.repeat(rank * 10 + numpy.arange(size), 2)).all()
    got, rows = hvd.alltoall(part(rank, "float32", sum(range(size))), list(range(size)))
    assert rows == [rank] * size
    assert got.shape == (rank * size, 3)


def reducescatter() -> None:
    length = 2 * size + 1  # the first rank gets one row more
    got = hvd.reducescatter(part(rank, "float64", length), hvd.Sum)
    expected = sum(part(r, "float64", length) for r in range(size))
    first = rank * 2 + min(rank, 1)
    assert (got == expected[first : first + 2 + (rank == 0)]).all()


def objects() -> None:
    assert hvd.broadcast_object({"rank": rank}, size - 1) == {"rank": size - 1}
    assert hvd.allgather_object("x" * rank) == ["x" * r for r in range(size)]


def groups() -> None:
    even = hvd.Group(range(0, size, 2))
    assert even.size() == (0 if rank % 2 else (size + 1) // 2)
    if rank % 2 == 0:
        assert hvd.allreduce(1, hvd.Sum, group=even) == (size + 1) // 2
    even.close()
    # by the members alone: each rank with the next one, in a circle, and the next ones twice
    neighbours = ((rank + 1) % size, (rank - 1) % size) if size > 2 else ()
    pairs = {other: hvd.Group.open(sorted((rank, other)), tag=7) for other in neighbours}
    again = [hvd.Group.open(range(size), tag=tag) for tag in (1 + rank % 2, 2 - rank % 2)]
    for low in range(size):
        for high in range(low + 1, size):
            if rank in (low, high) and size > 2:
                other = high if rank == low else low
                assert pairs[other].size() == 2
                assert hvd.allreduce(rank, hvd.Sum, group=pairs[other]) == low + high
    for group in again if rank % 2 == 0 else again[::-1]:
        assert hvd.allreduce(numpy.ones(3), hvd.Sum, group=group).tolist() == [size] * 3
        group.close()


def join() -> None:
    for _ in range(rank):
        assert hvd.allreduce(numpy.ones(2), hvd.Sum).max() <= size
    last = hvd.join()
    assert 0 <= last < size
    assert hvd.broadcast_object(last) == last


def refusals() -> None:
    for bad in (lambda: hvd.allreduce("text"), lambda: hvd.allreduce(numpy.zeros(2), out=3)):
        try:
            bad()
        except TypeError as error:
            print("refused:", error)
        else:
            raise AssertionError
    for bad in (
        lambda: hvd.allreduce(numpy.zeros(2, "complex64")),
        lambda: hvd.allreduce(numpy.zeros(2), out=numpy.zeros(3)),
        lambda: hvd.alltoall(numpy.zeros(size), [1] * (size + 1)),
        lambda: hvd.reducescatter(numpy.array(1.0)),
    ):
        try:
            bad()
        except hvd.InvalidArgument as error:
            print("refused:", error)
        else:
            raise AssertionError


for check in (
    allreduce,
    bits,
    allreduce_forms,
    requests,
    broadcast,
    gathers,
    alltoall,
    reducescatter,
    objects,
    groups,
    join,
    refusals,
):
    check()
    hvd.barrier()
    print("ok", check.__name__, flush=True)
