#!/usr/bin/env bash
# The dashboard has the fields of Grafana's schema. The alerts and the example of deploy/prometheus by promtool: they are valid, and each alert fires for the series that it is
# about, and for no healthy one. metrics_prometheus.sh shows alerts and dashboard to a real job.
set -uo pipefail
root=$(realpath "$(dirname "$0")/../..")
deploy=$root/deploy/prometheus
cases=$root/tests/prometheus/alerts_test.yml
python3 "$root/tests/shell/prometheus.py" board "$deploy/dashboard.json" || exit 1
promtool --version >/dev/null 2>&1 || { echo 'skipped: there is no promtool here; ./dev setup prometheus installs it' && exit 77; }
failed=0
expect() { "$@" || failed=1; }
expect promtool check rules "$deploy/alerts.yml"
expect promtool check config "$deploy/prometheus.yml"
expect promtool test rules "$cases"
expect python3 "$root/tests/shell/prometheus.py" alerts "$deploy/alerts.yml" "$cases"
exit $failed
