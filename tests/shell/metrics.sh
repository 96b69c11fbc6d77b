# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# What a driver serves at --metrics. Sourced after lib.sh:
#
#     scrape text/plain     in this format, into the file scraped; the address of the newest driver is in $url
scrape() {
  url=$(grep -oE 'http://[^ ]+/metrics' "$err" | tail -n 1)
  python3 - "$url" "$1" >scraped 2>scrape.err <<'PY' || die "$url: $(cat scrape.err)"
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Accept": sys.argv[2]})
with urllib.request.urlopen(request, timeout=60) as answer:
    sys.stdout.buffer.write(answer.read())
    assert ("openmetrics" in answer.headers["Content-Type"]) == ("openmetrics" in sys.argv[2]), answer.headers
PY
}
