#!/usr/bin/env bash
# Many agents on this machine, each with two light workers: they start, train in one round, and stop.
#
#     many.sh ELASTIC TRAINER AGENTS
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
agents=$3
PATIENCE=${MANY_PATIENCE:-300}

for ((i = 0; i < agents; i++)); do
  echo "127.0.$((1 + i / 200)).$((1 + i % 200)):2"
done >hosts

ms_since() { echo $(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 1000)); }
hwm() { sed -n 's/^VmHWM:[[:space:]]*//p' "/proc/$driver/status"; }

began=$EPOCHREALTIME
start -np $((2 * agents)) --hostfile hosts --gather 0 --log-level warning "$trainer" --step-ms 100 \
  --say "$say"
await_round $((2 * agents))
started=$(ms_since "$began")
memory=$(hwm)
victim=$(workers HVD_HOST=127.0.1.1 | head -n 1)
began=$EPOCHREALTIME
kill -KILL "$victim"
await "$state/events.log" "round $((round + 1))"
recovered=$(ms_since "$began")
await_round $((2 * agents))
after=$(hwm)
began=$EPOCHREALTIME
ask stop || die "stop: exit code $?"
await_driver
stopped=$(ms_since "$began")
[ "$code" = 143 ] || die "the driver's exit code is $code, not 143"
nothing_left
say_line "$agents agents, $((2 * agents)) workers: all in round 1 after $started ms, a death known and" \
  "the next round decided after $recovered ms, stopped after $stopped ms;" \
  "driver's memory at most $memory then, $after in the end"
