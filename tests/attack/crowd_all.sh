#!/usr/bin/env bash
# The harm: strangers without a key crowd every port of a job at once: the driver's, those of the agents, and those at
# which the workers meet. First with silent connections, then with the beginning of a handshake on each, then from 200
# addresses, then from the address that the job's own processes have. Training stops, hosts cannot join, a host is blamed.
#
#     crowd_all.sh ELASTIC CHAOS_TRAINER FLOOD
. "$(dirname "$0")/lib.sh"
attack_begin "$@"

begin_job 3
joins 4
peace_joined=$joined peace_pause=$pause

# crowd OPTIONS...: one kind of stranger at every port, while hosts join.
crowd() {
  local worker_pids
  worker_pids=$(workers)
  # shellcheck disable=SC2046,SC2086 # words
  flood_ports "$@" $(listening "$driver" $(agents) $worker_pids)
  joins 4
  flood_end
  at_most "$*: a host joins" "$joined" "$peace_joined"
  at_most "$*: the longest pause of the members" "$pause" "$peace_pause"
  no_harm
}

crowd --from 127.0.0.99
crowd --from 127.0.0.99 --speak
crowd --from 127.0.0.20 --sources 200
crowd --from 127.0.0.1
# The log says what crowds the driver, and what crowds the workers, whose remarks come by way of their agents.
await "$err" 'crowded by connections that have not proved.*most from 127'
await "$err" 'unknown connections crowd the port at which this worker meets other workers.*most from 127'
end_job
