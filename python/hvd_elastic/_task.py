"""A worker of hvd_elastic.launch: python -m hvd_elastic._task TASK RESULT."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import hvd_elastic


def main() -> None:
    """Calls the function of the task; rank 0 writes the results of all ranks."""
    task, result = Path(sys.argv[1]), Path(sys.argv[2])
    func, args, kwargs = pickle.loads(task.read_bytes())
    hvd_elastic.init()

    @hvd_elastic.run
    def body() -> list[Any]:
        return hvd_elastic.allgather_object(func(*args, **kwargs))

    results = body()
    if hvd_elastic.rank() == 0:
        fresh = result.with_suffix(".new")
        fresh.write_bytes(pickle.dumps(results))
        fresh.replace(result)


if __name__ == "__main__":
    main()
