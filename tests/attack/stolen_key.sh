#!/usr/bin/env bash
# A thief has the key of a host. The harm that is looked for: the key is still good after `hvd-elastic rekey`, or for a
# driver that takes over; the change of keys costs a round, a connection or a worker.
#
#     stolen_key.sh ELASTIC CHAOS_TRAINER STOLEN_KEY
. "$(dirname "$0")/lib.sh"
thief=$(realpath "$3")
attack_begin "$@"

newest() { "$thief" "$state" "$1"; }
# tries EPOCH WHAT: the key of that epoch of 127.0.0.2 is accepted, or refused.
tries() {
  local answer
  answer=$("$thief" "$state" 127.0.0.2 "$1") || die "the thief gets no answer"
  [ "$answer" = "$2" ] || die "the key of epoch $1 is $answer"
}

begin_job 3
others=$(workers | sort | xargs)
stolen=$(newest 127.0.0.2)
tries "$stolen" accepted # before: harm

ask rekey >rekey.out 2>&1 || die "rekey: $(cat rekey.out)"
cat rekey.out
[ "$(tail -n 1 rekey.out)" = 'hosts with a new key: 3; the old keys are no longer accepted' ] || die 'rekey does not say its end'
tries "$stolen" refused # now: none
new=$(newest 127.0.0.2)
[ "$new" -gt "$stolen" ] || die "no new key: $new"
tries "$new" accepted
for host in 127.0.0.1 127.0.0.3; do [ "$(newest $host)" -gt 3 ] || die "$host has no new key"; done
ask rekey --json >rekey.out 2>&1 || die "rekey: $(cat rekey.out)"
[ "$(cat rekey.out)" = '{"ok":true,"text":"hosts with a new key: 3; the old keys are no longer accepted"}' ] ||
  die "rekey --json: $(cat rekey.out)"
tries "$new" refused
train 3 50
no_harm
! grep -q 'connection to its agent is gone' "$err" || die 'a connection was broken'
[ "$others" = "$(workers | sort | xargs)" ] || die 'a worker was started again'

# the next driver: agents come back with the keys that they have
kill_driver
resume
for host in 127.0.0.1 127.0.0.2 127.0.0.3; do
  await_after "$err" 'is taken over' 1 "$host: (the|an) agent of this host (is back|says hello) with"
done
tries "$stolen" refused
tries "$new" refused
train 3 20

# the driver dies while keys are changed, and the agent of one host with it
new=$(newest 127.0.0.2)
ask rekey --no-wait >rekey.out 2>&1 || die "rekey: $(cat rekey.out)"
find_agent 127.0.0.3
kill -KILL "$driver" "$agent"
await_driver
resume
await_after "$err" 'is taken over' 2 '127.0.0.1: (the|an) agent of this host (is back|says hello) with'
ask rekey >rekey.out 2>&1 || die "rekey: $(cat rekey.out)"
grep -q 'the old keys are no longer accepted' rekey.out || die "rekey: $(cat rekey.out)"
tries "$new" refused
train 3 20
[ "$others" != "$(workers | sort | xargs)" ] || die 'the host without an agent has no new worker'
end_job
