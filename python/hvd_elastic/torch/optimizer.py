"""`DistributedOptimizer`: averages the gradients of all ranks while backward still runs.

Gradients travel in buckets. A bucket's parameters follow from the parameters' order, types and sizes alone, so they are
equal on all ranks, also on one that joins later. A bucket starts when its gradients and all buckets before it are
ready; so the order of the calls is equal on all ranks whatever the order of the hooks.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from .._session import session
from . import _core, ops
from ._core import Pending, Tensor
from ._group import Group, members_of, raw
from ._names import Average, Op, Sum, reduction
from .compression import Compression

FIRST_BYTES = 1 << 20  # the first bucket is small: it starts early
BUCKET_BYTES = 25 << 20


class _Bucket:
    """Parameters whose gradients travel in one call."""

    def __init__(self, number: int, params: list[Tensor]) -> None:
        self.number = number
        self.params = params
        self.missing = len(params)
        self.pending: Pending | None = None


def _divide(params: Sequence[Tensor], explicit: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
    """The buckets: the groups that the caller wants, then the rest from the last parameter to the first."""
    buckets = [list(group) for group in explicit]
    taken = {id(p) for group in explicit for p in group}
    open_ones: dict[tuple[torch.dtype, torch.device], tuple[list[Tensor], int]] = {}
    limit = FIRST_BYTES
    for param in reversed(params):
        if id(param) in taken:
            continue
        key = (param.dtype, param.device)
        bucket, held = open_ones.get(key, ([], 0))
        if not bucket:
            buckets.append(bucket)
        bucket.append(param)
        held += param.numel() * param.element_size()
        open_ones[key] = (bucket, held)
        if held >= limit:
            del open_ones[key]
            limit = BUCKET_BYTES
    return buckets


def _groups_of(params: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """`count` groups of about equally many parameters, the last ones first."""
    rows = list(reversed(params))
    size, more = divmod(len(rows), count)
    result, at = [], 0
    for number in range(count):
        end = at + size + (number < more)
        result.append(rows[at:end])
        at = end
    return [group for group in result if group]


def _checked_names(optimizer: torch.optim.Optimizer, named: Iterable[tuple[str, Tensor]] | None) -> dict[Tensor, str]:
    """The name of each parameter; ValueError if one has none, or two have the same."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if named is None:
        return {p: f"parameter {i}" for i, p in enumerate(params)}
    pairs = list(named)
    if any(not isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters: not a sequence of tuples (name, parameter); give model.named_parameters()")
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"named_parameters: the names {', '.join(twice)} stand for several parameters; add the model's name"
        )
    known = {id(p) for _, p in pairs}
    lacking = sum(id(p) not in known for p in params)
    if lacking:
        raise ValueError(
            f"named_parameters: {lacking} parameters of the optimizer have no name; name all of them, or none at all"
        )
    return {p: name for name, p in pairs}


class _Distributed:
    """The methods that are added to the class of the user's optimizer."""

    # Set by DistributedOptimizer, in the instance.
    param_groups: list[dict[str, Any]]

    def _hvd_begin(
        self,
        names: dict[Tensor, str],
        compression: Any,
        passes: int,
        op: Op,
        predivide: float,
        groups: Sequence[Sequence[Tensor]] | int | None,
        sparse_as_dense: bool,
        group: Group | None,
    ) -> None:
        self._hvd_names = names
        self._parameter_names = names  # under which Horovod's programs look for them
        self._hvd_compression = compression
        self._hvd_op = op
        self._hvd_predivide = predivide
        self._hvd_sparse_as_dense = sparse_as_dense
        self._hvd_group = group
        self.backward_passes_per_step = passes
        self._hvd_synchronized = False
        self._hvd_should_synchronize = True
        self._hvd_params = [p for g in self.param_groups for p in g["params"]]
        params = [p for p in self._hvd_params if p.requires_grad]
        explicit: Sequence[Sequence[Tensor]] = []
        if isinstance(groups, int):
            explicit = _groups_of(params, groups) if groups > 0 else []
        elif groups is not None:
            explicit = groups
        self._hvd_buckets = [_Bucket(i, b) for i, b in enumerate(_divide(params, explicit))]
        self._hvd_of = {id(p): bucket for bucket in self._hvd_buckets for p in bucket.params}
        self._hvd_next = 0  # the first bucket that has not been started
        self._hvd_thawed = _Bucket(len(self._hvd_buckets), [])
        self._hvd_sparse: list[tuple[Tensor, Callable[[], Tensor]]] = []
        self._hvd_delay = {id(p): passes for p in self._hvd_params}
        self._hvd_sent: set[int] = set()
        self._hvd_hooked: set[int] = set()
        self._hvd_round = 0
        self._hvd_add_hooks()

    def _hvd_add_hooks(self) -> None:
        for param in self._hvd_params:
            if param.requires_grad and id(param) not in self._hvd_hooked:
                param.register_post_accumulate_grad_hook(self._hvd_ready)
                self._hvd_hooked.add(id(param))

    def _hvd_reset(self) -> None:
        """Forgets what has been started: after a step, or when the round has ended."""
        for bucket in self._hvd_buckets:
            bucket.pending, bucket.missing = None, len(bucket.params)
        self._hvd_next = 0
        self._hvd_sparse = []
        self._hvd_sent = set()
        for key in self._hvd_delay:
            self._hvd_delay[key] = self.backward_passes_per_step

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _hvd_ready(self, param: Tensor) -> None:
        """A parameter's gradient has been accumulated once more."""
        session().enter()
        if not self._hvd_takes_part():
            return
        if self._hvd_round != session().round:  # the last round ended within a step
            self._hvd_reset()
            self._hvd_round = session().round
        key = id(param)
        if key in self._hvd_sent or self._hvd_delay[key] <= 0:
            raise AssertionError(
                f"the gradient of {self._hvd_names[param]} was computed more than backward_passes_per_step times "
                "before step() or synchronize(); raise backward_passes_per_step, or call step()"
            )
        self._hvd_synchronized = False
        self._hvd_delay[key] -= 1
        if self._hvd_delay[key] > 0:
            return
        self._hvd_sent.add(key)
        if key not in self._hvd_of:
            return  # it was frozen when the buckets were made: see _hvd_start_thawed
        self._hvd_of[key].missing -= 1
        while self._hvd_next < len(self._hvd_buckets) and self._hvd_buckets[self._hvd_next].missing == 0:
            self._hvd_start(self._hvd_buckets[self._hvd_next])

    def _hvd_start_thawed(self) -> None:
        """Starts the last bucket: parameters that were frozen when the buckets were made, and are trained now.

        It starts here alone, and follows from what is trained now alone: a worker that joins has seen no thaw, and
        its parameters have had no hook in its first backward pass.
        """
        params = [p for p in self._hvd_params if p.requires_grad and id(p) not in self._hvd_of]
        self._hvd_thawed = _Bucket(len(self._hvd_buckets), params)
        if params:
            self._hvd_start(self._hvd_thawed)

    def _hvd_takes_part(self) -> bool:
        """Whether this rank averages gradients; one outside of the group trains by itself."""
        return self._hvd_group is None or self._hvd_group.rank >= 0

    def _hvd_factors(self) -> tuple[Op, float, float]:
        """The reduction, and the factors before and after it."""
        if self._hvd_op == Average and self._hvd_predivide != 1.0:
            return Sum, 1.0 / self._hvd_predivide, self._hvd_predivide / members_of(self._hvd_group)
        return self._hvd_op, 1.0, 1.0

    def _hvd_start(self, bucket: _Bucket) -> None:
        assert bucket.number == self._hvd_next
        self._hvd_next += 1
        op, prescale, postscale = self._hvd_factors()
        grads: list[Tensor] = []
        for param in bucket.params:
            grad = param.grad
            if grad is None:
                grad = param.grad = torch.zeros_like(param)
            if grad.is_sparse:
                if not self._hvd_sparse_as_dense:
                    name = self._hvd_names[param]
                    self._hvd_sparse.append((param, sparse_allreduce(grad, name, self._hvd_op, self._hvd_group)))
                    continue
                grad = grad.to_dense()
                self._hvd_sparse.append((param, grad.to_sparse))  # once it has been reduced
            grads.append(grad)
        packed = [self._hvd_compression.compress(grad) for grad in grads]
        sent = [tensor.contiguous() for tensor, _ in packed]
        tag = _core.tag_of("bucket", bucket.number, [tuple(grad.shape) for grad in grads])
        pending = _core.allreduce(
            sent,
            sent,
            op,
            prescale=prescale,
            postscale=postscale,
            group=raw(self._hvd_group),
            tag=tag,
            start=True,
        )

        def finish() -> None:
            with torch.no_grad():
                for grad, tensor, (_, ctx) in zip(grads, sent, packed):
                    whole = self._hvd_compression.decompress(tensor, ctx)
                    if whole.data_ptr() != grad.data_ptr():
                        grad.copy_(whole)

        bucket.pending = Pending([pending], finish, (grads, sent))

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many times backward runs before a step."""
        self.backward_passes_per_step = passes
        self._hvd_reset()

    def synchronize(self) -> None:
        """Waits for the averaged gradients. A parameter without a gradient has contributed zeros, and gets one."""
        session().enter()
        if not self._hvd_takes_part():
            self._hvd_synchronized = True
            return
        self._hvd_add_hooks()
        if self._hvd_round != session().round:
            self._hvd_reset()
            self._hvd_round = session().round
        first: BaseException | None = None
        try:
            while self._hvd_next < len(self._hvd_buckets):
                self._hvd_start(self._hvd_buckets[self._hvd_next])
            self._hvd_start_thawed()
        except Exception as error:
            first = error
        for bucket in [*self._hvd_buckets, self._hvd_thawed]:
            try:
                if bucket.pending is not None:
                    bucket.pending.wait()
            except Exception as error:
                first = first or error
        self._hvd_thawed.pending = None
        if first is None:
            for param, result in self._hvd_sparse:
                param.grad = result()
        self._hvd_reset()
        self._hvd_synchronized = first is None
        if first is not None:
            raise first

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it `step` does not call `synchronize`: the program has done so, for example to clip gradients."""
        self._hvd_should_synchronize = False
        try:
            yield
        finally:
            self._hvd_should_synchronize = True

    def step(self, closure: Any = None) -> Any:
        if self._hvd_should_synchronize:
            if self._hvd_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(): the gradients are averaged a second time; write `with "
                    "optimizer.skip_synchronize(): optimizer.step()`",
                    stacklevel=2,
                )
            self.synchronize()
        self._hvd_synchronized = False
        self._opt_called = True  # which a learning rate scheduler asks for
        return super().step(closure)  # type: ignore[misc]

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    step.hooked = True  # type: ignore[attr-defined] # the step of the base class calls the hooks

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        if any(bucket.pending is not None for bucket in self._hvd_buckets):
            if self._hvd_round == session().round and not session().dead:
                raise AssertionError(
                    "optimizer.zero_grad() was called after loss.backward() and before optimizer.step() or "
                    "optimizer.synchronize(), while gradients travel; call one of those two first"
                )
            self._hvd_reset()
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        for bucket in self._hvd_buckets:
            with contextlib.suppress(Exception):
                if bucket.pending is not None:
                    bucket.pending.wait()
        self._hvd_reset()
        self._hvd_synchronized = False
        return super().load_state_dict(*args, **kwargs)  # type: ignore[misc]


def sparse_allreduce(tensor: Tensor, name: str | None, op: str | Op, group: Group | None) -> Callable[[], Tensor]:
    """Starts the sum or average of sparse tensors: the entries of all ranks. The function that it returns waits."""
    op = reduction(op)
    if op not in (Average, Sum):
        raise ValueError(f"a sparse tensor cannot be reduced by {op.name}; use Average or Sum, or make it dense")
    coalesced = tensor.coalesce()
    indices = ops.allgather_async(coalesced.indices().t().contiguous(), name=f"{name}.indices", group=group)
    values = ops.allgather_async(coalesced.values(), name=f"{name}.values", group=group)
    size = tensor.size()

    def wait() -> Tensor:
        rows = values.wait()
        if op == Average:
            rows = rows / members_of(group)
        return torch.sparse_coo_tensor(indices.wait().t(), rows, size)

    return wait


def DistributedOptimizer(  # noqa: N802 (the name that programs know)
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Tensor]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: str | Op = Average,
    gradient_predivide_factor: float = 1.0,
    groups: Sequence[Sequence[Tensor]] | int | None = None,
    sparse_as_dense: bool = False,
    group: Group | None = None,
) -> Any:
    """Makes an optimizer distributed: its `step` first waits until the gradients of all ranks have been averaged.

    The result is the same object, which is then an instance of a subclass of its class. So a learning rate scheduler
    that was made before goes on to work.

    named_parameters: model.named_parameters(); names are for errors, so None will do.
    compression: a class with compress and decompress; see `Compression`.
    backward_passes_per_step: how often backward runs before a step; the gradients of these passes are added up.
    op: Average, or another reduction.
    gradient_predivide_factor: gradients are divided by it before they are added up, and by size / it afterwards.
    groups: how many calls the gradients make, or lists of the parameters of each call. None: by size.
    sparse_as_dense: sparse gradients are made dense; otherwise the entries of all ranks are gathered.
    """
    op = reduction(op)
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor has a meaning with op=Average only; leave one of them out")
    if isinstance(groups, int) and groups < 0:
        raise ValueError("groups: a negative number of groups; give 0 for groups by size")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is a DistributedOptimizer already; wrap it once")
    names = _checked_names(optimizer, named_parameters)
    base = type(optimizer)
    wrapped: Any = optimizer
    wrapped.__class__ = type(base.__name__, (_Distributed, base), {})
    wrapped.__dict__.pop("step", None)  # of a learning rate scheduler; it would go past ours
    wrapped._hvd_begin(
        names,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        group,
    )
    return wrapped
