#!/usr/bin/env bash
# The harm: a stranger without a key holds silent connections to the driver's port. A host that joins cannot say hello,
# and is charged for it; after the driver's death agents stay outside of its successor.
#
#     crowd_driver.sh ELASTIC CHAOS_TRAINER FLOOD
. "$(dirname "$0")/lib.sh"
attack_begin "$@"

taken=0
# take_over: the driver dies, and its successor takes over. $back is the time until all agents are back, in ms.
take_over() {
  local began host
  taken=$((taken + 1))
  kill_driver
  began=$EPOCHREALTIME
  resume
  for host in 127.0.0.1 127.0.0.2 127.0.0.3; do
    await_after "$err" 'is taken over' "$taken" "$host: (the|an) agent of this host (is back|says hello) with"
  done
  back=$(ms_since "$began")
}

begin_job 3
joins 4
take_over
peace_joined=$joined peace_pause=$pause peace_back=$back

# shellcheck disable=SC2046 # words
flood_ports $(listening "$driver")
joins 4
at_most 'a host joins' "$joined" "$peace_joined"
at_most 'the longest pause of the members' "$pause" "$peace_pause"
line=$(wc -l <"$steps")
take_over
train 3 20
at_most 'agents come back to a driver that takes over' "$back" "$peace_back"
say_line "the longest pause meanwhile: $(longest "$line") ms"
no_harm
end_job
