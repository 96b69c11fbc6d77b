"""Both wheels in an empty environment with PyTorch: `horovodrun -np 2 python train.py`."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from conftest import Job, built_wheels, environment_with

PROGRAM = str(Path(__file__).resolve().parent / "programs" / "wheel_train.py")


def test_train(job: Job) -> None:
    job.installed = True
    programs = environment_with(job.folder / "fresh", built_wheels())
    packages = next((programs.parent / "lib").glob("python3*/site-packages"))
    (packages / "torch.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    path = f"PATH={programs}:{os.environ['PATH']}"
    said = job.run(["env", path, "horovodrun", "-np", "2", "-H", "127.0.0.1:2", "python", PROGRAM])
    assert sorted(line.split("] ")[1] for line in said.splitlines()) == [
        f"rank {rank} of 2 from hvd_elastic._horovod.torch" for rank in (0, 1)
    ]
