"""Reads a timeline as the viewers do, and says what is wrong with it; then what is in it.

    timeline.py FILE
    timeline.py FILE --has LANE:NAME...     also: an event of that lane whose name begins so
"""
import collections
import json
import sys

LANES = ["rounds", "changes", "state", "copier", "collectives", "phases"]
SLACK_US = 1  # ends and beginnings are rounded down to whole microseconds


def fail(why):
    sys.exit(f"timeline.py: {sys.argv[1]}: {why}")


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % 4096:
        fail(f"{len(data)} bytes are not whole pages")
    text = data.decode("utf-8").rstrip()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line not in ("[", "") and not (line.startswith("{") and line.endswith("},")):
            fail(f"line {number} is torn: {line[:200]}")
    return json.loads(text.rstrip(",") + "]")


def check_types(event):
    for key, kind in (("name", str), ("ph", str), ("ts", int), ("pid", int), ("tid", int)):
        if type(event.get(key)) is not kind:
            fail(f"{key} of {event} is no {kind.__name__}")
    if event["ph"] not in ("X", "M", "i"):
        fail(f"an unknown kind of event: {event}")
    if event["ph"] == "X" and (type(event.get("dur")) is not int or event["dur"] < 0):
        fail(f"a wrong dur: {event}")
    if event["ph"] == "i" and event.get("s") not in ("g", "p", "t"):
        fail(f"a wrong scope: {event}")
    if type(event.get("args")) is not dict:
        fail(f"no args: {event}")
    if event["ph"] != "M" and not 1.7e15 < event["ts"] < 9e15 and event["name"] != "the job begins":
        fail(f"no time of this century: {event}")


def check_nesting(where, events):
    """Of two events of a lane one ends before the other begins, or lies in it."""
    open_ends = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1][0] <= event["ts"] + SLACK_US:
            open_ends.pop()
        if open_ends and end > open_ends[-1][0] + SLACK_US:
            fail(f"{where}: {event} overlaps {open_ends[-1][1]}")
        open_ends.append((end, event))


def check_changes(pid, events):
    """The phases of a change leave no gap."""
    for change in [e for e in events if e["name"] in ("recovery", "switch")]:
        end = change["ts"] + change["dur"]
        parts = [
            e
            for e in events
            if e is not change and e["ts"] >= change["ts"] and e["ts"] + e["dur"] <= end
        ]
        names = {e["name"] for e in parts}
        if not {"agree", "connect", "state", "first step"} <= names:
            fail(f"process {pid}: {change} has only {sorted(names)}")
        if abs(sum(e["dur"] for e in parts) - change["dur"]) > len(parts) * 2:
            fail(f"process {pid}: the phases of {change} leave a gap")


def main():
    wanted = [word.split(":", 1) for word in sys.argv[3:]]
    events = read(sys.argv[1])
    lanes = collections.defaultdict(list)
    lane_names, process_names, sorts = {}, {}, set()

    if not events or events[0]["name"] != "the job begins":
        fail("it does not begin with the job")
    for event in events:
        check_types(event)
        where = (event["pid"], event["tid"])
        if event["name"] == "thread_name":
            lane_names[where] = event["args"]["name"]
        elif event["name"] == "process_name":
            process_names[event["pid"]] = event["args"]["name"]
        elif event["name"] == "process_sort_index":
            sorts.add(event["pid"])
        elif event["ph"] == "X":
            lanes[where].append(event)
    for where, here in lanes.items():
        name = lane_names.get(where)
        if name not in LANES or where[0] not in process_names or where[0] not in sorts:
            fail(f"lane {where} has no name")
        check_nesting(f"{process_names[where[0]]}, {name}", here)
        if name == "changes":
            check_changes(where[0], here)
    for lane, begin in wanted:
        if not any(
            e["name"].startswith(begin) for w, here in lanes.items() for e in here
            if lane_names[w] == lane
        ):
            fail(f"nothing in {lane} begins with '{begin}'")
    for pid in process_names:
        of_it = {lane_names[w] for w in lanes if w[0] == pid}
        if "rounds" in of_it and "collectives" not in of_it:
            fail(f"{process_names[pid]} has rounds and no collectives")
    counts = collections.Counter(lane_names[w] for w, here in lanes.items() for _ in here)
    rounds = {e["name"] for w, here in lanes.items() for e in here if lane_names[w] == "rounds"}
    print(len(process_names), "processes,", len(rounds), "rounds,", dict(counts))


main()
