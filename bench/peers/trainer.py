"""What the trainers of the peers have in common with those in C: what a step is, and what is
written down of it. peer_step.h names the environment that says it all. Of the standard library
alone, so that it can say that a process has begun before it imports anything large."""

import os
import sys
import time


def setting(name, default):
    return int(os.environ.get("PEER_" + name, default))


FLOATS = setting("FLOATS", 1 << 18)
STATE_FLOATS = setting("STATE_MIB", 1) << 18
WORK_S = setting("WORK_US", 20000) / 1e6
BOOT_S = setting("BOOT_MS", 0) / 1e3
CARE = os.environ.get("PEER_CARE", "commit")

if CARE not in ("commit", "check", "none"):
    sys.exit("trainer: PEER_CARE is neither commit, check nor none")


def now_us():
    return time.monotonic_ns() // 1000


class Lines:
    """A file of lines that several processes append to: each line is one write."""

    def __init__(self, variable):
        path = os.environ.get(variable)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.file = os.open(path, flags, 0o600) if path else None

    def add(self, *words):
        if self.file is not None:
            os.write(self.file, (" ".join(str(word) for word in words) + "\n").encode())


steps = Lines("HVD_CHAOS_STEPS")
notes = Lines("PEER_NOTES")


def note(what, value=0):
    slot = os.environ.get("HOROVOD_LOCAL_RANK", os.environ.get("LOCAL_RANK", "-"))
    place = os.environ.get("HVD_CHAOS_HOST", "-") + ":" + slot
    notes.add(now_us(), os.getpid(), place, what, value)


def note_step(round_, number, size):
    steps.add(now_us(), round_, number, size)


def work(numbers, size):
    """What follows the sum of all ranks."""
    if numbers[0] != size or numbers[-1] != size:
        sys.exit("trainer: the sum of all ranks is wrong")
    time.sleep(WORK_S)


note("start")
