"""Lets a program that imports horovod run over hvd_elastic: `python -m hvd_elastic.horovod train.py ARGUMENT...`.

`import horovod.torch` then finds `hvd_elastic._horovod.torch`. Nothing called horovod is installed, and no
other process is changed. A program may also call `install()` before it imports horovod. The second wheel,
hvd-elastic-horovod, has a package named horovod, which calls `become()`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Optional

_REAL = "hvd_elastic._horovod"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds horovod and its modules in this package."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        del path, target
        if fullname != "horovod" and not fullname.startswith("horovod."):
            return None
        real = importlib.util.find_spec(_REAL + fullname[len("horovod") :])
        if real is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=real.submodule_search_locations is not None)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(_REAL + spec.name[len("horovod") :])

    def exec_module(self, module: ModuleType) -> None:
        """The module has been executed under its own name."""


def install() -> None:
    """Makes `import horovod` find hvd_elastic's modules in this process."""
    loaded = sys.modules.get("horovod")
    if loaded is not None and not getattr(loaded, "__hvd_elastic__", False):
        raise ImportError(
            f"horovod has been imported already, from {getattr(loaded, '__file__', 'elsewhere')}; "
            "call hvd_elastic.horovod.install() before the first import of horovod"
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def become(name: str) -> None:
    """Puts the drop-in in the place of a package of the second wheel. Raises ImportError beside a real Horovod."""
    from importlib import metadata

    try:
        real = metadata.version("horovod")
    except metadata.PackageNotFoundError:
        pass
    else:
        raise ImportError(
            f"horovod {real} and hvd-elastic-horovod are both installed, and each has files of the package horovod; "
            "pip uninstall both, then install the one that you want"
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[name] = importlib.import_module(_REAL)


def main() -> None:
    """Runs a program, or with -m a module, as python does."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print("usage: python -m hvd_elastic.horovod PROGRAM.py ARGUMENT... | -m MODULE ARGUMENT...")
        raise SystemExit(0 if words else 2)
    install()
    if words[0] == "-m" and len(words) > 1:
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = words
    sys.path.insert(0, str(importlib.import_module("pathlib").Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    importlib.import_module("hvd_elastic.horovod").main()
