"""Horovod's own examples, unmodified, on made data: found by HVD_HOROVOD_SOURCE, and never stored here."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Job

PREFIX = [sys.executable, "-m", "hvd_elastic.horovod"]
BOTH = ("--min-np", "2")  # a round without the replacement of a worker that has died is none
SMALL = ["--model", "squeezenet1_1", "--batch-size", "2", "--num-warmup-batches", "1", "--num-batches-per-iter", "2"]


def path_of(source: Path, name: str) -> str:
    """The path of an example; a checkout may hold a part of them."""
    path = source / "examples" / name
    if not path.exists():
        pytest.skip(f"HVD_HOROVOD_SOURCE={source}: there is no examples/{name}")
    return str(path)


def mnist(folder: Path, train: int, test: int) -> str:
    """Makes files as those of MNIST, of random pictures."""
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    draw = random.Random(5)
    for name, count in (("train", train), ("t10k", test)):
        sizes = b"".join(size.to_bytes(4, "big") for size in (count, 28, 28))
        (raw / f"{name}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + sizes + draw.randbytes(count * 28 * 28))
        labels = bytes(draw.randrange(10) for _ in range(count))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + sizes[:4] + labels)
    return str(folder / "data")


def pictures(folder: Path, count: int) -> str:
    """Makes a folder of pictures of two classes, as those of ImageNet lie."""
    from PIL import Image

    draw = random.Random(7)
    for kind in ("cat", "dog"):
        (folder / kind).mkdir(parents=True)
        for number in range(count // 2):
            picture = Image.frombytes("RGB", (32, 32), draw.randbytes(32 * 32 * 3))
            picture.save(folder / kind / f"{number}.png")
    return str(folder)


def start(job: Job, program: str, words: Sequence[str]) -> None:
    """Starts a program on two workers, with what it says on stderr in its output."""
    job.set_hosts("127.0.0.1:2")
    command = ["sh", "-c", 'exec "$@" 2>&1', "sh", *PREFIX, program, *words]
    job.start_command(command, options=BOTH)


def test_elastic_mnist(job: Job, horovod_source: Path) -> None:
    program = path_of(horovod_source, "elastic/pytorch/pytorch_mnist_elastic.py")
    words = ["--data-dir", mnist(job.folder, 640, 100), "--epochs", "20", "--log-interval", "1"]
    start(job, program, words)
    job.await_line("Train Epoch: 3 ")
    job.kill_worker(1, program)
    lines = job.finish()
    assert "round 2 (recovery): size 2" in job.said()
    assert any("Train Epoch: 20 " in line for line in lines), job.said()
    assert sum("Test set: Average loss" in line for line in lines) == 1, job.said()


def test_elastic_synthetic_benchmark(job: Job, horovod_source: Path) -> None:
    program = path_of(horovod_source, "elastic/pytorch/pytorch_synthetic_benchmark_elastic.py")
    start(job, program, [*SMALL, "--num-iters", "6"])
    job.await_line("Iter #1:")
    job.kill_worker(1, program)
    lines = job.finish()
    assert "round 2 (recovery): size 2" in job.said()
    assert any("Total img/sec on 2 CPU" in line for line in lines), job.said()


def test_elastic_imagenet(job: Job, horovod_source: Path) -> None:
    for module in ("tensorboard", "tqdm"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not there; ./dev setup torch fetches it")
    program = path_of(horovod_source, "elastic/pytorch/pytorch_imagenet_resnet50_elastic.py")
    words = ["--train-dir", pictures(job.folder / "train", 8), "--val-dir", pictures(job.folder / "val", 4)]
    start(job, program, [*words, "--batch-size", "2", "--val-batch-size", "2", "--epochs", "2"])
    job.await_line("Train Epoch .*#1: 100%")
    job.kill_worker(1, program)
    lines = job.finish()
    assert "round 2 (recovery): size 2" in job.said()
    assert any("Validate Epoch  #2: 100%" in line for line in lines), job.said()
    assert (job.folder / "checkpoint-2.pth.tar").exists()


def test_mnist(job: Job, horovod_source: Path) -> None:
    program = path_of(horovod_source, "pytorch/pytorch_mnist.py")
    words = ["--data-dir", mnist(job.folder, 640, 100), "--epochs", "2", "--fp16-allreduce"]
    start(job, program, [*words, "--gradient-predivide-factor", "2"])
    assert sum("Test set: Average loss" in line for line in job.finish()) == 2, job.said()


def test_mnist_by_horovod_run(job: Job, horovod_source: Path) -> None:
    """The example starts its own job, from a process that is no worker."""
    program = path_of(horovod_source, "pytorch/pytorch_mnist.py")
    words = ["--data-dir", mnist(job.folder, 640, 100), "--epochs", "1", "--num-proc", "2", "--communication", "gloo"]
    said = job.run([*PREFIX, program, *words])
    assert said.count("Test set: Average loss") == 1, said


def test_synthetic_benchmark(job: Job, horovod_source: Path) -> None:
    start(job, path_of(horovod_source, "pytorch/pytorch_synthetic_benchmark.py"), [*SMALL, "--num-iters", "2"])
    assert any("Total img/sec on 2 CPU" in line for line in job.finish()), job.said()


def test_imagenet(job: Job, horovod_source: Path) -> None:
    program = path_of(horovod_source, "pytorch/pytorch_imagenet_resnet50.py")
    words = ["--train-dir", pictures(job.folder / "train", 8), "--val-dir", pictures(job.folder / "val", 4)]
    start(job, program, [*words, "--batch-size", "2", "--val-batch-size", "2", "--epochs", "1"])
    assert any("Validate Epoch  #1: 100%" in line for line in job.finish()), job.said()
