"""Runs an unmodified program over the backend hvd: `python -m hvd_elastic.torch.run PROGRAM.py ARGUMENT...`.

The same as `HVD_BACKEND=hvd python PROGRAM.py` where the wheel is not installed, so that `import torch` finds no entry
points. Under `hvd-elastic --torch-env` the program keeps its own backend.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from hvd_elastic_autoload import NAME, TORCH_ENV, join


def main() -> None:
    """Runs a program, or with -m a module, as python does."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print("usage: python -m hvd_elastic.torch.run PROGRAM.py ARGUMENT... | -m MODULE ARGUMENT...")
        raise SystemExit(0 if words else 2)
    if not os.environ.get(TORCH_ENV):
        os.environ.setdefault("HVD_BACKEND", NAME)
    join()
    if words[0] == "-m" and len(words) > 1:
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
