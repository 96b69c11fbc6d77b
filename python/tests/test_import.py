"""`import hvd_elastic` loads little: each process of a job pays for it, also one that replaces a dead worker."""

from __future__ import annotations

import subprocess
import sys

from conftest import TREE

# Each of these costs milliseconds, and is loaded where it is used.
LATE = {"ctypes.util", "multiprocessing", "numpy", "pathlib", "shutil", "subprocess", "tempfile", "torch"}


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after this statement; -S: without those of its site-packages."""
    code = f"import sys; sys.path.insert(0, {str(TREE / 'python')!r}); {statement}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True)
    return set(told.stdout.split())


def test_import_loads_no_costly_module() -> None:
    assert "hvd_elastic._session" in modules_after("import hvd_elastic")
    assert modules_after("import hvd_elastic") & LATE == set()


def test_list_names_modules() -> None:
    """A module that Python has renamed would never be found, and the list would say nothing."""
    names = LATE - {"numpy", "torch"}
    assert names <= modules_after("import " + ", ".join(sorted(names)))
