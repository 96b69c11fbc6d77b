"""The reductions, by the names under which torch code knows them."""

from __future__ import annotations

Average = "average"
Sum = "sum"
Min = "min"
Max = "max"
Product = "product"
