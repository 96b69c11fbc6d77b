#!/usr/bin/env bash
# The pages of chaos in a browser: of a campaign that found something wrong, of a long one with many kinds of faults,
# and of a replay; on a wide screen, on a telephone, and dark. Skipped where Chromium is missing.
#
#     chaos_page.sh CHAOS TRACE PAGE [FOLDER]
set -euo pipefail
chaos=$1 trace=$2 page=$3
command -v chromium >/dev/null || { echo 'SKIP: no chromium; ./dev setup picture installs it' && exit 77; }
shell=$(cd "$(dirname "$0")/../shell" && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
folder=${4:-$made}

# The folder that a violation keeps is of no use here.
code=0
"$chaos" --lease 10s --patience 3m --slip state --seed 1 --faults 6 --only worker-kill,rank0-kill --report "$made" >"$made/said" 2>&1 || code=$?
kept=$(sed -n 's/^kept: //p' "$made/said")
case $kept in */chaos-*) rm -rf -- "$kept" ;; esac
if [ "$code" != 1 ] || [ ! -e "$made/report.json" ]; then
  cat "$made/said"
  echo "FAILED: exit code $code of a campaign with a mistake"
  exit 1
fi
"$chaos" --lease 10s --patience 3m --trace "$trace" --settle --duration 6s --report "$made" >"$made/said" 2>&1 ||
  { cat "$made/said" && echo 'FAILED: no replay' && exit 1; }

# The same report with a day, 2000 faults of 40 kinds, pauses from nothing to minutes, hangs, and texts that are HTML.
python3 - "$made/report.json" "$page" >"$made/long.html" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
day, one, kind = 24 * 3600 * 10**6, report["faults"][0], report["kinds"][0]
names = [f"<i>a-fault-of-kind-{i:02d}" for i in range(40)]
report["faults"] = [dict(one, name=names[i * 7 % 40], at_us=day * i // 2000, whole_us=10**6 * (i % 90),
                         pause_us=int(10 ** (2.5 + i * 37 % 59 / 10)), hung=i % 700 == 699, violation=None)
                    for i in range(2000)]

def times(of):
    of = sorted(of) or [0]
    at = lambda share: of[min(len(of) * share // 100, len(of) - 1)]
    return {"median_us": at(50), "p90_us": at(90), "p99_us": at(99), "most_us": of[-1], "sum_us": sum(of)}

def row(name, of):
    return dict(kind, name=name, count=len(of), hangs=sum(f["hung"] for f in of),
                pause=times([f["pause_us"] for f in of]), whole=times([f["whole_us"] for f in of if not f["hung"]]))

report["kinds"] = [row(name, [f for f in report["faults"] if f["name"] == name]) for name in names]
report["kinds"].append(row("all", report["faults"]))
report["hangs"] = sum(f["hung"] for f in report["faults"])
report["took_us"] = day
report["steps"]["list"] = [[day * i // 3000, i, i, i * 13 % 64 + 1] for i in range(3000)]
text = json.dumps(report).replace("<", "\\u003c")
sys.stdout.write(open(sys.argv[2]).read().replace("\nREPORT\n", f"\n{text}\n"))
END
python3 "$shell/page_look.py" "$folder" "$made/report.html:Not everything held." "$made/long.html:<i>a-fault-of-kind-39" \
  "$made/replay.html:How long workers that stayed stood still" || { echo 'FAILED: see above' && exit 1; }
