"""What was measured, and the table of it."""

import platform
import subprocess
from collections import defaultdict

OURS = "hvd-elastic"

# (what is measured, how it is called in the table, digits)
ROWS = [
    ("One of 2 x 2 workers is killed (SIGKILL)", [
        ("recovery", "until a step without it, ms", 1),
        ("whole", "until a step of all four again, ms", 0),
        ("redone", "steps done again", 0),
        ("started", "processes started", 0)]),
    ("A host of 2 joins two of 1", [
        ("pause", "longest time between two steps, ms", 1),
        ("joined", "from its listing to a step of all, ms", 0),
        ("join redone", "steps done again", 0),
        ("join started", "processes started, 2 are new", 0)]),
    ("A commit of 64 MiB, 2 x 2", [
        ("commit", "rank 0 is held up for, ms", 1)]),
    ("Steady state, 2 x 2", [
        ("step", "a step, ms", 2),
        ("plain step", "the same without elastic layer, ms", 2)]),
]


def quantile(values, part):
    """Between the two that are nearest."""
    place = (len(values) - 1) * part
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


class Results:
    def __init__(self):
        self.values = defaultdict(list)
        self.failures = defaultdict(int)

    def add(self, system, what, value):
        self.values[system, what].append(value)

    def fail(self, system, what):
        self.failures[system, what] += 1

    def median(self, system, what):
        values = sorted(self.values[system, what])
        return quantile(values, 0.5) if values else None

    def cell(self, system, what, digits):
        values = sorted(self.values[system, what])
        failed = self.failures[system, what]
        lost = f", {failed} failed" if failed else ""
        if not values:
            return "not measured" + lost
        low, middle, high = (f"{quantile(values, part):.{digits}f}" for part in (0.1, 0.5, 0.9))
        return f"{middle} ({low}-{high}) of {len(values)}{lost}"

    def ratio(self, system, what):
        ours, theirs = self.median(OURS, what), self.median(system, what)
        if system == OURS or not ours or theirs is None:
            return ""
        ratio = theirs / ours
        return f"{ratio:.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}x"


def output_of(*words):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def processor():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def versions(systems):
    lines = []
    for system in systems:
        if system.missing:
            lines.append(f"{system.name}: not measured: {system.missing}")
        elif system.version:
            lines.append(f"{system.name}: {system.version}")
    return lines


def body(results, systems):
    there = [system.name for system in systems if not system.missing]
    table = []
    for title, rows in ROWS:
        table.append(["", title])
        for what, text, digits in rows:
            row = [text]
            for name in there:
                row.append(results.cell(name, what, digits))
                if name != OURS:
                    row.append(results.ratio(name, what))
            table.append(row)
        if title.startswith("Steady"):
            row = ["a step beside that without"]
            for name in there:
                step, plain = results.median(name, "step"), results.median(name, "plain step")
                row.append(f"{step / plain:.3f}x" if step and plain else "not measured")
                if name != OURS:
                    row.append("")
            table.append(row)
    head = [""]
    for name in there:
        head += [name] if name == OURS else [name, "x ours"]
    return head, table


def show(results, systems, options, loads, boot):
    head, table = body(results, systems)
    width = [max(len(row[i]) for row in [head] + [r for r in table if r[0]])
             for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width[i]) for i, cell in enumerate(head)).rstrip()]
    for row in table:
        if not row[0]:
            lines += ["", row[1]]
        else:
            lines.append("  ".join(cell.ljust(width[i]) for i, cell in enumerate(row)).rstrip())
    facts = [f"median (10th to 90th percentile) of how many; asked for: {options.kills} kills, {options.joins} joins, "
             f"{options.commits} commits, {options.turns} x {options.steps} steps; seed {options.seed}",
             "A step: an allreduce of 1 MiB of float32 and a rest of 20 ms. Where one is killed or "
             "joins, 1 MiB is committed in each step.",
             f"Each process boots for {boot['PEER_BOOT_MS']} ms beside its import where one is killed "
             f"or joins; ours spends {boot['PEER_IMPORT_MS']} ms of processor time instead of that.",
             *versions(systems),
             f"{processor()}, Linux {platform.release()}",
             "load of the machine at the beginning and the end: "
             f"{loads[0][0]:.1f}, {loads[1][0]:.1f} (1 min)"]
    return "\n".join(lines + [""] + facts) + "\n"
