"""The wheel in an empty environment of each Python from 3.9 to 3.13 that this machine has; and the sdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TREE, Job, built_wheels, environment_with

OLDEST, NEWEST = 9, 13  # of Python 3


def python_of(minor: int) -> str:
    """The program of Python 3.MINOR: in the PATH, or among those of pyenv; empty: there is none."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [str(path) for path in sorted(versions.glob(f"3.{minor}.*/bin/python"))]
    for program in [shutil.which(f"python3.{minor}"), *named]:
        ask = [program or "", "-c", "import sys, venv; print(sys.version_info[1])"]
        if program and subprocess.run(ask, capture_output=True, text=True, check=False).stdout == f"{minor}\n":
            return program
    return ""


@pytest.fixture(scope="module")
def wheels() -> list[str]:
    return built_wheels("sdist")


@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_wheel(wheels: list[str], minor: int, job: Job, tmp_path: Path) -> None:
    """A job of the first example, with nothing but the wheel."""
    python = python_of(minor)
    if not python:
        pytest.skip(f"there is no Python 3.{minor}, neither in the PATH nor in pyenv")
    programs = environment_with(tmp_path / "environment", wheels[:1], python)
    job.installed = True
    job.python = str(programs / "python")
    job.elastic = str(programs / "hvd-elastic")
    job.set_hosts("127.0.0.1:2")
    job.start_command([job.python, str(TREE / "python" / "examples" / "sums.py")], np=2)
    lines = job.finish()
    totals = [line.split("total ")[1] for line in lines if "total" in line]
    assert totals == ["10000.0 after 10000 steps"] * 2, job.said()


def test_sdist(wheels: list[str], tmp_path: Path) -> None:
    """The sdist has all that the build reads, and no tests. HVD_PY_LARGE=1: it is built, installed and imported."""
    packed = sorted((TREE / "build" / "wheel").glob("hvd_elastic-*.tar.gz"))
    assert len(packed) == 1
    subprocess.run(["tar", "-xf", str(packed[0]), "-C", str(tmp_path)], check=True)
    folder = next(tmp_path.glob("hvd_elastic-*"))
    for name in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "python/README.md", "include/hvd/hvd.h", "PKG-INFO"):
        assert (folder / name).is_file(), name
    for package in ("python/hvd_elastic", "python/hvd_elastic_autoload", "worker", "driver", "agent", "tools"):
        there = {path.relative_to(TREE) for path in (TREE / package).rglob("*.[ch]")}
        there |= {path.relative_to(TREE) for path in (TREE / package).rglob("*.py")}
        assert there, package
        assert not [name for name in there if not (folder / name).is_file()]
    assert not (folder / "tests").exists()
    if "HVD_PY_LARGE" not in os.environ:
        return
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    install = ["--python", str(environment / "bin" / "python"), "install", "-q", "--no-index", "--no-deps"]
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = tmp_path / "made"
    build = ["wheel", "-q", "--no-build-isolation", "--no-deps", str(folder), "-w", str(made)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, env={**os.environ, "PATH": tools})
    subprocess.run([sys.executable, "-m", "pip", *install, *map(str, made.glob("*.whl"))], check=True)
    said = subprocess.run(
        [str(environment / "bin" / "python"), "-c", "import hvd_elastic; print(hvd_elastic.__version__)"],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("HVD_")},
    )
    assert folder.name == f"hvd_elastic-{said.stdout.strip()}"
