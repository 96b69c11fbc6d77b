"""A DDP program that knows nothing of hvd-elastic: a death ends its processes, and the driver starts them again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TREE, Job

PROGRAM = str(TREE / "python" / "examples" / "plain_ddp.py")


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
    job.await_line("rank 1 of 2 slot . by hvd from epoch 0")
    job.await_line("epochs 3$")
    job.kill_worker(1, "plain_ddp.py")
    lines = job.finish()
    starts = [line for line in lines if "from epoch" in line]
    assert len(starts) == 4, job.said()
    assert all("from epoch 0 " not in line for line in starts[2:]), job.said()
    assert "Revoked" in job.said(), job.said()
    assert "another worker was lost or has failed: the log of the driver names it" in job.said(), job.said()
    assert any("epochs 20" in line for line in lines), job.said()
    sums = {line.split("parameters ")[1] for line in lines if "parameters" in line}
    assert len(sums) == 1, job.said()


def test_entry_points(job: Job, installed: Path) -> None:
    """`python plain_ddp.py` with the wheel's entry points, and HVD_BACKEND=hvd."""
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


def test_other_backend_without_rank(job: Job, installed: Path) -> None:
    """Under hvd-elastic init_process_group("gloo") says which backend, or which variable, the program needs."""
    code = (
        "import torch.distributed as dist\n"
        "try:\n"
        "    dist.init_process_group('gloo')\n"
        "except ValueError as error:\n"
        "    print('told', error, flush=True)\n"
    )
    paths = f"PYTHONPATH={TREE / 'python'}{os.pathsep}{installed}"
    job.set_hosts("127.0.0.1:1")
    job.start_command([sys.executable, "-c", code], np=1, options=("--env", paths))
    told = [line for line in job.finish() if "told" in line]
    assert len(told) == 1, job.said()
    assert "environment variable RANK expected, but not set; this process runs under hvd-elastic" in told[0]
    remedy = (
        'use the backend "hvd", or start the job of an unmodified program with --env HVD_BACKEND=hvd or --torch-env'
    )
    assert told[0].endswith(remedy)


@pytest.mark.parametrize("way", ["error", "hang"])
def test_torch_env(job: Job, installed: Path, way: str) -> None:
    """--torch-env: the program keeps gloo. A death ends the other process too, also one that would hang."""
    job.set_hosts("127.0.0.1:2")
    paths = f"PYTHONPATH={TREE / 'python'}{os.pathsep}{installed}"
    command = [sys.executable, PROGRAM, "20", str(job.folder)]
    if way == "hang":
        command = [sys.executable, str(Path(__file__).resolve().parent / "programs" / "hangs.py"), str(job.folder)]
    job.start_command(command, np=2, options=("--min-np", "2", "--torch-env", "--env", paths))
    job.await_line("rank 1 of 2 slot . by gloo from epoch 0")
    job.await_line("epochs 3$")
    job.kill_worker(1, Path(command[1]).name)
    lines = job.finish()
    starts = [line for line in lines if "from epoch" in line]
    assert len(starts) == 4, job.said()
    assert all(" 0 " not in line.split("from epoch")[1] + " " for line in starts[2:]), job.said()
    if way == "hang":
        assert "another worker was lost 5 s ago, and this one has not ended; it ends now" in job.said(), job.said()
        return
    sums = {line.split("parameters ")[1] for line in lines if "parameters" in line}
    assert len(sums) == 1, job.said()


def test_torch_env_is_complete(job: Job, installed: Path) -> None:
    """What torchrun sets is there and true, on two hosts; without a job --torch-env has no meaning."""
    code = (
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(1); dist.all_reduce(x)\n"
        "names = 'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR'.split()\n"
        "print('env', *[os.environ[name] for name in names], int(x), os.environ['MASTER_PORT'].isdigit(), flush=True)\n"
    )
    job.set_hosts("127.0.0.1:2 127.0.0.2:1")
    paths = f"PYTHONPATH={TREE / 'python'}{os.pathsep}{installed}"
    job.start_command([sys.executable, "-c", code], np=3, options=("--min-np", "3", "--torch-env", "--env", paths))
    lines = sorted(line.split("] ")[1] for line in job.finish() if "env" in line)
    assert lines == [
        "env 0 3 0 2 0 127.0.0.1 3 True",
        "env 1 3 1 2 0 127.0.0.1 3 True",
        "env 2 3 0 1 1 127.0.0.1 3 True",
    ], job.said()
    alone = subprocess.run(
        [sys.executable, "-c", "import os, torch; print('RANK' in os.environ)"],
        env={**job.environment(), "PYTHONPATH": paths.partition("=")[2], "HVD_TORCH_ENV": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert alone.stdout == "False\n", alone.stdout + alone.stderr
