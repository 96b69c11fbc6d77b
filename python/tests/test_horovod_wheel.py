"""The wheel hvd-elastic-horovod beside hvd-elastic: the name horovod, and the program horovodrun."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Job, built_wheels, environment_with
from hvd_elastic._horovod.runner.launch import translated


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of an environment in which both wheels are installed."""
    return environment_with(tmp_path_factory.mktemp("fresh"), built_wheels())


def said_by(job: Job, command: list[str], code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a program of the environment, outside of the tree."""
    job.installed = True
    said = subprocess.run(
        command, capture_output=True, text=True, env=job.environment(), cwd=job.folder, check=False, timeout=100
    )
    assert said.returncode == code, f"{said.stdout}\n{said.stderr}"
    return said


def test_horovodrun(installed: Path, job: Job) -> None:
    horovodrun = str(installed / "horovodrun")
    assert "[X] PyTorch" in said_by(job, [horovodrun, "--check-build"]).stdout
    options = ["--gloo", "--cycle-time-ms", "3.5", "-np", "2", "--disable-cache", "-H", "127.0.0.1:2"]
    said = said_by(job, [horovodrun, *options, "sh", "-c", 'echo rank $HOROVOD_RANK "$@"', "sh", "--disable-cache"])
    assert sorted(line.split("] ")[1] for line in said.stdout.splitlines()) == [
        "rank 0 --disable-cache",
        "rank 1 --disable-cache",
    ]
    notes = [line for line in said.stderr.splitlines() if line.startswith("horovodrun: ")]
    assert [note.split()[1] for note in notes] == ["--cycle-time-ms", "--disable-cache"]
    assert all("left out: operations run in the order of the program" in note for note in notes)
    refused = said_by(job, [horovodrun, "--mpi", "-np", "2", "true"], code=2)
    assert "--mpi" in refused.stderr


def test_import(installed: Path, job: Job) -> None:
    code = (
        "import horovod, horovod.common.exceptions as e; print(horovod.run.__module__, e.HorovodInternalError.mro()[1])"
    )
    said = said_by(job, [str(installed / "python"), "-c", code])
    assert said.stdout == "hvd_elastic._horovod.runner <class 'hvd_elastic._error.Revoked'>\n"


def test_beside_a_real_horovod(installed: Path, job: Job) -> None:
    packages = next((installed.parent / "lib").glob("python3*/site-packages"))
    real = packages / "horovod-0.28.1.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
    try:
        for command in ([str(installed / "python"), "-c", "import horovod.torch"], [str(installed / "horovodrun")]):
            said = said_by(job, command, code=1)
            assert "ImportError: horovod 0.28.1 and hvd-elastic-horovod are both installed" in said.stderr
            assert "pip uninstall both" in said.stderr
    finally:
        (real / "METADATA").unlink()
        real.rmdir()


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["-np", "2", "python", "train.py", "--disable-cache"], None),
        (["--cache-capacity=9", "-np", "2", "--", "a"], ["-np", "2", "--", "a"]),
        (
            ["--blacklist-cooldown-range", "1", "2", "--num-nccl-streams", "2", "a"],
            ["--blacklist-cooldown-range", "1", "2", "a"],
        ),
        (["--detach", "--disable-cache", "a"], None),
        (["--cycle-time-ms"], []),
    ],
)
def test_words(words: list[str], kept: list[str] | None) -> None:
    assert translated(words)[0] == (words if kept is None else kept)
