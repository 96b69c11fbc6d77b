#!/usr/bin/env bash
# A training over networks that fail: its hosts are two network namespaces, in each a real sshd, and
# this one, which is the router between them. Links are cut by routing rules of the router: packets
# vanish, without a message to either side.
#
#     train_networks.sh ELASTIC PUPIL
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/train.sh"
networks_begin "$@"

STATE_MIB=16
made=$folder/made
printf '#!/bin/sh\ncat %s/hosts\n' "$folder" >hosts.sh
chmod +x hosts.sh

# The first rule looks up what is our own: ours have to come before it.
rules_first() { # NAMESPACE...
  ip "$@" rule add pref 10 lookup local && ip "$@" rule del pref 0
}
rules_first || skip 'this kernel has no routing rules'
for name in net1 net2; do rules_first -n $name; done

# The script runs at any moment, so it never sees half of the list.
list() {
  printf '%s\n' "$@" >hosts.new
  mv hosts.new hosts
}

# train WORDS...: for the driver. On a busy machine a process may stand still for some seconds, and with it the lease of
# its host: that is no failure of a network.
train() {
  new_job
  : >"$made"
  over --max-np unlimited --host-discovery-script ./hosts.sh --beat 200ms --lease 15s --agent-timeout 20s \
    --prepare-timeout 5s "$@" "$trainer" --state $STATE_MIB --say "$say" --made "$made"
}

# N further steps of rank 0 in this round
steps() { await "$made" "^$round 0 " "$1"; }

stop() {
  no_step_lost
  ! grep 'sum_trainer:' "$err" || die 'a trainer has found something wrong'
  ask stop >/dev/null || die 'stop'
  ended 143
}

# MiB that have gone to network N, or have come from there
sent_to() { sed -n "s/^ *veth$1: *//p" /proc/net/dev | awk '{ print int($9 / 1048576) }'; }
come_from() { sed -n "s/^ *veth$1: *//p" /proc/net/dev | awk '{ print int($1 / 1048576) }'; }

# throttle RATE: what each host sends goes no faster.
throttle() {
  local PATH=$PATH:/usr/sbin
  for name in 1 2; do
    ip netns exec net$name tc qdisc add dev peer$name root tbf rate "$1" burst 128k latency 50ms \
      2>/dev/null || return
  done
}

full_speed() {
  local PATH=$PATH:/usr/sbin
  for name in 1 2; do ip netns exec net$name tc qdisc del dev peer$name root 2>/dev/null || return; done
}

# ---- hosts come: their workers get the state from the others, through the router ---------------------

list $net.1.2:2
train -np 2
await_round 2
steps 10
before=$(sent_to 2)
list $net.1.2:2 $net.2.2:2
await_round 4
steps 10
[ $(($(sent_to 2) - before)) -ge $((STATE_MIB - 1)) ] || die 'no state has come to network 2'

# This machine too, by an address of its own: the others reach it there, and it gets the state from both
# at once, as neither can send all of it sooner than the other a part, even if the other stands still for some seconds.
throttle 16mbit || say_line 'there is no tc here, or no tbf: from how many the state comes is not seen'
before=("$(come_from 1)" "$(come_from 2)")
list $net.1.2:2 $net.2.2:2 $net.2.1:1
await_round 5
steps 10
parts=($(($(come_from 1) - before[0])) $(($(come_from 2) - before[1])))
if full_speed; then
  say_line "a state of $STATE_MIB MiB has come from two hosts: ${parts[*]} MiB"
  for part in "${parts[@]}"; do
    [ "$part" -ge $((STATE_MIB / 4)) ] || die 'the state has come from one of them'
  done
fi
stop

# ---- the driver's machine, by its loopback ----------------------------------------------------------

say_line 'localhost beside others'
list no-such-host.invalid:1 localhost:1 127.0.0.2:1 $net.1.2:1
train -np 3 --blacklist-cooldown-range 1m 1m
await_round 3
steps 10
stop

say_line 'localhost before others: they are refused until it goes by its address'
list localhost:1
train -np 1 --blacklist-cooldown-range 500ms 500ms
await_round 1
list localhost:1 $net.1.2:1
await "$err" "$net.1.2: no agent could be started: .*list it by its address"
[ "$(grep -c 'is launched' "$err")" = 1 ] || die 'somebody was launched who cannot be reached'
list $net.2.1:1 $net.1.2:1
# the second one to be ready may have missed the change of the first
await "$err" "round [0-9]+: by rank ($net.2.1:0 $net.1.2:0|$net.1.2:0 $net.2.1:0)"
round=$(sed -nE 's/.*round ([0-9]+): by rank.*/\1/p' found)
steps 10
stop

say_line 'localhost by an interface, before others'
list localhost:1
train -np 1 --network-interface veth2
await_round 1
list localhost:1 $net.1.2:1
await_round 2
steps 10
stop

# ---- links are cut, and come back --------------------------------------------------------------------

# cut WORDS...: this command cuts network 2 off, and the last argument puts it back
cut() {
  local what=$1 back=$3
  say_line "$what"
  $2 || die "$what"
  await_round 2
  await "$err" "silent for longer than the lease" $((++silences))
  grep "round $round (recovery): size 2, from commit [0-9]*\.[1-9]" "$err" >/dev/null ||
    die "round $round does not go on from a commit of the training"
  steps 20
  $back || die "not $what"
  await_round 4
  steps 20
}

list $net.1.2:2 $net.2.2:2
silences=0
train -np 4 --min-np 2
await_round 4
steps 20
cut 'a link is down' 'ip link set veth2 down' 'ip link set veth2 up'
cut 'all vanishes that comes from a host' 'ip rule add pref 1 iif veth2 blackhole' \
  'ip rule del pref 1'
cut 'all vanishes that goes to a host' 'ip -n net2 rule add pref 1 iif peer2 blackhole' \
  'ip -n net2 rule del pref 1'
stop

# ---- a wall between the workers of two hosts, both of which reach the driver --------------------------

# Packets from one host to the other vanish, except those for the ports of these processes.
wall() { # PID...
  local port
  for port in $(listens "$@"); do
    ip rule add pref 1 ipproto tcp dport "$port" lookup main
    ip rule add pref 1 ipproto tcp sport "$port" lookup main
  done
  ip rule add pref 2 iif veth1 to $net.2.0/24 blackhole
  ip rule add pref 2 iif veth2 to $net.1.0/24 blackhole
}

# TCP ports where these listen
listens() {
  local pid inode port
  for pid in "$@"; do
    for inode in $(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'); do
      awk -v inode="$inode" '$4 == "0A" && $10 == inode { split($2, at, ":"); print at[2] }' \
        "/proc/$pid/net/tcp"
    done
  done | while read -r port; do echo $((16#$port)); done
}

no_wall() {
  while ip rule del pref 2 2>/dev/null; do :; done
  while ip rule del pref 1 2>/dev/null; do :; done
}

# pair: two that are of different hosts
pair="($net.1.2:[01]#[0-9]+ for $net.2.2:[01]#[0-9]+|$net.2.2:[01]#[0-9]+ for $net.1.2:[01]#[0-9]+)"

say_line 'a wall before the first round'
wall
train -np 4 --stall-warning 1s
await "$err" "4 of 4 wait for each other, for [0-9]+s in connect: $pair"
no_wall
await_round 4
steps 20

say_line 'a wall in the middle of it, with holes where agents serve state'
mapfile -t there < <(agents)
wall "${there[@]}"
await "$err" "wait for each other, for [0-9]+s in allreduce \(number [0-9]+\): $pair"
no_wall
steps 50
stop

train -np 4 --stall-warning 1s --stall-shutdown 20s
await_round 4
steps 20
wall
await "$err" "is revoked: the members wait for each other, for [0-9]+s in allreduce"
no_wall
await_round 4
steps 20
[ "$(grep -c 'is launched' "$err")" = 4 ] || die 'a worker was started again, and had done nothing wrong'
stop
say_line 'training over networks: all of it'
