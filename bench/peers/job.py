"""A job of one of the peers: its launcher, its hosts, and what its workers write down."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
POLL_S = 0.02
END_S = 20.0

Step = namedtuple("Step", "time round number size")
Note = namedtuple("Note", "time pid place what value")


class JobFailed(Exception):
    """The job has ended, or has done nothing for too long."""


def now_us():
    return time.monotonic_ns() // 1000


class Lines:
    """The whole lines of a file that grows, as far as they have been read."""

    def __init__(self, path, kind):
        self.path, self.kind, self.at, self.all = path, kind, 0, []

    def read(self):
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                file.seek(self.at)
                new = file.read()
            new = new[:new.rfind(b"\n") + 1]
            self.at += len(new)
            self.all += [self.make(line.split()) for line in new.decode().splitlines()]
        return self.all

    def make(self, words):
        return self.kind(*(int(word) if word.lstrip("-").isdigit() else word for word in words))


class Job:
    """with Job([launcher...], hosts={...}, env={...}) as job: ..."""

    def __init__(self, command, hosts=None, least=2, most=4, env=None):
        self.folder = tempfile.mkdtemp(prefix="peers-")
        self.mark = "PEER_JOB=" + self.folder
        self.steps = Lines(self.path("steps"), Step)
        self.notes = Lines(self.path("notes"), Note)
        if hosts:
            self.set_hosts(hosts)
        with open(self.path("discover"), "w") as file:
            file.write('#!/bin/sh\ncat "$PEER_JOB/hosts"\n')
        os.chmod(self.path("discover"), 0o755)
        self.env = dict(os.environ, PEER_JOB=self.folder, DISCOVERY=self.path("discover"),
                        MIN_NP=str(least), MAX_NP=str(most), HVD_CHAOS_STEPS=self.path("steps"),
                        PEER_NOTES=self.path("notes"), **(env or {}))
        self.command = command
        self.processes = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def set_hosts(self, hosts):
        """Never half a list."""
        with open(self.path("hosts.new"), "w") as file:
            file.writelines(f"{host}:{slots}\n" for host, slots in hosts.items())
        os.replace(self.path("hosts.new"), self.path("hosts"))

    def spawn(self, command, **env):
        with open(self.path("log"), "ab") as log:
            self.processes.append(subprocess.Popen(
                command, env=dict(self.env, **env), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, cwd=self.folder))

    def __enter__(self):
        if self.command:
            self.spawn(self.command)
        return self

    def __exit__(self, *_):
        """Whoever ends us meanwhile has to wait: nothing that was started stays."""
        old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self.end()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)

    def end(self):
        for process in self.processes:
            process.terminate()
        until = time.monotonic() + END_S
        for process in self.processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        while self.kill_rest():
            time.sleep(POLL_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill_rest(self):
        """Whatever bears our mark: only what this job has started."""
        found = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
                        found += 1
            except OSError:
                continue
        return found

    def tail(self):
        if not os.path.exists(self.path("log")):
            return ""
        with open(self.path("log"), errors="replace") as file:
            return "".join(file.readlines()[-15:])

    def wait(self, what, reached, seconds):
        """Until reached() is not None; returns that."""
        until = time.monotonic() + seconds
        while True:
            found = reached()
            if found is not None:
                return found
            if any(process.poll() is not None for process in self.processes):
                raise JobFailed(f"{what}: the job has ended; {self.tail()}")
            if time.monotonic() > until:
                raise JobFailed(f"{what}: not within {seconds:.0f} s; {self.tail()}")
            time.sleep(POLL_S)

    def wait_steady(self, size, count, seconds=180):
        """Until there are so many steps in a row, of one round of so many workers."""
        def reached():
            last = self.steps.read()[-count:]
            same = {(step.round, step.size) for step in last}
            return last if len(last) == count and len(same) == 1 and last[-1].size == size else None
        return self.wait(f"{count} steps of {size} workers", reached, seconds)

    def starts(self, since):
        return [note for note in self.notes.read() if note.what == "start" and note.time > since]

    def any_worker(self, rng):
        """One of those that live, by chance."""
        pids = [note.pid for note in self.starts(0) if os.path.exists(f"/proc/{note.pid}")]
        return rng.choice(pids)


def seeded(seed):
    return random.Random(seed)
