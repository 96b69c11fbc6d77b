#!/usr/bin/env bash
# A real Prometheus, with the configuration and the alerts of deploy/prometheus, scrapes a job that loses a worker twice: the
# series that it has stored are what the job's journal says, each query of the dashboard has an answer, and alerts
# are pending where they should be. Skipped where there is no prometheus.
#
#     metrics_prometheus.sh ELASTIC TRAINER
deploy=$(realpath "$(dirname "$0")/../../deploy/prometheus")
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metrics.sh"
helper=$(realpath "$(dirname "$0")/../shell/prometheus.py")
{ prometheus --version && promtool --version; } >/dev/null 2>&1 ||
  skip 'there is no prometheus here; ./dev setup prometheus installs it'
test_begin "$@"

asks() { python3 "$helper" "$@" >asked 2>&1 || die "$1: $(cat asked)"; }

# await_stored EXPRESSION VALUE
await_stored() {
  local until=$((SECONDS + PATIENCE)) have=
  until have=$(python3 "$helper" value "$port" "$1") && [ "$have" = "$2" ]; do
    [ "$SECONDS" -lt "$until" ] || die "Prometheus has '$have' for $1, not $2: $(tail -n 5 prometheus.log)"
    timeout $NAP tail -f /dev/null
  done
}

# pending ALERT: the alert waits for its time to be over.
pending() { await_stored "count(ALERTS{alertname=\"$1\",alertstate=\"pending\"})" 1; }

# trains ROUND SIZE: the round trains, and Prometheus has heard so.
trains() {
  await "$err" "round $1: all $2 train"
  await_stored hvd_elastic_round "$1"
  await_stored hvd_elastic_world_size "$2"
}

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --metrics 0 --blacklist-cooldown-range 1h 1h \
  --checkpoint-dir "$folder/checkpoints" --checkpoint-interval 1s "$trainer" --step-ms 10 --say "$say"
await "$err" 'the metrics are at http'
url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/metrics' "$err" | head -n 1)
target=$(cut -d / -f 3 <<<"$url")
cp "$deploy/alerts.yml" .
sed "s/15s/1s/; s/127\.0\.0\.1:9464/$target/" "$deploy/prometheus.yml" >prometheus.yml
grep -q "\"$target\"" prometheus.yml || die "the example has no target: $(cat prometheus.yml)"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file=prometheus.yml --storage.tsdb.path="$folder/tsdb" --web.listen-address="127.0.0.1:$port" \
  >prometheus.log 2>&1 &
server=$!
helpers+=("$server")

# The job loses a worker, gets another one, and loses that one, too.
await_stored up 1
trains 1 4
await_stored 'hvd_elastic_job_state{state="running"}' 1
kill -KILL "$(workers HVD_HOST=127.0.0.2 | head -n 1)"
trains 2 3
ask blacklist clear 127.0.0.2 >answer 2>&1 || die "blacklist clear: $(cat answer)"
trains 3 4
kill -KILL "$(workers HVD_HOST=127.0.0.2 | head -n 1)"
trains 4 3
await_stored 'hvd_elastic_checkpoints_total{result="written"} > bool 0' 1
await_stored 'hvd_elastic_newest_commit_age_seconds < bool 60' 1

ask status --json >status.json || die 'status --json'
ask changes --json >changes.json || die 'changes --json'
ask events --json >events.json || die 'events --json'
asks history "$port" changes.json status.json events.json
cat asked
asks rules "$port" alerts.yml
asks queries "$port" "$deploy/dashboard.json" "$target"
pending HvdBlacklistCooling
pending HvdFewerWorkersThanAsked
await_stored 'count(ALERTS{alertstate="firing"})' ''

scrape text/plain
asks names scraped "$deploy/dashboard.json" alerts.yml
cat asked
promtool check metrics <scraped >answer 2>&1 || die "promtool: $(cat answer)"
[ ! -s answer ] || die "promtool has remarks: $(cat answer)"

ask stop >answer 2>&1 || die "stop: $(cat answer)"
finish 143
pending HvdDriverDown
kill "$server"
{ wait "$server"; } 2>/dev/null
! grep -E 'err=|duplicate' prometheus.log || die 'Prometheus has remarks'
