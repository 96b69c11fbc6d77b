"""Jobs for tests: programs under hvd-elastic on loopback hosts, in a folder of their own.

    def test_it(job):
        job.start("sums.py", "100", np=3)
        job.await_line("step 10")
        job.kill_worker(1, "sums.py")
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
PATIENCE = 300.0  # seconds: the bound of a hang, also where each `import torch` takes a minute
SKIPPED = 77  # the SKIP_RETURN_CODE of ctest


def build_folder() -> Path:
    """The build whose programs and library are tested: HVD_BUILD, or the preset python."""
    return Path(os.environ.get("HVD_BUILD", TREE / "build" / "python"))


def command_of(pid: int) -> bytes:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("campaign", "python/tests/torch/test_deaths.py")
    group.addoption("--kills", type=int, default=3, help="deaths in each training of the campaign")
    group.addoption("--seeds", type=int, default=1, help="trainings, each with deaths of its own")
    group.addoption("--first-seed", type=int, default=1, help="the first of these seeds")


def pytest_configure(config: pytest.Config) -> None:
    """The tests and the jobs that they start use this build."""
    os.environ.setdefault("HVD_LIBRARY", str(build_folder() / "worker" / "libhvd.so"))
    sys.path.insert(0, str(TREE / "python"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """A run in which tests were skipped and none has passed is no success: ctest takes SKIPPED for a skipped test.

    The last line is the reason: ./dev test shows it.
    """
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    skipped = reporter.stats.get("skipped", [])
    ended_well = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if ended_well and skipped and "passed" not in reporter.stats:
        reasons = {report.longrepr[2].removeprefix("Skipped: ") for report in skipped}
        reporter.write_line(f"skipped: {'; '.join(sorted(reasons))}")
        session.exitstatus = SKIPPED


def built_wheels(*words: str) -> list[str]:
    """Makes the wheels, and returns their paths: of hvd-elastic, of hvd-elastic-horovod."""
    made = subprocess.run([str(TREE / "python" / "wheel"), *words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()


def environment_with(folder: Path, wheels: list[str], python: str = sys.executable) -> Path:
    """Makes an environment in which these wheels alone are installed, and returns the folder of its programs."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    install = ["--python", str(folder / "bin" / "python"), "install", "-q", "--no-index", "--no-compile", *wheels]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    return folder / "bin"


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

    def run(self, command: list[str]) -> str:
        """Runs a command that is no worker, in the folder and the environment of the job; returns its output."""
        made = subprocess.run(
            command, capture_output=True, text=True, env=self.environment(), cwd=self.folder, check=False
        )
        assert made.returncode == 0, f"exit code {made.returncode}\n{made.stdout}\n{made.stderr}"
        return made.stdout

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

    def hold(self) -> None:
        """The trainings of programs that import held end only after a call of kill, however late that comes."""
        (self.folder / "held").touch()

    def kill(self, pid: int) -> None:
        """Kills a worker of a training that hold has kept from ending."""
        os.kill(pid, signal.SIGKILL)
        (self.folder / "held").unlink()

    def find_worker(self, rank: int, program: str) -> int:
        """The worker of this program that began with this rank."""
        found = [pid for pid in self.processes(f"HOROVOD_RANK={rank}") if program.encode() in command_of(pid)]
        victims = [pid for pid in found if parent_of(pid) not in found]  # a DataLoader forks processes of its own
        assert len(victims) == 1, f"{len(victims)} processes of {program} began as rank {rank}\n{self.said()}"
        return victims[0]

    def kill_worker(self, rank: int, program: str) -> None:
        os.kill(self.find_worker(rank, program), signal.SIGKILL)

    def worker(self, line: str) -> int:
        """The process that a line of the output names: "pid 123"."""
        found = re.search(r"pid (\d+)", line)
        assert found, line
        return int(found.group(1))

    def await_asleep(self, pid: int) -> None:
        """Waits until the main thread of this process has waited for something for a while."""
        until, asleep = time.monotonic() + PATIENCE, 0
        while asleep < 20:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            asleep = asleep + 1 if state == "S" else 0
            assert time.monotonic() < until, f"process {pid} does not wait\n{self.said()}"
            select.select([], [], [], 0.01)

    def await_log(self, regex: str) -> None:
        """Waits until a line of the driver's log or of the workers' standard error matches."""
        assert self.driver is not None
        until = time.monotonic() + PATIENCE
        while not re.search(regex, self._log.read_text()):
            assert time.monotonic() < until, f"'{regex}' did not come\n{self.said()}"
            assert self.driver.poll() is None, f"the job has ended before '{regex}'\n{self.said()}"
            select.select([], [], [], 0.02)

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

    def kill_all(self) -> None:
        """Kills driver, agents and workers at once, and forgets their output."""
        self.clean_up()
        self.output = b""

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


@pytest.fixture
def horovod_source() -> Path:
    """A checkout of Horovod, or as much of it as these tests use."""
    named = os.environ.get("HVD_HOROVOD_SOURCE", "")
    if not named:
        pytest.skip("HVD_HOROVOD_SOURCE names no checkout of Horovod")
    found = Path(named)
    assert (found / "test").is_dir(), f"HVD_HOROVOD_SOURCE={named}: there is no folder named test; name a checkout"
    return found
