"""Which PyTorch this package works with. Imported first, so that another one is refused in words."""

from __future__ import annotations

OLDEST = (2, 4)


def _check() -> None:
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError("hvd_elastic.torch: PyTorch is not installed; pip install torch") from error
    version = str(getattr(torch, "__version__", "0"))
    numbers = tuple(int(number) for number in version.split("+")[0].split(".")[:2] if number.isdigit())
    if numbers < OLDEST:
        raise ImportError(
            f"hvd_elastic.torch: PyTorch {version} is too old; install PyTorch {OLDEST[0]}.{OLDEST[1]} or later"
        )


_check()
