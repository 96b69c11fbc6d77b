#!/usr/bin/env bash
# --on-event of a real job: a command is told a worker's death, the recovery and the verdict as JSON; one that hangs holds
# up no recovery, and dies with its driver; the next driver goes on telling.
#
#     on_event.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

cat >hook.sh <<'SH'
#!/bin/sh
cd "$1" || exit 1
if [ -e hang ]; then
  echo $$ >hanging
  exec sleep 1000
fi
cat >>told
SH
chmod +x hook.sh

"$elastic" --on-event-filter info,nosuch -np 1 -H localhost:1 true >answer 2>&1 && die 'a filter with an unknown word'
grep -q '"nosuch" is neither a severity' answer || die "a filter with an unknown word: $(cat answer)"

start -np 3 --min-np 2 -H 127.0.0.1:2,127.0.0.2:1 --on-event "$PWD/hook.sh $PWD" --on-event-filter warning,round_trains,job_over,driver_started \
  "$trainer" --say "$say"
await_round 3
await told '"kind":"round_trains".*"cause":"first"'
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
await told '"severity":"warning".*"kind":"worker_failed","round":[0-9]+,"host":"127.0.0.1","slot":[01],"incarnation":[0-9]+,"cause":"[^"]*SIGKILL'
await told '"kind":"round_trains".*"pause_us":[0-9]+.*"cause":"recovery"'
await_round 3

# a command that hangs: the recovery goes on beside it, and SIGKILL to the driver ends the command, too
: >hang
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
await hanging '[0-9]'
await_round 3
kill_driver
await_end "$(cat hanging)" || die 'the command outlives its driver'
rm hang
: >told

BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await told '"kind":"driver_started"'
for host in 127.0.0.1 127.0.0.2; do
  await_after "$err" 'is taken over' 1 "$host: (the|an) agent of this host"
done
ask stop || die "stop: exit code $?"
finish 143
python3 - >wrong 2>&1 <<'PY' || die "what the command was told: $(cat wrong told)"
import json
events = [json.loads(line) for line in open("told")]
assert events[-1]["kind"] == "job_over" and events[-1]["outcome"] == "stopped", events[-1]
assert all(event["kind"] != "hosts_changed" for event in events), "the filter lets through what it does not name"
PY
say_line 'a command of the operator is told each event, also by the next driver; one that hangs holds up nothing'
