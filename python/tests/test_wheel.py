"""The wheel alone, in an empty environment: a job of a script without numpy, in which a worker dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import TREE, Job, built_wheels, environment_with


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of an environment in which only the wheel is installed."""
    wheels = built_wheels()
    assert re.search(r"/hvd_elastic-[0-9.]+-py3-none-manylinux_\d+_\d+_\w+\.whl$", wheels[0])
    assert re.search(r"/hvd_elastic_horovod-[0-9.]+-py3-none-any\.whl$", wheels[1])
    return environment_with(tmp_path_factory.mktemp("fresh"), wheels[:1])


def test_kill(installed: Path, job: Job) -> None:
    job.installed = True
    job.python = str(installed / "python")
    job.elastic = str(installed / "hvd-elastic")
    script = str(TREE / "python" / "examples" / "sums.py")
    job.set_hosts("127.0.0.1:3")
    job.start_command([job.python, script], np=3)
    job.await_line("of 3 from step 0", 3)
    victims = job.processes("HVD_RANK=1")
    os.kill(victims[0], signal.SIGKILL)
    lines = job.finish()
    assert any("of 2 from step" in line for line in lines), job.said()
    totals = {line.split("total ")[1] for line in lines if "total" in line}
    assert totals == {"10000.0 after 10000 steps"}, job.said()


def test_programs(installed: Path) -> None:
    """Each console script becomes the program of the wheel, with its exit code."""
    for name in ("hvd-elastic", "hvd-agent", "hvd-audit", "hvd-hosts", "hvd-timeline"):
        said = subprocess.run([str(installed / name), "--help"], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        assert name in said.stdout
    wrong = subprocess.run([str(installed / "hvd-elastic"), "--no-such-option"], capture_output=True, check=False)
    assert wrong.returncode == 2


def test_entry_points(installed: Path) -> None:
    """What `import torch` calls exists, and does not load the package."""
    code = (
        "import importlib.metadata as m, sys\n"
        "points = [p for d in m.distributions() for p in d.entry_points if 'torch' in p.group]\n"
        "found = {p.group: p.load().__name__ for p in points}\n"
        "print(sorted(found.items()), 'hvd_elastic' in sys.modules)\n"
    )
    said = subprocess.run([str(installed / "python"), "-c", code], capture_output=True, text=True, check=True)
    wanted = [("torch.backends", "autoload"), ("torch.distributed.backends", "register")]
    assert said.stdout == f"{wanted} False\n"


def test_nothing_else(installed: Path) -> None:
    """Every library that the files of the wheel need is in it, or one that each Linux has (libc, libz)."""
    package = next((installed.parent / "lib").glob("python3*/site-packages/hvd_elastic"))
    for file in [*package.glob("bin/*"), *package.glob("lib/*")]:
        listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            name, _, path = line.strip().partition(" => ")
            libc = re.match(r"(.*/ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|z)\.so)", name)
            assert libc or "/hvd_elastic.libs/" in path, f"{file.name} needs {line.strip()}"
