"""A worker with children: by fork, by multiprocessing's fork, and by spawn. Prints "ok NAME" for each."""

from __future__ import annotations

import multiprocessing
import os
import sys

import hvd_elastic as hvd
import numpy

hvd.init()


def look(_: int) -> tuple[int, int, str]:
    """What a child can do: ask for the place, but not make collectives."""
    hvd.init()
    try:
        hvd.allreduce(1.0)
    except hvd.HvdError as error:
        return hvd.rank(), hvd.size(), str(error)
    return hvd.rank(), hvd.size(), ""


def main() -> None:
    hvd.barrier()
    rank, size = hvd.rank(), hvd.size()
    pid = os.fork()
    if pid == 0:
        got = look(0)
        os._exit(0 if got[:2] == (rank, size) and "child of a worker" in got[2] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    print("ok fork", flush=True)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            for got in pool.map(look, range(4)):
                assert got[:2] == (rank, size), got
                assert "child of a worker" in got[2], got
        assert (hvd.allreduce(numpy.ones(3), op=hvd.Sum) == size).all()
        print("ok", method, flush=True)


if __name__ == "__main__":
    main()
    sys.exit(0)
