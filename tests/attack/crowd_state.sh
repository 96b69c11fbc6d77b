#!/usr/bin/env bash
# The harm: a stranger without a key holds silent connections to the port of each agent at which other agents fetch
# commits. A host that joins then cannot fetch its state, and the rounds with it are revoked one after the other, while
# no member makes a step.
#
#     crowd_state.sh ELASTIC CHAOS_TRAINER FLOOD
. "$(dirname "$0")/lib.sh"
attack_begin "$@"

begin_job 3
joins 4
peace_joined=$joined peace_pause=$pause

# shellcheck disable=SC2046 # words
flood_ports $(listening $(agents))
joins 4
at_most 'a host joins' "$joined" "$peace_joined"
at_most 'the longest pause of the members' "$pause" "$peace_pause"
no_harm
end_job
