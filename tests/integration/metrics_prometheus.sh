#!/usr/bin/env bash
# A real Prometheus scrapes a job that loses a worker: what it has stored is what status says. Skipped where there
# is no prometheus.
#
#     metrics_prometheus.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
prometheus --version >/dev/null 2>&1 || skip 'there is no prometheus here; ./dev setup prometheus installs it'

# The newest value of an expression, as Prometheus has stored it; empty: none yet.
stored() {
  python3 - "$port" "$1" <<'PY'
import json, sys, urllib.parse, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[2]})
try:
    with urllib.request.urlopen(url, timeout=60) as answer:
        result = json.load(answer)["data"]["result"]
except OSError:
    result = []
print(result[0]["value"][1] if result else "")
PY
}

# await_stored EXPRESSION VALUE
await_stored() {
  local until=$((SECONDS + PATIENCE)) have=
  until have=$(stored "$1") && [ "$have" = "$2" ]; do
    [ "$SECONDS" -lt "$until" ] || die "Prometheus has '$have' for $1, not $2: $(tail -n 5 prometheus.log)"
    timeout $NAP tail -f /dev/null
  done
}

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --metrics 0 --blacklist-cooldown-range 1h 1h "$trainer" --say "$say"
await "$err" 'the metrics are at http'
target=$(grep -oE '127\.0\.0\.1:[0-9]+/metrics' "$err" | head -n 1)
cat >prometheus.yml <<YML
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: training
    static_configs: [{ targets: ["${target%/metrics}"] }]
YML
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file=prometheus.yml --storage.tsdb.path="$folder/tsdb" --web.listen-address="127.0.0.1:$port" \
  >prometheus.log 2>&1 &
server=$!
helpers+=("$server")

await "$err" 'round 1: all 4 train'
await_stored up 1
await_stored hvd_elastic_world_size 4
await_stored 'hvd_elastic_job_state{state="running"}' 1
kill -KILL "$(workers HVD_HOST=127.0.0.2 | head -n 1)"
await "$err" 'round 2: all 3 train'
await_stored hvd_elastic_world_size 3
await_stored hvd_elastic_rounds_total 2
await_stored 'hvd_elastic_worker_failures_total{host="127.0.0.2"}' 1
await_stored 'hvd_elastic_pause_seconds_count{cause="recovery"}' 1
await_stored 'hvd_elastic_pause_seconds_bucket{cause="recovery",le="+Inf"}' 1
[ "$(stored 'count(hvd_elastic_pause_phase_seconds_count)')" = 12 ] || die 'not all causes and phases are stored'
kill "$server"
{ wait "$server"; } 2>/dev/null
! grep -E 'err=|duplicate' prometheus.log || die 'Prometheus has remarks'
ask stop >answer 2>&1 || die "stop: $(cat answer)"
finish 143
