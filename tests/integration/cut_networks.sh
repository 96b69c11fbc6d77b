#!/usr/bin/env bash
# The cost of being cut off: three hosts, each a network namespace with a real sshd.
#
# The link of one goes down, without a message: it has to be noticed within the lease, the others go
# on, and it comes back. Then the driver is cut off from all of them for longer than the lease, and
# for less than the grace: that must cost nothing, no round, no worker, no step.
#
#     cut_networks.sh ELASTIC CHAOS_TRAINER [TIMES]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
networks_begin "$@"
network 3
times=${3:-1}

LEASE_MS=10000
STEP_MS=5
AT_MOST=5 # leases: a bound that holds on a machine that is busy with other things
steps=$folder/steps
: >"$steps"

# The first rule looks up what is our own: ours have to come before it.
rules_first() { # NAMESPACE...
  ip "$@" rule add pref 10 lookup local && ip "$@" rule del pref 0
}
rules_first || skip 'this kernel has no routing rules'
for name in net1 net2 net3; do rules_first -n $name; done

now_ms() { date +%s%3N; }

# When the newest line of the log that has this in it was written.
said_ms() { date -d "$(grep -e "$1" "$err" | tail -n 1 | cut -d ' ' -f 1)" +%s%3N; }

said() { grep -c -e "$1" "$err"; }

# train SIZE N: N further steps of so many
train() { await "$steps" " $1\$" $(($(grep -c " $1\$" "$steps") + $2)); }

# The longest time from one step to the next, in ms, of those from line N on.
longest_ms() { # N
  tail -n "+$1" "$steps" | awk 'NR > 1 { if ($1 - before > most) most = $1 - before }
    { before = $1 }
    END { printf "%d\n", most / 1000 }'
}

at_most() { # WHAT MS
  [ "$2" -le $((AT_MOST * LEASE_MS)) ] || die "$1: $2 ms, with a lease of $LEASE_MS ms"
}

link_down() {
  local silent='10.77.3.2: silent for longer than the lease' line down noticed paused
  train 3 50
  line=$(wc -l <"$steps")
  down=$(now_ms)
  ip link set veth3 down
  await "$err" "$silent" $(($(said "$silent") + 1))
  noticed=$(($(said_ms "$silent") - down))
  train 2 50
  paused=$(longest_ms "$line")
  at_most 'noticed' "$noticed"
  at_most 'the others stood still' "$paused"
  ip link set veth3 up
  line=$(now_ms)
  train 3 50
  say_line "a link is down: noticed after $noticed ms (the lease is $LEASE_MS ms), the others stood still" \
    "for $paused ms; whole again $(($(now_ms) - line)) ms after it was up"
}

# Nothing reaches the driver, in the same moment from all, which is one rule; then nothing that it sends arrives.
for n in 1 2 3; do ip route add blackhole $net.$n.1 table 77; done
cut_driver() {
  local n
  ip rule add pref 1 lookup 77 || die 'the driver cannot be cut off'
  for n in 1 2 3; do ip -n "net$n" rule add pref 1 iif "peer$n" from "$net.$n.1" blackhole; done
}

join_driver() {
  local n
  for n in 1 2 3; do ip -n "net$n" rule del pref 1; done
  ip rule del pref 1
}

driver_alone() {
  local alone='no agent is heard' back='the agent of this host is back' launched='is launched' dead='lease, counted as dead'
  local line was were cut for_ms=0
  train 3 50
  line=$(wc -l <"$steps")
  was=$(said "$launched") were=$(said "$dead")
  cut=$(now_ms)
  cut_driver
  await "$err" "$alone" $(($(said "$alone") + 1))
  while [ "$for_ms" -le $((2 * LEASE_MS)) ]; do
    train 3 50
    for_ms=$(($(now_ms) - cut))
  done
  cut=$(said "$back")
  join_driver
  await "$err" "$back" $((cut + 3))
  train 3 100
  tail -n "+$line" "$steps" | awk 'NR == 1 { round = $2; step = $3 - 1 }
    $2 != round { print "round " $2 " after round " round; exit 1 }
    $3 != ++step { print "step " $3 " instead of " step; exit 1 }' >wrong || die "$(cat wrong)"
  [ "$(said "$launched")" = "$was" ] || die 'a worker was started'
  [ "$(said "$dead")" = "$were" ] || die 'somebody was counted as dead'
  at_most 'the longest time between two steps' "$(longest_ms "$line")"
  say_line "the driver is cut off from all for $for_ms ms: no round, no worker, no step lost; the" \
    "longest time between two steps was $(longest_ms "$line") ms"
}

printf '#!/bin/sh\nprintf "%%s:1\\n" %s\n' "$net.1.2 $net.2.2 $net.3.2" >hosts.sh
chmod +x hosts.sh
: >wrong
over -np 3 --min-np 2 --host-discovery-script ./hosts.sh --beat 200ms --lease ${LEASE_MS}ms \
  --agent-timeout 15s --driver-grace 5m --env CHAOS_ARENA="$folder" --env HVD_CHAOS_STEPS="$steps" \
  "$trainer" --step-ms $STEP_MS
for ((i = 1; i <= times; i++)); do
  link_down
  driver_alone
done
[ ! -s "$folder/wrong" ] || die "a trainer has found something wrong: $(head -n 1 "$folder/wrong")"
: >stop
ended 0
