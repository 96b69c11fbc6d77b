"""The reductions: those of hvd_elastic, which may also be given by their names."""

from __future__ import annotations

from .._ops import Average, Max, Min, Op, Product, Sum

__all__ = ["Average", "Max", "Min", "Op", "Product", "Sum", "reduction"]


def reduction(op: str | Op) -> Op:
    """The reduction that is given as hvd_elastic.Average and its like, or by a name such as "average"."""
    if isinstance(op, Op):
        return op
    for known in Op:
        if known.name.lower() == op:
            return known
    raise ValueError(f"there is no reduction {op!r}; use {', '.join(known.name for known in Op)}")
