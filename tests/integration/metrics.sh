#!/usr/bin/env bash
# --metrics of a real job: series against status, changes and the end summary, over a lost worker and a killed
# driver; no sample twice; both formats; promtool, where there is one.
#
#     metrics.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metrics.sh"
test_begin "$@"

# compare: the metrics say what status and changes say at the same time, as far as that stands still.
compare() {
  scrape text/plain
  ask status --json >status.json || die 'status --json'
  ask changes --json >changes.json || die 'changes --json'
  python3 - >compared 2>&1 <<'PY' || die "the metrics: $(cat compared)"
import json, re
samples, families = {}, {}
for line in open("scraped"):
    if line.startswith("# TYPE"):
        _, _, name, kind = line.split()
        assert name not in families, f"two families {name}"
        families[name] = kind
    elif not line.startswith("#"):
        name, value = line.rstrip("\n").rsplit(" ", 1)
        assert name not in samples, f"{name} comes twice"
        samples[name] = float(value)
        assert re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) in families, f"{name} has no family"
def is_(name, value, near=0):
    have = samples["hvd_elastic_" + name]
    assert abs(have - value) <= near, f"{name} is {have}, not {value}"
status, changes = json.load(open("status.json")), json.load(open("changes.json"))["changes"]
is_(f'job_state{{state="{status["state"]}"}}', 1)
is_("round", status["round"])
is_("world_size", status["size"])
is_("rounds_total", status["resets"] + 1)
is_("driver_term", status["driver"]["term"])
for state, count in status["workers"].items():
    is_(f'workers{{state="{state}"}}', count)
is_('hosts{state="listed"}', status["hosts"]["listed"])
is_('hosts{state="agent"}', status["hosts"]["agents"])
for failed in status["failures"]:
    is_(f'worker_failures_total{{host="{failed["host"]}"}}', failed["count"])
for use, spent in status["goodput"].items():
    if use != "part" and use != "training":
        is_(f'worker_time_seconds{{use="{use}"}}', spent["worker_s"], 0.002)
assert samples['hvd_elastic_worker_time_seconds{use="training"}'] <= status["goodput"]["training"]["worker_s"] + 0.002
for cause in ("first", "switch", "recovery"):
    mine = [change for change in changes if change["cause"] == cause]
    is_(f'pause_seconds_count{{cause="{cause}"}}', len(mine))
    is_(f'pause_seconds_sum{{cause="{cause}"}}', sum(change["pause_us"] for change in mine) / 1e6, 2e-6)
    is_(f'pause_phase_seconds_sum{{cause="{cause}",phase="rebuild"}}', sum(change["rebuild_us"] for change in mine) / 1e6, 2e-6)
    last = 0
    for name, value in samples.items():
        if name.startswith(f'hvd_elastic_pause_seconds_bucket{{cause="{cause}"'):
            assert value >= last, f"{name}: the buckets fall"
            last = value
PY
}

# trains WORKERS: all members of the newest round train, as the driver sees it.
trains() { await "$err" "round [0-9]+: all $1 train" "${2:-1}"; }

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --metrics 0 --blacklist-cooldown-range 1h 1h "$trainer" --say "$say"
await "$err" 'the metrics are at http://127\.0\.0\.1:[0-9]+/metrics'
trains 4
compare
victim=$(workers HVD_HOST=127.0.0.2 | head -n 1)
kill -KILL "$victim"
trains 3
compare
grep -q 'worker_failures_total{host="127.0.0.2"} 1$' scraped || die "the failure is not counted: $(cat scraped)"
grep -q 'blacklist{state="cooling"} 1$' scraped || die "the blacklist: $(cat scraped)"

# the next driver goes on counting
kill_driver
start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --metrics 0 --blacklist-cooldown-range 1h 1h "$trainer" --say "$say"
await "$err" 'the metrics are at http' 2
trains 3 2
compare
grep -q 'worker_failures_total{host="127.0.0.2"} 1$' scraped || die "the failure is forgotten: $(cat scraped)"
grep -q 'driver_term 2$' scraped || die "the term: $(cat scraped)"
grep -qE 'time_seconds\{use="recovery"\} [0-9.]*[1-9]' scraped || die "the recovery is forgotten: $(cat scraped)"

scrape 'application/openmetrics-text;version=1.0.0,text/plain;q=0.1'
[ "$(tail -n 1 scraped)" = '# EOF' ] || die "no end: $(tail -n 1 scraped)"
ask stop >answer 2>&1 || die "stop: $(cat answer)"
await_driver
[ "$code" = 143 ] || die "exit code $code"
for part in 'rounds: 2, the last of 3 workers' 'trained for ' "lost, in workers' time: start" \
  'failures of workers by host: 127\.0\.0\.2 1([[:space:]]|$)' 'checkpoint: none' "logs: $state/events\.log"; do
  grep -qE "$part" "$err" || die "no '$part' in the summary: $(tail -n 12 "$err")"
  grep -qE "$part" "$state/events.log" || die "no '$part' in events.log"
done
nothing_left

# at a quiet level there is no summary
new_job
start -np 1 --log-level warning true
await_driver
! grep -q 'rounds: ' "$err" || die "a summary at level warning: $(cat "$err")"
# wrong places
for place in 70000 nowhere:1 1.2.3.4:x; do
  code=0
  "$elastic" -np 1 --metrics "$place" true >answer 2>&1 || code=$?
  [ "$code" = 2 ] || die "--metrics $place: exit code $code, not 2: $(cat answer)"
  grep -q -- "--metrics $place: " answer || die "--metrics $place: $(cat answer)"
done

if promtool --version >answer 2>&1; then
  new_job
  start -np 1 --metrics 0 "$trainer" --say "$say"
  trains 1
  scrape text/plain
  promtool check metrics <scraped >answer 2>&1 || die "promtool: $(cat answer)"
  [ ! -s answer ] || die "promtool has remarks: $(cat answer)"
  ask stop >answer 2>&1 || die "stop: $(cat answer)"
  finish 143
else
  say_line 'promtool is not here, so the metrics were not shown to it; ./dev setup prometheus installs it'
fi
