"""What surrounds a program is not as it should be: PyTorch is too old or missing, or the agent is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TREE, Job


def said_by(job: Job, code: str, **more: str) -> str:
    """What a program says on standard error; it fails."""
    environment = {**job.environment(), **more}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert said.returncode == 1, said.stdout + said.stderr
    return said.stderr


@pytest.mark.parametrize("version", ["1.13.1", "2.3.1+cpu", "2.4.0a0"])
@pytest.mark.parametrize("module", ["hvd_elastic.torch", "hvd_elastic._horovod.torch"])
def test_old_torch(job: Job, tmp_path: Path, version: str, module: str) -> None:
    """A PyTorch that is too old is refused, with its version and the one that is wanted, before it is used."""
    fake = tmp_path / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text(f"__version__ = {version!r}\n")
    said = said_by(job, f"import {module}", PYTHONPATH=f"{fake.parent}:{TREE / 'python'}")
    if version == "2.4.0a0":
        assert "too old" not in said
    else:
        assert f"ImportError: hvd_elastic.torch: PyTorch {version} is too old; install PyTorch 2.4 or later" in said


def test_no_torch(job: Job) -> None:
    said = said_by(job, "import sys; sys.modules['torch'] = None; import hvd_elastic.torch")
    assert "PyTorch" in said


@pytest.mark.parametrize("agent", ["/nonexistent/agent", "@hvd-no-such-agent"])
def test_no_driver(job: Job, agent: str) -> None:
    """A worker whose agent is gone gets an error in words, at once."""
    code = (
        "import hvd_elastic as hvd\n"
        "try: hvd.init()\n"
        "except hvd.HvdError as error: raise SystemExit(f'{type(error).__name__} {error}')\n"
    )
    said = said_by(job, code, HVD_AGENT=agent, HVD_INCARNATION="1", HVD_JOB="j", HVD_HOST="h", HVD_SLOT="0")
    assert said.startswith("Lost the agent at "), said
    assert agent in said
    assert "; if the agent has ended, this process must end too" in said


@pytest.fixture
def real_horovod(tmp_path: Path) -> str:
    """PYTHONPATH with a package horovod that is not ours."""
    real = tmp_path / "site" / "horovod"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("__version__ = 'real'\n")
    return f"{real.parent}:{TREE / 'python'}"


def test_horovod_imported_before(job: Job, real_horovod: str) -> None:
    """The drop-in does not take the place of a real Horovod that the program uses already."""
    code = "import horovod, hvd_elastic.horovod; hvd_elastic.horovod.install()"
    said = said_by(job, code, PYTHONPATH=real_horovod)
    assert "ImportError: horovod has been imported already, from " in said
    assert "call hvd_elastic.horovod.install() before the first import of horovod" in said


def test_drop_in_beside_horovod(job: Job, tmp_path: Path, real_horovod: str) -> None:
    """`python -m hvd_elastic.horovod` serves the name, also where a real Horovod is installed; others keep that one."""
    program = tmp_path / "program.py"
    program.write_text("import horovod; raise SystemExit(horovod.__version__)\n")
    environment = {**job.environment(), "PYTHONPATH": real_horovod}
    for words, wanted in ((["-m", "hvd_elastic.horovod"], "0.28.1+hvd"), ([], "real")):
        command = [sys.executable, *words, str(program)]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
        assert said.stderr.strip().startswith(wanted), said.stderr
