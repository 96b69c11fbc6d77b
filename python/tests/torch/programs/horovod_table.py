"""The API of horovod.torch, call by call, on three ranks: horovod_table.py FOLDER."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import horovod.torch as hvd
import torch

folder = Path(sys.argv[1])
hvd.init()
hvd.barrier()
rank, size = hvd.rank(), hvd.size()
assert size == 3


def raises(kind: type[Exception], text: str, function: Callable[[], object]) -> None:
    said = "nothing"
    try:
        function()
    except kind as error:
        said = str(error)
    assert text in said, said


def places() -> None:
    assert (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (rank, 3, 0, 1)
    assert hvd.is_initialized()
    assert hvd.is_homogeneous()
    assert hvd.gloo_built()
    assert not hvd.mpi_built()
    raises(ValueError, "comm", lambda: hvd.init(comm=[0, 1]))


def reductions() -> None:
    own = torch.full((4,), float(rank + 1))
    wanted = {hvd.Sum: 6.0, hvd.Average: 2.0, hvd.Min: 1.0, hvd.Max: 3.0, hvd.Product: 6.0}
    for op, value in wanted.items():
        assert hvd.allreduce(own, op=op).tolist() == [value] * 4
    assert hvd.allreduce(own, average=False).tolist() == [6.0] * 4
    assert hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0).tolist() == [9.0] * 4
    raises(NotImplementedError, "Adasum", lambda: hvd.allreduce(own, op=hvd.Adasum))
    model = torch.nn.Linear(2, 2)
    bare = torch.optim.SGD(model.parameters(), lr=0.1)
    raises(NotImplementedError, "Adasum", lambda: hvd.DistributedOptimizer(bare, op=hvd.Adasum))
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16, hvd.Compression.none):
        got = hvd.allreduce(own, compression=compression)
        assert got.dtype == torch.float32
        assert got.tolist() == [2.0] * 4


def groups_of_tensors() -> None:
    tensors = [torch.full((n,), float(rank)) for n in (1, 2, 3)]
    for results in (
        hvd.grouped_allreduce(tensors, op=hvd.Sum),
        hvd.synchronize(hvd.grouped_allreduce_async(tensors, op=hvd.Sum)),
        hvd.grouped_allreduce_([tensor.clone() for tensor in tensors], op=hvd.Sum),
    ):
        assert [result.tolist() for result in results] == [[3.0] * n for n in (1, 2, 3)]
    rows = hvd.grouped_allgather([torch.full((rank + 1, 2), rank), torch.tensor([rank])])
    assert [row.shape[0] for row in rows] == [6, 3]
    parts = hvd.grouped_reducescatter([torch.ones(4), torch.ones(3)], op=hvd.Sum)
    assert [part.tolist() for part in parts] == [[3.0] * (2 if rank == 0 else 1), [3.0]]


def movements() -> None:
    out, received = hvd.alltoall(torch.arange(3) + 10 * rank, splits=[1, 1, 1])
    assert out.tolist() == [rank, 10 + rank, 20 + rank]
    assert received.tolist() == [1, 1, 1]
    assert hvd.broadcast_object({"from": rank}, root_rank=2) == {"from": 2}
    assert hvd.allgather_object("x" * rank) == ["", "x", "xx"]
    sparse = torch.sparse_coo_tensor([[rank]], [1.0], (3,))
    summed = hvd.sparse_allreduce_async(sparse, name="sparse", op=hvd.Sum)()
    assert summed.to_dense().tolist() == [1.0] * 3
    handle = hvd.allreduce_async(torch.ones(2), op=hvd.Sum)
    assert hvd.synchronize(handle).tolist() == [3.0, 3.0]
    assert hvd.synchronize(handle) is None
    raises(ValueError, "no handle", lambda: hvd.poll(handle))


def process_sets() -> None:
    ends = hvd.add_process_set(hvd.ProcessSet([0, 2]))
    raises(ValueError, "use that one", lambda: hvd.add_process_set([2, 0]))
    assert (ends.size(), ends.included(), ends.rank()) == (2, rank != 1, {0: 0, 1: -1, 2: 1}[rank])
    if ends.included():
        assert hvd.allreduce(torch.tensor([rank]), op=hvd.Sum, process_set=ends).tolist() == [2]
        assert hvd.allgather(torch.tensor([rank]), process_set=ends).tolist() == [0, 2]
        assert hvd.broadcast(torch.tensor([rank]), root_rank=2, process_set=ends).tolist() == [2]
        hvd.barrier(process_set=ends)
    else:
        raises(ValueError, "not in", lambda: hvd.allreduce(torch.ones(1), process_set=ends))
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), process_set=ends)
    with torch.no_grad():
        model.weight.zero_()
    (model(torch.ones(1)) * rank).sum().backward()
    optimizer.step()
    assert model.weight.item() == -1.0  # the average of 0 and 2, and the rank 1 by itself
    assert hvd.remove_process_set(ends)
    assert not hvd.remove_process_set(ends)


def batch_norm() -> None:
    """Three ranks with different batches are one process with all of them."""
    whole = torch.randn(9, 4, 5, generator=torch.Generator().manual_seed(3)) * 3 + 1
    mine = whole.split([2, 3, 4])[rank].clone().requires_grad_()
    one = whole.clone().requires_grad_()
    sync, plain = hvd.SyncBatchNorm(4), torch.nn.BatchNorm1d(4)
    for module in (sync, plain):
        torch.nn.init.constant_(module.weight, 1.5)
    weights = torch.arange(9.0).reshape(9, 1, 1)
    (sync(mine).sin() * weights.split([2, 3, 4])[rank]).sum().backward()
    (plain(one).sin() * weights).sum().backward()
    torch.testing.assert_close(mine.grad, one.grad.split([2, 3, 4])[rank], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sync.running_mean, plain.running_mean)
    torch.testing.assert_close(sync.running_var, plain.running_var)
    total = hvd.allreduce(sync.weight.grad, op=hvd.Sum)
    torch.testing.assert_close(total, plain.weight.grad, rtol=1e-4, atol=1e-4)
    sync.eval()
    torch.testing.assert_close(sync(one), plain.eval()(one))


def joins() -> None:
    for _ in range(rank):
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() <= 2
    assert hvd.join() == 2


def timeline() -> None:
    file = folder / f"timeline.{rank}"
    hvd.start_timeline(str(file), mark_cycles=True)
    hvd.allreduce(torch.ones(1))
    hvd.stop_timeline()
    names = {event.get("name") for event in json.loads(file.read_text() + "{}]")}  # the format lets the end out
    assert "allreduce" in names, names


def again() -> None:
    hvd.shutdown()
    assert not hvd.is_initialized()
    raises(ValueError, "call hvd.init() first", hvd.rank)
    hvd.init(process_sets="dynamic")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == 3


for part in (places, reductions, groups_of_tensors, movements, process_sets, batch_norm, joins, timeline, again):
    part()
    print(part.__name__, "is right", flush=True)
