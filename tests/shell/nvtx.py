"""Compares what a profiler was told with the timeline of the same job.

    nvtx.py FOLDER TIMELINE

FOLDER has a file for each process (tests/standin/nvtx_recorder.c). Every range has a name and an end, also over a round
change; only the worker that was killed may leave ranges open. Each range of an operation, a commit, a restore, a fetch
or a round is an event of the timeline, and the other way round, with the same bytes.
"""
import collections
import json
import os
import re
import sys

SHOWN = re.compile(r"(round \d+|(commit|restore|fetch|to the host) \d+\.\d+|[a-z_]+)$")


def fail(why):
    sys.exit(f"nvtx.py: {why}")


def read_record(path):
    """The ranges of a process: (name, bytes) of those that have ended, and the names of those that have not."""
    lines = open(path, encoding="utf-8").read().split("\n")[:-1]
    if lines[:2] != ["attached 3", "domain 1 hvd"]:
        fail(f"{path} begins with {lines[:2]}")
    ended, opened, steps = collections.Counter(), {}, collections.Counter()
    for line in lines[2:]:
        kind, number, *rest = line.split(" ", 4)
        if kind == "start" and rest[0] == "1" and number not in opened:
            opened[number] = (rest[2], int(rest[1]))
            if rest[2].startswith("step ") and [n for n, _ in opened.values() if n.startswith("step ")][1:]:
                fail(f"{path}: a step begins in a step: {line}")
        elif kind == "end" and rest == ["1"] and number in opened:
            name, size = opened.pop(number)
            if name.startswith("step "):
                steps[name] += 1
            elif not SHOWN.match(name):
                fail(f"{path}: an unknown range, {name}")
            else:
                ended[name, size] += 1
        else:
            fail(f"{path}: {line}")
    return ended, [name for name, _ in opened.values()], steps


def read_timeline(path):
    """By process: (name, bytes) of the events that are ranges too."""
    events = json.loads(open(path, encoding="utf-8").read().rstrip().rstrip(",") + "]")
    shown = collections.defaultdict(collections.Counter)
    for event in events:
        if event["ph"] == "X" and event["cat"] in ("rounds", "state", "collectives"):
            shown[event["pid"]][event["name"], event["args"].get("bytes", 0)] += 1
    return shown


def main():
    folder, timeline = sys.argv[1:]
    left = list(read_timeline(timeline).values())
    total, open_ranges, steps = 0, [], 0
    for name in sorted(os.listdir(folder)):
        ended, opened, made = read_record(os.path.join(folder, name))
        total += sum(ended.values())
        steps += sum(made.values())
        if opened:
            open_ranges.append(opened)  # killed: the timeline has lost its last events too
            continue
        if ended not in left:
            near = min(left, key=lambda events: sum(((events - ended) + (ended - events)).values()))
            fail(f"{name}: ranges {dict(ended - near)} and events {dict(near - ended)} differ")
        left.remove(ended)
    print(total, "ranges,", steps, "steps,", len(os.listdir(folder)), "processes,", len(open_ranges), "killed in",
          sorted({name.split()[0] for names in open_ranges for name in names}))


main()
