"""The Python package beside what its users have today, each figure beside its peer in the same run, in turns:

  import     `import hvd_elastic` beside `import numpy`, by python -X importtime, without what the bare interpreter loads
  commit     a commit of a model and its AdamW state beside copy.deepcopy of both state dicts
  recovery   SIGKILL of a worker until the next step of the others, DDP and AdamW: hvd-elastic with a commit in each step;
             torchrun --max-restarts with a checkpoint in each step; torchft with gloo at short timeouts. And the time
             between the last step without the new worker and the first with it, where the others go on without it
  step       a DDP step over the backend hvd beside gloo under torchrun, two workers

Medians, with the 10th and 90th percentile, and the ratio. All of it takes about ten minutes."""

import argparse
import os
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "peers"))
sys.dont_write_bytecode = True
from job import Job, JobFailed, now_us  # noqa: E402
from table import processor, quantile  # noqa: E402

PATIENCE_S = 240
STEADY = 20 # steps of all workers before a kill
PARTS = ["import", "commit", "recovery", "step"]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Rows:
    """The table: a row for each subject, ours first, then the peers with their ratios."""

    def __init__(self):
        self.values, self.remarks = {}, []

    def add(self, row, system, value):
        self.values.setdefault(row, {}).setdefault(system, []).append(value)

    def show(self):
        for row, systems in self.values.items():
            print(f"\n{row}")
            ours = sorted(next(iter(systems.values())))
            for number, (system, values) in enumerate(systems.items()):
                low, middle, high = (quantile(sorted(values), part) for part in (0.1, 0.5, 0.9))
                ratio = f"{middle / quantile(ours, 0.5):8.2f} x" if number else ""
                print(f"  {system:28}{middle:10.2f} ms ({low:.2f} to {high:.2f}) of {len(values):<4}{ratio}")
        for remark in self.remarks:
            print(remark)


class Measure:
    def __init__(self, options):
        self.options, self.rows, self.rng = options, Rows(), random.Random(options.seed)
        self.elastic = os.path.join(os.environ["HVD_BUILD"], "driver", "hvd-elastic")
        self.torchft = os.environ.get("HVD_TORCHFT")

    def hvd_command(self, job, workers, *words):
        return [self.elastic, "--state-dir", job.path("job"), "-np", str(workers), "--min-np", "1",
                "-H", f"127.0.0.1:{workers}", "--blacklist-cooldown-range", "1", "1",
                "--", sys.executable, *(os.path.join(HERE, w) if w.endswith(".py") else w for w in words)]

    def torchrun_command(self, workers, script, *words):
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers),
                "--max-restarts", "1000", "--monitor-interval", "0.1", os.path.join(HERE, script), *words]

    def attempt(self, what, once):
        """A job that fails is a remark under the table, and never ends the run in silence."""
        try:
            once()
        except (JobFailed, subprocess.SubprocessError) as error:
            say(f"{what}: failed: {error}")
            self.rows.remarks.append(f"{what}: a job failed: {str(error).strip().splitlines()[-1]}")

    # ---- import ----

    def measure_import(self):
        imports = {"import hvd_elastic": "import hvd_elastic", "import numpy": "import numpy"}
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(self.options.imports + 1):
                for system, statement in imports.items():
                    took = import_ms(statement, folder) - import_ms("pass", folder)
                    if turn: # the first one compiles, as an installation does
                        self.rows.add("Import, torch not loaded", system, took)

    # ---- commit ----

    def measure_commit(self):
        for shape in self.options.commit_shapes:
            self.attempt(f"commit of {shape}", lambda: self.commit_of(shape))

    def commit_of(self, shape):
        job = Job(None)
        job.command = self.hvd_command(job, 1, "commits.py", str(self.options.commits), shape)
        notes = notes_of(job)
        size = next(note.value for note in notes if note.what == "bytes")
        say(f"commit of {shape}: done")
        for note in notes:
            if note.what in ("commit", "deepcopy"):
                row = f"Commit of {size / 1e6:.1f} MB in {shape} layers and AdamW, one worker"
                self.rows.add(row, note.what, note.value / 1e3)

    # ---- recovery ----

    def measure_recovery(self):
        systems = {"hvd-elastic": "hvd", "torchrun, gloo": "torchrun", "torchft, gloo": "torchft"}
        if not self.torchft:
            self.rows.remarks.append("torchft: not measured: it is not installed; ./dev setup torchft does it")
            del systems["torchft, gloo"]
        for turn in range(self.options.turns):
            for name, system in systems.items():
                self.attempt(f"recovery of {name}", lambda: self.recovery_of(name, system))

    def recovery_of(self, name, system):
        workers, shape = self.options.workers, self.options.shape
        dead = self.options.torchft_timeout
        env = {"TORCHFT_DEAD_MS": str(dead), "TORCHFT_JOIN_MS": str(dead), "TORCHFT_BEAT_MS": str(max(1, dead // 10)),
               "TORCHFT_PATIENCE_MS": str(self.options.torchft_patience)}
        job = Job(None, env=env)
        if system == "hvd":
            job.command = self.hvd_command(job, workers, "train.py", system, shape)
        elif system == "torchrun":
            job.command = self.torchrun_command(workers, "train.py", system, shape)
        else:
            job.command = [self.torchft, os.path.join(HERE, "torchft_job.py"), str(workers), self.torchft,
                           os.path.join(HERE, "train.py"), system, shape]
        row = f"SIGKILL of one of {workers} until the next step, DDP of {shape} layers, AdamW"
        with job:
            self.steady(job)
            first = len(job.steps.all)
            for _ in range(self.options.kills):
                before, step_ms = self.steady(job)
                self.rows.add("A step of these jobs before a kill, with its commit or checkpoint", name, step_ms)
                gap, again = self.kill_one(job, before)
                say(f"{name}: a kill: {gap:.1f} ms, a step {step_ms:.1f} ms, {again} steps done again")
                if again > 1: # rank 0 may have noted a step that another rank has not committed
                    self.rows.remarks.append(f"{name}: after a kill {again} steps were done again: its state was lost")
                self.rows.add(row, name, gap)
            self.steady(job) # the last one that was killed is replaced
            for before, after in zip(job.steps.all[first:], job.steps.all[first + 1:]):
                if after.size > before.size:
                    row = "Pause of the others while its replacement joins, a step included"
                    self.rows.add(row, name, (after.time - before.time) / 1e3)

    def steady(self, job):
        """Waits until all workers train; the number of the round, and the time of a step."""
        steps = job.wait_steady(self.options.workers, STEADY, PATIENCE_S)
        return steps[-1].round, (steps[-1].time - steps[0].time) / 1e3 / (len(steps) - 1)

    def kill_one(self, job, before):
        time.sleep(self.rng.random() * 0.1) # at any moment of a step
        victim = self.rng.choice(live_workers(job))
        killed = now_us()
        os.kill(victim, 9)

        def first():
            return next((s for s in job.steps.read() if s.time > killed and s.round != before), None)

        back = job.wait("a step after a kill", first, PATIENCE_S)
        done = max(s.number for s in job.steps.all if s.round == before)
        return (back.time - killed) / 1e3, max(0, done - back.number + 1)

    # ---- step ----

    def measure_step(self):
        for _ in range(self.options.turns):
            for system in ("hvd", "gloo"):
                self.attempt(f"steps of {system}", lambda: self.steps_of(system))

    def steps_of(self, system):
        words = ["steps.py", system, str(self.options.steps), *self.options.shapes]
        job = Job(None)
        if system == "hvd":
            job.command = self.hvd_command(job, 2, *words)
        else:
            job.command = self.torchrun_command(2, *words)
        notes = notes_of(job)
        say(f"steps of {system}: done")
        for note in notes:
            if note.what != "start":
                self.rows.add(f"DDP step, {note.what} layers, SGD, two workers", system, note.value / 1e3)


def import_ms(statement, folder):
    """What the interpreter says that all imports took, in milliseconds; compiled modules are kept in the folder."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = folder
    command = [sys.executable, "-X", "importtime", "-c", statement]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return sum(int(us) for us in re.findall(r"^import time: +(\d+) \|", done.stderr, re.MULTILINE)) / 1e3


def notes_of(job):
    """Runs the job to its end; what its workers noted."""
    with job:
        code = job.processes[0].wait(PATIENCE_S)
        if code != 0:
            raise JobFailed(f"the job ended with {code}; {job.tail()}")
        return job.notes.read()


def live_workers(job):
    """Workers that have begun and live; a process of another program may have the number of a dead one."""
    found = []
    for note in job.starts(0):
        try:
            with open(f"/proc/{note.pid}/environ", "rb") as file:
                if job.mark.encode() in file.read().split(b"\0"):
                    found.append(note.pid)
        except OSError:
            continue
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev bench python", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", action="append", choices=PARTS, help="only this part; may be given again")
    add("--imports", type=int, default=20, help="imports of each package (20)")
    add("--commits", type=int, default=30, help="commits of each size (30)")
    add("--commit-shapes", nargs="+", default=["24x1024", "200x32"], help="LAYERSxWIDTH of the models that are committed")
    add("--turns", type=int, default=3, help="jobs of each system, in turns (3)")
    add("--kills", type=int, default=3, help="kills in each job (3)")
    add("--workers", type=int, default=3, help="workers of which one is killed (3)")
    add("--shape", default="8x256", help="the model that trains while workers are killed (8x256)")
    add("--torchft-timeout", type=int, default=200, metavar="MS",
        help="the heartbeat and join timeouts of torchft's lighthouse (200; its defaults: 5000 and 60000)")
    add("--torchft-patience", type=int, default=3000, metavar="MS",
        help="the timeouts of torchft's manager and of its process group (3000; the manager's default: 60000)")
    add("--steps", type=int, default=40, help="steps of each model in a job (40)")
    add("--shapes", nargs="+", default=["100x64", "8x512", "24x1024"], help="models whose steps are timed")
    add("--seed", type=int, default=1, help="which worker is killed when (1)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler) # jobs are ended then too
    began, measure = os.getloadavg()[0], Measure(options)
    for part in PARTS:
        if part in (options.only or PARTS):
            getattr(measure, f"measure_{part}")()
    measure.rows.show()
    print(f"\nmedian (10th to 90th percentile) of how many, and the ratio to the first of the group; torchft's timeouts: "
          f"{options.torchft_timeout} and {options.torchft_patience} ms\n{processor()}, Linux {platform.release()}, Python {platform.python_version()}; "
          f"load at the beginning and the end: {began:.1f}, {os.getloadavg()[0]:.1f}")


main()
