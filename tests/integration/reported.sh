#!/usr/bin/env bash
# A training reports values: status, --json and the metrics show them, with their age and commit, over a killed driver
# and a lost rank 0; values that are no numbers are shown as such; hostile names are refused, and the log says so once.
# Without a driver, and after the end, status and the page have them from the journal.
#
#     reported.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metrics.sh"
test_begin "$@"

# shows PYTHON: until this holds of `values`, the values in status --json by name; that JSON is in the file answer.
shows() {
  local until=$((SECONDS + PATIENCE))
  until ask status --json >answer && python3 -c '
import json, sys
values = {each["name"]: each for each in json.load(open("answer"))["reported"]}
sys.exit(not eval(sys.argv[1]))' "$1" 2>wrong; do
    [ $SECONDS -lt $until ] || die "'$1' does not hold of $(cat answer) $(cat wrong)"
    timeout $NAP tail -f /dev/null
  done
}
# series PYTHON: this holds of `points`, the values over time by name, in the file answer, the data of a page.
series() {
  python3 -c '
import json, sys
points = {each["name"]: each["points"] for each in json.load(open("answer"))["live"]["series"]}
sys.exit(not eval(sys.argv[1]))' "$1" || die "'$1' does not hold of $(head -c 4000 answer)"
}
value() { python3 -c 'import json, sys; print({e["name"]: e for e in json.load(open("answer"))["reported"]}[sys.argv[1]][sys.argv[2]])' "$@"; }

words=(-np 2 --min-np 1 -H '127.0.0.1:1,127.0.0.2:1' --metrics 0 --beat 100ms --lease 1h "$trainer" "$say" "$folder/stop")
start "${words[@]}"
await_round 2

# The newest values: they move on, and each has a commit of its round and an age.
shows '"loss" in values and values["step"]["value"] > 5'
step=$(value step value)
shows "values['step']['value'] > $step and abs(values['loss']['value'] - 1 / values['step']['value']) < 1e-3"
shows 'values["loss"]["round"] == 1 and values["loss"]["commit"].startswith("1.") and values["loss"]["age_s"] < 60'
shows 'values["nan"]["value"] == "NaN" and values["inf"]["value"] == "-Infinity"'
shows 'values["once"]["value"] == 1 and values["once"]["age_s"] > values["loss"]["age_s"]'
shows 'len(values) == 32 and "extra/26" in values and "extra/27" not in values'
ask status >answer
grep -qE '^reported   loss 0\.[0-9]+, [^ ]+ ago at commit 1\.[0-9]+$' answer || die "status has no loss: $(cat answer)"
grep -qE '^           nan NaN, ' answer || die "status has no NaN: $(cat answer)"

# The metrics.
scrape text/plain
for line in 'hvd_elastic_reported{name="loss"} [0-9.e-]+' 'hvd_elastic_reported{name="nan"} NaN' \
  'hvd_elastic_reported{name="inf"} -Inf' 'hvd_elastic_reported{name="once"} 1' \
  'hvd_elastic_reported_age_seconds{name="loss"} [0-9.]+'; do
  grep -qE "^${line//[\{]/\\{}\$" scraped || die "no '$line' in the metrics: $(grep reported scraped)"
done
! grep -qE 'script|round 77|31m' scraped answer || die 'a hostile name is shown'

# The first name that is refused is in the log, once, and does no harm.
await "$err" 'hvd_report: "<script>.*is no name of a value'
[ "$(grep -c 'is no name of a value' "$err")" = 1 ] || die "refused names are logged more than once"
! grep -q 'one name too many' "$err" || die 'a second refusal of the same worker is logged'

# The next driver hears the newest values from the agents; what was reported long ago is not shown as new.
ask status --json >answer
step=$(value step value)
kill_driver
start "${words[@]}"
shows "values['step']['value'] > $step"
shows 'values["once"]["age_s"] > values["step"]["age_s"]'

# Rank 0 is lost: the new rank 0 goes on, and its values are newer.
ask status --json >answer
step=$(value step value)
victim=$(workers "HVD_INCARNATION=$(awk '$2 == 1 && $3 == 0 { print $1 }' "$say")")
[ -n "$victim" ] || die "there is no rank 0: $(cat "$say")"
kill -KILL "$victim"
shows "values['step']['round'] > 1 and values['step']['value'] > $step / 2"
round_now=$(value step round)
shows "values['step']['round'] >= $round_now and values['once']['age_s'] >= 0"

# A job without a driver shows what is in its journal: the recovery has written the values before it.
kill_driver
shows "values['step']['value'] > 5 and values['nan']['value'] == 'NaN' and values['once']['age_s'] > 0"
ask page --json >answer || die "page without a driver: $?"
series "len(points['loss']) >= 1"
start "${words[@]}"
shows "values['step']['round'] >= $round_now"

# The job has ended: the last values of all are there, and each is a point of its series. The exit code is still 1.
: >"$folder/stop"
finish 0
code=0
ask status >answer 2>wrong || code=$?
[ $code = 1 ] || die "status of an ended job: exit code $code: $(cat answer wrong)"
grep -qF "job $job has ended: finished" wrong || die "status of an ended job says $(cat wrong)"
grep -qE "^job +$job: ended, finished \(exit code 0\)\$" answer || die "status of an ended job shows $(cat answer)"
! grep -q 'to resume' answer || die "an ended job is to be resumed: $(cat answer)"
grep -qE "^ +step $(cat "$folder/stop"), [^ ]+ ago at commit [0-9]+\.[0-9]+\$" answer ||
  die "the last step, $(cat "$folder/stop"), is not in $(cat answer)"
code=0
ask status --json >answer 2>/dev/null || code=$?
[ $code = 1 ] || die "status --json of an ended job: exit code $code"
[ "$(value step value)" = "$(cat "$folder/stop")" ] || die "the last step is not in $(cat answer)"
ask page --json >answer || die "page of an ended job: $?"
series "points['step'][-1][1] == $(cat "$folder/stop") and len(points['step']) >= 2"
say_line "values over a lost driver and a lost rank 0"
