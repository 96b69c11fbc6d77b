"""The programs of the package as console scripts: each becomes the program, which so gets signals itself."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
_FOLDER = {"hvd-elastic": "driver", "hvd-agent": "agent"}  # of the build; others are in tools


def find(name: str) -> str:
    """Returns the path of a program: in the wheel, in the build of a developer, or in PATH."""
    bundled = HERE / "bin" / name
    if bundled.exists():
        return str(bundled)
    tree = HERE.parent.parent
    if (tree / "include" / "hvd" / "hvd.h").exists():
        for preset in ("python", "release"):
            built = tree / "build" / preset / _FOLDER.get(name, "tools") / name
            if built.exists():
                return str(built)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is neither in the package nor in PATH; install the wheel of hvd-elastic")
    return found


def become(name: str) -> NoReturn:
    """Replaces this process by the program."""
    path = find(name)
    os.execv(path, [path, *sys.argv[1:]])


def elastic() -> NoReturn:
    """hvd-elastic: runs a job."""
    become("hvd-elastic")


def agent() -> NoReturn:
    """hvd-agent: starts the workers of a host."""
    become("hvd-agent")


def audit() -> NoReturn:
    """hvd-audit: proves that each sample was used once."""
    become("hvd-audit")


def hosts() -> NoReturn:
    """hvd-hosts: tries a discovery script."""
    become("hvd-hosts")


def timeline() -> NoReturn:
    """hvd-timeline: reads a timeline."""
    become("hvd-timeline")
