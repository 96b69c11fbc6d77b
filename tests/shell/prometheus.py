"""What the tests of metrics ask of a real Prometheus, and of the files of deploy/prometheus.

tests/integration/metrics_prometheus.sh and alerts.sh call it:

    prometheus.py value PORT EXPRESSION             the stored value; nothing: there is none yet
    prometheus.py rules PORT ALERTS                 until Prometheus has evaluated each alert, without an error
    prometheus.py queries PORT DASHBOARD INSTANCE   until each query of the dashboard has an answer
    prometheus.py history PORT CHANGES STATUS EVENTS    until the stored series are what the job's journal says
    prometheus.py alerts ALERTS TESTS               each alert has words, and a test in which it fires and does not
    prometheus.py board DASHBOARD                   the dashboard has the fields of Grafana's published schema
    prometheus.py names SCRAPED DASHBOARD ALERTS    a dashboard and alerts use only what a driver serves

Invariant: a check that does not hold ends the program with its reason on standard error.
"""

import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_S = 120


def get(port, path, **fields):
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(fields)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{fields}: Prometheus answers {error.read().decode()}")
    except OSError:
        return {"result": [], "groups": []}  # Prometheus does not listen yet


def value(port, expression):
    result = get(port, "query", query=expression)["result"]
    return result[0]["value"][1] if result else ""


def until_none(find):
    """Calls find() until it returns no complaint."""
    end = time.monotonic() + PATIENCE_S
    while complaints := find():
        if time.monotonic() > end:
            sys.exit("\n".join(complaints))
        time.sleep(0.2)  # Prometheus tells nobody of a scrape


def alert_names(file):
    return re.findall(r"- alert: (\w+)", open(file).read())


def rules(port, file):
    wanted = alert_names(file)

    def find():
        known = {rule["name"]: rule for group in get(port, "rules")["groups"] for rule in group["rules"]}
        return [f"{name}: {known.get(name)}" for name in wanted if known.get(name, {}).get("health") != "ok"]

    until_none(find)


def expressions(board):
    """Each query of a dashboard, with the title of its panel."""
    for panel in board["panels"]:
        assert panel["title"] and panel["description"], f"panel {panel['id']} has no words"
        assert panel["targets"], f"{panel['title']}: the panel has no query"
        for target in panel["targets"]:
            assert target["expr"].strip(), f"{panel['title']}: a query is empty"
            yield panel["title"], target["expr"]
    for note in board["annotations"]["list"]:
        yield note["name"], note["expr"]


# The fields of Grafana's published dashboard schema (version 10, as the package grafana-foundation-sdk has it) that our
# dashboard may use, and those that it must have. "definition" and "titleFormat" belong to the data source Prometheus.
FIELDS = {
    "dashboard": "title uid schemaVersion panels templating annotations time version | description tags timezone editable refresh"
    " graphTooltip links timepicker weekStart",
    "panel": "id type title gridPos datasource fieldConfig targets | options description transparent interval links maxDataPoints",
    "gridPos": "x y w h |",
    "fieldConfig": "defaults overrides |",
    "defaults": "unit | min max custom decimals color thresholds mappings noValue",
    "custom": "| drawStyle lineWidth lineInterpolation fillOpacity stacking showPoints spanNulls axisLabel",
    "stat": "reduceOptions | textMode colorMode graphMode orientation justifyMode",
    "timeseries": "legend tooltip |",
    "target": "refId datasource expr | legendFormat format instant range interval",
    "variable": "name type query | label datasource refresh sort definition multi includeAll current hide regex",
    "note": "name datasource enable iconColor expr | titleFormat hide",
}


def has_fields(kind, value, where):
    must, may = (set(part.split()) for part in FIELDS[kind].split("|"))
    wrong = (must - set(value)) | (set(value) - must - may)
    assert not wrong, f"{where}: {kind}: missing, or not in the schema: {sorted(wrong)}"


def board(file):
    """What a Grafana needs to draw the dashboard, as far as it can be said without one."""
    whole = json.load(open(file))
    has_fields("dashboard", whole, file)
    known = {variable["name"] for variable in whole["templating"]["list"]}
    for variable in whole["templating"]["list"]:
        has_fields("variable", variable, variable["name"])
    for note in whole["annotations"]["list"]:
        has_fields("note", note, note["name"])
    taken, numbers = {}, set()
    for panel in whole["panels"]:
        where = f"panel {panel['id']}"
        has_fields("panel", panel, where)
        has_fields("gridPos", panel["gridPos"], where)
        has_fields("fieldConfig", panel["fieldConfig"], where)
        has_fields("defaults", panel["fieldConfig"]["defaults"], where)
        has_fields("custom", panel["fieldConfig"]["defaults"].get("custom", {}), where)
        assert panel["type"] in ("stat", "timeseries"), f"{where}: a {panel['type']} is not in the list of fields"
        if "options" in panel:
            has_fields(panel["type"], panel["options"], where)
        assert panel["id"] not in numbers, f"{where}: two panels have this id"
        numbers.add(panel["id"])
        place = panel["gridPos"]
        assert 0 <= place["x"] and place["x"] + place["w"] <= 24 and place["h"] > 0, f"{where}: it lies beside the 24 columns"
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])):
            assert cell not in taken, f"{where}: it lies on panel {taken[cell]}"
            taken[cell] = panel["id"]
        for target in panel["targets"]:
            has_fields("target", target, where)
        names = [target["refId"] for target in panel["targets"]]
        assert len(set(names)) == len(names), f"{where}: two queries have the same refId"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(whole))) - {"__rate_interval", "__interval", "__range"}
    assert used <= known, f"variables that the dashboard does not have: {sorted(used - known)}"
    assert isinstance(whole["schemaVersion"], int) and re.fullmatch(r"[\w-]{1,40}", whole["uid"]), "schemaVersion or uid"
    print(f"{len(whole['panels'])} panels have the fields of the schema")


def queries(port, file, instance):
    board = json.load(open(file))
    asked = {title + ": " + text: text.replace("$instance", instance) for title, text in expressions(board)}
    until_none(lambda: [f"no answer to {name}" for name, text in asked.items() if not value(port, text)])


def history(port, changes, status, events):
    """The sizes one after the other, and sums, as the job has written them down."""
    done = json.load(open(changes))["changes"]
    now = json.load(open(status))
    deaths = sum(json.loads(line).get("kind") == "worker_failed" for line in open(events))
    wanted = {
        "hvd_elastic_world_size": now["size"],
        "hvd_elastic_round": now["round"],
        "hvd_elastic_rounds_total": now["resets"] + 1,
        "sum(hvd_elastic_worker_failures_total)": deaths,
    }
    for failed in now["failures"]:
        wanted[f'hvd_elastic_worker_failures_total{{host="{failed["host"]}"}}'] = failed["count"]
    for state, count in now["workers"].items():
        wanted[f'hvd_elastic_workers{{state="{state}"}}'] = count
    for use, spent in now["goodput"].items():
        if use not in ("part", "training"):
            wanted[f'hvd_elastic_worker_time_seconds{{use="{use}"}}'] = spent["worker_s"]
    for cause in {change["cause"] for change in done}:
        mine = [change["pause_us"] / 1e6 for change in done if change["cause"] == cause]
        wanted[f'hvd_elastic_pause_seconds_count{{cause="{cause}"}}'] = len(mine)
        wanted[f'hvd_elastic_pause_seconds_sum{{cause="{cause}"}}'] = sum(mine)
    assert deaths == 2 and len(done) == 4, f"{deaths} deaths and {len(done)} changes were written down"

    def find():
        kept = {name: value(port, name) for name in wanted}
        wrong = [
            f"Prometheus has {kept[name]} for {name}, the job {number}"
            for name, number in wanted.items()
            if not kept[name] or abs(float(kept[name]) - number) > 0.002
        ]
        series = get(port, "query", query="hvd_elastic_world_size[1h]")["result"]
        sizes = [int(number) for _, number in series[0]["values"]] if series else []
        steps = [size for i, size in enumerate(sizes) if size and (i == 0 or size != sizes[i - 1])]
        if steps != [change["to"] for change in done]:
            wrong.append(f"Prometheus has the sizes {steps}, the job {[change['to'] for change in done]}")
        return wrong

    until_none(find)
    print(f"{len(wanted)} series are as the job says; sizes {[change['to'] for change in done]}")


def alerts(file, tests):
    names, tested = alert_names(file), open(tests).read()
    assert len(names) == len(set(names)), "an alert comes twice"
    for part in re.split(r"(?m)^      - alert: ", open(file).read())[1:]:
        for word in ("severity: ", "summary: ", "description: "):
            assert word in part, f"{part.split()[0]} has no {word}"
    for name in names:
        case = re.search(rf"(?m)^  - name: {name}\n((?:    .*\n)+)", tested)
        assert case, f"{tests} has no case {name}"
        assert f'alertname="{name}"' in case[1] and "exp_samples: []" in case[1], f"{name} is not shown to fire and not to fire"
    print(f"{len(names)} alerts")


def names(scraped, board, file):
    families, samples = set(), {}
    for line in open(scraped):
        if line.startswith("# TYPE"):
            families.add(line.split()[2])
        elif not line.startswith("#"):
            name = line.rstrip("\n").rsplit(" ", 1)[0]
            assert name not in samples, f"{name} comes twice"
            samples[name] = dict(re.findall(r'(\w+)="([^"]*)"', name))
    texts = dict.fromkeys(text for _, text in expressions(json.load(open(board))))
    variables = json.dumps(json.load(open(board))["templating"])
    for text in [*texts, variables, open(file).read()]:
        for name, labels in re.findall(r"\b(hvd_elastic_\w+)(\{[^}]*\})?", text):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert family in families, f"{name} is not served: {text}"
            served = [have for sample, have in samples.items() if re.match(rf"{name}(\{{|$)", sample)]
            for label, wanted in re.findall(r'(\w+)="([^"$]+)"', labels):
                assert any(have.get(label) == wanted for have in served), f"{name} has no {label} {wanted}"
    print(f"{len(families)} families, {len(samples)} samples, {len(texts)} queries")


def main():
    calls = {call.__name__: call for call in (rules, board, queries, history, alerts, names)}
    try:
        if sys.argv[1] == "value":
            print(value(*sys.argv[2:]))
        else:
            calls[sys.argv[1]](*sys.argv[2:])
    except AssertionError as error:
        sys.exit(str(error))


main()
