#!/usr/bin/env bash
# The machine of the driver is lost, with its address: its standby is on another machine, from which no ssh leads anywhere.
# The agents have heard where the standby will listen, and dial it; no worker is started anew.
#
#     etcd_networks.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
etcd_net=$net.3
. "$(dirname "$0")/../shell/etcd.sh"
networks_begin "$@"
network_join 3

cluster=1
etcd_server 1
etcd_await 1
helpers+=("${etcd_pids[1]}")
store=(--store "etcd://$net.3.1/tests" --store-insecure --store-lease 2s)
over "${store[@]}" -np 4 --min-np 2 -H $net.1.2:2,$net.2.2:2 --beat 200ms --lease 15s --verbose \
  "$trainer" --step-ms 5 --say "$say"
await_round 4
before=$(workers)
BODY_TEST=$folder ip netns exec net3 "$elastic" --standby "$job" "${store[@]}" --state-dir "$folder/sb" \
  --ssh-args '-o ProxyCommand=false' >>"$folder/sb.out" 2>>"$folder/sb.err" </dev/null &
standby=$!
for n in 1 2; do
  await "$folder/net$n/state/hvd-elastic/$job/$net.$n.2.log" 'standbys of the driver have 1 addresses'
done

kill_driver
rm -rf "$state"
driver=$standby state=$folder/sb err=$folder/sb.err
for n in 1 2; do await "$err" "$net.$n.2: (the|an) agent of this host (is back|says hello) with 2 workers"; done
[ "$(workers)" = "$before" ] || die "workers were started anew"
grep -q "listens for agents at $net.3.2:" "$err" || die "the standby does not listen at its own address"

# it leads: a worker that dies is replaced
kill -KILL "$(workers | head -n 1)"
await_round 4
ask stop >/dev/null || die "stop: exit code $?"
await_driver
[ "$code" = 143 ] || die "the driver's exit code is $code, not 143"
for pid in $(marked "HVD_JOB=$job") $(agents); do
  await_end "$pid" || die "left on the other side: $pid"
done
remote_left
say_line "agents of two other machines came to a standby at another address"
