"""A DDP program that knows nothing of hvd-elastic: a death ends its processes, and the driver starts them again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TREE, Job

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "plain.py")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the entry points of the wheel, as its installation leaves them."""
    folder = tmp_path / "site" / "hvd_elastic-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: hvd-elastic\nVersion: 0\n")
    tables = re.findall(
        r'^\[project\.entry-points\."(.*)"\]\n((?:\w+ = ".*"\n)+)', (TREE / "pyproject.toml").read_text(), re.M
    )
    assert [name for name, _ in tables] == ["torch.backends", "torch.distributed.backends"]
    text = "".join(f"[{name}]\n{lines}\n" for name, lines in tables)
    (folder / "entry_points.txt").write_text(text.replace('"', ""))
    return folder.parent


def run_with_a_death(job: Job, command: list[str], options: tuple[str, ...]) -> None:
    job.set_hosts("127.0.0.1:2")
    job.start_command([*command, PROGRAM, "20", str(job.folder)], np=2, options=("--min-np", "2", *options))
    first = job.await_line("rank 1 of 2 slot . from epoch 0")
    job.await_line("epochs 3$")
    os.kill(job.worker(first[0]), signal.SIGKILL)
    lines = job.finish()
    starts = [line for line in lines if "from epoch" in line]
    assert len(starts) == 4, job.said()
    assert all("from epoch 0 " not in line for line in starts[2:]), job.said()
    assert "Revoked" in job.said(), job.said()
    assert any("epochs 20" in line for line in lines), job.said()
    sums = {line.split("parameters ")[1] for line in lines if "parameters" in line}
    assert len(sums) == 1, job.said()


def test_entry_points(job: Job, installed: Path) -> None:
    """`python plain.py` with the wheel's entry points, and HVD_BACKEND=hvd."""
    paths = f"PYTHONPATH={TREE / 'python'}{os.pathsep}{installed}"
    run_with_a_death(job, [sys.executable], ("--env", paths, "--env", "HVD_BACKEND=hvd"))


@pytest.mark.skipif("HVD_TORCH_LARGE" not in os.environ, reason="HVD_TORCH_LARGE=1 runs it")
def test_run(job: Job) -> None:
    """The same through `python -m hvd_elastic.torch.run`, without entry points."""
    run_with_a_death(job, [sys.executable, "-m", "hvd_elastic.torch.run"], ())


def test_by_name(job: Job, installed: Path) -> None:
    """`import torch` does not load libhvd; init_process_group("hvd") does. No other value of HVD_BACKEND is taken."""
    code = (
        "import sys, torch, torch.distributed as dist\n"
        "print('loaded', 'hvd_elastic' in sys.modules, dist.is_backend_available('hvd'))\n"
        "dist.init_process_group('hvd')\n"
        "print('world', dist.get_world_size(), dist.get_backend())\n"
        "dist.destroy_process_group()\n"
        "import os; os.environ['HVD_BACKEND'] = 'odd'\n"
        "dist.init_process_group('gloo')\n"
    )
    paths = os.pathsep.join([str(TREE / "python"), str(installed)])
    environment = {**job.environment(), "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert said.stdout.splitlines() == ["loaded False True", "world 1 hvd"], said.stdout + said.stderr
    assert "HVD_BACKEND=odd in the environment: the one value is hvd" in said.stderr
