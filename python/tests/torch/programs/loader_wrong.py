"""Wrong uses of a Sampler, each of which is an error in words. A job of one worker."""

from __future__ import annotations

from collections.abc import Callable

import hvd_elastic.torch as hvt
import torch
from torch.utils.data import DataLoader

data = list(range(10))
sampler = hvt.Sampler(data, batch_size=4)
loader: DataLoader[int] = DataLoader(data, batch_sampler=sampler)  # type: ignore[arg-type]
state = hvt.State(w=torch.zeros(1))


def expect(name: str, text: str, kind: type[BaseException], function: Callable[[], object]) -> None:
    """The function raises this kind of error, with this text."""
    try:
        function()
    except kind as error:
        print("ok" if text in str(error) else f"WRONG {error}", name)
    else:
        print("WRONG: no error", name)


def same(name: str, got: object, wanted: object) -> None:
    print("ok" if got == wanted else f"WRONG {got}", name)


plain: DataLoader[int] = DataLoader(data, batch_size=2)  # type: ignore[arg-type]
expect("loader", "DataLoader(dataset, batch_sampler=", TypeError, lambda: next(state.batches(plain)))
expect("mode", "there is no mode 'odd'", ValueError, lambda: hvt.Sampler(data, 4, mode="odd"))
state.commit()
before = torch.get_rng_state()
batches = state.batches(loader)
first = next(batches).tolist()
same("generator", torch.equal(torch.get_rng_state(), before), True)
state.restore()
again = state.batches(loader)
same("rolled back", next(again).tolist(), first)
expect("two at once", "once at a time", RuntimeError, lambda: list(batches))
rest = [number for batch in again for number in batch.tolist()]
same("epoch", sorted(first + rest), data)
same("ended", (sampler.epoch, len(sampler)), (1, 3))
list(loader)
expect("plain", "iterate over state.batches(loader)", RuntimeError, lambda: list(loader))
