# mypy: disable-error-code="override,assignment,misc"
"""The backend "hvd" of torch.distributed: a ProcessGroup whose size may change while it lives.

    import hvd_elastic.torch
    torch.distributed.init_process_group("hvd")

With the wheel installed, `import torch` is enough: hvd_elastic_autoload. Rank and size are those of the present
round; the first collective joins it. With `HVD_BACKEND=hvd` in the environment a program that names another backend
gets this one, and joins the round at once, as it has no State to make before.

When a member dies, a call fails at once with `Revoked`, or with the RuntimeError that DDP makes of it. In a function
that `hvd_elastic.run` wraps, the training goes on in the next round, with the same group: make DistributedDataParallel
there. Elsewhere the exception ends the program, and the driver starts it again.

A future gets its error from `then`: DDP's C++ code reads what `Future.set_exception` stores as tensors, and crashes.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import queue
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from hvd_elastic_autoload import NAME, autoload
from torch._C._distributed_c10d import HashStore, Store, TCPStore, Work, _unregister_process_group
from torch.distributed.rendezvous import register_rendezvous_handler
from torch.futures import Future
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .. import _error, _interrupt, _lib
from .._session import session
from .._torch_shrink import Shrink, shrink
from . import _core
from ._core import Pending, Tensor

_OPS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "average",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.PRODUCT: "product",
}
_LOGICAL = {dist.ReduceOp.BAND: "min", dist.ReduceOp.BOR: "max"}


def _op_of(options: Any, tensor: Tensor) -> tuple[str, float]:
    """The library's reduction, and the factor before it."""
    wanted = options.reduceOp
    kind = getattr(wanted, "op", wanted)
    for known, name in _OPS.items():
        if kind == known:
            return name, 1.0
    for known, name in _LOGICAL.items():
        if kind == known and tensor.dtype == torch.bool:
            return name, 1.0
    raise NotImplementedError(
        f"backend hvd: the reduction {wanted} on {tensor.dtype} does not exist; use SUM, AVG, MIN, MAX or PRODUCT"
    )


class _Waiter:
    """A thread that ends the futures of started calls, in the order of the calls."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Optional[_Work]] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def add(self, work: _Work) -> None:
        _interrupt.watch()  # as the main thread may wait for the future in C++
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="hvd-futures", daemon=True)
            self._thread.start()
        self._works.put(work)

    def _serve(self) -> None:
        while True:
            work = self._works.get()
            if work is None:
                return
            work.finish()
            del work  # else its tensors live until the next call


_waiter = _Waiter()


class _Work(Work):
    """One call of the group."""

    def __init__(self, pending: Pending, outs: list[Tensor], through: bool, shrink: Optional[Shrink] = None) -> None:
        super().__init__()
        self._pending = pending
        self._outs = outs
        self._shrink = shrink
        self._lock = threading.Lock()
        self._error: Optional[BaseException] = None
        self._through = False
        self._asked: Optional[Future[list[Tensor]]] = None
        self._answer: Optional[Future[list[Tensor]]] = None
        if through:
            self.finish()

    def finish(self) -> None:
        """Waits for the call, once, and ends the future."""
        with self._lock:
            if not self._through:
                try:
                    self._pending.wait()
                except Exception as error:
                    if isinstance(error, _error.Revoked) and self._shrink is not None and self._shrink.tolerates:
                        self._shrink.spoiled = True
                    else:
                        self._error = error
                self._through = True
            asked, self._asked = self._asked, None
        if asked is not None:
            asked.set_result(self._outs)

    def wait(self, timeout: Any = None) -> bool:
        seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else 0.0
        if seconds > 0.0 and not self._through and not self._await(seconds):
            raise _error.error_of(_lib.E_TIMEOUT, f"backend hvd: the collective is not through after {seconds:g} s")
        self.finish()
        if self._error is not None:
            raise self._error
        return True

    def _await(self, seconds: float) -> bool:
        future = self.get_future()
        there = threading.Event()
        future.add_done_callback(lambda _: there.set())
        return there.wait(seconds)

    def is_completed(self) -> bool:
        return self._through or self._pending.done()

    def is_success(self) -> bool:
        return self._through and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def result(self) -> list[Tensor]:
        return self._outs

    def get_future(self) -> Future[list[Tensor]]:
        if self._answer is not None:
            return self._answer
        asked: Future[list[Tensor]] = Future()
        self._answer = asked.then(self._checked)
        with self._lock:
            through = self._through
            if not through:
                self._asked = asked
        if through:
            asked.set_result(self._outs)
        else:
            _waiter.add(self)
        return self._answer

    def _checked(self, future: Future[list[Tensor]]) -> list[Tensor]:
        if self._error is not None:
            raise self._error
        return future.value()


class HvdGroup(dist.ProcessGroup):
    """A process group over a round, or over some ranks of it. Its rank and size are those of the present round."""

    def __init__(self, ranks: Optional[list[int]], rank: int, size: int, name: str) -> None:
        super().__init__(rank, size)
        self._ranks = ranks
        self._label = name
        self._desc = "undefined"
        self._handle: Optional[int] = None if ranks is None else _open(ranks, name)
        self._round = session().round
        self._coalesced: Optional[list[Pending]] = None

    # ---- the place ----

    def getRank(self) -> int:  # noqa: N802 (torch's name)
        return self._ranks.index(session().place("rank")) if self._ranks is not None else session().place("rank")

    def getSize(self) -> int:  # noqa: N802 (torch's name)
        return len(self._ranks) if self._ranks is not None else session().place("size")

    rank = getRank
    size = getSize

    @property
    def is_world(self) -> bool:
        """Whether all ranks of the round are members."""
        return self._ranks is None

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return NAME

    def _get_backend(self, device: Any) -> HvdGroup:
        """What torch asks for the abilities of a group: a batch of transfers needs no ability."""
        return self

    def getGroupName(self) -> str:  # noqa: N802 (torch's name)
        return self._label

    def setGroupName(self, name: str) -> None:  # noqa: N802 (torch's name)
        self._label = name

    def getGroupDesc(self) -> str:  # noqa: N802 (torch's name)
        return self._desc

    def setGroupDesc(self, desc: str) -> None:  # noqa: N802 (torch's name)
        self._desc = desc

    @property
    def group_name(self) -> str:
        return self._label

    def _check_round(self) -> None:
        if self._ranks is not None and self._round != session().round:
            raise _error.HvdError(
                f"the group {self._label} ended with its round; make it again with new_group in each round",
                _lib.E_STATE,
            )

    def _make(
        self,
        outs: list[Tensor],
        options: Any,
        call: Callable[..., Pending],
        changed: Optional[list[Tensor]] = None,
    ) -> _Work:
        """Makes a call, at once if the program waits for it anyway.

        changed: the inputs that the call overwrites, if it may be made again with fewer members.
        """
        self._check_round()
        start = bool(getattr(options, "asyncOp", True)) or self._coalesced is not None
        tolerant = shrink() if self._ranks is None else None
        if tolerant is None:
            pending = call(start=start, group=self._handle)
        elif start:
            pending = _started(tolerant, call)
        else:
            pending = _awaited(tolerant, call, changed)
        if self._coalesced is not None:
            self._coalesced.append(pending)
        return _Work(pending, outs, not start, tolerant)

    # ---- collectives ----

    def _check_count(self, what: str, count: int) -> None:
        if count != self.getSize():
            raise _error.InvalidArgument(
                f"backend hvd: {what} has {count} tensors, and there are {self.getSize()} ranks; ask for "
                "get_world_size() again in each round",
                _lib.E_INVAL,
            )

    def _global(self, rank: int) -> int:
        return rank if self._ranks is None else self._ranks[rank]

    def _root(self, options: Any) -> int:
        """The root of a call, as a rank of the round. After a death the root must be the process that it was."""
        root = self._global(options.rootRank)
        tolerant = shrink() if self._ranks is None and not getattr(options, "asyncOp", True) else None
        if tolerant is not None and not tolerant.is_first(root):
            raise _error.HvdError(
                f"backend hvd: the worker that began as rank {root} is lost, and it was the root of this call; the "
                "program starts again, or leave out HVD_TORCH_ON_LOSS=shrink",
                _lib.E_LOST,
            )
        return root

    def allreduce(self, tensors: list[Tensor], options: Any) -> _Work:
        op, factor = _op_of(options, tensors[0])
        return self._make(
            tensors, options, lambda **how: _core.allreduce(tensors, tensors, op, prescale=factor, **how), tensors
        )

    allreduce_coalesced = allreduce

    def broadcast(self, tensors: list[Tensor], options: Any) -> _Work:
        return self._make(tensors, options, lambda **how: _core.broadcast(tensors, self._root(options), **how), [])

    def barrier(self, opts: Any = None) -> _Work:
        return self._make([], opts, lambda **how: _core.barrier(**how), [])

    def _gathered(self, outs: Sequence[Tensor], source: Tensor, options: Any) -> _Work:
        """Each rank's tensor into the tensor at its place of outs; all have one shape."""
        self._check_count("the list of outputs", len(outs) or self.getSize())
        whole = torch.empty((self.getSize(), *source.shape), dtype=source.dtype, device=source.device)

        def call(**how: Any) -> Pending:
            pending = _core.allgather_into(whole, source, **how)

            def finish() -> None:
                with torch.no_grad():
                    for out, part in zip(outs, whole):
                        out.copy_(part.view(out.shape))

            return Pending([pending], finish)

        return self._make(list(outs), options, call)

    def allgather(self, outs: list[list[Tensor]], tensors: list[Tensor], options: Any) -> _Work:
        shapes = {tuple(out.shape) for out in outs[0]}
        if len(shapes) > 1:
            return self._ragged(outs[0], tensors[0], options)
        return self._gathered(outs[0], tensors[0], options)

    def _ragged(self, outs: list[Tensor], source: Tensor, options: Any) -> _Work:
        flat = torch.empty(sum(out.numel() for out in outs), dtype=source.dtype, device=source.device)

        def call(**how: Any) -> Pending:
            pending = _core.allgather_into(flat, source, counts=[out.numel() for out in outs], **how)

            def finish() -> None:
                with torch.no_grad():
                    for out, part in zip(outs, torch.split(flat, [out.numel() for out in outs])):
                        out.copy_(part.view(out.shape))

            return Pending([pending], finish)

        return self._make(outs, options, call)

    def all_gather_single(self, out: Tensor, source: Tensor, options: Any = None) -> _Work:
        return self._make([out], options, lambda **how: _core.allgather_into(out, source, **how))

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outs: list[Tensor], sources: list[Tensor], options: Any = None) -> _Work:
        def call(**how: Any) -> Pending:
            parts = [_core.allgather_into(out, source, **how) for out, source in zip(outs, sources)]
            return Pending(parts, lambda: None)

        return self._make(outs, options, call)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _scattered(self, out: Tensor, source: Tensor, options: Any, how: dict[str, Any]) -> Pending:
        op, factor = _op_of(options, source)
        rows = source.reshape(self.getSize(), -1)
        pending = _core.reducescatter(rows, op, members=self.getSize(), me=self.getRank(), prescale=factor, **how)

        def finish() -> None:
            with torch.no_grad():
                out.copy_(pending.wait().view(out.shape))

        return Pending([pending], finish)

    def reduce_scatter_single(self, out: Tensor, source: Tensor, options: Any) -> _Work:
        return self._make([out], options, lambda **how: self._scattered(out, source, options, how))

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outs: list[Tensor], sources: list[Tensor], options: Any) -> _Work:
        def call(**how: Any) -> Pending:
            parts = [self._scattered(out, source, options, how) for out, source in zip(outs, sources)]
            return Pending(parts, lambda: None)

        return self._make(outs, options, call)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outs: list[Tensor], sources: list[list[Tensor]], options: Any) -> _Work:
        source = torch.cat([part.reshape(-1) for part in sources[0]])
        if len({part.numel() for part in sources[0]}) > 1:
            raise NotImplementedError("backend hvd: reduce_scatter of tensors of different sizes; pad them")
        return self._make(outs, options, lambda **how: self._scattered(outs[0], source, options, how))

    def all_to_all_single(
        self, out: Tensor, source: Tensor, out_splits: list[int], splits: list[int], options: Any = None
    ) -> _Work:
        members = self.getSize()
        sent = list(splits) or [source.shape[0] // members] * members
        received = list(out_splits) or [out.shape[0] // members] * members
        return self._make([out], options, lambda **how: _core.alltoall_into(out, source, sent, received, **how))

    alltoall_base = all_to_all_single

    def alltoall(self, outs: list[Tensor], sources: list[Tensor], options: Any = None) -> _Work:
        source = torch.cat([part.reshape(-1) for part in sources])
        flat = torch.empty(sum(out.numel() for out in outs), dtype=source.dtype, device=source.device)
        sent, received = [part.numel() for part in sources], [out.numel() for out in outs]

        def call(**how: Any) -> Pending:
            pending = _core.alltoall_into(flat, source, sent, received, **how)

            def finish() -> None:
                with torch.no_grad():
                    for out, part in zip(outs, torch.split(flat, received)):
                        out.copy_(part.view(out.shape))

            return Pending([pending], finish)

        return self._make(outs, options, call)

    def reduce(self, tensors: list[Tensor], options: Any) -> _Work:
        """An allreduce, whose result the root alone keeps."""
        op, factor = _op_of(options, tensors[0])
        self._root(options)
        root = options.rootRank == self.getRank()
        outs = tensors if root else [torch.empty_like(tensor) for tensor in tensors]
        return self._make(tensors, options, lambda **how: _core.allreduce(tensors, outs, op, prescale=factor, **how))

    def gather(self, outs: list[list[Tensor]], tensors: list[Tensor], options: Any) -> _Work:
        """An allgather, whose result the root alone keeps."""
        self._root(options)
        return self._gathered(outs[0] if outs else [], tensors[0], options)

    def scatter(self, outs: list[Tensor], sources: list[list[Tensor]], options: Any) -> _Work:
        """A broadcast of all parts, of which each rank keeps its own."""
        self._root(options)
        root, out = options.rootRank, outs[0]
        whole = torch.empty((self.getSize(), *out.shape), dtype=out.dtype, device=out.device)
        if root == self.getRank():
            whole.copy_(torch.stack([part.reshape(out.shape) for part in sources[0]]))

        def call(**how: Any) -> Pending:
            pending = _core.broadcast([whole], self._global(root), **how)

            def finish() -> None:
                with torch.no_grad():
                    out.copy_(whole[self.getRank()])

            return Pending([pending], finish)

        return self._make(outs, options, call)

    def start_coalescing(self, device: Any = None) -> None:
        self._coalesced = []

    def end_coalescing(self, device: Any = None) -> _Work:
        parts, self._coalesced = self._coalesced or [], None
        return _Work(Pending(parts, lambda: None), [], False)

    def _transfer(self, tensors: list[Tensor], peer: int, tag: int, sends: bool) -> _Work:
        self._check_round()
        pending = _core.transfer(tensors[0], self._global(peer), sends=sends, tag=tag)
        if self._coalesced is not None:
            self._coalesced.append(pending)
        return _Work(pending, tensors, False)

    def send(self, tensors: list[Tensor], peer: int, tag: int = 0) -> _Work:
        """The n-th send of a rank to another goes to the n-th recv there; their tags must be equal."""
        return self._transfer(tensors, peer, tag, True)

    def recv(self, tensors: list[Tensor], peer: int, tag: int = 0) -> _Work:
        return self._transfer(tensors, peer, tag, False)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> _Work:
        raise NotImplementedError("backend hvd: recv from any rank does not exist; name the rank in src")

    def abort(self) -> None:
        """Ends the round for all members; they go back to the last commit."""
        session().leave(_lib.E_REVOKED)

    def shutdown(self) -> None:
        """The round stays open until the program ends."""


def _started(tolerant: Shrink, call: Callable[..., Pending]) -> Pending:
    """Starts a call, unless it would fail: then it has no effect, and spoils the gradient."""
    if not tolerant.swallows:
        try:
            return call(start=True, group=None)
        except _error.Revoked:
            if not tolerant.tolerates:
                raise
    tolerant.spoiled = True
    return Pending([], lambda: None)


def _awaited(tolerant: Shrink, call: Callable[..., Pending], changed: Optional[list[Tensor]]) -> Pending:
    """Makes a call; and again with the survivors, if a member is lost meanwhile."""
    kept = [tensor.detach().clone() for tensor in changed] if changed and tolerant.tolerates else []
    made: list[Pending] = []

    def make() -> None:
        made[:] = [call(start=False, group=None)]

    def again() -> None:
        for tensor, before in zip(changed or [], kept):
            tensor.detach().copy_(before)
        make()

    tolerant.collective(make, None if changed is None else again)
    return made[0] if made else Pending([], lambda: None)


def _step(optimizer: torch.optim.Optimizer, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Called by torch before each step of an optimizer. A step without gradients changes nothing."""
    tolerant = shrink()
    if tolerant is None or not _groups:
        return
    if any(argument is not None for argument in (*args[1:], *options.values())):
        raise _error.HvdError(
            "optimizer.step was given a closure, and HVD_TORCH_ON_LOSS=shrink needs the gradient before the step; call "
            "loss.backward() and then step() without a closure, or leave out HVD_TORCH_ON_LOSS",
            _lib.E_UNSUPPORTED,
        )
    if not tolerant.step():
        for group in optimizer.param_groups:
            for param in group["params"]:
                param.grad = None


_first_count = 0  # how many groups torch.distributed had named when the default group was made
_opened: dict[tuple[int, ...], int] = {}  # how often each list of ranks was opened in this round


def _open(ranks: list[int], name: str) -> int:
    """Opens a group of these ranks of the round; its members alone call this.

    The names of groups count what a process has made, so a worker that joins later has others. The tag is therefore
    how often these ranks were opened in this round.
    """
    if ranks != sorted(ranks):
        raise NotImplementedError(f"backend hvd: the ranks {ranks} of group {name} do not rise; pass them in order")
    session().enter()
    _opened[tuple(ranks)] = _opened.get(tuple(ranks), 0) + 1
    numbers = (ctypes.c_int * len(ranks))(*ranks)
    handle = ctypes.c_void_p()
    code = _lib.lib.hvd_group_open(numbers, len(ranks), _opened[tuple(ranks)], ctypes.byref(handle))
    if code:
        session().failed(code)
        _error.check(code)
    assert handle.value is not None
    return handle.value


# ---- the way in ----


class _RoundStore(Store):
    """The store of the present round: rank 0 serves it. The first use in a round is a collective of all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self._round = -1
        self._is_alone = False
        self._served: Any = None
        self._patience = datetime.timedelta(seconds=300)

    def be_alone(self, alone: bool) -> None:
        """Between two rounds this process alone uses the store."""
        self._is_alone = alone
        if alone:
            self._served = HashStore()
            self._round = -1

    def _now(self) -> Any:
        if self._is_alone or session().enter() == self._round:
            return self._served
        host = os.environ.get("HOROVOD_HOSTNAME", socket.gethostname())
        address = torch.zeros(264, dtype=torch.uint8)
        if session().place("rank") == 0:
            self._served = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=self._patience)
            text = f"{self._served.port} {host}".encode()
            address[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        _core.broadcast([address], 0, start=False).wait()
        if session().place("rank") != 0:
            port, _, host = bytes(address.tolist()).rstrip(b"\0").decode().partition(" ")
            self._served = TCPStore(host, int(port), is_master=False, timeout=self._patience)
        self._round = session().round
        return self._served

    def set(self, key: str, value: Any) -> None:
        self._now().set(key, value)

    def get(self, key: str) -> bytes:
        return self._now().get(key)  # type: ignore[no-any-return]

    def add(self, key: str, amount: int) -> int:
        return self._now().add(key, amount)  # type: ignore[no-any-return]

    def check(self, keys: list[str]) -> bool:
        return self._now().check(keys)  # type: ignore[no-any-return]

    def wait(self, keys: list[str], timeout: Optional[datetime.timedelta] = None) -> None:
        self._now().wait(keys, timeout or self._patience)

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        return self._now().compare_set(key, expected, desired)  # type: ignore[no-any-return]

    def delete_key(self, key: str) -> bool:
        return self._now().delete_key(key)  # type: ignore[no-any-return]

    def num_keys(self) -> int:
        return self._now().num_keys()  # type: ignore[no-any-return]

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._patience = timeout


_groups: weakref.WeakSet[HvdGroup] = weakref.WeakSet()


def _create(options: Any, _: Any = None) -> HvdGroup:
    ranks = list(options.global_ranks_in_group) or None
    group = HvdGroup(ranks, options.group_rank, options.group_size, options.group_id)
    _groups.add(group)
    return group


def _forget(group: HvdGroup) -> None:
    """Takes a group that has ended with its round out of the tables of torch.distributed."""
    world = c10d._world
    tag = world.pg_to_tag.pop(group, None)
    for table in (world.pg_map, world.pg_names, world.pg_group_ranks, world.pg_backend_config):
        table.pop(group, None)
    if tag is not None and group in world.tags_to_pg.get(tag, []):
        world.tags_to_pg[tag].remove(group)
    _unregister_process_group(group.group_name)  # type: ignore[arg-type]


_wrapped: weakref.WeakSet[DistributedDataParallel] = weakref.WeakSet()  # that live, since the round has begun


def _note_wrapped(module: torch.nn.Module, name: str, part: object) -> None:
    """Called by torch when a module gets a part."""
    del name, part
    if isinstance(module, DistributedDataParallel):
        tolerant = shrink()
        if tolerant is None:
            _wrapped.add(module)
        else:
            tolerant.new_model()  # it lives on in the next rounds


def _drop_reducers() -> None:
    """A reducer that died in backward goes now, else its hooks on the parameters run in this round.

    It is gone with the function of the last round, unless a cycle of references keeps it. Only then all garbage is
    collected: that takes most of a second, in which no member of the round makes a step.
    """
    if _wrapped:
        gc.collect()
        _wrapped.clear()  # what is left now is kept by the program


def _begin_round() -> None:
    """The ranks of the default group are those of the new round."""
    _opened.clear()
    _drop_reducers()
    for group in list(_groups):
        if group not in c10d._world.pg_group_ranks:
            continue
        if group.is_world:
            c10d._world.pg_group_ranks[group] = {rank: rank for rank in range(group.getSize())}
        else:
            _forget(group)
    # new_group names a group by this count. Members and joiners must have it alike; and DTensor keeps names of a mesh
    # over a round, so a program that makes the same groups again must find them under the same names.
    if _first_count:
        c10d._world.group_count = _first_count


def _rendezvous(url: str, *_: Any, **__: Any) -> Iterator[tuple[Store, int, int]]:
    session().init()
    yield _RoundStore(), session().place("rank"), session().place("size")


def _init_process_group(backend: Optional[str] = None, *args: Any, **options: Any) -> None:
    """torch.distributed.init_process_group, which gives the backend hvd its own rendezvous."""
    global _first_count
    forced = os.environ.get("HVD_BACKEND")
    if forced not in (None, "", NAME):
        raise ValueError(f"HVD_BACKEND={forced} in the environment: the one value is {NAME}; unset it for others")
    if backend != NAME and not forced:
        _torch_init(backend, *args, **options)
        return
    tolerant = shrink()
    if backend != NAME or tolerant is not None:
        session().enter()
    if tolerant is not None:
        tolerant.begin()
    kept = {name: value for name, value in options.items() if name in ("timeout", "group_name", "pg_options")}
    _torch_init(NAME, init_method=f"{NAME}://", **kept)
    _first_count = c10d._world.group_count


def register() -> None:
    """Makes the backend known to torch.distributed. Importing this module does so."""
    if NAME in dist.Backend.backend_list:
        return
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=devices)
    register_rendezvous_handler(NAME, _rendezvous)  # type: ignore[no-untyped-call]
    autoload()
    register_module_module_registration_hook(_note_wrapped)
    register_optimizer_step_pre_hook(_step)
    session().on_round(_begin_round, lasting=True)


_torch_init = getattr(c10d.init_process_group, "hvd_original", c10d.init_process_group)
register()
