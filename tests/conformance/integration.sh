#!/usr/bin/env bash
# Section 6.1: integration tests with real processes. integration.sh ELASTIC TRAINER [NAME...]
#
# -np is what the first round is to have. The reference's tests say 2 where four slots are there, as it
# takes all slots that it has found; here the job begins with the first two that are ready, and the
# others join.
. "$(dirname "$0")/lib.sh"
conformance_begin "$@"

A=localhost
B=127.0.0.1

# ---- hosts come and go ---------------------------------------------------------------------------------

add_and_remove() { # SLOTS
  hosts_from 0 "$A:$1"
  hosts_from 1 "$A:$1" "$B:$1"
  hosts_from 2 "$B:$1"
  changes_after 0 1
  options -np "$1" --min-np "$1" --max-np $((2 * $1))
}

for slots in 2 1; do
  scenario 6.1 hosts_added_and_removed "slots: $slots"
  add_and_remove $slots
  expects "$slots $A 0 1" "$((2 * slots)) $A 0 2" "$slots $B $slots 3"
  play
done

# ---- one fails -----------------------------------------------------------------------------------------

for how in raise kill; do
  scenario 6.1 single_rank_failure "$how"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "2 $B 2 2" "2 $B 2 2"
  play

  scenario 6.1 single_rank_failure "$how, our default"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 2 --max-np 4 "${our_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "3 $A 1 2" "3 $A 1 2"
  ours "the failure is the slot's: the other worker of its host is left alone, so 3 train, not 2"
  play
done

for how in raise kill; do
  scenario 6.1 fault_tolerance_without_scaling "$how"
  hosts_fixed $A:2 $B:2
  options -np 4 --min-np 2 "${reference_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "2 $B 2 2" "2 $B 2 2"
  play

  scenario 6.1 fault_tolerance_without_scaling "$how, our default"
  hosts_fixed $A:2 $B:2
  options -np 4 --min-np 2 "${our_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "3 $A 1 2" "3 $A 1 2"
  ours "as in single_rank_failure"
  play

  scenario 6.1 fault_tolerance_without_scaling "$how, one host"
  hosts_fixed $A:4
  options -np 4 --min-np 2 "${our_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "3 $A 1 2" "3 $A 1 2"
  ours "the reference wants two hosts here, and would end as its only one is barred"
  play
done

# ---- too many fail -------------------------------------------------------------------------------------

scenario 6.1 all_ranks_failure raise
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
exits 1.0 raise 0 1 2 3
expects "4 $A 0 1"
ends 1 '(every worker of round 1 has failed|every slot is barred after its failures); .*exit code 1'
play

scenario 6.1 all_ranks_failure 'raise, our default'
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 2 --max-np 4 "${our_blacklist[@]}"
exits 1.0 raise 0 1 2 3
expects "4 $A 0 1"
ends 1 'every worker of round 1 has failed; the first failure: .*exit code 1'
play

scenario 6.1 all_ranks_failure SIGKILL
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
exits 1.0 kill 0 1 2 3
expects "4 $A 0 1"
ends 1 'every slot is barred after its failures; .*killed by signal 9'
play

scenario 6.1 all_ranks_failure 'SIGKILL, forgiven'
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 4 --max-np 4
exits 1.0 kill-once 0 1 2 3
expects "4 $A 0 1" "4 $A * 2" "4 $A * 2"
ours "all are killed at once, which is no error of the program: they go on from the commit that the" \
  "agents keep"
play

for how in raise kill; do
  scenario 6.1 all_hosts_blacklisted "$how"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
  exits 1.0 $how 0 2
  expects "4 $A 0 1"
  ends 1 'every slot is barred after its failures'
  play

  scenario 6.1 all_hosts_blacklisted "$how, our default"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 2 --max-np 4 "${our_blacklist[@]}"
  exits 1.0 $how 0 2
  expects "4 $A 0 1" "2 $A 1 2" "2 $A 1 2"
  ours "two slots are out, no host is: the other two go on"
  play
done

for how in raise kill; do
  scenario 6.1 min_hosts_timeout "$how"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 4 --max-np 4 "${ends_when_short[@]}" "${reference_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1"
  ends 3
  play

  scenario 6.1 min_hosts_timeout "$how, our default"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 4 --max-np 4 "${ends_when_short[@]}" "${our_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1"
  ends 3
  play

  scenario 6.1 min_hosts_timeout "$how, forgiven"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 4 --max-np 4
  exits 1.0 $how-once 0
  expects "4 $A 0 1" "4 $A 1 2" "4 $A 1 2"
  ours "with a blacklist that forgives in time the slot is used again, and the job ends well"
  play
done

# ---- limits, and hosts that come back ------------------------------------------------------------------

scenario 6.1 reset_limit 1
add_and_remove 2
options --reset-limit 1
expects "2 $A 0 1" "4 $A 0 2"
ends 1 'change 2 of the membership is one more than --reset-limit 1 allows'
play

scenario 6.1 reset_limit 2
add_and_remove 2
options --reset-limit 2
expects "2 $A 0 1" "4 $A 0 2" "2 $B 2 3"
play

# The reference says 1 2, which is two seconds there, and trains for one: here nothing depends on the time.
scenario 6.1 resurrecting_blacklisted_hosts_exponential_backoff 'not back yet'
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 2 --max-np 4 --blacklist-scope host --blacklist-cooldown-range 100 200
trains --epochs 5
exits 1.0 raise 3
exits 3.0 raise 3
expects "4 $A 0 1" "2 $A 0 2" 'again 3'
play

scenario 6.1 resurrecting_blacklisted_hosts_exponential_backoff 'back twice'
hosts_from 0 $A:2 $B:2
options -np 4 --min-np 2 --max-np 4 --blacklist-scope host --blacklist-cooldown-range 0.2 60
trains --epochs 5
newcomers_wait
exits 1.0 raise-once 3
exits 3.0 raise-once 3
changes_after 1 3
expects "4 $A 0 1" "2 $A 0 2" "4 $A 0 3" "2 $A 0 4" "4 $A 0 5"
says "blacklist: $B failed: cooling for [234]00ms more after 1 failure\$"
says "blacklist: $B failed: cooling for [456]00ms more after 2 failures\$"
play

conformance_end
