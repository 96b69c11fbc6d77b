"""Elastic Horovod and torchrun beside hvd-elastic: the same small step under each, on hosts that
are all this machine. Prints one table; docs/peers.md says what stands in it.

    peers.py [--kills N] [--joins N] [--commits N] [--steps N] [--only SYSTEM]... [--seed S]"""

import argparse
import os
import signal
import subprocess
import sys
import time

import table
from job import HERE, Job, JobFailed, now_us, seeded

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("HVD_BUILD", os.path.join(ROOT, "build/release"))
PEERS = os.environ.get("PEERS", os.path.join(ROOT, "build/peers"))
PYTHON = os.path.join(PEERS, "python") # with what install has put beside it
BOOT_MS = 1000
PATIENCE_S = 240
HOSTS = {"127.0.0.1": 2, "127.0.0.2": 2}
OURS = "hvd-elastic"


class System:
    def __init__(self, name, launcher, module=None):
        self.name = name
        self.launcher = os.path.join(HERE, launcher)
        self.module = module # that a worker imports
        self.missing = None
        self.version = None
        self.import_ms = 0

    def probe(self):
        """Is it there, and how much processor time does a worker's import take?"""
        if not self.module:
            self.version = table.output_of(os.path.join(BUILD, "driver/hvd-elastic"), "--version")
            return
        note = os.path.join(PEERS, "missing-" + self.module.split(".")[0])
        if os.path.exists(note):
            with open(note) as file:
                self.missing = file.read().strip()
        elif not os.path.exists(PYTHON):
            self.missing = "not installed; bench/peers/install does it"
        else:
            self.measure_import()

    def measure_import(self):
        package = self.module.split(".")[0]
        code = f"import {self.module}, {package}, platform; " \
               f"print({package!r}, {package}.__version__, 'Python', platform.python_version())"
        spent = []
        for _ in range(3):
            before = os.times()
            done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
            after = os.times()
            if done.returncode != 0:
                self.missing = (done.stderr.strip().splitlines() or ["its import fails"])[-1]
                return
            self.version = done.stdout.strip()
            spent.append(after.children_user + after.children_system
                         - before.children_user - before.children_system)
        self.import_ms = int(sorted(spent)[1] * 1000)


SYSTEMS = [System(OURS, "run-hvd"),
           System("Elastic Horovod", "run-horovod", "horovod.torch"),
           System("torchrun", "run-torchrun", "torch.distributed")]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Peers:
    def __init__(self, options):
        self.options = options
        self.rng = seeded(options.seed)
        self.results = table.Results()
        self.environment = {}

    def boot(self):
        """Ours spends the processor time that importing takes the others."""
        most = max(system.import_ms for system in SYSTEMS)
        return {"PEER_BOOT_MS": str(BOOT_MS), "PEER_IMPORT_MS": str(most)}

    def attempt(self, system, what, count, once):
        """once(needed) makes up to so many measurements with one job, until there are enough or too
        many jobs have failed. What failed is in the table too."""
        made = failed = 0
        while made < count and failed < 3:
            try:
                for _ in once(count - made):
                    made += 1
            except JobFailed as error:
                failed += 1
                say(f"{system.name}: {what}: {error}")
                self.results.fail(system.name, what)

    # ---- a worker is killed ----

    def recovery(self, system, kills):
        def once(count):
            with Job([system.launcher], HOSTS, env=self.boot()) as job:
                for _ in range(count):
                    steady = job.wait_steady(4, 30, PATIENCE_S)
                    yield self.kill_one(system, job, steady[-1].round)
        self.attempt(system, "recovery", kills, once)

    def kill_one(self, system, job, before):
        time.sleep(self.rng.random() * 0.1)
        victim = job.any_worker(self.rng)
        killed_us = now_us()
        os.kill(victim, 9)

        def first(size):
            return next((step for step in job.steps.read() if step.time > killed_us
                         and step.round != before and step.size >= size), None)

        back = job.wait("a step after a kill", lambda: first(1), PATIENCE_S)
        whole = job.wait("a step of all after a kill", lambda: first(4), PATIENCE_S)
        done = max(s.number for s in job.steps.all if s.round == before)
        self.results.add(system.name, "recovery", (back.time - killed_us) / 1e3)
        self.results.add(system.name, "whole", (whole.time - killed_us) / 1e3)
        self.results.add(system.name, "redone", max(0, done - back.number + 1))
        self.results.add(system.name, "started", len(job.starts(killed_us)))
        say(f"{system.name}: a kill: {(back.time - killed_us) / 1e3:.1f} ms to {back.size} workers, "
            f"{(whole.time - killed_us) / 1e3:.0f} ms to 4")
        return True

    # ---- a host joins ----

    def join(self, system, joins):
        def once(_):
            env = dict(self.boot(), PEER_NODES="2:3")
            with Job([system.launcher], {"127.0.0.1": 1, "127.0.0.2": 1}, env=env) as job:
                job.wait_steady(2, 50, PATIENCE_S)
                told_us = now_us()
                job.set_hosts({"127.0.0.1": 1, "127.0.0.2": 1, "127.0.0.3": 2})
                job.wait_steady(4, 20, PATIENCE_S)
                self.note_join(system, job, told_us)
                yield True
        self.attempt(system, "join", joins, once)

    def note_join(self, system, job, told_us):
        steps = [step for step in job.steps.all if step.time > told_us]
        gaps = [b.time - a.time for a, b in zip(steps, steps[1:])]
        whole = next(step for step in steps if step.size == 4)
        before = [step for step in steps if step.time < whole.time]
        redone = max([0] + [step.number - whole.number + 1 for step in before])
        self.results.add(system.name, "pause", max(gaps) / 1e3)
        self.results.add(system.name, "joined", (whole.time - told_us) / 1e3)
        self.results.add(system.name, "join redone", redone)
        self.results.add(system.name, "join started", len(job.starts(told_us)))
        say(f"{system.name}: a join: a pause of {max(gaps) / 1e3:.1f} ms")

    # ---- commits ----

    def commit(self, system):
        def once(count):
            with Job([system.launcher], HOSTS, env={"PEER_STATE_MIB": "64"}) as job:
                def reached():
                    notes = [n for n in job.notes.read() if n.what == "commit"]
                    return notes if len(notes) >= count + 5 else None
                notes = job.wait("commits", reached, PATIENCE_S)
                say(f"{system.name}: {count} commits")
                for note in notes[5:count + 5]: # the first ones meet pages that nobody has used
                    self.results.add(system.name, "commit", note.value / 1e3)
                    yield True
        self.attempt(system, "commit", self.options.commits, once)

    # ---- the steady state ----

    def steady(self, system, plain):
        what = "plain step" if plain else "step"
        env = {"PEER_CARE": "none" if plain else "check"}
        count = self.options.steps

        def once(_):
            with Job(None if plain else [system.launcher], HOSTS, env=env) as job:
                if plain:
                    start_plainly(system, job, count)
                steps = job.wait_steady(4, count + 20, PATIENCE_S)
                say(f"{system.name}: {what}: {count} steps")
                for a, b in zip(steps[20:], steps[21:]):
                    self.results.add(system.name, what, (b.time - a.time) / 1e3)
                yield True
        self.attempt(system, what, 1, once)

    # ---- all of it ----

    def run(self):
        for system in SYSTEMS:
            system.probe()
            if system.missing:
                say(f"{system.name}: {system.missing}")
        systems = [s for s in SYSTEMS if not s.missing and s.name in self.options.only]
        began = os.getloadavg()
        try:
            self.measure(systems)
        except KeyboardInterrupt:
            say("ended early; the table has what was measured until here")
        shown = [s for s in SYSTEMS if s.name in self.options.only]
        return table.show(self.results, shown, self.options, (began, os.getloadavg()),
                          self.boot())

    def measure(self, systems):
        """In turns: whatever else the machine does falls on all."""
        for _ in range(self.options.turns):
            for system in systems:
                self.steady(system, True)
                self.steady(system, False)
        for system in systems:
            self.commit(system)
        for half in range(2):
            for system in systems:
                self.recovery(system, part(self.options.kills, half))
            for system in systems:
                self.join(system, part(self.options.joins, half))


def part(count, half):
    return (count + 1) // 2 if half == 0 else count // 2


def start_plainly(system, job, count):
    """The same work without the launcher's elastic layer."""
    if system.name == OURS:
        job.spawn([os.path.join(BUILD, "bench/peers/peer_plain"), "2", "2", str(count + 1000)])
    elif system.module == "horovod.torch":
        job.spawn([PYTHON, "-m", "horovod.runner.launch", "--gloo", "--network-interface", "lo",
                   "-np", "4", "-H", "localhost:2,127.0.0.1:2", PYTHON,
                   os.path.join(HERE, "train_horovod.py")], OMP_NUM_THREADS="1")
    else:
        port = 20000 + os.getpid() % 10000
        for rank in range(4):
            job.spawn([PYTHON, os.path.join(HERE, "train_torchrun.py")], RANK=str(rank),
                      WORLD_SIZE="4", LOCAL_RANK=str(rank % 2), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port), OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")


def main():
    names = [system.name for system in SYSTEMS]
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="workers killed under each (10)")
    parser.add_argument("--joins", type=int, default=5, help="jobs in which a host joins (5)")
    parser.add_argument("--commits", type=int, default=100, help="commits of 64 MiB (100)")
    parser.add_argument("--steps", type=int, default=300, help="steps of a steady turn (300)")
    parser.add_argument("--turns", type=int, default=2, help="steady turns of each (2)")
    parser.add_argument("--seed", type=int, default=1, help="who is killed when (1)")
    parser.add_argument("--only", action="append", choices=names, help="only these")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options.only = options.only or names
    text = Peers(options).run()
    os.makedirs(PEERS, exist_ok=True)
    with open(os.path.join(PEERS, "table.txt"), "w") as file:
        file.write(text)
    print(text, end="")


main()
