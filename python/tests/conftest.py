"""Jobs for tests: programs under hvd-elastic on loopback hosts, in a folder of their own.

    def test_it(job):
        job.start("sums.py", "100", np=3)
        job.await_line("step 10")
        job.kill_worker(rank=1)
        job.finish(0)

Every process of a job has HVD_PY_TEST=FOLDER in its environment, so that what it leaves behind is found.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

TESTS = Path(__file__).resolve().parent
TREE = TESTS.parent.parent
PATIENCE = 100.0  # seconds: the bound of a hang


def build_folder() -> Path:
    """The build whose programs and library are tested: HVD_BUILD, or the preset python."""
    return Path(os.environ.get("HVD_BUILD", TREE / "build" / "python"))


def pytest_configure(config: pytest.Config) -> None:
    """The tests and the jobs that they start use this build."""
    os.environ.setdefault("HVD_LIBRARY", str(build_folder() / "worker" / "libhvd.so"))
    sys.path.insert(0, str(TREE / "python"))


class Job:
    """A job of worker programs in Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = folder / "hosts"
        self.discovery = folder / "hosts.sh"
        self.discovery.write_text(f"#!/bin/sh\ncat '{self.hosts}'\n")
        self.discovery.chmod(0o755)
        self.output = b""
        self.python = sys.executable
        self.elastic = str(build_folder() / "driver" / "hvd-elastic")
        self.installed = False  # the package is one that self.python finds by itself
        self.driver: Optional[subprocess.Popen[bytes]] = None
        self._log = folder / "driver.log"

    def start(self, program: str, *words: str, np: int = 2, hosts: str = "", options: tuple[str, ...] = ()) -> None:
        """Starts tests/programs/PROGRAM with these words on np workers of these hosts ("127.0.0.1:2")."""
        self.set_hosts(hosts or f"127.0.0.1:{np}")
        path = TESTS / "programs" / program
        self.start_command([self.python, str(path), *words], np=np, options=options)

    def set_hosts(self, hosts: str) -> None:
        """Says which hosts there are: "127.0.0.1:2 127.0.0.2:1"."""
        fresh = self.folder / "hosts.new"
        fresh.write_text("".join(f"{host}\n" for host in hosts.split()))
        fresh.replace(self.hosts)

    def environment(self) -> dict[str, str]:
        """The environment of the job: none of another job's variables, and a home of its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HVD_", "HOROVOD_", "XDG_"))}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept |= {
            "HOME": str(home),
            "TMPDIR": str(home),
            "HVD_PY_TEST": str(self.folder),
            "HVD_TRACEABLE": "1",
            "HVD_RESTART": "false",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        if not self.installed:
            kept |= {"PYTHONPATH": str(TREE / "python"), "HVD_LIBRARY": os.environ["HVD_LIBRARY"]}
        return kept

    def start_command(self, command: list[str], *, np: int = 2, options: tuple[str, ...] = ()) -> None:
        """Starts a command as the workers of the job."""
        arguments = ["-np", str(np), "--min-np", "1", "--host-discovery-script", str(self.discovery)]
        limits = ["--discovery-interval", "100ms", "--blacklist-cooldown-range", "0", "0"]
        limits += ["--kill-grace", "2s", "--gather", "1s", "--job", f"py-{os.getpid()}-{id(self)}"]
        limits += ["--state-dir", str(self.folder / "state")]
        self.driver = subprocess.Popen(
            [self.elastic, *limits, *arguments, *options, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log.open("ab"),
            env=self.environment(),
            cwd=self.folder,
        )

    def await_line(self, regex: str, count: int = 1) -> list[str]:
        """Waits until so many lines of the workers' output match, and returns them."""
        assert self.driver is not None
        assert self.driver.stdout is not None
        pattern = re.compile(regex)
        until = time.monotonic() + PATIENCE
        while True:
            found = [line for line in self.lines() if pattern.search(line)]
            if len(found) >= count:
                return found
            left = until - time.monotonic()
            ready, _, _ = select.select([self.driver.stdout], [], [], max(left, 0))
            data = os.read(self.driver.stdout.fileno(), 65536) if ready else b""
            assert data, f"'{regex}' did not come {count} times\n{self.said()}"
            self.output += data

    def lines(self) -> list[str]:
        """The lines that the workers have printed so far, each with its [rank host:slot]."""
        return self.output.decode(errors="replace").splitlines()

    def said(self) -> str:
        """All that the job has said, for a test that fails."""
        return f"---- output\n{self.output.decode(errors='replace')}\n---- driver\n{self._log.read_text()}"

    def processes(self, variable: str = "") -> list[int]:
        """The processes of this job, or those whose environment has this variable (NAME=VALUE)."""
        mark = f"HVD_PY_TEST={self.folder}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in variables and (not variable or any(v.startswith(variable.encode()) for v in variables)):
                found.append(int(path.parent.name))
        return found

    def worker(self, line: str) -> int:
        """The process that a line of the output names: "pid 123"."""
        found = re.search(r"pid (\d+)", line)
        assert found, line
        return int(found.group(1))

    def finish(self, code: int = 0) -> list[str]:
        """Waits for the end of the job, which must have this exit code, and returns all lines."""
        assert self.driver is not None
        try:
            self.output += self.driver.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            pytest.fail(f"the job does not end\n{self.said()}")
        assert self.driver.returncode == code, f"exit code {self.driver.returncode}\n{self.said()}"
        until = time.monotonic() + PATIENCE
        for pid in self.processes():
            self._await_end(pid, until)
        return self.lines()

    def _await_end(self, pid: int, until: float) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        ready, _, _ = select.select([handle], [], [], max(until - time.monotonic(), 0))
        os.close(handle)
        assert ready, f"process {pid} is left\n{self.said()}"

    def clean_up(self) -> None:
        """Kills what is left of the job."""
        while left := self.processes():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self._await_end(pid, time.monotonic() + PATIENCE)
        if self.driver is not None:
            self.driver.communicate()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job in a folder of its own, of which nothing is left after the test."""
    made = Job(tmp_path)
    yield made
    made.clean_up()
